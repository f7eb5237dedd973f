/*
 * The algorithm of dekker.c with all its steps.
 *
 * heisen: clean with --bound 3
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
            atomic_store(&wants[me], true);
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
