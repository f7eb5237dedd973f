/* Ten thousand threads that live at the same time. */
#include "cases.h"

enum { THREADS = 10000 };

static pthread_t threads[THREADS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int arrived, released;

static void *waits(void *arg)
{
    pthread_mutex_lock(&mutex);
    arrived++;
    while (!released)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void at_once(void)
{
    for (intptr_t i = 0; i < THREADS; i++)
        threads[i] = start(waits, (void *)i);
    for (int all = 0; !all;) {
        pthread_mutex_lock(&mutex);
        all = arrived == THREADS;
        pthread_mutex_unlock(&mutex);
        sched_yield();
    }
    pthread_mutex_lock(&mutex);
    released = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    for (intptr_t i = 0; i < THREADS; i++)
        assert(join(threads[i]) == (void *)i);
    /* Memory is still to be had: stacks do not count against the limit on the program's data. */
    void *memory = malloc(64 << 20);
    assert(memory != NULL);
    free(memory);
}

static void *ends(void *arg)
{
    return arg;
}

static void one_after_the_other(void)
{
    for (intptr_t i = 0; i < THREADS; i++)
        assert(join(start(ends, (void *)i)) == (void *)i);
}

CASES(CASE(at_once), CASE(one_after_the_other))
