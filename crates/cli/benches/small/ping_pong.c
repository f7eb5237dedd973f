// Two threads take turns, by a condition variable, twice each.
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turn;
static void *work(void *me) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        while (turn != (long)me) pthread_cond_wait(&changed, &lock);
        turn = 1 - (long)me;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
