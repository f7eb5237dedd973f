/* Futexes, by the system call. */
#include "cases.h"
#include <linux/futex.h>
#include <sys/syscall.h>

static uint32_t word, second;
static volatile int awake;

static long futex(uint32_t *at, int op, uint32_t value, const void *timeout, uint32_t *to, uint32_t mask)
{
    return syscall(SYS_futex, at, op, value, timeout, to, mask);
}

/* Yields until `count` threads sleep on `at`. How many there are can only be seen by moving them aside and back. */
static void await_sleepers(uint32_t *at, int count)
{
    static uint32_t aside;
    for (;;) {
        long moved = futex(at, FUTEX_REQUEUE_PRIVATE, 0, (void *)100, &aside, 0);
        assert(moved >= 0);
        long back = futex(&aside, FUTEX_REQUEUE_PRIVATE, 0, (void *)100, at, 0);
        assert(back == moved);
        if (moved == count)
            return;
        assert(moved < count);
        sched_yield();
    }
}

static void *sleeps(void *arg)
{
    (void)arg;
    assert(futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0);
    __atomic_fetch_add(&awake, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void await_awake(int count)
{
    while (awake < count)
        sched_yield();
    assert(awake == count);
}

static void wait_and_wake(void)
{
    pthread_t t[3];
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 0);
    for (int i = 0; i < 3; i++)
        t[i] = start(sleeps, NULL);
    await_sleepers(&word, 3);
    assert(futex(&second, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 0);
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    await_awake(1);
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 2);
    for (int i = 0; i < 3; i++)
        join(t[i]);
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 0);
}

static void another_value(void)
{
    word = 5;
    assert(futex(&word, FUTEX_WAIT_PRIVATE, 4, NULL, NULL, 0) == -1 && errno == EAGAIN);
    assert(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 4, NULL, NULL, 1) == -1 && errno == EAGAIN);
    assert(futex(&word, FUTEX_WAIT, 4, NULL, NULL, 0) == -1 && errno == EAGAIN);
}

static void time_runs_out(void)
{
    struct timespec wait = {0, 20000000}, until = from_now(CLOCK_MONOTONIC, 20), past = {1, 0}, none = {0, 0};
    assert(futex(&word, FUTEX_WAIT_PRIVATE, 0, &wait, NULL, 0) == -1 && errno == ETIMEDOUT);
    assert(reached(CLOCK_MONOTONIC, until));
    assert(futex(&word, FUTEX_WAIT_PRIVATE, 0, &none, NULL, 0) == -1 && errno == ETIMEDOUT);
    until = from_now(CLOCK_MONOTONIC, 20);
    assert(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, ~0u) == -1 && errno == ETIMEDOUT);
    assert(reached(CLOCK_MONOTONIC, until));
    assert(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, ~0u) == -1 && errno == ETIMEDOUT);
    until = from_now(CLOCK_REALTIME, 20);
    assert(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &until, NULL, ~0u) == -1);
    assert(errno == ETIMEDOUT && reached(CLOCK_REALTIME, until));
}

static void bad_arguments(void)
{
    struct timespec bad[] = {{0, -1}, {0, 1000000000}, {-1, 0}};
    for (int i = 0; i < 3; i++) {
        assert(futex(&word, FUTEX_WAIT_PRIVATE, 0, &bad[i], NULL, 0) == -1 && errno == EINVAL);
        assert(futex(&word, FUTEX_WAIT_PRIVATE, 1, &bad[i], NULL, 0) == -1 && errno == EINVAL);
        assert(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &bad[i], NULL, 1) == -1 && errno == EINVAL);
    }
    assert(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == EINVAL);
    assert(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0) == -1 && errno == EINVAL);
    assert(futex(&word, FUTEX_REQUEUE_PRIVATE, -1, NULL, &second, 0) == -1 && errno == EINVAL);
    assert(futex(&word, FUTEX_REQUEUE_PRIVATE, 0, (void *)-1, &second, 0) == -1 && errno == EINVAL);
}

static volatile uint32_t got;

static void *sleeps_with_mask(void *arg)
{
    uint32_t mask = (uint32_t)(uintptr_t)arg;
    assert(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, mask) == 0);
    __atomic_fetch_or(&got, mask, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&awake, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void masks_select(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start(sleeps_with_mask, (void *)(uintptr_t)(1u << i));
    await_sleepers(&word, 3);
    assert(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 8) == 0);
    assert(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 2 | 8) == 1);
    await_awake(1);
    assert(got == 2);
    assert(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 2) == 0);
    assert(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 1 | 4) == 1);
    await_awake(2);
    assert(got == 3 || got == 6);
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 1);
    for (int i = 0; i < 3; i++)
        join(t[i]);
    assert(got == 7);
}

static void requeue(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(sleeps, NULL);
    await_sleepers(&word, 4);
    /* One woken, two moved, one left; the result counts both. */
    assert(futex(&word, FUTEX_REQUEUE_PRIVATE, 1, (void *)2, &second, 0) == 3);
    await_awake(1);
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 1);
    await_awake(2);
    assert(futex(&second, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 2);
    for (int i = 0; i < 4; i++)
        join(t[i]);
}

static void cmp_requeue(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start(sleeps, NULL);
    await_sleepers(&word, 3);
    assert(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)10, &second, 1) == -1 && errno == EAGAIN);
    assert(awake == 0);
    assert(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)10, &second, 0) == 3);
    await_awake(1);
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 0);
    assert(futex(&second, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    await_awake(2);
    assert(futex(&second, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    for (int i = 0; i < 3; i++)
        join(t[i]);
}

/* A thread that was moved can still time out. */
static void *sleeps_for_a_while(void *arg)
{
    struct timespec wait = {0, 200000000};
    assert(futex(&word, FUTEX_WAIT_PRIVATE, 0, &wait, NULL, 0) == -1 && errno == ETIMEDOUT);
    return arg;
}

static void moved_and_timed_out(void)
{
    pthread_t t = start(sleeps_for_a_while, NULL);
    long moved = futex(&word, FUTEX_REQUEUE_PRIVATE, 0, (void *)1, &second, 0);
    assert(moved == 0 || moved == 1);
    join(t);
    assert(futex(&second, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0) == 0);
}

static void nobody_or_one(void)
{
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 0, NULL, NULL, 0) == 0);
    pthread_t t = start(sleeps, NULL);
    await_sleepers(&word, 1);
    /* The kernel wakes at least one. */
    assert(futex(&word, FUTEX_WAKE_PRIVATE, 0, NULL, NULL, 0) == 1);
    join(t);
}

/* A lock such as libraries write: 0 free, 1 held, 2 held and waited for. */
static uint32_t lock_word;
static int inside, total;

static void take(void)
{
    uint32_t free_word = 0;
    if (__atomic_compare_exchange_n(&lock_word, &free_word, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_SEQ_CST) != 0) {
        long result = futex(&lock_word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
        assert(result == 0 || errno == EAGAIN);
    }
}

static void release(void)
{
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_SEQ_CST) == 2)
        assert(futex(&lock_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) <= 1);
}

static void *works(void *arg)
{
    for (int i = 0; i < 3; i++) {
        take();
        assert(inside++ == 0);
        sched_yield();
        total++;
        assert(--inside == 0);
        release();
    }
    return arg;
}

static void a_lock_of_ones_own(void)
{
    pthread_t a = start(works, NULL), b = start(works, NULL), c = start(works, NULL);
    join(a);
    join(b);
    join(c);
    assert(total == 9);
}

static void other_calls_pass(void)
{
    assert(syscall(SYS_getpid) == getpid());
    assert(syscall(SYS_gettid) == gettid());
    assert(syscall(SYS_close, -1) == -1 && errno == EBADF);
    int ends[2];
    assert(syscall(SYS_pipe2, ends, 0) == 0);
    assert(syscall(SYS_write, ends[1], "x", 1) == 1);
    char c = 0;
    assert(syscall(SYS_read, ends[0], &c, 1) == 1 && c == 'x');
    void *at = (void *)syscall(SYS_mmap, NULL, 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    assert(at != MAP_FAILED && *(char *)at == 0);
}

CASES(CASE(wait_and_wake), CASE(another_value), CASE(time_runs_out), CASE(bad_arguments), CASE(masks_select),
      CASE(requeue), CASE(cmp_requeue), CASE(moved_and_timed_out), CASE(nobody_or_one), CASE(a_lock_of_ones_own),
      CASE(other_calls_pass))
