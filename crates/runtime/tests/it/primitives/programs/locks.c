/* Read-write locks, spin locks and barriers. */
#include "cases.h"

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t is_held, let_go;
/* Those who read count themselves at the same time. */
static _Atomic int readers;
static volatile int writers;

static void *holds_read(void *lock)
{
    assert(pthread_rwlock_rdlock(lock) == 0);
    sem_post(&is_held);
    sem_wait(&let_go);
    assert(pthread_rwlock_unlock(lock) == 0);
    return NULL;
}

static void *holds_write(void *lock)
{
    assert(pthread_rwlock_wrlock(lock) == 0);
    sem_post(&is_held);
    sem_wait(&let_go);
    assert(pthread_rwlock_unlock(lock) == 0);
    return NULL;
}

static pthread_t start_holding(void *(*how)(void *), pthread_rwlock_t *lock)
{
    assert(sem_init(&is_held, 0, 0) == 0 && sem_init(&let_go, 0, 0) == 0);
    pthread_t t = start(how, lock);
    sem_wait(&is_held);
    return t;
}

static void let_it_go(pthread_t t)
{
    sem_post(&let_go);
    join(t);
}

/* ---- read-write locks ---- */

static void *reads(void *lock)
{
    for (int i = 0; i < 2; i++) {
        assert(pthread_rwlock_rdlock(lock) == 0);
        readers++;
        assert(writers == 0);
        sched_yield();
        assert(writers == 0);
        readers--;
        assert(pthread_rwlock_unlock(lock) == 0);
    }
    return NULL;
}

static void *writes(void *lock)
{
    for (int i = 0; i < 2; i++) {
        assert(pthread_rwlock_wrlock(lock) == 0);
        assert(writers++ == 0 && readers == 0);
        sched_yield();
        assert(--writers == 0 && readers == 0);
        assert(pthread_rwlock_unlock(lock) == 0);
    }
    return NULL;
}

static void exclude_each_other(pthread_rwlock_t *lock)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(i % 2 ? writes : reads, lock);
    for (int i = 0; i < 4; i++)
        join(t[i]);
    assert(pthread_rwlock_destroy(lock) == 0);
}

static void readers_and_writers(void)
{
    exclude_each_other(&rw);
}

static void prefer(pthread_rwlock_t *lock, int kind)
{
    pthread_rwlockattr_t attr;
    int got;
    assert(pthread_rwlockattr_init(&attr) == 0);
    assert(pthread_rwlockattr_setkind_np(&attr, kind) == 0);
    assert(pthread_rwlockattr_getkind_np(&attr, &got) == 0 && got == kind);
    assert(pthread_rwlock_init(lock, &attr) == 0);
    assert(pthread_rwlockattr_destroy(&attr) == 0);
}

static void all_preferences(void)
{
    pthread_rwlock_t lock;
    prefer(&lock, PTHREAD_RWLOCK_PREFER_READER_NP);
    exclude_each_other(&lock);
    prefer(&lock, PTHREAD_RWLOCK_PREFER_WRITER_NP);
    exclude_each_other(&lock);
    prefer(&lock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    exclude_each_other(&lock);
}

static void *tries_read(void *lock)
{
    int result = pthread_rwlock_tryrdlock(lock);
    if (result == 0)
        assert(pthread_rwlock_unlock(lock) == 0);
    return (void *)(intptr_t)result;
}

static void *tries_write(void *lock)
{
    int result = pthread_rwlock_trywrlock(lock);
    if (result == 0)
        assert(pthread_rwlock_unlock(lock) == 0);
    return (void *)(intptr_t)result;
}

static int others_can_read(void)
{
    return join(start(tries_read, &rw)) == 0;
}

static int others_can_write(void)
{
    return join(start(tries_write, &rw)) == 0;
}

static void who_may_what(void)
{
    assert(others_can_read() && others_can_write());
    assert(pthread_rwlock_rdlock(&rw) == 0);
    assert(others_can_read() && !others_can_write());
    assert(pthread_rwlock_tryrdlock(&rw) == 0);
    assert(pthread_rwlock_trywrlock(&rw) == EBUSY);
    assert(pthread_rwlock_unlock(&rw) == 0);
    assert(others_can_read() && !others_can_write());
    assert(pthread_rwlock_unlock(&rw) == 0);
    assert(others_can_read() && others_can_write());
    assert(pthread_rwlock_wrlock(&rw) == 0);
    assert(!others_can_read() && !others_can_write());
    assert(pthread_rwlock_tryrdlock(&rw) == EBUSY && pthread_rwlock_trywrlock(&rw) == EBUSY);
    assert(pthread_rwlock_rdlock(&rw) == EDEADLK && pthread_rwlock_wrlock(&rw) == EDEADLK);
    assert(pthread_rwlock_unlock(&rw) == 0);
    assert(pthread_rwlock_trywrlock(&rw) == 0);
    assert(!others_can_read());
    assert(pthread_rwlock_unlock(&rw) == 0);
    assert(others_can_read() && others_can_write());
}

static void *wants_to_write(void *lock)
{
    assert(pthread_rwlock_wrlock(lock) == 0);
    assert(pthread_rwlock_unlock(lock) == 0);
    return NULL;
}

/* Unless writers come first, to read again is never blocked by one that waits. */
static void read_again_past_a_writer(void)
{
    assert(pthread_rwlock_rdlock(&rw) == 0);
    pthread_t t = start(wants_to_write, &rw);
    sched_yield();
    assert(pthread_rwlock_rdlock(&rw) == 0);
    assert(pthread_rwlock_unlock(&rw) == 0);
    assert(pthread_rwlock_unlock(&rw) == 0);
    join(t);
}

static volatile int has_written;

static void *writes_first(void *lock)
{
    assert(pthread_rwlock_wrlock(lock) == 0);
    has_written = 1;
    assert(pthread_rwlock_unlock(lock) == 0);
    return NULL;
}

static void *reads_when_let(void *lock)
{
    assert(pthread_rwlock_rdlock(lock) == 0);
    assert(pthread_rwlock_unlock(lock) == 0);
    return NULL;
}

/* A waiting writer keeps new readers out, and they come in after it, or when it has given up. */
static void writers_first(void)
{
    pthread_rwlock_t lock;
    prefer(&lock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    assert(pthread_rwlock_rdlock(&lock) == 0);
    pthread_t w = start(writes_first, &lock), r = start(reads_when_let, &lock);
    while (pthread_rwlock_tryrdlock(&lock) == 0) {
        assert(pthread_rwlock_unlock(&lock) == 0);
        sched_yield();
    }
    assert(!has_written);
    assert(pthread_rwlock_unlock(&lock) == 0);
    join(w);
    join(r);
    assert(pthread_rwlock_rdlock(&lock) == 0);
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_rwlock_timedwrlock(&lock, &soon) == ETIMEDOUT);
    r = start(reads_when_let, &lock);
    join(r);
    assert(pthread_rwlock_tryrdlock(&lock) == 0);
    assert(pthread_rwlock_unlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
    assert(pthread_rwlock_destroy(&lock) == 0);
}

static void rw_time_runs_out(void)
{
    struct timespec past = {0, 0}, soon;
    pthread_t t = start_holding(holds_read, &rw);
    assert(pthread_rwlock_timedrdlock(&rw, &past) == 0 && pthread_rwlock_unlock(&rw) == 0);
    assert(pthread_rwlock_timedwrlock(&rw, &past) == ETIMEDOUT);
    soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_rwlock_timedwrlock(&rw, &soon) == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 20);
    assert(pthread_rwlock_clockwrlock(&rw, CLOCK_MONOTONIC, &soon) == ETIMEDOUT && reached(CLOCK_MONOTONIC, soon));
    assert(pthread_rwlock_tryrdlock(&rw) == 0 && pthread_rwlock_unlock(&rw) == 0);
    let_it_go(t);
    t = start_holding(holds_write, &rw);
    soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_rwlock_timedrdlock(&rw, &soon) == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 20);
    assert(pthread_rwlock_clockrdlock(&rw, CLOCK_MONOTONIC, &soon) == ETIMEDOUT && reached(CLOCK_MONOTONIC, soon));
    assert(pthread_rwlock_timedwrlock(&rw, &past) == ETIMEDOUT);
    let_it_go(t);
    assert(pthread_rwlock_timedwrlock(&rw, &past) == 0);
    assert(pthread_rwlock_timedwrlock(&rw, &past) == EDEADLK);
    assert(pthread_rwlock_timedrdlock(&rw, &past) == EDEADLK);
    assert(pthread_rwlock_unlock(&rw) == 0);
}

static void rw_bad_times(void)
{
    struct timespec bad[] = {{0, -1}, {0, 1000000000}}, fine = {0, 0};
    for (int i = 0; i < 2; i++) {
        assert(pthread_rwlock_timedrdlock(&rw, &bad[i]) == EINVAL);
        assert(pthread_rwlock_timedwrlock(&rw, &bad[i]) == EINVAL);
        assert(pthread_rwlock_clockrdlock(&rw, CLOCK_MONOTONIC, &bad[i]) == EINVAL);
    }
    assert(pthread_rwlock_clockwrlock(&rw, CLOCK_PROCESS_CPUTIME_ID, &fine) == EINVAL);
    assert(pthread_rwlock_trywrlock(&rw) == 0);
    assert(pthread_rwlock_unlock(&rw) == 0);
}

static void *locks_in_time(void *arg)
{
    struct timespec far = from_now(CLOCK_REALTIME, 3600 * 1000);
    int result = arg == NULL ? pthread_rwlock_timedrdlock(&rw, &far) : pthread_rwlock_timedwrlock(&rw, &far);
    assert(result == 0 || (result == ETIMEDOUT && reached(CLOCK_REALTIME, far)));
    if (result == 0)
        assert(pthread_rwlock_unlock(&rw) == 0);
    return NULL;
}

static void rw_timed_locks_succeed(void)
{
    assert(pthread_rwlock_wrlock(&rw) == 0);
    pthread_t a = start(locks_in_time, NULL), b = start(locks_in_time, &rw), c = start(locks_in_time, NULL);
    sched_yield();
    assert(pthread_rwlock_unlock(&rw) == 0);
    join(a);
    join(b);
    join(c);
    assert(pthread_rwlock_destroy(&rw) == 0);
}

/* ---- spin locks ---- */

static pthread_spinlock_t spin;
static volatile int inside, total;

static void *spins(void *arg)
{
    for (int i = 0; i < 3; i++) {
        assert(pthread_spin_lock(&spin) == 0);
        assert(inside++ == 0);
        sched_yield();
        total++;
        assert(--inside == 0);
        assert(pthread_spin_unlock(&spin) == 0);
    }
    return arg;
}

static void spin_locks_exclude(void)
{
    assert(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
    pthread_t a = start(spins, NULL), b = start(spins, NULL);
    spins(NULL);
    join(a);
    join(b);
    assert(total == 9);
    assert(pthread_spin_destroy(&spin) == 0);
}

static void *tries_spin(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)pthread_spin_trylock(&spin);
}

static void spin_trylock(void)
{
    assert(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
    assert(pthread_spin_trylock(&spin) == 0);
    assert(pthread_spin_trylock(&spin) == EBUSY);
    assert(join(start(tries_spin, NULL)) == (void *)EBUSY);
    assert(pthread_spin_unlock(&spin) == 0);
    assert(join(start(tries_spin, NULL)) == NULL);
    assert(pthread_spin_trylock(&spin) == EBUSY);
    assert(pthread_spin_unlock(&spin) == 0);
    assert(pthread_spin_destroy(&spin) == 0);
}

/* ---- barriers ---- */

static pthread_barrier_t barrier;
static int arrived, serial;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *meets(void *arg)
{
    for (int round = 1; round <= 3; round++) {
        pthread_mutex_lock(&m);
        arrived++;
        pthread_mutex_unlock(&m);
        int result = pthread_barrier_wait(&barrier);
        pthread_mutex_lock(&m);
        assert(arrived >= 3 * round);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD)
            serial++;
        else
            assert(result == 0);
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void all_meet(void)
{
    assert(pthread_barrier_init(&barrier, NULL, 3) == 0);
    pthread_t a = start(meets, NULL), b = start(meets, NULL);
    meets(NULL);
    join(a);
    join(b);
    assert(arrived == 9 && serial == 3);
    assert(pthread_barrier_destroy(&barrier) == 0);
}

static void a_barrier_of_one(void)
{
    assert(pthread_barrier_init(&barrier, NULL, 0) == EINVAL);
    assert(pthread_barrier_init(&barrier, NULL, 1) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    assert(pthread_barrier_destroy(&barrier) == 0);
}

/* More threads than places: they pass in groups, whoever comes. */
static void *passes(void *arg)
{
    int result = pthread_barrier_wait(&barrier);
    if (result == PTHREAD_BARRIER_SERIAL_THREAD) {
        pthread_mutex_lock(&m);
        serial++;
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void groups_of_two(void)
{
    pthread_t t[4];
    assert(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int i = 0; i < 4; i++)
        t[i] = start(passes, NULL);
    for (int i = 0; i < 4; i++)
        join(t[i]);
    assert(serial == 2);
    assert(pthread_barrier_destroy(&barrier) == 0);
}

/* The serial thread may destroy the barrier at once: the others have passed it, even if they have not gone on. */
static pthread_barrier_t *heap;

static void *destroys(void *arg)
{
    if (pthread_barrier_wait(heap) == PTHREAD_BARRIER_SERIAL_THREAD) {
        assert(pthread_barrier_destroy(heap) == 0);
        memset(heap, 0xff, sizeof *heap);
        free(heap);
    }
    return arg;
}

static void destroyed_by_the_serial_thread(void)
{
    heap = malloc(sizeof *heap);
    assert(pthread_barrier_init(heap, NULL, 3) == 0);
    pthread_t a = start(destroys, NULL), b = start(destroys, NULL);
    destroys(NULL);
    join(a);
    join(b);
}

CASES(CASE(readers_and_writers), CASE(all_preferences), CASE(who_may_what), CASE(read_again_past_a_writer),
      CASE(writers_first), CASE(rw_time_runs_out), CASE(rw_bad_times), CASE(rw_timed_locks_succeed),
      CASE(spin_locks_exclude), CASE(spin_trylock), CASE(all_meet), CASE(a_barrier_of_one), CASE(groups_of_two),
      CASE(destroyed_by_the_serial_thread))
