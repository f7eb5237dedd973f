// A pointer is exchanged atomically and the old block freed, though a reader may have it: nothing but the free itself
// conflicts with the read. FIXED: the reader counts itself in, and who exchanges waits until nobody is in.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(long *) shared;
static atomic_int inside;

static void *reader(void *unused) {
#ifdef FIXED
    inside++;
#endif
    long *p = atomic_load(&shared);
    long value = *p;
#ifdef FIXED
    inside--;
#endif
    return (void *)value;
}

static long *make(long value) {
    long *p = malloc(sizeof *p);
    *p = value;
    return p;
}

static void *replacer(void *unused) {
    long *old = atomic_exchange(&shared, make(2));
#ifdef FIXED
    while (inside) sched_yield();
#endif
    free(old);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    atomic_store(&shared, make(1));
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, replacer, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    free(shared);
    return 0;
}
