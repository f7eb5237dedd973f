// Two threads read a counter and write it, as two steps. An addition may be lost, and nobody minds.
#include <pthread.h>
#include <stdatomic.h>
static atomic_int total;
static void *work(void *unused) {
    int seen = atomic_load(&total);
    atomic_store(&total, seen + 1);
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
