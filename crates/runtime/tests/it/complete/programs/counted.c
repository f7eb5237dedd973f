/* Small programs whose schedules are counted by hand. */
#include "cases.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static void *keeps(void *arg)
{
    int result = pthread_mutex_lock(&mutex);
    assert(result == 0);
    return arg;
}

static void robust(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_t t = start(keeps, NULL);
    int result = pthread_mutex_lock(&mutex);
    assert(result == 0 || result == EOWNERDEAD);
    if (result == EOWNERDEAD)
        pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
    join(t);
}

static void *tests_twice(void *arg)
{
    pthread_testcancel();
    pthread_testcancel();
    return arg;
}

static void tested(void)
{
    pthread_t t = start(tests_twice, NULL);
    pthread_cancel(t);
    join(t);
}

static void *takes(void *arg)
{
    sem_wait(&semaphore);
    return arg;
}

static void blocked(void)
{
    sem_init(&semaphore, 0, 0);
    pthread_t t = start(takes, NULL);
    pthread_cancel(t);
    assert(join(t) == PTHREAD_CANCELED);
}

static void posted(void)
{
    int value;
    sem_init(&semaphore, 0, 0);
    pthread_t t = start(takes, NULL);
    pthread_cancel(t);
    sem_post(&semaphore);
    void *result = join(t);
    assert(result == PTHREAD_CANCELED);
    memcpy(&value, &semaphore, sizeof value);
    assert(value == 1);
}

static void unlock(void *arg)
{
    pthread_mutex_unlock(arg);
}

static void *waits(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
    return arg;
}

static void waited(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_t t = start(waits, NULL);
    pthread_cancel(t);
    assert(join(t) == PTHREAD_CANCELED);
}

CASES(CASE(robust), CASE(tested), CASE(blocked), CASE(posted), CASE(waited))
