/*
 * Peterson's algorithm for mutual exclusion with a step missing: nobody leaves the other the turn.
 *
 * So thread 0, which has the turn from the beginning, never waits. One preemption is enough, while thread 1 is inside:
 * thread 0 then enters as well. None is not, as there is nothing inside to wait for.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
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
    while (atomic_load(&wants[!me]) && atomic_load(&turn) != me) {
    }
}

static void leave(int me) {
    atomic_store(&wants[me], false);
}

static void *worker(void *number) {
    int me = *(int *)number;
    enter(me);
    int others = atomic_fetch_add(&inside, 1);
    assert(others == 0);
    atomic_fetch_sub(&inside, 1); /* preempt here */
    leave(me);
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
