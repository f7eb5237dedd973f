/*
 * A bug that needs many switches in order: it shows only if two threads take turns exactly, ten times.
 *
 * Scheduling by priority never gets there, whatever the chances: an execution of pct with depth d has at most d - 1 points
 * at which the running thread is lowered, so with depth 5 no more than four of the nine switches. A random walk makes
 * them all once in 512 times.
 *
 * portfolio: finds it; pct: never
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

enum { ROUNDS = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int last, turns;

static void *work(void *arg) {
    int me = *(int *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        turns += last != me;
        last = me;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int names[2] = {1, 2};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &names[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(turns < 2 * ROUNDS);
    return 0;
}
