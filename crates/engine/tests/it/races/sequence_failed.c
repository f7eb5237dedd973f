// A compare-exchange that fails is a load: it releases nothing, and acquires by its order for failure alone.
// race: write data | read data_seen
#include <pthread.h>
#include <stdatomic.h>
static int data;
static atomic_int flag;
#ifdef CLEAN
#define IF_NOT memory_order_acquire
#else
#define IF_NOT memory_order_relaxed
#endif
static void *sender(void *none) {
    data = 1; // @data
    atomic_store_explicit(&flag, 1, memory_order_release);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sender, 0);
    int seen = 0, expected = 7;
    if (!atomic_compare_exchange_strong_explicit(&flag, &expected, 8, memory_order_acq_rel, IF_NOT) && expected == 1)
        seen = data; // @data_seen
    pthread_join(thread, 0);
    return seen > 1;
}
