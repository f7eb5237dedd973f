// Whoever passes pthread_once is after the initialiser, but not after what its thread does next.
// race: write set | read use
#include <pthread.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int value, after;
static void init(void) {
    value = 42;
#ifdef CLEAN
    after = 1;
#endif
}
static void *worker(void *none) {
    pthread_once(&once, init);
#ifndef CLEAN
    after = value; // @set
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_once(&once, init);
    int seen = after; // @use
    pthread_join(thread, 0);
    return seen < 0;
}
