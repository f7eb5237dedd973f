// Fences order relaxed accesses; one of the two is not enough.
// race: write data | read data_seen
#include <pthread.h>
#include <stdatomic.h>
static int data;
static atomic_int flag;
static void *sender(void *none) {
    data = 1; // @data
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sender, 0);
    int seen = 0;
    if (atomic_load_explicit(&flag, memory_order_relaxed)) {
#ifdef CLEAN
        atomic_thread_fence(memory_order_acquire);
#endif
        seen = data; // @data_seen
    }
    pthread_join(thread, 0);
    return seen > 1;
}
