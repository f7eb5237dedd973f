/*
 * Dekker's algorithm for mutual exclusion with a step missing: who has waited for its turn does not say again that it
 * wants to enter.
 *
 * Three preemptions are needed. Thread 0 is preempted after it has said that it wants to enter, so that thread 1 sees
 * it and waits for its turn, which gives way by itself. Thread 0 is preempted again after it has left, and before it
 * comes back, so that thread 1 can enter: it wants nothing as far as anyone can see. Thread 1 is preempted inside, and
 * thread 0 enters, too.
 *
 * heisen: bug=assertion preemptions=3 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_bool wants[2];
static atomic_int turn;
static atomic_int inside;

static void enter(int me) {
    atomic_store(&wants[me], true);
    while (atomic_load(&wants[!me])) {
        if (atomic_load(&turn) != me) {
            atomic_store(&wants[me], false);
            while (atomic_load(&turn) != me) {
            }
        }
    }
}

static void leave(int me) {
    atomic_store(&turn, !me);
    atomic_store(&wants[me], false);
}

static void *worker(void *number) {
    int me = *(int *)number;
    int rounds = 2 - me;
    for (int i = 0; i < rounds; i++) {
        enter(me);
        int others = atomic_fetch_add(&inside, 1);
        assert(others == 0);
        atomic_fetch_sub(&inside, 1);
        leave(me);
    }
    return NULL;
}

int main(void) {
    int numbers[2] = {0, 1};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, worker, &numbers[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
