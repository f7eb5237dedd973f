/* Yields, sleeps, clocks. */
#include "results.h"
#include <sys/time.h>

static volatile int flag;

static void *sets_the_flag(void *arg)
{
    point();
    flag = 1;
    return arg;
}

CASE(waiting_by_yields_ends, "1")
{
    pthread_t t = start(sets_the_flag, NULL);
    while (!flag)
        assert(sched_yield() == 0);
    say("%d", flag);
    join(t);
}

/* The name of old programs, which the linker gives to nobody any more unless asked for by its version. */
__asm__(".symver old_yield, pthread_yield@GLIBC_2.2.5");
extern int old_yield(void);
#define pthread_yield() old_yield()

CASE(waiting_by_old_yields_ends, "1")
{
    pthread_t t = start(sets_the_flag, NULL);
    while (!flag)
        assert(pthread_yield() == 0);
    say("%d", flag);
    join(t);
}

CASE(waiting_by_sleeps_ends, "1")
{
    pthread_t t = start(sets_the_flag, NULL);
    while (!flag)
        usleep(100);
    say("%d", flag);
    join(t);
}

CASE(waiting_by_the_clock_ends, "1")
{
    struct timespec soon = from_now(CLOCK_MONOTONIC, 2);
    while (!reached(CLOCK_MONOTONIC, soon))
        sched_yield();
    say("1");
}

static void *sleeps(void *arg)
{
    usleep((intptr_t)arg * 1000);
    say("%ld", (long)arg);
    return NULL;
}

/* Who sleeps less need not be first: a sleep may last longer than asked for. */
CASE(a_sleep_orders_nothing, "28", "82")
{
    pthread_t a = start(sleeps, (void *)2), b = start(sleeps, (void *)8);
    join(a);
    join(b);
}

static void sleep_with(int (*sleep_a_little)(void), clockid_t clock)
{
    struct timespec soon = from_now(clock, 2);
    say("%s ", outcome(sleep_a_little()));
    say("%d", reached(clock, soon));
}

static struct timespec little = {0, 2000000};

static int by_usleep(void) { return usleep(2000); }
static int by_nanosleep(void) { return nanosleep(&little, NULL); }
static int by_clock(void) { return clock_nanosleep(CLOCK_MONOTONIC, 0, &little, NULL); }
static int by_boottime(void) { return clock_nanosleep(CLOCK_BOOTTIME, 0, &little, NULL); }

static int until_a_moment(void)
{
    struct timespec soon = from_now(CLOCK_REALTIME, 2);
    return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &soon, NULL);
}

static int until_the_past(void)
{
    struct timespec past = from_now(CLOCK_MONOTONIC, -5000);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL);
}

CASE(usleep_lasts, "0 1") { sleep_with(by_usleep, CLOCK_MONOTONIC); }
CASE(nanosleep_lasts, "0 1") { sleep_with(by_nanosleep, CLOCK_MONOTONIC); }
CASE(clock_nanosleep_lasts, "0 1") { sleep_with(by_clock, CLOCK_MONOTONIC); }
CASE(clock_nanosleep_lasts_on_another_clock, "0 1") { sleep_with(by_boottime, CLOCK_BOOTTIME); }
CASE(a_moment_comes, "0 1") { sleep_with(until_a_moment, CLOCK_REALTIME); }

CASE(the_past_is_over, "0 0 0 0")
{
    say("%d ", until_the_past());
    say("%u ", sleep(0));
    say("%d ", usleep(0));
    struct timespec none = {0, 0};
    say("%d", nanosleep(&none, &none));
}

CASE(clocks_do_not_go_back, "ok")
{
    for (clockid_t clock = 0; clock < 8; clock++) {
        struct timespec before, after;
        assert(clock_gettime(clock, &before) == 0 && clock_gettime(clock, &after) == 0);
        assert(after.tv_sec > before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
    }
    say("ok");
}

CASE(clocks_agree, "1 1 1 1")
{
    struct timespec spec, utc;
    struct timeval value;
    struct timezone zone;
    time_t seconds, same = time(&seconds);
    clock_gettime(CLOCK_REALTIME, &spec);
    assert(gettimeofday(&value, &zone) == 0);
    say("%d ", timespec_get(&utc, TIME_UTC));
    say("%d ", same == seconds);
    say("%d ", spec.tv_sec - seconds <= 1 && value.tv_sec - spec.tv_sec <= 1 && utc.tv_sec - value.tv_sec <= 1);
    say("%d", value.tv_usec >= 0 && value.tv_usec < 1000000);
}

CONFORMANCE_MAIN
