/*
 * The lock of ticket_lock.c, put right: a ticket is drawn in one step.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_uint next_ticket, serving;
static int counter;

static void acquire(void) {
    unsigned mine = atomic_fetch_add(&next_ticket, 1);
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
