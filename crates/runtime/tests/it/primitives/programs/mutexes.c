/* Mutexes of all kinds. */
#include "cases.h"

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_held, let_go;

static pthread_mutex_t *make(pthread_mutex_t *mutex, int type)
{
    pthread_mutexattr_t attr;
    int got;
    assert(pthread_mutexattr_init(&attr) == 0);
    assert(pthread_mutexattr_settype(&attr, type) == 0);
    assert(pthread_mutexattr_gettype(&attr, &got) == 0 && got == type);
    assert(pthread_mutex_init(mutex, &attr) == 0);
    assert(pthread_mutexattr_destroy(&attr) == 0);
    return mutex;
}

/* A thread that holds a mutex until told to let go. */
static void *holds(void *mutex)
{
    assert(pthread_mutex_lock(mutex) == 0);
    sem_post(&is_held);
    sem_wait(&let_go);
    assert(pthread_mutex_unlock(mutex) == 0);
    return NULL;
}

static pthread_t start_holding(pthread_mutex_t *mutex)
{
    assert(sem_init(&is_held, 0, 0) == 0 && sem_init(&let_go, 0, 0) == 0);
    pthread_t t = start(holds, mutex);
    sem_wait(&is_held);
    return t;
}

static void let_it_go(pthread_t t)
{
    sem_post(&let_go);
    join(t);
}

static void *tries(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_trylock(mutex);
}

/* Whether another thread could take the mutex; if it does, it ends holding it, so only for mutexes that are held. */
static int is_busy(pthread_mutex_t *mutex)
{
    return join(start(tries, mutex)) == (void *)EBUSY;
}

/* ---- mutual exclusion ---- */

static int inside, total;

static void *works(void *mutex)
{
    for (int i = 0; i < 3; i++) {
        assert(pthread_mutex_lock(mutex) == 0);
        assert(inside++ == 0);
        sched_yield();
        total++;
        assert(--inside == 0);
        assert(pthread_mutex_unlock(mutex) == 0);
    }
    return NULL;
}

static void exclude_each_other(pthread_mutex_t *mutex)
{
    total = 0;
    pthread_t a = start(works, mutex), b = start(works, mutex), c = start(works, mutex);
    join(a);
    join(b);
    join(c);
    assert(total == 9);
    assert(pthread_mutex_destroy(mutex) == 0);
}

static void normal_excludes(void)
{
    exclude_each_other(&plain);
}

static void all_types_exclude(void)
{
    pthread_mutex_t mutex;
    exclude_each_other(make(&mutex, PTHREAD_MUTEX_NORMAL));
    exclude_each_other(make(&mutex, PTHREAD_MUTEX_RECURSIVE));
    exclude_each_other(make(&mutex, PTHREAD_MUTEX_ERRORCHECK));
    exclude_each_other(make(&mutex, PTHREAD_MUTEX_ADAPTIVE_NP));
}

static void static_types_exclude(void)
{
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    exclude_each_other(&recursive);
    exclude_each_other(&checking);
    exclude_each_other(&adaptive);
}

/* ---- recursive ---- */

static void count_levels(pthread_mutex_t *mutex)
{
    enum { LEVELS = 5 };
    for (int i = 0; i < LEVELS; i++)
        assert((i % 2 ? pthread_mutex_trylock(mutex) : pthread_mutex_lock(mutex)) == 0);
    for (int i = 0; i < LEVELS; i++) {
        assert(is_busy(mutex));
        assert(pthread_mutex_unlock(mutex) == 0);
    }
    assert(pthread_mutex_unlock(mutex) == EPERM);
    exclude_each_other(mutex);
}

static void recursive_counts(void)
{
    static pthread_mutex_t fixed = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_t mutex;
    count_levels(make(&mutex, PTHREAD_MUTEX_RECURSIVE));
    count_levels(&fixed);
}

static void *may_not_unlock(void *mutex)
{
    assert(pthread_mutex_unlock(mutex) == EPERM);
    return NULL;
}

static void only_the_owner_unlocks(void)
{
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_t *both[] = {&recursive, &checking};
    for (int i = 0; i < 2; i++) {
        assert(pthread_mutex_unlock(both[i]) == EPERM);
        assert(pthread_mutex_lock(both[i]) == 0);
        join(start(may_not_unlock, both[i]));
        assert(is_busy(both[i]));
        assert(pthread_mutex_unlock(both[i]) == 0);
        assert(pthread_mutex_unlock(both[i]) == EPERM);
    }
}

static void errorcheck_tells(void)
{
    pthread_mutex_t mutex;
    make(&mutex, PTHREAD_MUTEX_ERRORCHECK);
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(pthread_mutex_lock(&mutex) == EDEADLK);
    assert(pthread_mutex_trylock(&mutex) == EBUSY);
    struct timespec soon = from_now(CLOCK_REALTIME, 10);
    assert(pthread_mutex_timedlock(&mutex, &soon) == EDEADLK);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == EPERM);
    exclude_each_other(&mutex);
}

/* ---- not waiting, not waiting for ever ---- */

static void trylock(void)
{
    assert(pthread_mutex_trylock(&plain) == 0);
    assert(pthread_mutex_trylock(&plain) == EBUSY);
    assert(is_busy(&plain));
    assert(pthread_mutex_unlock(&plain) == 0);
    pthread_t t = start_holding(&plain);
    assert(pthread_mutex_trylock(&plain) == EBUSY);
    let_it_go(t);
    assert(pthread_mutex_trylock(&plain) == 0);
    assert(pthread_mutex_unlock(&plain) == 0);
}

static void time_runs_out(pthread_mutex_t *mutex)
{
    struct timespec past = {0, 0}, negative = {-1, 0}, soon;
    pthread_t t = start_holding(mutex);
    assert(pthread_mutex_timedlock(mutex, &past) == ETIMEDOUT);
    assert(pthread_mutex_timedlock(mutex, &negative) == ETIMEDOUT);
    soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_mutex_timedlock(mutex, &soon) == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &soon) == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 20);
    assert(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT && reached(CLOCK_MONOTONIC, soon));
    let_it_go(t);
    assert(pthread_mutex_timedlock(mutex, &past) == 0);
    assert(pthread_mutex_unlock(mutex) == 0);
    assert(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &past) == 0);
    assert(pthread_mutex_unlock(mutex) == 0);
}

static void timed_locks_time_out(void)
{
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    time_runs_out(&plain);
    time_runs_out(&recursive);
}

static void *locks_in_time(void *arg)
{
    struct timespec far = from_now(CLOCK_REALTIME, 3600 * 1000);
    /* Under some schedules the hour is over before the mutex is free. */
    int result = pthread_mutex_timedlock(&held, &far);
    assert(result == 0 || (result == ETIMEDOUT && reached(CLOCK_REALTIME, far)));
    if (result == 0)
        assert(pthread_mutex_unlock(&held) == 0);
    return arg;
}

static void timed_locks_succeed(void)
{
    pthread_mutex_lock(&held);
    pthread_t a = start(locks_in_time, NULL), b = start(locks_in_time, NULL);
    sched_yield();
    pthread_mutex_unlock(&held);
    join(a);
    join(b);
    assert(pthread_mutex_destroy(&held) == 0);
}

static void bad_times(void)
{
    struct timespec bad[] = {{0, -1}, {0, 1000000000}, {4000000000, -5}};
    for (int i = 0; i < 3; i++) {
        /* A free mutex is taken whatever the time; then it matters. */
        assert(pthread_mutex_timedlock(&plain, &bad[i]) == 0);
        assert(pthread_mutex_unlock(&plain) == 0);
        pthread_t t = start_holding(&plain);
        assert(pthread_mutex_timedlock(&plain, &bad[i]) == EINVAL);
        assert(pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &bad[i]) == EINVAL);
        let_it_go(t);
    }
    struct timespec fine = {0, 0};
    assert(pthread_mutex_clocklock(&plain, CLOCK_PROCESS_CPUTIME_ID, &fine) == EINVAL);
    assert(pthread_mutex_clocklock(&plain, 77, &fine) == EINVAL);
    assert(pthread_mutex_trylock(&plain) == 0);
}

static void initialised_again(void)
{
    pthread_mutex_t mutex;
    for (int i = 0; i < 3; i++) {
        assert(pthread_mutex_init(&mutex, NULL) == 0);
        assert(pthread_mutex_lock(&mutex) == 0);
        assert(pthread_mutex_unlock(&mutex) == 0);
        assert(pthread_mutex_destroy(&mutex) == 0);
    }
}

/* A lock order that is always kept, also by threads that wait for several. */
static pthread_mutex_t forks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void *eats(void *arg)
{
    int left = (int)(intptr_t)arg, right = (left + 1) % 3, low = left < right ? left : right;
    pthread_mutex_lock(&forks[low]);
    pthread_mutex_lock(&forks[left + right - low]);
    pthread_mutex_unlock(&forks[left]);
    pthread_mutex_unlock(&forks[right]);
    return NULL;
}

static void ordered_locks_never_deadlock(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start(eats, (void *)(intptr_t)i);
    for (int i = 0; i < 3; i++)
        join(t[i]);
}

CASES(CASE(normal_excludes), CASE(all_types_exclude), CASE(static_types_exclude), CASE(recursive_counts),
      CASE(only_the_owner_unlocks), CASE(errorcheck_tells), CASE(trylock), CASE(timed_locks_time_out),
      CASE(timed_locks_succeed), CASE(bad_times), CASE(initialised_again), CASE(ordered_locks_never_deadlock))
