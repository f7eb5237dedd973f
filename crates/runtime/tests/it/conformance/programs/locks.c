/* Read-write locks, spin locks, barriers. */
#include "results.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static volatile int value;

/* ---- read-write locks ---- */

static void *writes(void *letter)
{
    assert(pthread_rwlock_wrlock(&lock) == 0);
    say("%s", (char *)letter);
    point();
    say("%s", (char *)letter);
    assert(pthread_rwlock_unlock(&lock) == 0);
    return NULL;
}

static void *reads(void *letter)
{
    assert(pthread_rwlock_rdlock(&lock) == 0);
    say("%s", (char *)letter);
    point();
    say("%s", (char *)letter);
    assert(pthread_rwlock_unlock(&lock) == 0);
    return NULL;
}

CASE(writers_exclude, "AABB", "BBAA")
{
    beside(writes, "A", writes, "B");
}

CASE(a_reader_and_a_writer_exclude, "AABB", "BBAA")
{
    beside(writes, "A", reads, "B");
}

CASE(readers_share, "AABB", "BBAA", "ABAB", "ABBA", "BABA", "BAAB")
{
    beside(reads, "A", reads, "B");
}

static void *tries_to_read(void *arg)
{
    int result = pthread_rwlock_tryrdlock(&lock);
    point();
    say("%s ", named(result));
    if (result == 0)
        pthread_rwlock_unlock(&lock);
    return arg;
}

static void *tries_to_write(void *arg)
{
    int result = pthread_rwlock_trywrlock(&lock);
    point();
    say("%s ", named(result));
    if (result == 0)
        pthread_rwlock_unlock(&lock);
    return arg;
}

CASE(tries_to_read_never_meet, "0 0 ")
{
    beside(tries_to_read, NULL, tries_to_read, NULL);
}

CASE(tries_to_write_may_meet, "0 0 ", "0 EBUSY ", "EBUSY 0 ")
{
    beside(tries_to_write, NULL, tries_to_write, NULL);
}

CASE(what_a_reader_allows, "0 EBUSY 0 ")
{
    pthread_rwlock_rdlock(&lock);
    join(start(tries_to_read, NULL));
    join(start(tries_to_write, NULL));
    pthread_rwlock_unlock(&lock);
    join(start(tries_to_write, NULL));
}

CASE(what_a_writer_allows, "EBUSY EBUSY 0 ")
{
    pthread_rwlock_wrlock(&lock);
    join(start(tries_to_read, NULL));
    join(start(tries_to_write, NULL));
    pthread_rwlock_unlock(&lock);
    join(start(tries_to_read, NULL));
}

CASE(ones_own_write_lock, "EDEADLK EDEADLK EBUSY EBUSY 0")
{
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    pthread_rwlock_wrlock(&lock);
    say("%s ", named(pthread_rwlock_rdlock(&lock)));
    say("%s ", named(pthread_rwlock_timedwrlock(&lock, &soon)));
    say("%s ", named(pthread_rwlock_tryrdlock(&lock)));
    say("%s ", named(pthread_rwlock_trywrlock(&lock)));
    say("%s", named(pthread_rwlock_unlock(&lock)));
}

static void *reads_until(void *until)
{
    say("%s ", named(pthread_rwlock_timedrdlock(&lock, until)));
    return NULL;
}

static void *writes_until(void *until)
{
    say("%s ", named(pthread_rwlock_timedwrlock(&lock, until)));
    return NULL;
}

CASE(time_runs_out_at_a_writer, "ETIMEDOUT ETIMEDOUT ")
{
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    pthread_rwlock_wrlock(&lock);
    join(start(reads_until, &soon));
    join(start(writes_until, &soon));
}

CASE(time_runs_out_at_a_reader, "0 ETIMEDOUT ")
{
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    pthread_rwlock_rdlock(&lock);
    join(start(reads_until, &soon));
    join(start(writes_until, &soon));
}

static void *on_a_clock(void *clock)
{
    struct timespec soon = from_now((intptr_t)clock, 5);
    say("%s ", named(pthread_rwlock_clockrdlock(&lock, (intptr_t)clock, &soon)));
    say("%s ", named(pthread_rwlock_clockwrlock(&lock, (intptr_t)clock, &soon)));
    return NULL;
}

CASE(time_runs_out_on_either_clock, "ETIMEDOUT ETIMEDOUT ETIMEDOUT ETIMEDOUT ")
{
    pthread_rwlock_wrlock(&lock);
    join(start(on_a_clock, (void *)CLOCK_REALTIME));
    join(start(on_a_clock, (void *)CLOCK_MONOTONIC));
}

static void *writes_in_time(void *arg)
{
    struct timespec later = from_now(CLOCK_MONOTONIC, HOUR);
    int result = pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &later);
    say("%s", named(result));
    if (result == 0)
        pthread_rwlock_unlock(&lock);
    return arg;
}

CASE(a_writer_gets_it_or_is_too_late, "AA0", "0AA", "AAETIMEDOUT", "AETIMEDOUTA")
{
    beside(reads, "A", writes_in_time, NULL);
}

/* A lock that prefers writers: a reader that comes while a writer waits goes after it. */
static sem_t has_it;

static void *reads_long(void *arg)
{
    pthread_rwlock_rdlock(&lock);
    sem_post(&has_it);
    usleep(20000);
    say("r");
    pthread_rwlock_unlock(&lock);
    return arg;
}

static void *writes_one(void *arg)
{
    pthread_rwlock_wrlock(&lock);
    say("w");
    pthread_rwlock_unlock(&lock);
    return arg;
}

CASE(writers_can_be_preferred, "rw")
{
    pthread_rwlockattr_t attr;
    int kind;
    assert(pthread_rwlockattr_init(&attr) == 0);
    assert(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) == 0);
    assert(pthread_rwlockattr_getkind_np(&attr, &kind) == 0 && kind == 2);
    assert(pthread_rwlock_init(&lock, &attr) == 0);
    pthread_t reader = start(reads_long, NULL);
    sem_wait(&has_it);
    writes_one(NULL);
    join(reader);
    assert(pthread_rwlock_destroy(&lock) == 0 && pthread_rwlockattr_destroy(&attr) == 0);
}

NATIVELY(rwlock_attributes)
{
    pthread_rwlockattr_t attr;
    int got;
    assert(pthread_rwlockattr_init(&attr) == 0);
    for (int i = -1; i < 4; i++) {
        say("%s ", named(pthread_rwlockattr_setkind_np(&attr, i)));
        assert(pthread_rwlockattr_getkind_np(&attr, &got) == 0);
        say("%d, ", got);
        say("%s ", named(pthread_rwlockattr_setpshared(&attr, i)));
        assert(pthread_rwlockattr_getpshared(&attr, &got) == 0);
        say("%d, ", got);
    }
}

/* ---- spin locks ---- */

static void *spins(void *letter)
{
    assert(pthread_spin_lock(&spin) == 0);
    say("%s", (char *)letter);
    point();
    say("%s", (char *)letter);
    assert(pthread_spin_unlock(&spin) == 0);
    return NULL;
}

CASE(spin_locks_exclude, "AABB", "BBAA")
{
    assert(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
    beside(spins, "A", spins, "B");
    assert(pthread_spin_destroy(&spin) == 0);
}

static void *tries_to_spin(void *arg)
{
    int result = pthread_spin_trylock(&spin);
    point();
    say("%s ", named(result));
    if (result == 0)
        pthread_spin_unlock(&spin);
    return arg;
}

CASE(tries_to_spin_may_meet, "0 0 ", "0 EBUSY ", "EBUSY 0 ")
{
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    beside(tries_to_spin, NULL, tries_to_spin, NULL);
}

CASE(a_held_spin_lock_is_busy, "EBUSY EBUSY 0 0 ")
{
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&spin);
    tries_to_spin(NULL);
    join(start(tries_to_spin, NULL));
    say("%s ", named(pthread_spin_unlock(&spin)));
    tries_to_spin(NULL);
}

/* ---- barriers ---- */

static volatile int serial;

static void *meets(void *letter)
{
    say("%s", (char *)letter);
    int result = pthread_barrier_wait(&barrier);
    assert(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    if (result != 0)
        __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
    return NULL;
}

CASE(nobody_passes_before_all_are_there, "AB1|", "BA1|")
{
    pthread_barrier_init(&barrier, NULL, 2);
    beside(meets, "A", meets, "B");
    say("%d|", serial);
    pthread_barrier_destroy(&barrier);
}

static void *meets_twice(void *letter)
{
    for (int i = 0; i < 2; i++) {
        say("%s", (char *)letter);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

CASE(rounds_do_not_mix, "ABAB", "ABBA", "BAAB", "BABA")
{
    pthread_barrier_init(&barrier, NULL, 2);
    beside(meets_twice, "A", meets_twice, "B");
}

SAMPLED(exactly_one_of_three_is_serial, 50, "1")
{
    static const char *const nothing = "";
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_t a = start(meets, nothing), b = start(meets, nothing);
    meets("");
    join(a);
    join(b);
    say("%d", serial);
}

/* Nothing says which of them is the serial one. Heisen's is the last to arrive. */
static void *meets_and_tells(void *letter)
{
    if (pthread_barrier_wait(&barrier) != 0)
        say("%s", (char *)letter);
    return NULL;
}

CASE(either_may_be_the_serial_one, "A", "B")
{
    pthread_barrier_init(&barrier, NULL, 2);
    beside(meets_and_tells, "A", meets_and_tells, "B");
}

CASE(a_barrier_for_one, "-1 -1")
{
    pthread_barrier_init(&barrier, NULL, 1);
    say("%d ", pthread_barrier_wait(&barrier));
    say("%d", pthread_barrier_wait(&barrier));
}

NATIVELY(barrier_attributes)
{
    pthread_barrierattr_t attr;
    int got;
    assert(pthread_barrierattr_init(&attr) == 0);
    for (int i = -1; i < 3; i++) {
        say("%s ", named(pthread_barrierattr_setpshared(&attr, i)));
        assert(pthread_barrierattr_getpshared(&attr, &got) == 0);
        say("%d, ", got);
    }
    say("%s ", named(pthread_barrier_init(&barrier, NULL, 0)));
    say("%s", named(pthread_barrier_init(&barrier, NULL, 0x80000000u)));
}

CONFORMANCE_MAIN
