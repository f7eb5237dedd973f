/* Futexes, as programs reach them through `syscall`. */
#include "results.h"
#include <linux/futex.h>

static int word, other;
static sem_t woken_up;

static long futex(int *at, int operation, long value, const void *fourth, int *second, int last)
{
    return syscall(SYS_futex, at, operation, value, fourth, second, last);
}

static long wait_while(int *at, int value)
{
    return futex(at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static long wake(int *at, int count)
{
    return futex(at, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static int load(int *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
static void store(int *at, int value) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); }

static void *waits_for_one(void *letter)
{
    while (load(&word) == 0)
        wait_while(&word, 0);
    point();
    say("%s", (char *)letter);
    return NULL;
}

static void *sets_and_wakes(void *arg)
{
    say("s");
    store(&word, 1);
    wake(&word, INT_MAX);
    return arg;
}

CASE(a_waiter_is_woken, "sA")
{
    beside(waits_for_one, "A", sets_and_wakes, NULL);
}

CASE(a_wait_for_another_value_is_refused, "EAGAIN EAGAIN")
{
    say("%s ", outcome(wait_while(&word, 1)));
    say("%s", outcome(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 1, NULL, NULL, 1)));
}

CASE(nobody_waits, "0 0 0")
{
    say("%s ", outcome(wake(&word, 1)));
    say("%s ", outcome(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, -1)));
    say("%s", outcome(futex(&word, FUTEX_REQUEUE_PRIVATE, 1, (void *)1, &other, 0)));
}

/* A mutex: 0 free, 1 held, 2 held and perhaps waited for. */
static void lock(int *at)
{
    int free = 0;
    if (__atomic_compare_exchange_n(at, &free, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    while (__atomic_exchange_n(at, 2, __ATOMIC_SEQ_CST) != 0)
        wait_while(at, 2);
}

static void unlock(int *at)
{
    if (__atomic_exchange_n(at, 0, __ATOMIC_SEQ_CST) == 2)
        wake(at, 1);
}

static void *holds(void *letter)
{
    point();
    lock(&word);
    say("%s", (char *)letter);
    point();
    say("%s", (char *)letter);
    unlock(&word);
    return NULL;
}

CASE(a_mutex_made_of_a_futex_excludes, "AABB", "BBAA")
{
    beside(holds, "A", holds, "B");
}

/* Threads that wait without looking again, so that it is seen whom a wake wakes. */
static void *waits_once(void *letter)
{
    while (wait_while(&word, 0) != 0 && errno == EINTR)
        ;
    say("%s", (char *)letter);
    sem_post(&woken_up);
    return NULL;
}

/* How many wait for a word: those that can be moved to where they are. */
static void until_waiting(int *at, int count)
{
    while (futex(at, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)(long)INT_MAX, at, load(at)) < count)
        sched_yield();
}

SAMPLED(a_wake_wakes_any_one, 400, "A1B1", "B1A1", "1AB1", "1BA1", "A11B", "B11A", "11AB", "11BA", "1A1B", "1B1A")
{
    pthread_t a = start(waits_once, "A"), b = start(waits_once, "B");
    until_waiting(&word, 2);
    for (int i = 0; i < 2; i++) {
        long woken = wake(&word, 1);
        point();
        say("%ld", woken);
    }
    join(a);
    join(b);
}

SAMPLED(a_wake_wakes_as_many_as_asked_for, 100, "2AB", "2BA", "A2B", "AB2", "B2A", "BA2")
{
    pthread_t a = start(waits_once, "A"), b = start(waits_once, "B");
    until_waiting(&word, 2);
    long woken = wake(&word, 5);
    point();
    say("%ld", woken);
    join(a);
    join(b);
}

static void *waits_for_bit(void *bit)
{
    futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (intptr_t)bit);
    say("%ld", (long)bit);
    return NULL;
}

CASE(a_wake_by_bits_wakes_those, "2 1")
{
    pthread_t a = start(waits_for_bit, (void *)1), b = start(waits_for_bit, (void *)2);
    while (futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 5, NULL, NULL, 2) == 0)
        sched_yield();
    join(b);
    say(" ");
    while (futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 5, NULL, NULL, 1) == 0)
        sched_yield();
    join(a);
}

SAMPLED(a_requeue_wakes_some_and_moves_the_others, 200, "2 0 A1 B", "2 0 B1 A")
{
    pthread_t a = start(waits_once, "A"), b = start(waits_once, "B");
    until_waiting(&word, 2);
    long moved = futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)5, &other, 0);
    say("%ld ", moved);
    say("%ld ", wake(&word, 5));
    long woken = wake(&other, 1);
    sem_wait(&woken_up);
    say("%ld ", woken);
    wake(&other, 1);
    join(a);
    join(b);
}

CASE(a_requeue_looks_at_the_word, "EAGAIN")
{
    say("%s", outcome(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &other, 7)));
}

CASE(time_runs_out, "ETIMEDOUT ETIMEDOUT1 ETIMEDOUT1")
{
    struct timespec little = {0, 3000000};
    say("%s ", outcome(futex(&word, FUTEX_WAIT_PRIVATE, 0, &little, NULL, 0)));
    struct timespec soon = from_now(CLOCK_MONOTONIC, 3);
    say("%s", outcome(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &soon, NULL, -1)));
    say("%d ", reached(CLOCK_MONOTONIC, soon));
    soon = from_now(CLOCK_REALTIME, 3);
    say("%s", outcome(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &soon, NULL, -1)));
    say("%d", reached(CLOCK_REALTIME, soon));
}

static void *waits_in_time(void *arg)
{
    struct timespec hour = {3600, 0};
    long result = futex(&word, FUTEX_WAIT_PRIVATE, 0, &hour, NULL, 0);
    const char *name = outcome(result);
    say("%s", name);
    return arg;
}

CASE(woken_or_too_late, "s0", "sEAGAIN", "ETIMEDOUTs", "sETIMEDOUT")
{
    beside(waits_in_time, NULL, sets_and_wakes, NULL);
}

CONFORMANCE_MAIN
