// A store ends the release sequence of its own thread, too: C++20 took out the exception that C++17 had.
// race: write data | read data_seen
#include <pthread.h>
#include <stdatomic.h>
static int data;
static atomic_int flag;
static void *sender(void *none) {
    data = 1; // @data
    atomic_store_explicit(&flag, 1, memory_order_release);
#ifdef CLEAN
    atomic_store_explicit(&flag, 2, memory_order_release);
#else
    atomic_store_explicit(&flag, 2, memory_order_relaxed);
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sender, 0);
    int seen = 0;
    if (atomic_load_explicit(&flag, memory_order_acquire) == 2)
        seen = data; // @data_seen
    pthread_join(thread, 0);
    return seen > 1;
}
