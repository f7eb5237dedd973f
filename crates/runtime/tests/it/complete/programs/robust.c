/* Robust mutexes: what the next owner is told when one ends that holds it; and priority ceilings. */
#include "cases.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int counter;

static void make(int type)
{
    pthread_mutexattr_t attributes;
    int robust;
    assert(pthread_mutexattr_init(&attributes) == 0);
    assert(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    assert(pthread_mutexattr_getrobust(&attributes, &robust) == 0 && robust == PTHREAD_MUTEX_ROBUST);
    assert(pthread_mutexattr_settype(&attributes, type) == 0);
    assert(pthread_mutex_init(&mutex, &attributes) == 0);
    assert(pthread_mutexattr_destroy(&attributes) == 0);
}

static void *takes_and_ends(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    counter++;
    return arg;
}

static void *takes_and_exits(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    pthread_exit(arg);
}

static void used_as_a_plain_one(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(pthread_mutex_consistent(&mutex) == EINVAL);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_consistent(&mutex) == EINVAL);
    assert(pthread_mutex_unlock(&mutex) == EPERM);
    assert(pthread_mutex_trylock(&mutex) == 0 && pthread_mutex_trylock(&mutex) == EBUSY);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_destroy(&mutex) == 0);
    pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
    assert(pthread_mutex_consistent(&plain) == EINVAL);
}

static void made_consistent(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    join(start(takes_and_ends, NULL));
    assert(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    assert(pthread_mutex_consistent(&mutex) == 0);
    assert(pthread_mutex_consistent(&mutex) == EINVAL);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_destroy(&mutex) == 0);
}

static void not_made_consistent(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    join(start(takes_and_exits, NULL));
    assert(pthread_mutex_trylock(&mutex) == EOWNERDEAD);
    assert(pthread_mutex_unlock(&mutex) == 0);
    struct timespec soon = from_now(CLOCK_REALTIME, 1000);
    assert(pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
    assert(pthread_mutex_timedlock(&mutex, &soon) == ENOTRECOVERABLE);
    assert(pthread_mutex_consistent(&mutex) == EINVAL);
    assert(pthread_mutex_unlock(&mutex) == EPERM);
    /* The last, as after it glibc 2.36 believes the mutex to be held. */
    assert(pthread_mutex_trylock(&mutex) == ENOTRECOVERABLE);
    assert(pthread_mutex_destroy(&mutex) == 0);
}

static void recursive_and_checking(void)
{
    make(PTHREAD_MUTEX_RECURSIVE);
    join(start(takes_and_ends, NULL));
    assert(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    assert(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_trylock(&mutex) == 0);
    assert(pthread_mutex_consistent(&mutex) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == EPERM);
    make(PTHREAD_MUTEX_ERRORCHECK);
    join(start(takes_and_ends, NULL));
    assert(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    assert(pthread_mutex_lock(&mutex) == EDEADLK && pthread_mutex_trylock(&mutex) == EDEADLK);
    assert(pthread_mutex_consistent(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == EPERM);
}

/* Of several that are held, in any order of release, those that are left are told of. */
static pthread_mutex_t many[4];

static void *keeps_two(void *arg)
{
    for (int i = 0; i < 4; i++)
        assert(pthread_mutex_lock(&many[i]) == 0);
    assert(pthread_mutex_unlock(&many[1]) == 0);
    assert(pthread_mutex_unlock(&many[3]) == 0);
    return arg;
}

static void several(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    for (int i = 0; i < 4; i++)
        memcpy(&many[i], &mutex, sizeof mutex);
    join(start(keeps_two, NULL));
    for (int i = 0; i < 4; i++) {
        assert(pthread_mutex_lock(&many[i]) == (i % 2 ? 0 : EOWNERDEAD));
        if (i % 2 == 0)
            assert(pthread_mutex_consistent(&many[i]) == 0);
        assert(pthread_mutex_unlock(&many[i]) == 0);
    }
}

/* Whoever waits for it is told, and so is each after it. */
static void *hands_over(void *arg)
{
    int result = pthread_mutex_lock(&mutex);
    assert(result == 0 || result == EOWNERDEAD);
    if (result == EOWNERDEAD)
        assert(pthread_mutex_consistent(&mutex) == 0);
    counter++;
    return arg;
}

static void handed_over(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    pthread_t a = start(hands_over, NULL), b = start(hands_over, NULL), c = start(hands_over, NULL);
    join(a), join(b), join(c);
    assert(counter == 3);
    assert(pthread_mutex_lock(&mutex) == EOWNERDEAD);
}

/* All that wait for one that was not made consistent are told so. */
static void *gives_up(void *arg)
{
    int result = pthread_mutex_lock(&mutex);
    assert(result == EOWNERDEAD || result == ENOTRECOVERABLE);
    if (result == EOWNERDEAD) {
        counter++;
        assert(pthread_mutex_unlock(&mutex) == 0);
    }
    return arg;
}

static void given_up(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    join(start(takes_and_ends, NULL));
    counter = 0;
    pthread_t a = start(gives_up, NULL), b = start(gives_up, NULL), c = start(gives_up, NULL);
    join(a), join(b), join(c);
    assert(counter == 1);
}

/* After a wait on a condition variable, too. */
static int ready, result_of_wait;
static sem_t begun;

static void *waits(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(sem_post(&begun) == 0);
    while (!ready && result_of_wait == 0)
        result_of_wait = pthread_cond_wait(&cond, &mutex);
    if (result_of_wait != 0) {
        assert(result_of_wait == EOWNERDEAD);
        assert(pthread_mutex_consistent(&mutex) == 0);
    }
    assert(pthread_mutex_unlock(&mutex) == 0);
    return arg;
}

static void *signals_and_ends(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    ready = 1;
    assert(pthread_cond_signal(&cond) == 0);
    return arg;
}

static void waited_with(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    assert(sem_init(&begun, 0, 0) == 0);
    pthread_t waiter = start(waits, NULL);
    /* It has the mutex until it waits. */
    assert(sem_wait(&begun) == 0);
    join(start(signals_and_ends, NULL));
    int result = pthread_mutex_lock(&mutex);
    if (result == EOWNERDEAD)
        assert(pthread_mutex_consistent(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == 0);
    join(waiter);
    /* One of the two was told. */
    assert((result == EOWNERDEAD) + (result_of_wait == EOWNERDEAD) == 1);
}

/* A thread that was cancelled holds it, too. */
static void *waits_to_be_cancelled(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    for (;;)
        sleep(1);
    return arg;
}

static void cancelled(void)
{
    make(PTHREAD_MUTEX_NORMAL);
    pthread_t t = start(waits_to_be_cancelled, NULL);
    assert(pthread_cancel(t) == 0);
    int result = pthread_mutex_lock(&mutex);
    assert(result == 0 || result == EOWNERDEAD);
    if (result == EOWNERDEAD)
        assert(pthread_mutex_consistent(&mutex) == 0);
    else
        assert(pthread_mutex_unlock(&mutex) == 0);
    assert(join(t) == PTHREAD_CANCELED);
}

CASES(CASE(used_as_a_plain_one), CASE(made_consistent), CASE(not_made_consistent), CASE(recursive_and_checking),
      CASE(several), CASE(handed_over), CASE(given_up), CASE(waited_with), CASE(cancelled))
