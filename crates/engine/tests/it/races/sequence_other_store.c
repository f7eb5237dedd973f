// A thread continues another's release sequence by a read-modify-write that releases, and then ends it by a store.
// race: write data | read data_seen
#include <pthread.h>
#include <stdatomic.h>
static int data;
static atomic_int flag;
static void *sender(void *none) {
    data = 1; // @data
    atomic_store_explicit(&flag, 1, memory_order_release);
    return none;
}
static void *between(void *none) {
    if (atomic_fetch_add_explicit(&flag, 1, memory_order_release) == 1) {
#ifdef CLEAN
        atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed);
#else
        atomic_store_explicit(&flag, 3, memory_order_relaxed);
#endif
    }
    return none;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, sender, 0);
    pthread_create(&threads[1], 0, between, 0);
    int seen = 0;
    if (atomic_load_explicit(&flag, memory_order_acquire) == 3)
        seen = data; // @data_seen
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return seen > 1;
}
