// Two threads count, without a lock.
// race: read count | write count
// race: write count | write count
#include <pthread.h>
static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *worker(void *none) {
#ifdef CLEAN
    pthread_mutex_lock(&lock);
#endif
    counter++; // @count
#ifdef CLEAN
    pthread_mutex_unlock(&lock);
#endif
    return none;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    (void)lock;
    return 0;
}
