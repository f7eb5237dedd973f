/* A counter that is read and written by two atomic operations; with ONCE, by one. Nobody looks at it in the end. */
#include <pthread.h>
#include <stdatomic.h>
static atomic_int counter;
static void *count(void *arg) {
#ifdef ONCE
    atomic_fetch_add(&counter, 1);
#else
    int seen = atomic_load(&counter);
    atomic_store(&counter, seen + 1);
#endif
    return arg;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, count, 0);
    pthread_create(&two, 0, count, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
