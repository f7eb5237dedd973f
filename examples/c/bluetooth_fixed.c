/*
 * The driver of bluetooth.c, put right: a request counts itself in before it looks at the flag, and out again if that
 * is raised. Now the count cannot come to 0 between look and use.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* How many requests there are. */
#ifndef REQUESTS
#define REQUESTS 2
#endif

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
    atomic_fetch_add(&pending, 1);
    if (atomic_load(&stopping)) {
        io_end();
        return false;
    }
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
    pthread_t threads[1 + REQUESTS];
    sem_init(&none_pending, 0, 0);
    pthread_create(&threads[0], NULL, stop, NULL);
    for (int i = 1; i <= REQUESTS; i++) {
        pthread_create(&threads[i], NULL, request, NULL);
    }
    for (int i = 0; i < 1 + REQUESTS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
