/*
 * One thread waits until another has made the data ready.
 *
 * The waiter looks at the flag before it takes the mutex. If the flag is set and the condition signalled between that
 * look and the wait, nobody is waiting yet, the signal is lost, and the waiter sleeps for ever: a deadlock, with main
 * in pthread_join.
 *
 * One preemption is enough, just before the waiter's pthread_mutex_lock: the other thread then sets the flag, signals
 * and ends. None is not enough: a waiter that runs on from its look sleeps before the signal is sent.
 *
 * heisen: bug=deadlock preemptions=1 class=lost-wake-up
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int ready;
static int data;

static void *waiter(void *arg) {
    (void)arg;
    while (!ready) {
        pthread_mutex_lock(&lock); /* preempt here */
        pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    assert(data == 42);
    return NULL;
}

static void *maker(void *arg) {
    (void)arg;
    data = 42;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, waiter, NULL);
    pthread_create(&threads[1], NULL, maker, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
