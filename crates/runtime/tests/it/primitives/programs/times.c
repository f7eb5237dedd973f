/* Clocks, sleeping and yielding. */
#include "cases.h"
#include <sys/time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static int64_t nanos(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t now(clockid_t clock)
{
    return nanos(from_now(clock, 0));
}

/* ---- clocks ---- */

static int64_t last;

static void *looks(void *arg)
{
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&m);
        int64_t t = now(CLOCK_MONOTONIC);
        assert(t >= last);
        last = t;
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void time_never_goes_back(void)
{
    pthread_t a = start(looks, NULL), b = start(looks, NULL);
    join(a);
    join(b);
    looks(NULL);
}

static void all_clocks_move(void)
{
    clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                          CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct timespec before = from_now(clocks[i], 0), limit = from_now(clocks[i], 30);
        usleep(40000);
        assert(reached(clocks[i], limit));
        assert(now(clocks[i]) - nanos(before) < (int64_t)60 * 1000000000);
    }
    struct timespec t;
    assert(clock_gettime(98, &t) == -1 && errno == EINVAL);
    assert(clock_getres(CLOCK_MONOTONIC, &t) == 0 && t.tv_sec == 0);
}

/* The processor's time, which no sleep adds to. */
static void processor_time(void)
{
    int64_t spent = now(CLOCK_PROCESS_CPUTIME_ID);
    assert(spent >= 0 && now(CLOCK_THREAD_CPUTIME_ID) >= 0);
}

static void times_agree(void)
{
    struct timeval of_day;
    struct timespec utc;
    time_t seconds, before = from_now(CLOCK_REALTIME, 0).tv_sec;
    assert(gettimeofday(&of_day, NULL) == 0 && of_day.tv_usec >= 0 && of_day.tv_usec < 1000000);
    assert(timespec_get(&utc, TIME_UTC) == TIME_UTC);
    assert(time(&seconds) == seconds);
    time_t after = from_now(CLOCK_REALTIME, 0).tv_sec;
    /* Coarse clocks may be a tick behind. */
    assert(of_day.tv_sec >= before - 1 && of_day.tv_sec <= after);
    assert(utc.tv_sec >= before - 1 && utc.tv_sec <= after);
    assert(seconds >= before - 1 && seconds <= after);
}

static void loops_for_time_end(void)
{
    struct timespec limit = from_now(CLOCK_MONOTONIC, 5);
    while (!reached(CLOCK_MONOTONIC, limit))
        ;
    time_t begin = time(NULL);
    while (time(NULL) == begin)
        usleep(20000);
}

/* ---- sleeping ---- */

static void sleeps_last(void)
{
    struct timespec limit = from_now(CLOCK_MONOTONIC, 20), short_time = {0, 20000000}, until;
    assert(usleep(20000) == 0 && reached(CLOCK_MONOTONIC, limit));
    limit = from_now(CLOCK_MONOTONIC, 20);
    assert(nanosleep(&short_time, NULL) == 0 && reached(CLOCK_MONOTONIC, limit));
    limit = from_now(CLOCK_MONOTONIC, 20);
    assert(clock_nanosleep(CLOCK_REALTIME, 0, &short_time, NULL) == 0 && reached(CLOCK_MONOTONIC, limit));
    until = from_now(CLOCK_MONOTONIC, 20);
    assert(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0 && reached(CLOCK_MONOTONIC, until));
    until = from_now(CLOCK_REALTIME, 20);
    assert(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == 0 && reached(CLOCK_REALTIME, until));
    limit = from_now(CLOCK_MONOTONIC, 1000);
    assert(sleep(1) == 0 && reached(CLOCK_MONOTONIC, limit));
    /* A moment in the past is no wait at all. */
    until = (struct timespec){1, 0};
    limit = from_now(CLOCK_MONOTONIC, 10000);
    assert(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0 && !reached(CLOCK_MONOTONIC, limit));
    assert(sleep(0) == 0 && usleep(0) == 0);
}

/* The same structure for the time and for what is left of it is the usual way to go on after a signal. */
static void time_and_rest_in_one(void)
{
    struct timespec t = {0, 20000000}, limit = from_now(CLOCK_MONOTONIC, 20);
    while (nanosleep(&t, &t) == -1 && errno == EINTR)
        ;
    assert(reached(CLOCK_MONOTONIC, limit));
    t = (struct timespec){0, 20000000};
    limit = from_now(CLOCK_MONOTONIC, 20);
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
    assert(reached(CLOCK_MONOTONIC, limit));
}

static void bad_sleeps(void)
{
    struct timespec bad[] = {{0, -1}, {0, 1000000000}, {-1, 0}}, rest = {7, 7}, fine = {0, 1};
    for (int i = 0; i < 3; i++) {
        assert(nanosleep(&bad[i], &rest) == -1 && errno == EINVAL);
        assert(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad[i], &rest) == EINVAL);
        assert(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &bad[i], NULL) == EINVAL);
    }
    assert(rest.tv_sec == 7 && rest.tv_nsec == 7);
    assert(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &fine, NULL) == EINVAL);
    assert(clock_nanosleep(98, 0, &fine, NULL) == EINVAL);
}

/* ---- the default schedule ---- */

static int order[4], ordered;

static void *comes_in_time(void *arg)
{
    struct timespec until = from_now(CLOCK_MONOTONIC, 0), half = {(intptr_t)arg / 2, (intptr_t)arg % 2 * 500000000};
    until.tv_sec += (intptr_t)arg;
    assert(nanosleep(&half, NULL) == 0);
    assert(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
    pthread_mutex_lock(&m);
    order[ordered++] = (int)(intptr_t)arg;
    pthread_mutex_unlock(&m);
    return NULL;
}

/* Not preempted, threads come in the order of their times. */
static void sleepers_in_order(void)
{
    int seconds[] = {3, 1, 4, 2};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(comes_in_time, (void *)(intptr_t)seconds[i]);
    for (int i = 0; i < 4; i++)
        join(t[i]);
    for (int i = 0; i < 4; i++)
        assert(order[i] == i + 1);
}

static void *gives_up_in_time(void *arg)
{
    static sem_t never;
    struct timespec until = from_now(CLOCK_REALTIME, 1000 * (intptr_t)arg);
    assert(sem_timedwait(&never, &until) == -1 && errno == ETIMEDOUT);
    pthread_mutex_lock(&m);
    order[ordered++] = (int)(intptr_t)arg;
    pthread_mutex_unlock(&m);
    return NULL;
}

/* A wait that is answered in time does not time out, and those that are not do so in their order. */
static void timeouts_in_order(void)
{
    pthread_t c = start(gives_up_in_time, (void *)3), a = start(gives_up_in_time, (void *)1);
    sleep(2);
    pthread_mutex_lock(&m);
    assert(ordered == 1 && order[0] == 1);
    order[ordered++] = 2;
    pthread_mutex_unlock(&m);
    join(a);
    join(c);
    assert(ordered == 3 && order[2] == 3);
}

static void *sleeps_long(void *arg)
{
    for (int i = 0; i < 500; i++)
        sleep(1);
    return arg;
}

static void a_thousand_seconds(void)
{
    struct timespec limit = from_now(CLOCK_MONOTONIC, 500 * 1000);
    pthread_t t = start(sleeps_long, NULL);
    sleeps_long(NULL);
    join(t);
    assert(reached(CLOCK_MONOTONIC, limit));
}

/* ---- yielding ---- */

static _Atomic int flag;

static void *raises_flag(void *arg)
{
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
    }
    flag++;
    return arg;
}

static void spins_end(void)
{
    pthread_t a = start(raises_flag, NULL), b = start(raises_flag, NULL);
    while (flag < 2)
        assert(sched_yield() == 0);
    join(a);
    join(b);
}

static volatile int turn;

static void *takes_turns(void *arg)
{
    int mine = (int)(intptr_t)arg;
    for (int i = 0; i < 4; i++) {
        while (turn % 3 != mine)
            sched_yield();
        turn++;
    }
    return NULL;
}

static void threads_yield_to_each_other(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start(takes_turns, (void *)(intptr_t)i);
    for (int i = 0; i < 3; i++)
        join(t[i]);
    assert(turn == 12);
}

static void sleeping_spins_end(void)
{
    pthread_t a = start(raises_flag, NULL), b = start(raises_flag, NULL);
    while (flag < 2)
        usleep(1000);
    join(a);
    join(b);
}

static volatile int inside;

static void *spins_with_trylock(void *arg)
{
    for (int i = 0; i < 2; i++) {
        while (pthread_mutex_trylock(&m) != 0)
            sched_yield();
        assert(inside++ == 0);
        sched_yield();
        assert(--inside == 0);
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void trylock_spins_end(void)
{
    pthread_t a = start(spins_with_trylock, NULL), b = start(spins_with_trylock, NULL);
    spins_with_trylock(NULL);
    join(a);
    join(b);
}

CASES(CASE(time_never_goes_back), CASE(all_clocks_move), CASE(times_agree), CASE(loops_for_time_end),
      CASE(sleeps_last), CASE(time_and_rest_in_one), CASE(bad_sleeps), CASE(sleepers_in_order),
      CASE(timeouts_in_order), CASE(a_thousand_seconds), CASE(spins_end),
      CASE(threads_yield_to_each_other), CASE(sleeping_spins_end), CASE(trylock_spins_end),
      CASE(processor_time))
