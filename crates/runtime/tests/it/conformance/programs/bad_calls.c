/* What is returned for arguments that are none: whatever glibc and the kernel return. */
#include "results.h"
#include <linux/futex.h>
#include <sys/resource.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER, written = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static const struct timespec times[] = {{0, -1}, {0, 1000000000}, {-5, 0}, {-5, -5}, {5, 2000000000}, {-1, 1000000000}};
static const clockid_t clocks[] = {-1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 99};
enum { TIMES = sizeof times / sizeof *times, CLOCKS = sizeof clocks / sizeof *clocks };

static void *with_a_held_mutex(void *arg)
{
    struct timespec soon = from_now(CLOCK_REALTIME, 1);
    for (int i = 0; i < TIMES; i++) {
        say("%s ", named(pthread_mutex_timedlock(&held, &times[i])));
        say("%s ", named(pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &times[i])));
    }
    for (int i = 0; i < CLOCKS; i++)
        say("%s ", named(pthread_mutex_clocklock(&held, clocks[i], &soon)));
    return arg;
}

NATIVELY(timed_locks_of_a_held_mutex)
{
    pthread_mutex_lock(&held);
    join(start(with_a_held_mutex, NULL));
}

NATIVELY(timed_locks_of_a_free_mutex)
{
    for (int i = 0; i < TIMES; i++) {
        int result = pthread_mutex_timedlock(&m, &times[i]);
        say("%s ", named(result));
        if (result == 0)
            pthread_mutex_unlock(&m);
    }
    for (int i = 0; i < CLOCKS; i++) {
        int result = pthread_mutex_clocklock(&m, clocks[i], &times[0]);
        say("%s ", named(result));
        if (result == 0)
            pthread_mutex_unlock(&m);
    }
}

NATIVELY(mutexes_that_are_not_of_that_kind)
{
    int old;
    say("%s ", named(pthread_mutex_getprioceiling(&m, &old)));
    say("%s ", named(pthread_mutex_setprioceiling(&m, 5, &old)));
    say("%s ", named(pthread_mutex_consistent(&m)));
    pthread_mutexattr_t attr;
    pthread_mutex_t shared;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT);
    say("%s ", named(pthread_mutexattr_getprioceiling(&attr, &old)));
    say("%s", named(pthread_mutex_init(&shared, NULL)));
}

NATIVELY(waits_on_conditions)
{
    pthread_mutex_lock(&m);
    for (int i = 0; i < TIMES; i++) {
        say("%s ", named(pthread_cond_timedwait(&c, &m, &times[i])));
        say("%s ", named(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &times[i])));
    }
    struct timespec past = {1, 0};
    for (int i = 0; i < CLOCKS; i++)
        say("%s ", named(pthread_cond_clockwait(&c, &m, clocks[i], &past)));
}

NATIVELY(timed_read_write_locks)
{
    for (int i = 0; i < TIMES; i++) {
        int result = pthread_rwlock_timedrdlock(&lock, &times[i]);
        say("%s ", named(result));
        if (result == 0)
            pthread_rwlock_unlock(&lock);
        result = pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &times[i]);
        say("%s ", named(result));
        if (result == 0)
            pthread_rwlock_unlock(&lock);
    }
    struct timespec past = {1, 0};
    for (int i = 0; i < CLOCKS; i++) {
        say("%s ", named(pthread_rwlock_clockrdlock(&lock, clocks[i], &past)));
        say("%s ", named(pthread_rwlock_clockwrlock(&written, clocks[i], &past)));
    }
}

static void *with_a_written_lock(void *arg)
{
    for (int i = 0; i < TIMES; i++) {
        say("%s ", named(pthread_rwlock_timedrdlock(&written, &times[i])));
        say("%s ", named(pthread_rwlock_timedwrlock(&written, &times[i])));
        say("%s ", named(pthread_rwlock_clockrdlock(&written, CLOCK_MONOTONIC, &times[i])));
    }
    return arg;
}

NATIVELY(timed_locks_of_a_written_lock)
{
    pthread_rwlock_wrlock(&written);
    join(start(with_a_written_lock, NULL));
}

NATIVELY(timed_waits_for_semaphores)
{
    struct timespec past = {1, 0};
    for (int value = 0; value < 2; value++) {
        for (int i = 0; i < TIMES; i++) {
            sem_init(&sem, 0, value);
            say("%s ", outcome(sem_timedwait(&sem, &times[i])));
            sem_init(&sem, 0, value);
            say("%s ", outcome(sem_clockwait(&sem, CLOCK_MONOTONIC, &times[i])));
        }
        for (int i = 0; i < CLOCKS; i++) {
            sem_init(&sem, 0, value);
            say("%s ", outcome(sem_clockwait(&sem, clocks[i], &past)));
        }
    }
}

static void *ends(void *arg)
{
    return arg;
}

static void *waits(void *arg)
{
    sem_wait(&sem);
    return arg;
}

NATIVELY(joins)
{
    struct timespec past = {1, 0};
    say("%s ", named(pthread_join(pthread_self(), NULL)));
    say("%s ", named(pthread_tryjoin_np(pthread_self(), NULL)));
    say("%s ", named(pthread_timedjoin_np(pthread_self(), NULL, &past)));
    pthread_t t = start(waits, NULL);
    for (int i = 0; i < CLOCKS; i++)
        say("%s ", named(pthread_clockjoin_np(t, NULL, clocks[i], &past)));
    say("%s ", named(pthread_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &times[2])));
    sem_post(&sem);
    join(t);
}

NATIVELY(attributes_of_threads)
{
    pthread_attr_t attr;
    pthread_t t;
    char name[16];
    cpu_set_t set;
    pthread_attr_init(&attr);
    say("%s ", named(pthread_attr_setdetachstate(&attr, 9)));
    say("%s ", named(pthread_attr_setstack(&attr, NULL, 5)));
    say("%s ", named(pthread_attr_setstacksize(&attr, 0)));
    say("%s ", named(pthread_create(&t, &attr, ends, NULL)));
    pthread_join(t, NULL);
    say("%s ", named(pthread_setname_np(pthread_self(), "a name that is too long")));
    say("%s ", named(pthread_getname_np(pthread_self(), name, 3)));
    say("%s ", named(pthread_getaffinity_np(pthread_self(), 0, &set)));
    say("%s ", named(pthread_getaffinity_np(pthread_self(), 3, &set)));
    CPU_ZERO(&set);
    say("%s ", named(pthread_setaffinity_np(pthread_self(), sizeof set, &set)));
    struct sched_param parameters = {.sched_priority = 1000};
    say("%s ", named(pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters)));
    say("%s ", named(pthread_setschedparam(pthread_self(), 77, &parameters)));
    say("%s", named(pthread_setschedprio(pthread_self(), -5)));
}

NATIVELY(questions_to_the_kernel)
{
    cpu_set_t set;
    struct sched_param parameters = {.sched_priority = 0};
    say("%s ", outcome(sched_getaffinity(0, 0, &set)));
    say("%s ", outcome(sched_getaffinity(-5, sizeof set, &set)));
    say("%s ", outcome(sched_getaffinity(1 << 29, sizeof set, &set)));
    CPU_ZERO(&set);
    say("%s ", outcome(sched_setaffinity(0, sizeof set, &set)));
    say("%s ", outcome(sched_getscheduler(-1)));
    say("%s ", outcome(sched_getscheduler(1 << 29)));
    say("%s ", outcome(sched_setscheduler(0, 77, &parameters)));
    say("%s ", outcome(sched_setscheduler(-1, SCHED_OTHER, &parameters)));
    say("%s ", outcome(sched_getparam(-1, &parameters)));
    say("%s ", outcome(sched_getparam(0, NULL)));
    say("%s ", outcome(sched_setparam(0, NULL)));
    parameters.sched_priority = 50;
    say("%s ", outcome(sched_setparam(0, &parameters)));
    errno = 0;
    say("%s ", outcome(getpriority(77, 0)));
    say("%s ", outcome(getpriority(PRIO_PROCESS, 1 << 29)));
    say("%s ", outcome(setpriority(77, 0, 0)));
    say("%s ", outcome(setpriority(PRIO_PROCESS, 1 << 29, 0)));
    say("%s ", outcome(syscall(SYS_sched_getaffinity, -5, sizeof set, &set)));
    say("%s", outcome(syscall(100000)));
}

NATIVELY(sleeps)
{
    struct timespec little = {0, 1000}, rest;
    for (int i = 0; i < TIMES; i++) {
        say("%s ", outcome(nanosleep(&times[i], &rest)));
        say("%s ", named(clock_nanosleep(CLOCK_MONOTONIC, 0, &times[i], &rest)));
        say("%s ", named(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &times[i], &rest)));
    }
    for (int i = 0; i < CLOCKS; i++) {
        if (clocks[i] != CLOCK_PROCESS_CPUTIME_ID)
            say("%d:%s ", clocks[i], named(clock_nanosleep(clocks[i], 0, &little, NULL)));
    }
    say("%s", named(clock_nanosleep(CLOCK_MONOTONIC, 6, &little, NULL)));
}

NATIVELY(clocks_that_are_none)
{
    struct timespec t;
    for (int i = 0; i < CLOCKS; i++) {
        if (clocks[i] != -1)
            say("%s ", outcome(clock_gettime(clocks[i], &t)));
    }
    say("%d %d", timespec_get(&t, 0), timespec_get(&t, 77));
}

NATIVELY(futexes)
{
    static int word[2];
    static const int operations[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAIT_BITSET,
                                     FUTEX_WAKE_BITSET};
    char *crooked = (char *)word + 1;
    struct timespec bad = {0, -1}, before = {-1, 0}, past = {1, 0};
    for (int i = 0; i < 6; i++) {
        int waits = operations[i] == FUTEX_WAIT || operations[i] == FUTEX_WAIT_BITSET;
        void *fourth = waits ? (void *)&past : (void *)1;
        say("%s ", outcome(syscall(SYS_futex, crooked, operations[i], 0, fourth, word, 0)));
        say("%s ", outcome(syscall(SYS_futex, NULL, operations[i], 0, fourth, word, -1)));
        say("%s ", outcome(syscall(SYS_futex, word, operations[i] | FUTEX_CLOCK_REALTIME, 1, fourth, word, -1)));
    }
    say("| %s ", outcome(syscall(SYS_futex, word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_WAIT, 0, &bad, NULL, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_WAIT, 0, &before, NULL, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_WAIT, 1, &bad, NULL, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_WAIT_BITSET, 0, &bad, NULL, -1)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_REQUEUE, -1, 1, word + 1, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_REQUEUE, 1, -1L, word + 1, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_REQUEUE, 1, 1, crooked, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_CMP_REQUEUE, 1, 1, NULL, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, 100, 0, NULL, NULL, 0)));
    say("%s ", outcome(syscall(SYS_futex, word, FUTEX_WAKE, -1, NULL, NULL, 0)));
    say("%s", outcome(syscall(SYS_futex, word, FUTEX_WAKE, 0, NULL, NULL, 0)));
}

CONFORMANCE_MAIN
