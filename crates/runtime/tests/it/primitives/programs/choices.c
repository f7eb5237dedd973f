/* Choices that are not of threads: values, spurious wake-ups, faults. See choices.rs, which counts them. */
#include "cases.h"
#include <linux/futex.h>
#include <sys/syscall.h>

/* Without Heisen it is not there. */
__attribute__((weak)) int heisen_choose(int options);

static int pick(int options)
{
    int value = heisen_choose ? heisen_choose(options) : 0;
    assert(value >= 0 && (options < 1 ? value == 0 : value < options));
    return value;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int ready;
static uint32_t word;

static void two_values(void)
{
    pick(3);
    pick(3);
}

static void one_depends_on_the_other(void)
{
    if (pick(2))
        pick(3);
}

static void nothing_to_choose(void)
{
    pick(1);
    pick(0);
    pick(-7);
}

static void too_much_to_choose(void)
{
    pick(100000);
}

static void *picks(void *arg)
{
    pick(2);
    return arg;
}

static void in_two_threads(void)
{
    pthread_t t = start(picks, NULL);
    pick(3);
    join(t);
}

static void before_main(void) __attribute__((constructor));
static void before_main(void)
{
    assert(pick(5) == 0);
}

static void the_wrong_value(void)
{
    int first = pick(4), second = pick(4);
    assert(first * 4 + second != 11);
}

static void *picks_late(void *result)
{
    pthread_mutex_lock(&lock);
    *(int *)result = pick(2);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Wrong only if the other thread was faster and picked 1. */
static void a_value_and_a_preemption(void)
{
    int value = 0;
    pthread_t t = start(picks_late, &value);
    pthread_mutex_lock(&lock);
    int seen = value;
    pthread_mutex_unlock(&lock);
    join(t);
    assert(seen == 0);
}

static void *makes_ready(void *arg)
{
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void waits_while(void)
{
    pthread_mutex_lock(&lock);
    pthread_t t = start(makes_ready, NULL);
    while (!ready)
        assert(pthread_cond_wait(&cond, &lock) == 0);
    pthread_mutex_unlock(&lock);
    join(t);
}

static void waits_if(void)
{
    pthread_mutex_lock(&lock);
    pthread_t t = start(makes_ready, NULL);
    if (!ready)
        assert(pthread_cond_wait(&cond, &lock) == 0);
    assert(ready);
    pthread_mutex_unlock(&lock);
    join(t);
}

/* Time passes only for a wait that times out. */
static void waits_with_a_limit(void)
{
    struct timespec hour = from_now(CLOCK_REALTIME, 3600 * 1000), now;
    pthread_mutex_lock(&lock);
    int result = pthread_cond_timedwait(&cond, &lock, &hour);
    clock_gettime(CLOCK_REALTIME, &now);
    assert(result == (now.tv_sec >= hour.tv_sec ? ETIMEDOUT : 0));
    pthread_mutex_unlock(&lock);
}

static void nobody_wakes(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
}

static void *sets_and_wakes(void *arg)
{
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return arg;
}

static void sleeps_once(void)
{
    pthread_t t = start(sets_and_wakes, NULL);
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    assert(result == 0 || errno == EAGAIN);
    join(t);
}

static void tries_twice(void)
{
    for (int i = 0; i < 2; i++) {
        int result = pthread_mutex_trylock(&lock);
        assert(result == 0 || result == EBUSY);
        if (result == 0)
            pthread_mutex_unlock(&lock);
    }
}

static void tries_everything(void)
{
    pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
    pthread_spinlock_t spin;
    sem_t sem;
    pthread_spin_init(&spin, 0);
    sem_init(&sem, 0, 1);
    int results[] = {pthread_mutex_trylock(&lock), pthread_rwlock_tryrdlock(&rw), pthread_spin_trylock(&spin)};
    for (int i = 0; i < 3; i++)
        assert(results[i] == 0 || results[i] == EBUSY);
    if (results[1] == 0)
        pthread_rwlock_unlock(&rw);
    int result = pthread_rwlock_trywrlock(&rw);
    assert(result == 0 || result == EBUSY);
    assert(sem_trywait(&sem) == 0 || errno == EAGAIN);
    /* What is held is no choice. */
    if (results[0] == 0)
        assert(pthread_mutex_trylock(&lock) == EBUSY);
}

static void check(const void *block)
{
    assert(block || errno == ENOMEM);
    errno = 0;
}

static void allocates(void)
{
    errno = 0;
    char *block = malloc(24), *zeros = calloc(3, 5), *aligned = aligned_alloc(64, 128);
    assert((block && zeros && aligned) || errno == ENOMEM);
    errno = 0;
    for (int i = 0; zeros && i < 15; i++)
        assert(zeros[i] == 0);
    assert((uintptr_t)aligned % 64 == 0);
    char *more = realloc(zeros, 4000);
    check(more);
    if (!more && zeros)
        assert(zeros[14] == 0);
    void *other = &other;
    int result = posix_memalign(&other, 256, 10);
    assert(result == 0 ? (uintptr_t)other % 256 == 0 : result == ENOMEM && other == &other);
    /* Nothing can always be had. */
    free(realloc(malloc(0), 0));
    free(block);
    free(aligned);
    free(more ? more : zeros);
    free(result ? NULL : other);
}

static void *allocates_once(void *arg)
{
    int *number = malloc(sizeof *number);
    if (number)
        *number = 1;
    free(number);
    return arg;
}

/* That a thread can be made does not depend on luck. */
static void a_thread_allocates(void)
{
    join(start(allocates_once, NULL));
}

static void duplicates(void)
{
    char *copy = strdup("text");
    assert(strcmp(copy, "text") == 0);
    free(copy);
}

static void unchecked(void)
{
    for (int i = 0; i < 3; i++) {
        volatile int *number = malloc(sizeof *number);
        *number = i;
        free((void *)number);
    }
}

CASES(CASE(two_values), CASE(one_depends_on_the_other), CASE(nothing_to_choose), CASE(too_much_to_choose),
      CASE(in_two_threads), CASE(the_wrong_value), CASE(a_value_and_a_preemption), CASE(waits_while), CASE(waits_if),
      CASE(waits_with_a_limit), CASE(nobody_wakes), CASE(sleeps_once), CASE(tries_twice), CASE(tries_everything),
      CASE(allocates), CASE(a_thread_allocates), CASE(duplicates), CASE(unchecked))
