// Each thread has a lock, but not the same.
// race: read count | write count
// race: write count | write count
#include <pthread.h>
static int counter;
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *worker(void *lock) {
    pthread_mutex_lock(lock);
    counter++; // @count
    pthread_mutex_unlock(lock);
    return 0;
}
int main(void) {
    pthread_t threads[2];
#ifdef CLEAN
    int second = 0;
#else
    int second = 1;
#endif
    pthread_create(&threads[0], 0, worker, &locks[0]);
    pthread_create(&threads[1], 0, worker, &locks[second]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
