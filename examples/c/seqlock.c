/*
 * A seqlock, as the Linux kernel has it: the writer makes the sequence odd, writes, and makes it even again; a reader
 * reads between two looks at the sequence, and tries again if it was odd or has changed.
 *
 * Here the second look is missing. One preemption is enough, between the two reads: the writer then writes both
 * values, and the reader has one of before and one of after. None is not, as the reader waits while the sequence is
 * odd.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
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
        *m = atomic_load(&minutes); /* preempt here */
    } while (0);
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
