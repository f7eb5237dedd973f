/* Futex operations beyond waiting and waking. */
#include "cases.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static atomic_int a, b, woken;

static long futex(void *word, int operation, int value, unsigned long fourth, void *second, int last)
{
    return syscall(SYS_futex, word, operation, value, fourth, second, last);
}

static void *waits(void *word)
{
    while (atomic_load((atomic_int *)word) == 0)
        futex(word, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
    atomic_fetch_add(&woken, 1);
    return NULL;
}

static int result_of(int operation, int argument, int comparison, int with, int old)
{
    atomic_store(&b, old);
    return futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, 1, &b, FUTEX_OP(operation, argument, comparison, with));
}

static void wake_op_computes(void)
{
    assert(result_of(FUTEX_OP_SET, 5, FUTEX_OP_CMP_EQ, 0, 0) == 0 && b == 5);
    assert(result_of(FUTEX_OP_ADD, -2, FUTEX_OP_CMP_NE, 0, 5) == 0 && b == 3);
    assert(result_of(FUTEX_OP_OR, 4, FUTEX_OP_CMP_LT, 0, 3) == 0 && b == 7);
    assert(result_of(FUTEX_OP_ANDN, 2, FUTEX_OP_CMP_LE, 0, 7) == 0 && b == 5);
    assert(result_of(FUTEX_OP_XOR, 1, FUTEX_OP_CMP_GT, 0, 5) == 0 && b == 4);
    assert(result_of(FUTEX_OP_SET | FUTEX_OP_OPARG_SHIFT, 6, FUTEX_OP_CMP_GE, 0, 4) == 0 && b == 64);
    assert(result_of(7, 0, 0, 0, 1) == -1 && errno == ENOSYS);
}

/* How many of two waiters are woken: that of the first word always, that of the second by comparison. */
static void wakes_by_comparison(int with, long expected)
{
    pthread_t first = start(waits, &a), second = start(waits, &b);
    usleep(50000);
    atomic_store(&a, 1);
    long got = futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, 1, &b, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, with));
    assert(got <= expected);
    join(first);
    futex(&b, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
    join(second);
    assert(woken == 2);
}

static void wake_op_wakes_both(void) { wakes_by_comparison(0, 2); }
static void wake_op_wakes_one(void) { wakes_by_comparison(1, 1); }

static long waitv(struct futex_waitv *list, unsigned count, unsigned flags, struct timespec *time, clockid_t clock)
{
    return syscall(449, list, count, flags, time, clock);
}

static void *waits_for_any(void *arg)
{
    struct futex_waitv list[2] = {
        {.val = 0, .uaddr = (uintptr_t)&a, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
        {.val = 0, .uaddr = (uintptr_t)&b, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
    };
    for (;;) {
        long index = waitv(list, 2, 0, NULL, CLOCK_MONOTONIC);
        if (index < 0) {
            assert(errno == EAGAIN);
            break;
        }
        /* Nobody touches a. */
        assert(index == 1 && b == 1);
        break;
    }
    return arg;
}

static void waitv_waits_for_any(void)
{
    pthread_t t = start(waits_for_any, NULL);
    usleep(50000);
    atomic_store(&b, 1);
    assert(futex(&b, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0) <= 1);
    join(t);
    assert(futex(&b, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0) == 0);
}

static void waitv_errors(void)
{
    struct futex_waitv one = {.val = 0, .uaddr = (uintptr_t)&a, .flags = FUTEX_32};
    struct timespec soon = from_now(CLOCK_MONOTONIC, 10);
    assert(waitv(&one, 0, 0, NULL, 0) == -1 && errno == EINVAL);
    assert(waitv(&one, 129, 0, NULL, 0) == -1 && errno == EINVAL);
    assert(waitv(&one, 1, 1, NULL, 0) == -1 && errno == EINVAL);
    assert(waitv(&one, 1, 0, &soon, 7) == -1 && errno == EINVAL);
    assert(waitv(&one, 1, 0, &soon, CLOCK_MONOTONIC) == -1 && errno == ETIMEDOUT);
    assert(reached(CLOCK_MONOTONIC, soon));
    one.val = 1;
    assert(waitv(&one, 1, 0, NULL, 0) == -1 && errno == EAGAIN);
    one.flags = 0;
    assert(waitv(&one, 1, 0, NULL, 0) == -1 && errno == EINVAL);
}

/* A waiter of several is moved with the word it waits on. */
static void *waits_and_is_moved(void *arg)
{
    struct futex_waitv list[2] = {
        {.val = 0, .uaddr = (uintptr_t)&woken, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
        {.val = 0, .uaddr = (uintptr_t)&a, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
    };
    long index = waitv(list, 2, 0, NULL, CLOCK_MONOTONIC);
    assert(index == 1 || (index == -1 && errno == EAGAIN));
    return arg;
}

static void waitv_and_requeue(void)
{
    pthread_t t = start(waits_and_is_moved, NULL);
    usleep(50000);
    long moved = futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1, &b, 0);
    atomic_store(&a, 1);
    if (moved == 1)
        assert(futex(&b, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0) == 1);
    else
        futex(&a, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
    join(t);
}

/* Refused under Heisen; natively they do what they do. */
static void pi(void)
{
    long result = futex(&a, FUTEX_LOCK_PI_PRIVATE, 0, 0, NULL, 0);
    assert(result == 0 || errno == ENOSYS);
    result = futex(&a, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, NULL, 0);
    assert(result == 0 || errno == ENOSYS);
}

static void requeue_pi(void)
{
    struct timespec past = {0, 1};
    assert(futex(&a, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 1, (unsigned long)&past, &b, 0) == -1);
    assert(errno == EAGAIN || errno == ENOSYS);
}

static void fd(void)
{
    assert(futex(&a, FUTEX_FD, 0, 0, NULL, 0) == -1 && errno == ENOSYS);
}

CASES(CASE(wake_op_computes), CASE(wake_op_wakes_both), CASE(wake_op_wakes_one), CASE(waitv_waits_for_any),
      CASE(waitv_errors), CASE(waitv_and_requeue), CASE(pi), CASE(requeue_pi), CASE(fd))
