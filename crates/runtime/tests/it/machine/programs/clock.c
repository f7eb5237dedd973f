/* Setting the clock moves the clock of the execution. Run where the machine's cannot be set. */
#include "cases.h"
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>

extern int __adjtimex(struct timex *);
/* glibc keeps this for old programs only. */
extern int old_stime(const time_t *);
__asm__(".symver old_stime, stime@GLIBC_2.2.5");
#define stime(seconds) old_stime(seconds)

/* Executions begin at the first second of 2026, whatever others have set. */
#define BEGIN 1767225600

static int64_t now(clockid_t clock)
{
    struct timespec t;
    assert(clock_gettime(clock, &t) == 0);
    return t.tv_sec;
}

/* All ways to read the clock agree, to the second. */
static void shows(int64_t seconds)
{
    struct timespec t;
    struct timeval v;
    assert(now(CLOCK_REALTIME) == seconds && now(CLOCK_REALTIME_COARSE) == seconds && now(CLOCK_TAI) == seconds);
    assert(time(NULL) == seconds && gettimeofday(&v, NULL) == 0 && v.tv_sec == seconds);
    assert(timespec_get(&t, TIME_UTC) == TIME_UTC && t.tv_sec == seconds);
    assert(syscall(SYS_clock_gettime, CLOCK_REALTIME, &t) == 0 && t.tv_sec == seconds);
    assert(syscall(SYS_gettimeofday, &v, NULL) == 0 && v.tv_sec == seconds && syscall(SYS_time, NULL) == seconds);
}

static void *nothing(void *arg)
{
    return arg;
}

static void set(void)
{
    pthread_t other = start(nothing, NULL);
    int64_t before = now(CLOCK_MONOTONIC);
    assert(now(CLOCK_REALTIME) == BEGIN);
    assert(clock_settime(CLOCK_REALTIME, &(struct timespec){2000000000, 5}) == 0);
    shows(2000000000);
    assert(settimeofday(&(struct timeval){1500000000, 7}, NULL) == 0);
    shows(1500000000);
    assert(settimeofday(NULL, &(struct timezone){60, 0}) == 0);
    assert(syscall(SYS_clock_settime, CLOCK_REALTIME, &(struct timespec){1600000000, 0}) == 0);
    shows(1600000000);
    assert(syscall(SYS_settimeofday, &(struct timeval){1700000000, 0}, NULL) == 0);
    shows(1700000000);
    time_t seconds = 1700000000;
    assert(stime(&seconds) == 0);
    shows(1700000000);
    struct timeval old = {1, 1};
    assert(adjtime(&(struct timeval){100, 0}, &old) == 0 && old.tv_sec == 0 && old.tv_usec == 0);
    shows(1700000100);
    struct timex timex = {.modes = ADJ_SETOFFSET, .time = {-50, 0}};
    assert(adjtimex(&timex) == TIME_ERROR);
    shows(1700000050);
    timex = (struct timex){.modes = ADJ_SETOFFSET | ADJ_NANO, .time = {1, 5}};
    assert(clock_adjtime(CLOCK_REALTIME, &timex) == TIME_ERROR && timex.time.tv_sec == 1700000051);
    timex = (struct timex){.modes = ADJ_OFFSET_SINGLESHOT, .offset = 9000000};
    assert(ntp_adjtime(&timex) == TIME_ERROR);
    shows(1700000060);
    timex = (struct timex){.modes = 0};
    assert(syscall(SYS_adjtimex, &timex) == TIME_ERROR && timex.time.tv_sec == 1700000060);
    timex = (struct timex){.modes = ADJ_SETOFFSET, .time = {1, 0}};
    assert(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &timex) == TIME_ERROR);
    shows(1700000061);
    assert(now(CLOCK_MONOTONIC) - before < 5);
    join(other);
}

static void refused(void)
{
    struct timespec good = {1700000000, 0}, bad = {1700000000, 1000000000}, negative = {-1, 0}, early = {1, 0};
    assert(clock_settime(CLOCK_REALTIME, &bad) == -1 && errno == EINVAL);
    assert(clock_settime(CLOCK_REALTIME, &negative) == -1 && errno == EINVAL);
    /* Before the machine was started, as Linux has it. */
    assert(clock_settime(CLOCK_REALTIME, &early) == -1 && errno == EINVAL);
    assert(clock_settime(CLOCK_MONOTONIC, &good) == -1 && errno == EINVAL);
    assert(clock_settime(CLOCK_BOOTTIME, &good) == -1 && errno == EINVAL);
    assert(clock_settime(CLOCK_PROCESS_CPUTIME_ID, &good) == -1 && errno == EPERM);
    assert(clock_settime(77, &good) == -1 && errno == EINVAL);
    assert(settimeofday(&(struct timeval){1700000000, 1000000}, NULL) == -1 && errno == EINVAL);
    assert(syscall(SYS_clock_settime, CLOCK_MONOTONIC, &good) == -1 && errno == EINVAL);
    shows(BEGIN);
    struct timex timex = {.modes = ADJ_SETOFFSET, .time = {0, 2000000}};
    assert(adjtimex(&timex) == -1 && errno == EINVAL);
    assert(clock_adjtime(CLOCK_MONOTONIC, &timex) == -1 && errno == EOPNOTSUPP);
}

static void rate(void)
{
    struct timex timex = {.modes = ADJ_FREQUENCY, .freq = 1 << 16};
    assert(adjtimex(&timex) == -1 && errno == EPERM && __adjtimex(&timex) == -1 && errno == EPERM);
}

/* Waits go by the clock as it is when they begin. */
static void waits(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    assert(clock_settime(CLOCK_REALTIME, &(struct timespec){2000000000, 0}) == 0);
    pthread_mutex_lock(&mutex);
    assert(pthread_cond_timedwait(&cond, &mutex, &(struct timespec){2000000100, 0}) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    shows(2000000100);
    assert(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){2000000200, 0}, NULL) == 0);
    shows(2000000200);
    assert(syscall(SYS_nanosleep, &(struct timespec){10, 0}, NULL) == 0);
    shows(2000000210);
}

/* System call instructions that nobody sees but the kernel. */
static long inlined(long number, long a, const void *b)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

static void instructions(void)
{
    join(start(nothing, NULL));
    struct timespec t = {1900000000, 0};
    assert(inlined(SYS_clock_settime, CLOCK_REALTIME, &t) == -EPERM);
    assert(inlined(SYS_settimeofday, (long)&t, NULL) == -EPERM);
    shows(BEGIN);
}

CASES(CASE(set), CASE(refused), CASE(rate), CASE(waits), CASE(instructions))
