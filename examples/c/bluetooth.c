/*
 * The Bluetooth driver of "KISS" (PLDI'04) and of "Iterative context bounding" (PLDI'07, section 4): a device counts
 * the requests that are at work on it, plus one for itself. Who stops it raises a flag, gives back that one, and waits
 * for the count to come to 0.
 *
 * io_begin() looks at the flag first and then counts itself in. Between the two the driver may be stopped: the count
 * comes to 0, and the request goes on with a device that is gone.
 *
 * One preemption is enough, between look and count: stop() then runs to its end. None is not, as a request that runs
 * without interruption has either ended when stop() begins, or finds the flag raised.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_bool stopping;
static atomic_int pending = 1;
static sem_t none_pending;
static bool stopped;

static void io_end(void) {
    if (atomic_fetch_sub(&pending, 1) == 1) {
        sem_post(&none_pending);
    }
}

static bool io_begin(void) {
    if (atomic_load(&stopping)) {
        return false;
    }
    atomic_fetch_add(&pending, 1); /* preempt here */
    return true;
}

static void *request(void *unused) {
    (void)unused;
    if (io_begin()) {
        assert(!stopped);
        io_end();
    }
    return NULL;
}

static void *stop(void *unused) {
    (void)unused;
    atomic_store(&stopping, true);
    io_end();
    sem_wait(&none_pending);
    stopped = true;
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    sem_init(&none_pending, 0, 0);
    pthread_create(&threads[0], NULL, stop, NULL);
    pthread_create(&threads[1], NULL, request, NULL);
    pthread_create(&threads[2], NULL, request, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
