// What comes before a thread is started, and after it was joined, is ordered with it.
// race: write worker | read early
#include <pthread.h>
static int value;
static void *worker(void *none) {
    value++; // @worker
    return none;
}
int main(void) {
    pthread_t thread;
    int seen = 0;
    value = 1;
    pthread_create(&thread, 0, worker, 0);
#ifndef CLEAN
    seen = value; // @early
#endif
    pthread_join(thread, 0);
    return value + seen == 0;
}
