/*
 * spin.c put right: the state is compared and changed in one critical section, so an order to stop is never lost. The
 * worker still polls, but under a fair schedule it always comes to an end.
 *
 * heisen: clean
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

static void change(enum state from, enum state to) {
    pthread_mutex_lock(&lock);
    if (state == from)
        state = to;
    pthread_mutex_unlock(&lock);
}

static void *worker(void *arg) {
    (void)arg;
    change(NEW, RUNNING);
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
