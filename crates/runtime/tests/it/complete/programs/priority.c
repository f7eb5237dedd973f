/* Mutexes with a priority protocol, which are modelled as plain ones. */
#include "cases.h"

static pthread_mutex_t mutex;

static void make(int protocol, int type)
{
    pthread_mutexattr_t attributes;
    int got;
    assert(pthread_mutexattr_init(&attributes) == 0);
    assert(pthread_mutexattr_setprotocol(&attributes, protocol) == 0);
    assert(pthread_mutexattr_getprotocol(&attributes, &got) == 0 && got == protocol);
    assert(pthread_mutexattr_settype(&attributes, type) == 0);
    if (protocol == PTHREAD_PRIO_PROTECT) {
        assert(pthread_mutexattr_setprioceiling(&attributes, 7) == 0);
        assert(pthread_mutexattr_getprioceiling(&attributes, &got) == 0 && got == 7);
        assert(pthread_mutexattr_setprioceiling(&attributes, 1000) == EINVAL);
    }
    assert(pthread_mutex_init(&mutex, &attributes) == 0);
}

static int counter;

static void *adds(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    int seen = counter;
    sched_yield();
    counter = seen + 1;
    assert(pthread_mutex_unlock(&mutex) == 0);
    return arg;
}

static void inherited(void)
{
    make(PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL);
    pthread_t a = start(adds, NULL), b = start(adds, NULL);
    join(a), join(b);
    assert(counter == 2);
    assert(pthread_mutex_destroy(&mutex) == 0);
    make(PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ERRORCHECK);
    assert(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == EDEADLK);
    assert(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == EPERM);
    int old;
    assert(pthread_mutex_getprioceiling(&mutex, &old) == EINVAL);
    assert(pthread_mutex_setprioceiling(&mutex, 1, &old) == EINVAL);
}

/* Natively only threads with a real-time priority may lock such a mutex; its ceiling can be asked for by all. */
static void ceilings(void)
{
    int old = 0;
    make(PTHREAD_PRIO_PROTECT, PTHREAD_MUTEX_NORMAL);
    assert(pthread_mutex_getprioceiling(&mutex, &old) == 0 && old == 7);
    assert(pthread_mutex_setprioceiling(&mutex, 0, &old) == EINVAL);
    assert(pthread_mutex_setprioceiling(&mutex, 100, &old) == EINVAL);
    assert(pthread_mutex_destroy(&mutex) == 0);
}

static void protected(void)
{
    make(PTHREAD_PRIO_PROTECT, PTHREAD_MUTEX_NORMAL);
    pthread_t a = start(adds, NULL), b = start(adds, NULL);
    int old = 0;
    assert(pthread_mutex_setprioceiling(&mutex, 9, &old) == 0 && old == 7);
    join(a), join(b);
    assert(counter == 2);
    assert(pthread_mutex_getprioceiling(&mutex, &old) == 0 && old == 9);
}

CASES(CASE(inherited), CASE(ceilings), CASE(protected))
