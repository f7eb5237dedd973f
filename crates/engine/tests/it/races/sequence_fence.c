// The same with fences: the store still carries what its own thread did before its fence, but nothing of the other thread.
// race: write data | read data_seen
#include <pthread.h>
#include <stdatomic.h>
static int data, own;
static atomic_int flag;
static void *sender(void *none) {
    data = 1; // @data
    atomic_store_explicit(&flag, 1, memory_order_release);
    return none;
}
static void *between(void *none) {
    own = 1;
    atomic_thread_fence(memory_order_release);
    if (atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed) == 1) {
#ifdef CLEAN
        atomic_exchange_explicit(&flag, 3, memory_order_relaxed);
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
    if (atomic_load_explicit(&flag, memory_order_relaxed) == 3) {
        atomic_thread_fence(memory_order_acquire);
        seen = own;
        seen += data; // @data_seen
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return seen > 2;
}
