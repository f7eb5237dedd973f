/* Condition variables. */
#include "results.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER, d = PTHREAD_COND_INITIALIZER;
static sem_t waiting, gone_on;
static int ready, released;

/* Waits to be released; says who it is once it runs again. */
static void *waits(void *letter)
{
    pthread_mutex_lock(&m);
    sem_post(&waiting);
    while (!released)
        pthread_cond_wait(&c, &m);
    say("%s", (char *)letter);
    pthread_mutex_unlock(&m);
    return NULL;
}

/* Waits once, for whatever wakes it. */
static void *waits_once(void *letter)
{
    pthread_mutex_lock(&m);
    sem_post(&waiting);
    pthread_cond_wait(&c, &m);
    say("%s", (char *)letter);
    sem_post(&gone_on);
    pthread_mutex_unlock(&m);
    return NULL;
}

/* The mutex, when so many threads wait: they have given it up. */
static void lock_when_waiting(int threads)
{
    for (int i = 0; i < threads; i++)
        sem_wait(&waiting);
    pthread_mutex_lock(&m);
}

SAMPLED(a_signal_wakes_any_one, 200, "A|B", "B|A")
{
    pthread_t a = start(waits_once, "A"), b = start(waits_once, "B");
    lock_when_waiting(2);
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    sem_wait(&gone_on);
    pthread_mutex_lock(&m);
    say("|");
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    join(a);
    join(b);
}

SAMPLED(a_broadcast_wakes_all, 200, "AB", "BA")
{
    pthread_t a = start(waits_once, "A"), b = start(waits_once, "B");
    lock_when_waiting(2);
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    join(a);
    join(b);
}

SAMPLED(two_signals_wake_two, 200, "AB", "BA")
{
    pthread_t a = start(waits_once, "A"), b = start(waits_once, "B");
    lock_when_waiting(2);
    pthread_cond_signal(&c);
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    join(a);
    join(b);
}

SAMPLED(three_are_woken_in_any_order, 600, "ABC", "ACB", "BAC", "BCA", "CAB", "CBA")
{
    pthread_t a = start(waits, "A"), b = start(waits, "B"), e = start(waits, "C");
    lock_when_waiting(3);
    released = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    join(a);
    join(b);
    join(e);
}

CASE(a_signal_without_a_waiter_is_lost, "0 0 ETIMEDOUT")
{
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    say("%s ", named(pthread_cond_signal(&c)));
    say("%s ", named(pthread_cond_broadcast(&c)));
    pthread_mutex_lock(&m);
    say("%s", named(pthread_cond_timedwait(&c, &m, &soon)));
    pthread_mutex_unlock(&m);
}

static void *makes_ready(void *arg)
{
    pthread_mutex_lock(&m);
    say("r");
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return arg;
}

static void *waits_for_ready(void *arg)
{
    pthread_mutex_lock(&m);
    while (!ready)
        pthread_cond_wait(&c, &m);
    say("w");
    pthread_mutex_unlock(&m);
    return arg;
}

CASE(a_condition_is_waited_for, "rw")
{
    beside(makes_ready, NULL, waits_for_ready, NULL);
}

CASE(and_by_the_other_thread, "rw")
{
    beside(waits_for_ready, NULL, makes_ready, NULL);
}

static void *makes_ready_and_signals_outside(void *arg)
{
    pthread_mutex_lock(&m);
    say("r");
    ready = 1;
    pthread_mutex_unlock(&m);
    pthread_cond_signal(&c);
    return arg;
}

CASE(a_signal_may_come_after_the_unlock, "rw")
{
    beside(makes_ready_and_signals_outside, NULL, waits_for_ready, NULL);
}

static void *takes_it(void *letter)
{
    pthread_mutex_lock(&m);
    while (!ready)
        pthread_cond_wait(&c, &m);
    ready = 0;
    say("%s", (char *)letter);
    released++;
    pthread_cond_broadcast(&d);
    pthread_mutex_unlock(&m);
    return NULL;
}

/* Between the signal and the woken thread another may come and take what there is. */
SAMPLED(a_woken_thread_can_be_overtaken, 300, "AB", "BA")
{
    pthread_t a = start(takes_it, "A"), b = start(takes_it, "B");
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&m);
        while (released < i)
            pthread_cond_wait(&d, &m);
        ready = 1;
        pthread_cond_signal(&c);
        pthread_mutex_unlock(&m);
    }
    join(a);
    join(b);
}

static void *takes_turns(void *arg)
{
    int mine = (intptr_t)arg;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&m);
        while (ready != mine)
            pthread_cond_wait(&c, &m);
        say("%d", mine);
        ready = !mine;
        pthread_cond_signal(&c);
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

CASE(two_take_turns, "0101")
{
    beside(takes_turns, (void *)1, takes_turns, (void *)0);
}

/* ---- time ---- */

static void wait_in_time(int (*wait)(struct timespec *), clockid_t clock)
{
    struct timespec later = from_now(clock, HOUR);
    pthread_t t = start(makes_ready, NULL);
    int result = 0;
    pthread_mutex_lock(&m);
    while (!ready && result == 0)
        result = wait(&later);
    say("%s", named(result));
    assert(result == 0 || reached(clock, later));
    pthread_mutex_unlock(&m);
    join(t);
}

static int timedwait(struct timespec *t) { return pthread_cond_timedwait(&c, &m, t); }
static int clockwait_realtime(struct timespec *t) { return pthread_cond_clockwait(&c, &m, CLOCK_REALTIME, t); }
static int clockwait_monotonic(struct timespec *t) { return pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, t); }

/* Too late: the other has not begun, or it has the mutex, or it has signalled but the wait was over already. */
CASE(woken_or_too_late, "r0", "ETIMEDOUTr", "rETIMEDOUT")
{
    wait_in_time(timedwait, CLOCK_REALTIME);
}

CASE(woken_or_too_late_on_the_realtime_clock, "r0", "ETIMEDOUTr", "rETIMEDOUT")
{
    wait_in_time(clockwait_realtime, CLOCK_REALTIME);
}

CASE(woken_or_too_late_on_the_monotonic_clock, "r0", "ETIMEDOUTr", "rETIMEDOUT")
{
    wait_in_time(clockwait_monotonic, CLOCK_MONOTONIC);
}

static void *tries(void *arg)
{
    say("%s ", named(pthread_mutex_trylock(&m)));
    return arg;
}

CASE(the_mutex_is_held_after_a_time_out, "ETIMEDOUT EBUSY ")
{
    struct timespec past = from_now(CLOCK_REALTIME, -1000);
    pthread_mutex_lock(&m);
    say("%s ", named(pthread_cond_timedwait(&c, &m, &past)));
    join(start(tries, NULL));
    pthread_mutex_unlock(&m);
}

CASE(a_clock_of_its_own, "1 ETIMEDOUT 1")
{
    pthread_condattr_t attr;
    pthread_cond_t own;
    clockid_t clock;
    assert(pthread_condattr_init(&attr) == 0 && pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    assert(pthread_condattr_getclock(&attr, &clock) == 0);
    say("%d ", clock);
    assert(pthread_cond_init(&own, &attr) == 0);
    struct timespec soon = from_now(CLOCK_MONOTONIC, 5);
    pthread_mutex_lock(&m);
    say("%s ", named(pthread_cond_timedwait(&own, &m, &soon)));
    say("%d", reached(CLOCK_MONOTONIC, soon));
    pthread_mutex_unlock(&m);
    assert(pthread_cond_destroy(&own) == 0 && pthread_condattr_destroy(&attr) == 0);
}

/* ---- mutexes of other kinds ---- */

CASE(with_an_error_checking_mutex, "EPERM ETIMEDOUT EDEADLK 0")
{
    static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    say("%s ", named(pthread_cond_wait(&c, &checking)));
    pthread_mutex_lock(&checking);
    say("%s ", named(pthread_cond_timedwait(&c, &checking, &soon)));
    say("%s ", named(pthread_mutex_lock(&checking)));
    say("%s", named(pthread_mutex_unlock(&checking)));
}

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void *makes_ready_recursively(void *arg)
{
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    return arg;
}

CASE(with_a_recursive_mutex, "0 EPERM")
{
    pthread_t t = start(makes_ready_recursively, NULL);
    pthread_mutex_lock(&recursive);
    while (!ready)
        assert(pthread_cond_wait(&c, &recursive) == 0);
    say("%s ", named(pthread_mutex_unlock(&recursive)));
    say("%s", named(pthread_mutex_unlock(&recursive)));
    join(t);
}

CASE(initialised_and_destroyed, "0 0 0 0")
{
    pthread_cond_t own;
    say("%s ", named(pthread_cond_init(&own, NULL)));
    say("%s ", named(pthread_cond_signal(&own)));
    say("%s ", named(pthread_cond_destroy(&own)));
    say("%s", named(pthread_cond_init(&own, NULL)));
}

NATIVELY(attributes)
{
    pthread_condattr_t attr;
    int value;
    clockid_t clock;
    assert(pthread_condattr_init(&attr) == 0);
    for (int i = -1; i < 8; i++) {
        say("%s ", named(pthread_condattr_setclock(&attr, i)));
        assert(pthread_condattr_getclock(&attr, &clock) == 0);
        say("%d, ", clock);
    }
    for (int i = -1; i < 3; i++) {
        say("%s ", named(pthread_condattr_setpshared(&attr, i)));
        assert(pthread_condattr_getpshared(&attr, &value) == 0);
        say("%d, ", value);
    }
}

CONFORMANCE_MAIN
