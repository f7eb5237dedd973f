// Two threads push a node of their own on a stack, and pop one.
#include <pthread.h>
#include <stdatomic.h>
static atomic_long head = -1, next[4];
static void push(long node) {
    long seen;
    do {
        seen = atomic_load(&head);
        atomic_store(&next[node], seen);
    } while (!atomic_compare_exchange_strong(&head, &seen, node));
}
static long pop(void) {
    long seen, after;
    do {
        seen = atomic_load(&head);
        if (seen == -1) return -1;
        after = atomic_load(&next[seen]);
    } while (!atomic_compare_exchange_strong(&head, &seen, after));
    return seen;
}
static void *work(void *me) {
    push((long)me);
    pop();
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
