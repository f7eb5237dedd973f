// A lock made of an atomic flag; it must be released by more than a relaxed store.
// race: read count | write count
// race: write count | write count
#include <pthread.h>
#include <stdatomic.h>
#ifdef CLEAN
#define FREE memory_order_release
#else
#define FREE memory_order_relaxed
#endif
static atomic_int taken;
static int counter;
static void *worker(void *none) {
    while (atomic_exchange_explicit(&taken, 1, memory_order_acquire)) {
    }
    counter++; // @count
    atomic_store_explicit(&taken, 0, FREE);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    worker(0);
    pthread_join(thread, 0);
    return counter != 2;
}
