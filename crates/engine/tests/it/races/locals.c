// Threads share what lies on a stack and on the heap.
// race: write heap | read heap_seen
// race: write local | read local_seen
#include <pthread.h>
#include <stdlib.h>
struct work {
    int *on_stack, *on_heap;
};
static void *worker(void *arg) {
    struct work *work = arg;
    *work->on_stack = 1; // @local
    *work->on_heap = 1; // @heap
    return 0;
}
int main(void) {
    pthread_t thread;
    int local = 0, seen = 0;
    struct work work = {&local, calloc(4, sizeof(int))};
    work.on_heap += 2;
    pthread_create(&thread, 0, worker, &work);
#ifdef CLEAN
    pthread_join(thread, 0);
#endif
    seen += local; // @local_seen
    seen += *work.on_heap; // @heap_seen
#ifndef CLEAN
    pthread_join(thread, 0);
#endif
    return seen > 2;
}
