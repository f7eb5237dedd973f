/* Mutexes. */
#include "results.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static volatile int counter;

static void make(pthread_mutex_t *mutex, int type)
{
    pthread_mutexattr_t attr;
    assert(pthread_mutexattr_init(&attr) == 0 && pthread_mutexattr_settype(&attr, type) == 0);
    assert(pthread_mutex_init(mutex, &attr) == 0 && pthread_mutexattr_destroy(&attr) == 0);
}

static void *appends(void *letter)
{
    assert(pthread_mutex_lock(&m) == 0);
    say("%s", (char *)letter);
    assert(pthread_mutex_unlock(&m) == 0);
    return NULL;
}

CASE(two_append_under_a_lock, "AB", "BA")
{
    beside(appends, "A", appends, "B");
}

SAMPLED(three_append_under_a_lock, 300, "ABC", "ACB", "BAC", "BCA", "CAB", "CBA")
{
    pthread_t a = start(appends, "A"), b = start(appends, "B");
    appends("C");
    join(a);
    join(b);
}

/* Whoever is awake when it is unlocked may get it, also the thread that unlocked it. */
SAMPLED(an_unlock_prefers_nobody, 300, "ABC", "ACB", "BAC", "BCA", "CAB", "CBA")
{
    pthread_mutex_lock(&m);
    pthread_t a = start(appends, "A"), b = start(appends, "B");
    pthread_mutex_unlock(&m);
    appends("C");
    join(a);
    join(b);
}

/* ---- mutual exclusion ---- */

static void *adds_without(void *arg)
{
    int old = counter;
    point();
    counter = old + 1;
    return arg;
}

CASE(without_a_lock_an_update_is_lost, "1", "2")
{
    beside(adds_without, NULL, adds_without, NULL);
    say("%d", counter);
}

static void *adds(void *arg)
{
    assert(pthread_mutex_lock(&m) == 0);
    adds_without(NULL);
    assert(pthread_mutex_unlock(&m) == 0);
    return arg;
}

static void exclude(int type)
{
    make(&m, type);
    beside(adds, NULL, adds, NULL);
    say("%d", counter);
}

CASE(normal_ones_exclude, "2") { exclude(PTHREAD_MUTEX_NORMAL); }
CASE(recursive_ones_exclude, "2") { exclude(PTHREAD_MUTEX_RECURSIVE); }
CASE(error_checking_ones_exclude, "2") { exclude(PTHREAD_MUTEX_ERRORCHECK); }
CASE(adaptive_ones_exclude, "2") { exclude(PTHREAD_MUTEX_ADAPTIVE_NP); }

static void *adds_by_trying(void *arg)
{
    while (pthread_mutex_trylock(&m) != 0)
        sched_yield();
    adds_without(NULL);
    assert(pthread_mutex_unlock(&m) == 0);
    return arg;
}

CASE(trying_excludes, "2")
{
    beside(adds, NULL, adds_by_trying, NULL);
    say("%d", counter);
}

static void *adds_in_time(void *arg)
{
    struct timespec later = from_now(CLOCK_REALTIME, HOUR);
    int result = pthread_mutex_timedlock(&m, &later);
    assert(result == 0 || (result == ETIMEDOUT && reached(CLOCK_REALTIME, later)));
    if (result == 0) {
        adds_without(NULL);
        assert(pthread_mutex_unlock(&m) == 0);
    }
    return arg;
}

/* Only a thread that has to wait can be too late. */
CASE(waiting_with_a_deadline_excludes, "1", "2")
{
    beside(adds, NULL, adds_in_time, NULL);
    say("%d", counter);
}

static void *takes_both(void *arg)
{
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&n);
    counter++;
    pthread_mutex_unlock(&n);
    pthread_mutex_unlock(&m);
    return arg;
}

CASE(in_the_same_order_there_is_no_deadlock, "2")
{
    beside(takes_both, NULL, takes_both, NULL);
    say("%d", counter);
}

static void *hand_over_hand(void *letter)
{
    pthread_mutex_lock(&m);
    say("%s", (char *)letter);
    pthread_mutex_lock(&n);
    pthread_mutex_unlock(&m);
    point();
    say("%s", (char *)letter);
    pthread_mutex_unlock(&n);
    return NULL;
}

/* The second may say its first letter before or after the last of the first, but not overtake. */
CASE(hand_over_hand_keeps_the_order, "AABB", "ABAB", "BBAA", "BABA")
{
    beside(hand_over_hand, "A", hand_over_hand, "B");
}

/* ---- trying ---- */

static void *takes(void *arg)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}

static void *tries(void *arg)
{
    int result = pthread_mutex_trylock(&m);
    point();
    say("%s ", named(result));
    if (result == 0)
        pthread_mutex_unlock(&m);
    return arg;
}

CASE(a_try_may_meet_another, "0 ", "EBUSY ")
{
    beside(takes, NULL, tries, NULL);
}

CASE(two_tries_may_meet, "0 0 ", "0 EBUSY ", "EBUSY 0 ")
{
    beside(tries, NULL, tries, NULL);
}

static void own_again(int type)
{
    make(&m, type);
    say("%s ", named(pthread_mutex_lock(&m)));
    say("%s ", named(pthread_mutex_trylock(&m)));
    join(start(tries, NULL));
    say("%s", named(pthread_mutex_unlock(&m)));
}

CASE(a_try_of_ones_own_normal_one, "0 EBUSY EBUSY 0") { own_again(PTHREAD_MUTEX_NORMAL); }
CASE(a_try_of_ones_own_error_checking_one, "0 EBUSY EBUSY 0") { own_again(PTHREAD_MUTEX_ERRORCHECK); }
CASE(a_try_of_ones_own_adaptive_one, "0 EBUSY EBUSY 0") { own_again(PTHREAD_MUTEX_ADAPTIVE_NP); }

CASE(a_recursive_one_counts, "0 0 EBUSY EBUSY 0 EPERM")
{
    make(&m, PTHREAD_MUTEX_RECURSIVE);
    say("%s ", named(pthread_mutex_lock(&m)));
    say("%s ", named(pthread_mutex_trylock(&m)));
    join(start(tries, NULL));
    pthread_mutex_unlock(&m);
    join(start(tries, NULL));
    pthread_mutex_unlock(&m);
    join(start(tries, NULL));
    say("%s", named(pthread_mutex_unlock(&m)));
}

/* ---- telling ---- */

static void *unlocks(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_unlock(mutex);
}

static void telling(int type)
{
    make(&m, type);
    say("%s ", named(pthread_mutex_unlock(&m)));
    pthread_mutex_lock(&m);
    say("%s ", named((intptr_t)join(start(unlocks, &m))));
    struct timespec now = from_now(CLOCK_REALTIME, 0);
    say("%s ", named(pthread_mutex_timedlock(&m, &now)));
    say("%s ", named(pthread_mutex_lock(&m)));
    say("%s", named(pthread_mutex_unlock(&m)));
}

CASE(an_error_checking_one_tells, "EPERM EPERM EDEADLK EDEADLK 0") { telling(PTHREAD_MUTEX_ERRORCHECK); }
CASE(a_recursive_one_tells, "EPERM EPERM 0 0 0") { telling(PTHREAD_MUTEX_RECURSIVE); }

/* ---- time ---- */

static void *waits_until(void *until)
{
    say("%s ", named(pthread_mutex_timedlock(&m, until)));
    return NULL;
}

CASE(too_late_only_if_it_is_held, "ETIMEDOUT 0 ")
{
    struct timespec past = from_now(CLOCK_REALTIME, -1000);
    pthread_mutex_lock(&m);
    join(start(waits_until, &past));
    pthread_mutex_unlock(&m);
    waits_until(&past);
}

static void *waits_on_a_clock(void *clock)
{
    struct timespec until = from_now((intptr_t)clock, 5);
    int result = pthread_mutex_clocklock(&m, (intptr_t)clock, &until);
    say("%s%d ", named(result), reached((intptr_t)clock, until));
    return NULL;
}

CASE(on_either_clock, "ETIMEDOUT1 ETIMEDOUT1 ")
{
    pthread_mutex_lock(&m);
    join(start(waits_on_a_clock, (void *)CLOCK_REALTIME));
    join(start(waits_on_a_clock, (void *)CLOCK_MONOTONIC));
}

/* ---- life ---- */

CASE(initialised_and_destroyed, "0 0 0 0 0 0")
{
    pthread_mutex_t own;
    say("%s ", named(pthread_mutex_init(&own, NULL)));
    say("%s ", named(pthread_mutex_lock(&own)));
    say("%s ", named(pthread_mutex_unlock(&own)));
    say("%s ", named(pthread_mutex_destroy(&own)));
    say("%s ", named(pthread_mutex_init(&own, NULL)));
    say("%s", named(pthread_mutex_trylock(&own)));
}

CASE(static_initialisers, "0 0 0 EDEADLK 0 EBUSY")
{
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    say("%s ", named(pthread_mutex_lock(&recursive)));
    say("%s ", named(pthread_mutex_lock(&recursive)));
    say("%s ", named(pthread_mutex_lock(&checking)));
    say("%s ", named(pthread_mutex_lock(&checking)));
    say("%s ", named(pthread_mutex_lock(&adaptive)));
    say("%s", named(pthread_mutex_trylock(&adaptive)));
}

NATIVELY(attributes)
{
    pthread_mutexattr_t attr;
    assert(pthread_mutexattr_init(&attr) == 0);
    int value;
    for (int type = -1; type < 6; type++) {
        say("%s ", named(pthread_mutexattr_settype(&attr, type)));
        assert(pthread_mutexattr_gettype(&attr, &value) == 0);
        say("%d, ", value);
    }
    for (int shared = -1; shared < 3; shared++) {
        say("%s ", named(pthread_mutexattr_setpshared(&attr, shared)));
        assert(pthread_mutexattr_getpshared(&attr, &value) == 0);
        say("%d, ", value);
    }
    for (int protocol = -1; protocol < 4; protocol++) {
        say("%s ", named(pthread_mutexattr_setprotocol(&attr, protocol)));
        assert(pthread_mutexattr_getprotocol(&attr, &value) == 0);
        say("%d, ", value);
    }
    for (int robust = -1; robust < 3; robust++) {
        say("%s ", named(pthread_mutexattr_setrobust(&attr, robust)));
        assert(pthread_mutexattr_getrobust(&attr, &value) == 0);
        say("%d, ", value);
    }
    say("%s ", named(pthread_mutexattr_setprioceiling(&attr, 1000)));
    say("%s", named(pthread_mutexattr_setprioceiling(&attr, 10)));
}

CONFORMANCE_MAIN
