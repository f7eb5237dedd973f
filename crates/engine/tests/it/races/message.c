// A message is passed by a flag; STORE and LOAD are its memory orders, and with a relaxed one of them nothing orders the
// message.
// race: write data | read data_seen
#include <pthread.h>
#include <stdatomic.h>
#ifdef CLEAN
#define RELEASE memory_order_release
#define ACQUIRE memory_order_acquire
#endif
#ifndef RELEASE
#define RELEASE memory_order_relaxed
#endif
#ifndef ACQUIRE
#define ACQUIRE memory_order_acquire
#endif
static int data;
static atomic_int flag;
static void *sender(void *none) {
    data = 1; // @data
    atomic_store_explicit(&flag, 1, RELEASE);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sender, 0);
    int seen = 0;
    if (atomic_load_explicit(&flag, ACQUIRE))
        seen = data; // @data_seen
    pthread_join(thread, 0);
    return seen > 1;
}
