// A condition variable orders nothing by itself, its mutex does.
// race: write value | read seen
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready, value;
static void *worker(void *none) {
    pthread_mutex_lock(&lock);
    ready = 1;
#ifdef CLEAN
    value = 1;
#endif
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
#ifndef CLEAN
    value = 1; // @value
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_mutex_lock(&lock);
    while (!ready) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    int seen = value; // @seen
    pthread_join(thread, 0);
    return seen > 1;
}
