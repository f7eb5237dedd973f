/*
 * A ticket lock: draw a ticket, wait until it is served, and serve the next when done.
 *
 * A ticket is drawn in two steps, so both threads may draw the same. One preemption is enough, between the two steps:
 * the other thread has the same ticket served and ends, and the first waits for ever for a number that is over. Two
 * would let both of them in.
 *
 * heisen: bug=livelock preemptions=1 class=livelock with --steps 2000
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_uint next_ticket, serving;
static int counter;

static void acquire(void) {
    unsigned mine = atomic_load(&next_ticket);
    atomic_store(&next_ticket, mine + 1); /* preempt here */
    while (atomic_load(&serving) != mine) {
    }
}

static void release(void) {
    atomic_fetch_add(&serving, 1);
}

static void *worker(void *unused) {
    (void)unused;
    acquire();
    counter++;
    release();
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, worker, NULL);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(counter == 2);
    return 0;
}
