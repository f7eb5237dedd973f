// A barrier orders what is before it in all threads with what is after it.
// race: write mine | read theirs
#include <pthread.h>
static pthread_barrier_t barrier;
static int slots[2];
static void *worker(void *which) {
    long me = (long)which;
    slots[me] = 1; // @mine
#ifdef CLEAN
    pthread_barrier_wait(&barrier);
#endif
    int seen = slots[1 - me]; // @theirs
#ifndef CLEAN
    pthread_barrier_wait(&barrier);
#endif
    return seen > 1 ? which : 0;
}
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&thread, 0, worker, (void *)1);
    worker(0);
    pthread_join(thread, 0);
    return 0;
}
