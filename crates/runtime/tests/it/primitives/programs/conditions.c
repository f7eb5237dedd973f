/* Condition variables. */
#include "cases.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER, other = PTHREAD_COND_INITIALIZER;
static int ready, waiting, woken;

static void *waits(void *arg)
{
    pthread_mutex_lock(&m);
    waiting++;
    pthread_cond_signal(&other);
    while (!ready)
        assert(pthread_cond_wait(&c, &m) == 0);
    woken++;
    pthread_mutex_unlock(&m);
    return arg;
}

static void await_waiters(int count)
{
    while (waiting < count)
        assert(pthread_cond_wait(&other, &m) == 0);
}

static void wait_and_signal(void)
{
    pthread_t t = start(waits, NULL);
    pthread_mutex_lock(&m);
    await_waiters(1);
    ready = 1;
    assert(pthread_cond_signal(&c) == 0);
    /* It cannot go on before the mutex is free. */
    sched_yield();
    assert(woken == 0);
    pthread_mutex_unlock(&m);
    join(t);
    assert(woken == 1);
}

static void signal_without_the_mutex(void)
{
    pthread_t t = start(waits, NULL);
    pthread_mutex_lock(&m);
    await_waiters(1);
    ready = 1;
    pthread_mutex_unlock(&m);
    pthread_cond_signal(&c);
    join(t);
    assert(woken == 1);
}

static void broadcast_wakes_all(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(waits, NULL);
    pthread_mutex_lock(&m);
    await_waiters(4);
    ready = 1;
    assert(pthread_cond_broadcast(&c) == 0);
    pthread_mutex_unlock(&m);
    for (int i = 0; i < 4; i++)
        join(t[i]);
    assert(woken == 4);
}

static int tokens, taken;

static void *takes_token(void *arg)
{
    pthread_mutex_lock(&m);
    waiting++;
    pthread_cond_signal(&other);
    while (tokens == 0)
        pthread_cond_wait(&c, &m);
    tokens--;
    taken++;
    pthread_mutex_unlock(&m);
    return arg;
}

static void one_signal_for_each(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start(takes_token, NULL);
    pthread_mutex_lock(&m);
    await_waiters(3);
    for (int i = 0; i < 3; i++) {
        tokens++;
        pthread_cond_signal(&c);
        pthread_mutex_unlock(&m);
        sched_yield();
        pthread_mutex_lock(&m);
    }
    pthread_mutex_unlock(&m);
    for (int i = 0; i < 3; i++)
        join(t[i]);
    assert(taken == 3 && tokens == 0);
}

static void a_signal_without_waiter_is_lost(void)
{
    pthread_mutex_lock(&m);
    assert(pthread_cond_signal(&c) == 0);
    assert(pthread_cond_broadcast(&c) == 0);
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_cond_timedwait(&c, &m, &soon) == ETIMEDOUT);
    assert(reached(CLOCK_REALTIME, soon));
    pthread_mutex_unlock(&m);
}

static int i_hold_it(void)
{
    return pthread_mutex_trylock(&m) == EBUSY;
}

static void time_runs_out(void)
{
    struct timespec past = {0, 0}, negative = {-5, 0}, soon;
    pthread_cond_t monotonic;
    pthread_condattr_t attr;
    clockid_t clock = CLOCK_REALTIME;
    assert(pthread_condattr_init(&attr) == 0);
    assert(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    assert(pthread_condattr_getclock(&attr, &clock) == 0 && clock == CLOCK_MONOTONIC);
    assert(pthread_cond_init(&monotonic, &attr) == 0);
    assert(pthread_condattr_destroy(&attr) == 0);
    pthread_mutex_lock(&m);
    assert(pthread_cond_timedwait(&c, &m, &past) == ETIMEDOUT && i_hold_it());
    assert(pthread_cond_timedwait(&c, &m, &negative) == ETIMEDOUT && i_hold_it());
    soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_cond_timedwait(&c, &m, &soon) == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 20);
    assert(pthread_cond_timedwait(&monotonic, &m, &soon) == ETIMEDOUT && reached(CLOCK_MONOTONIC, soon));
    soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_cond_clockwait(&c, &m, CLOCK_REALTIME, &soon) == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 20);
    assert(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &soon) == ETIMEDOUT && reached(CLOCK_MONOTONIC, soon));
    assert(i_hold_it());
    pthread_mutex_unlock(&m);
    assert(pthread_cond_destroy(&monotonic) == 0);
}

/* Five seconds on one clock are not five seconds on the other: the monotonic one is far behind. */
static void clocks_differ(void)
{
    struct timespec before = from_now(CLOCK_MONOTONIC, 0), far = from_now(CLOCK_MONOTONIC, 3600 * 1000);
    pthread_mutex_lock(&m);
    assert(pthread_cond_timedwait(&c, &m, &far) == ETIMEDOUT);
    pthread_mutex_unlock(&m);
    struct timespec after = from_now(CLOCK_MONOTONIC, 0);
    assert(after.tv_sec - before.tv_sec < 60);
}

static void *waits_an_hour(void *arg)
{
    struct timespec far = from_now(CLOCK_REALTIME, 3600 * 1000);
    int result = 0;
    pthread_mutex_lock(&m);
    while (!ready && result == 0)
        result = pthread_cond_timedwait(&c, &m, &far);
    assert(result == 0 || (result == ETIMEDOUT && reached(CLOCK_REALTIME, far)));
    assert(i_hold_it());
    woken++;
    pthread_mutex_unlock(&m);
    return arg;
}

static void timed_waits_succeed(void)
{
    pthread_t a = start(waits_an_hour, NULL), b = start(waits_an_hour, NULL);
    sched_yield();
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    join(a);
    join(b);
    assert(woken == 2);
}

static void bad_times(void)
{
    struct timespec bad[] = {{0, -1}, {0, 1000000000}}, fine = {0, 0};
    pthread_mutex_lock(&m);
    for (int i = 0; i < 2; i++) {
        assert(pthread_cond_timedwait(&c, &m, &bad[i]) == EINVAL && i_hold_it());
        assert(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &bad[i]) == EINVAL && i_hold_it());
    }
    assert(pthread_cond_clockwait(&c, &m, CLOCK_THREAD_CPUTIME_ID, &fine) == EINVAL && i_hold_it());
    pthread_mutex_unlock(&m);
}

/* ---- with other mutexes ---- */

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void *wakes(void *mutex)
{
    pthread_mutex_lock(mutex);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static void recursive_mutex(void)
{
    assert(pthread_mutex_lock(&recursive) == 0);
    pthread_t t = start(wakes, &recursive);
    while (!ready)
        assert(pthread_cond_wait(&c, &recursive) == 0);
    /* One level is held, and no more. */
    assert(pthread_mutex_lock(&recursive) == 0);
    assert(pthread_mutex_unlock(&recursive) == 0);
    assert(pthread_mutex_unlock(&recursive) == 0);
    assert(pthread_mutex_unlock(&recursive) == EPERM);
    join(t);
    assert(pthread_cond_wait(&c, &recursive) == EPERM);
}

static volatile int signalled;

static void *signals_for_long(void *arg)
{
    while (!signalled) {
        pthread_cond_signal(&c);
        sched_yield();
    }
    return arg;
}

/* To wait gives up one level; the others stay held, and one is there to come back to. */
static void recursive_mutex_two_levels(void)
{
    assert(pthread_mutex_lock(&recursive) == 0);
    assert(pthread_mutex_lock(&recursive) == 0);
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_cond_timedwait(&c, &recursive, &soon) == ETIMEDOUT);
    pthread_t t = start(signals_for_long, NULL);
    assert(pthread_cond_wait(&c, &recursive) == 0);
    signalled = 1;
    join(t);
    assert(pthread_mutex_unlock(&recursive) == 0);
    assert(pthread_mutex_unlock(&recursive) == 0);
    assert(pthread_mutex_unlock(&recursive) == EPERM);
}

static void errorcheck_mutex(void)
{
    assert(pthread_cond_wait(&c, &checking) == EPERM);
    assert(pthread_mutex_lock(&checking) == 0);
    pthread_t t = start(wakes, &checking);
    while (!ready)
        assert(pthread_cond_wait(&c, &checking) == 0);
    assert(pthread_mutex_lock(&checking) == EDEADLK);
    assert(pthread_mutex_unlock(&checking) == 0);
    join(t);
}

/* ---- the life of one ---- */

static pthread_cond_t *heap_cond;

static void *waits_on_heap(void *arg)
{
    pthread_mutex_lock(&m);
    waiting++;
    pthread_cond_signal(&other);
    while (!ready)
        pthread_cond_wait(heap_cond, &m);
    pthread_mutex_unlock(&m);
    return arg;
}

/* Once all waiters are woken, even if none has gone on, the condition variable may be destroyed. */
static void destroyed_after_broadcast(void)
{
    heap_cond = malloc(sizeof *heap_cond);
    assert(pthread_cond_init(heap_cond, NULL) == 0);
    pthread_t a = start(waits_on_heap, NULL), b = start(waits_on_heap, NULL);
    pthread_mutex_lock(&m);
    await_waiters(2);
    ready = 1;
    pthread_cond_broadcast(heap_cond);
    pthread_mutex_unlock(&m);
    assert(pthread_cond_destroy(heap_cond) == 0);
    free(heap_cond);
    join(a);
    join(b);
}

/* A bounded buffer: two producers, two consumers. */
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int buffer[2], used, consumed;

static void *produces(void *arg)
{
    for (int i = 1; i <= 3; i++) {
        pthread_mutex_lock(&m);
        while (used == 2)
            pthread_cond_wait(&not_full, &m);
        buffer[used++] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void *consumes(void *arg)
{
    for (int i = 1; i <= 3; i++) {
        pthread_mutex_lock(&m);
        while (used == 0)
            pthread_cond_wait(&not_empty, &m);
        consumed += buffer[--used];
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void bounded_buffer(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(i % 2 ? consumes : produces, NULL);
    for (int i = 0; i < 4; i++)
        join(t[i]);
    assert(consumed == 12 && used == 0);
}

CASES(CASE(wait_and_signal), CASE(signal_without_the_mutex), CASE(broadcast_wakes_all), CASE(one_signal_for_each),
      CASE(a_signal_without_waiter_is_lost), CASE(time_runs_out), CASE(clocks_differ), CASE(timed_waits_succeed),
      CASE(bad_times), CASE(recursive_mutex), CASE(recursive_mutex_two_levels), CASE(errorcheck_mutex),
      CASE(destroyed_after_broadcast), CASE(bounded_buffer))
