/*
 * A worker sleeps in read() on a pipe until there is work; whoever adds work writes a byte to wake it, but only if it
 * sleeps, to save the call.
 *
 * The worker looks for work and says that it sleeps in two steps. Work that is added in between finds it awake, writes no
 * byte, and the worker sleeps for ever: a deadlock, with main in pthread_join.
 *
 * One preemption is enough, just before the worker locks `state`.
 *
 * heisen: bug=deadlock preemptions=1 class=deadlock
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, state = PTHREAD_MUTEX_INITIALIZER;
static int jobs, alarm_clock[2];
static bool asleep;

static bool take_job(void) {
    pthread_mutex_lock(&queue);
    bool found = jobs > 0;
    jobs -= found;
    pthread_mutex_unlock(&queue);
    return found;
}

static void *worker(void *arg) {
    (void)arg;
    while (!take_job()) {
        pthread_mutex_lock(&state); /* preempt here */
        asleep = true;
        pthread_mutex_unlock(&state);
        char byte;
        assert(read(alarm_clock[0], &byte, 1) == 1);
    }
    return NULL;
}

static void *adder(void *arg) {
    (void)arg;
    pthread_mutex_lock(&queue);
    jobs++;
    pthread_mutex_unlock(&queue);
    pthread_mutex_lock(&state);
    bool wake = asleep;
    asleep = false;
    pthread_mutex_unlock(&state);
    if (wake)
        assert(write(alarm_clock[1], "!", 1) == 1);
    return NULL;
}

int main(void) {
    assert(pipe(alarm_clock) == 0);
    pthread_t threads[2];
    assert(pthread_create(&threads[0], NULL, worker, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, adder, NULL) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
