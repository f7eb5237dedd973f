/* What can be asked of a semaphore. */
#include "cases.h"
#include <limits.h>

static sem_t semaphore;

static void *posts(void *arg)
{
    assert(sem_post(&semaphore) == 0);
    sched_yield();
    assert(sem_post(&semaphore) == 0);
    return arg;
}

static void only_grows(void)
{
    int first, second;
    assert(sem_init(&semaphore, 0, 1) == 0);
    pthread_t t = start(posts, NULL);
    assert(sem_getvalue(&semaphore, &first) == 0);
    assert(sem_getvalue(&semaphore, &second) == 0);
    assert(first >= 1 && second >= first && second <= 3);
    join(t);
    assert(sem_getvalue(&semaphore, &second) == 0 && second == 3);
    assert(sem_destroy(&semaphore) == 0);
}

static void bounds(void)
{
    assert(sem_init(&semaphore, 0, SEM_VALUE_MAX + 1u) == -1 && errno == EINVAL);
    assert(sem_init(&semaphore, 0, SEM_VALUE_MAX) == 0);
    assert(sem_post(&semaphore) == -1 && errno == EOVERFLOW);
}

/* Each of the values that main can see is seen in some schedule, which the test asks for one by one. */
static void sees(int value)
{
    int seen;
    assert(sem_init(&semaphore, 0, 1) == 0);
    pthread_t t = start(posts, NULL);
    assert(sem_getvalue(&semaphore, &seen) == 0);
    join(t);
    assert(seen != value);
}

static void sees_1(void) { sees(1); }
static void sees_2(void) { sees(2); }
static void sees_3(void) { sees(3); }

static void *waits(void *arg)
{
    sem_wait(&semaphore);
    return arg;
}

static void destroyed_with_a_waiter(void)
{
    assert(sem_init(&semaphore, 0, 0) == 0);
    start(waits, NULL);
    sched_yield();
    sem_destroy(&semaphore);
    exit(0);
}

CASES(CASE(only_grows), CASE(bounds), CASE(sees_1), CASE(sees_2), CASE(sees_3), CASE(destroyed_with_a_waiter))
