/*
 * A worker that polls for the order to stop, and yields between its looks.
 *
 * The worker reads the state in one critical section and sets it to RUNNING in another. If the order to stop comes in
 * between, RUNNING is written over it, and the worker polls for ever: a livelock, as it is never blocked.
 *
 * One preemption is enough, in the worker, just before the pthread_mutex_lock of set(RUNNING): the stopper then runs to
 * its end. None is not enough: the worker, left alone, is RUNNING when it first yields.
 *
 * heisen: bug=livelock preemptions=1 class=livelock with --steps 20000
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

enum state { NEW, RUNNING, STOPPED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum state state = NEW;

static enum state get(void) {
    pthread_mutex_lock(&lock);
    enum state now = state;
    pthread_mutex_unlock(&lock);
    return now;
}

static void set(enum state next) {
    pthread_mutex_lock(&lock);
    state = next;
    pthread_mutex_unlock(&lock);
}

static void *worker(void *arg) {
    (void)arg;
    if (get() == NEW)
        set(RUNNING); /* preempt here */
    while (get() != STOPPED)
        sched_yield();
    return NULL;
}

static void *stopper(void *arg) {
    (void)arg;
    set(STOPPED);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, stopper, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(state == STOPPED);
    return 0;
}
