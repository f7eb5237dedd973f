/*
 * The lock of seqlock.c with the second look: values are taken only if the sequence is still the same.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_uint sequence;
static atomic_int seconds, minutes;

static void write_time(int now) {
    atomic_fetch_add(&sequence, 1);
    atomic_store(&seconds, now);
    atomic_store(&minutes, now);
    atomic_fetch_add(&sequence, 1);
}

static void read_time(int *s, int *m) {
    unsigned before;
    do {
        while ((before = atomic_load(&sequence)) % 2 != 0) {
        }
        *s = atomic_load(&seconds);
        *m = atomic_load(&minutes);
    } while (atomic_load(&sequence) != before);
}

static void *writer(void *unused) {
    (void)unused;
    write_time(1);
    return NULL;
}

static void *reader(void *unused) {
    (void)unused;
    int s, m;
    read_time(&s, &m);
    assert(s == m);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
