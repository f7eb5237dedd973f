/* Semaphores, pthread_once and keys of thread-specific data. */
#include "cases.h"
#include <limits.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem, done;

static void pause_here(void)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}

static int value(sem_t *s)
{
    int v = -1;
    assert(sem_getvalue(s, &v) == 0);
    return v;
}

/* ---- semaphores ---- */

static void counts(void)
{
    assert(sem_init(&sem, 0, 2) == 0);
    assert(value(&sem) == 2);
    assert(sem_wait(&sem) == 0 && value(&sem) == 1);
    assert(sem_trywait(&sem) == 0 && value(&sem) == 0);
    assert(sem_trywait(&sem) == -1 && errno == EAGAIN && value(&sem) == 0);
    assert(sem_post(&sem) == 0 && value(&sem) == 1);
    assert(sem_destroy(&sem) == 0);
}

static void limits(void)
{
    assert(sem_init(&sem, 0, SEM_VALUE_MAX + 1u) == -1 && errno == EINVAL);
    assert(sem_init(&sem, 0, SEM_VALUE_MAX) == 0);
    assert(sem_post(&sem) == -1 && errno == EOVERFLOW);
    assert(value(&sem) == SEM_VALUE_MAX);
    assert(sem_wait(&sem) == 0 && value(&sem) == SEM_VALUE_MAX - 1);
    assert(sem_post(&sem) == 0);
}

static int inside, most;

static void *passes(void *arg)
{
    for (int i = 0; i < 2; i++) {
        assert(sem_wait(&sem) == 0);
        if (++inside > most)
            most = inside;
        assert(inside <= 2);
        sched_yield();
        inside--;
        assert(sem_post(&sem) == 0);
    }
    return arg;
}

static void at_most_two_inside(void)
{
    pthread_t t[3];
    assert(sem_init(&sem, 0, 2) == 0);
    for (int i = 0; i < 3; i++)
        t[i] = start(passes, NULL);
    for (int i = 0; i < 3; i++)
        join(t[i]);
    assert(value(&sem) == 2 && inside == 0 && most >= 1);
}

static void *waits(void *arg)
{
    assert(sem_wait(&sem) == 0);
    assert(sem_post(&done) == 0);
    return arg;
}

static void one_post_for_each(void)
{
    pthread_t t[3];
    assert(sem_init(&sem, 0, 0) == 0 && sem_init(&done, 0, 0) == 0);
    for (int i = 0; i < 3; i++)
        t[i] = start(waits, NULL);
    for (int i = 0; i < 3; i++) {
        assert(sem_trywait(&done) == -1 && errno == EAGAIN);
        assert(sem_post(&sem) == 0);
        assert(sem_wait(&done) == 0);
    }
    for (int i = 0; i < 3; i++)
        join(t[i]);
    assert(value(&sem) == 0 && value(&done) == 0);
}

static void time_runs_out(void)
{
    struct timespec past = {0, 0}, negative = {-1, 0}, soon;
    assert(sem_init(&sem, 0, 0) == 0);
    assert(sem_timedwait(&sem, &past) == -1 && errno == ETIMEDOUT);
    assert(sem_timedwait(&sem, &negative) == -1 && errno == ETIMEDOUT);
    soon = from_now(CLOCK_REALTIME, 20);
    assert(sem_timedwait(&sem, &soon) == -1 && errno == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_REALTIME, 20);
    assert(sem_clockwait(&sem, CLOCK_REALTIME, &soon) == -1 && errno == ETIMEDOUT && reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 20);
    assert(sem_clockwait(&sem, CLOCK_MONOTONIC, &soon) == -1 && errno == ETIMEDOUT && reached(CLOCK_MONOTONIC, soon));
    assert(sem_post(&sem) == 0);
    assert(sem_timedwait(&sem, &past) == 0 && value(&sem) == 0);
}

static void *posts(void *arg)
{
    pause_here();
    assert(sem_post(&sem) == 0);
    return arg;
}

static void timed_waits_succeed(void)
{
    assert(sem_init(&sem, 0, 0) == 0);
    pthread_t t = start(posts, NULL);
    struct timespec far = from_now(CLOCK_REALTIME, 3600 * 1000);
    int result = sem_timedwait(&sem, &far);
    assert(result == 0 || (errno == ETIMEDOUT && reached(CLOCK_REALTIME, far)));
    join(t);
    assert(value(&sem) == (result == 0 ? 0 : 1));
}

static void bad_times(void)
{
    struct timespec bad[] = {{0, -1}, {0, 1000000000}}, fine = {0, 0};
    assert(sem_init(&sem, 0, 1) == 0);
    for (int i = 0; i < 2; i++) {
        assert(sem_timedwait(&sem, &bad[i]) == -1 && errno == EINVAL);
        assert(sem_clockwait(&sem, CLOCK_MONOTONIC, &bad[i]) == -1 && errno == EINVAL);
    }
    assert(sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &fine) == -1 && errno == EINVAL);
    assert(value(&sem) == 1);
}

/* ---- once ---- */

static pthread_once_t first = PTHREAD_ONCE_INIT, second = PTHREAD_ONCE_INIT;
static int first_runs, second_runs, first_done;

static void init_first(void)
{
    first_runs++;
    for (int i = 0; i < 3; i++)
        pause_here();
    sched_yield();
    first_done = 1;
}

static void *needs_first(void *arg)
{
    assert(pthread_once(&first, init_first) == 0);
    assert(first_done && first_runs == 1);
    return arg;
}

static void once_only(void)
{
    pthread_t a = start(needs_first, NULL), b = start(needs_first, NULL), c = start(needs_first, NULL);
    join(a);
    join(b);
    join(c);
    assert(first_runs == 1);
}

static void init_second(void)
{
    second_runs++;
    assert(pthread_once(&first, init_first) == 0);
    assert(first_done);
    pause_here();
}

static void *needs_second(void *arg)
{
    assert(pthread_once(&second, init_second) == 0);
    assert(first_runs == 1 && second_runs == 1);
    return arg;
}

static void once_within_once(void)
{
    pthread_t a = start(needs_second, NULL), b = start(needs_first, NULL), c = start(needs_second, NULL);
    join(a);
    join(b);
    join(c);
    assert(first_runs == 1 && second_runs == 1);
}

static int leaving_runs;

static void init_and_leave(void)
{
    pause_here();
    if (leaving_runs++ == 0)
        pthread_exit(NULL);
    pause_here();
}

static void *leaves_in_once(void *arg)
{
    assert(pthread_once(&first, init_and_leave) == 0);
    assert(leaving_runs == 2);
    return arg;
}

/* A thread that ends in the middle leaves it to the next. */
static void once_left_by_exit(void)
{
    pthread_t a = start(leaves_in_once, NULL), b = start(leaves_in_once, NULL);
    join(a);
    join(b);
    assert(leaving_runs == 2);
}

/* ---- keys ---- */

static pthread_key_t key, other_key;
static int destroyed, destroyed_other;

static void destroy(void *arg)
{
    assert((intptr_t)arg == 5);
    assert(pthread_getspecific(key) == NULL);
    pause_here();
    /* Two threads may be here at once. */
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void *sets_key(void *arg)
{
    assert(pthread_getspecific(key) == NULL);
    if (arg != NULL) {
        assert(pthread_setspecific(key, arg) == 0);
        pause_here();
        assert(pthread_getspecific(key) == arg);
    }
    return NULL;
}

static void destructors_run(void)
{
    assert(pthread_key_create(&key, destroy) == 0);
    pthread_t a = start(sets_key, (void *)5), b = start(sets_key, (void *)5), c = start(sets_key, NULL);
    assert(pthread_setspecific(key, (void *)6) == 0);
    join(a);
    join(b);
    join(c);
    assert(destroyed == 2 && pthread_getspecific(key) == (void *)6);
    /* Not for the main thread when it returns. */
}

static void sets_again(void *arg)
{
    destroyed++;
    assert(pthread_setspecific(key, (void *)((intptr_t)arg + 1)) == 0);
}

static void *sets_one(void *arg)
{
    assert(pthread_setspecific(key, (void *)1) == 0);
    return arg;
}

static void four_rounds(void)
{
    assert(pthread_key_create(&key, sets_again) == 0);
    join(start(sets_one, NULL));
    assert(destroyed == PTHREAD_DESTRUCTOR_ITERATIONS && destroyed == 4);
}

static void sets_the_other(void *arg)
{
    destroyed++;
    if (destroyed < 3)
        assert(pthread_setspecific(other_key, arg) == 0);
}

static void sets_the_first(void *arg)
{
    destroyed_other++;
    assert(pthread_setspecific(key, arg) == 0);
}

static void destructors_take_turns(void)
{
    assert(pthread_key_create(&key, sets_the_other) == 0 && pthread_key_create(&other_key, sets_the_first) == 0);
    join(start(sets_one, NULL));
    assert(destroyed == 3 && destroyed_other == 2);
}

static int order[100], ordered;

static void note_order(void *arg)
{
    order[ordered++] = (int)(intptr_t)arg;
}

static pthread_key_t many[100];

static void *sets_many(void *arg)
{
    for (int i = 0; i < 100; i++) {
        assert(pthread_getspecific(many[i]) == NULL);
        assert(pthread_setspecific(many[i], (void *)(intptr_t)(i + 1)) == 0);
    }
    pause_here();
    for (int i = 0; i < 100; i++)
        assert(pthread_getspecific(many[i]) == (void *)(intptr_t)(i + 1));
    return arg;
}

static void more_than_32_keys(void)
{
    for (int i = 0; i < 100; i++)
        assert(pthread_key_create(&many[i], i % 2 ? note_order : NULL) == 0);
    join(start(sets_many, NULL));
    assert(ordered == 50);
    for (int i = 0; i < 50; i++)
        assert(order[i] == 2 * i + 2);
}

static void keys_run_out(void)
{
    pthread_key_t k;
    int got = 0;
    while (pthread_key_create(&k, NULL) == 0)
        got++;
    assert(pthread_key_create(&k, NULL) == EAGAIN);
    assert(got > 900 && got <= PTHREAD_KEYS_MAX);
}

static void *deletes_its_key(void *arg)
{
    assert(pthread_setspecific(key, (void *)5) == 0);
    assert(pthread_key_delete(key) == 0);
    return arg;
}

static void deleted_keys_have_no_destructor(void)
{
    assert(pthread_key_create(&key, destroy) == 0);
    join(start(deletes_its_key, NULL));
    assert(destroyed == 0);
    assert(pthread_setspecific(key, (void *)5) == EINVAL);
    assert(pthread_key_delete(key) == EINVAL);
    /* The number comes again, with another destructor and no value. */
    pthread_key_t again;
    assert(pthread_key_create(&again, NULL) == 0 && again == key);
    assert(pthread_getspecific(again) == NULL);
}

static void *leaves_with_value(void *arg)
{
    assert(pthread_setspecific(key, (void *)5) == 0);
    pthread_exit(arg);
}

static void check_main_destroyed(void)
{
    if (destroyed != 2)
        _exit(3);
}

static void destructors_after_exit(void)
{
    assert(pthread_key_create(&key, destroy) == 0);
    assert(join(start(leaves_with_value, (void *)9)) == (void *)9);
    assert(destroyed == 1);
    assert(pthread_setspecific(key, (void *)5) == 0);
    atexit(check_main_destroyed);
    pthread_exit(NULL);
}

CASES(CASE(counts), CASE(limits), CASE(at_most_two_inside), CASE(one_post_for_each), CASE(time_runs_out),
      CASE(timed_waits_succeed), CASE(bad_times), CASE(once_only), CASE(once_within_once), CASE(once_left_by_exit),
      CASE(destructors_run), CASE(four_rounds), CASE(destructors_take_turns), CASE(more_than_32_keys),
      CASE(keys_run_out), CASE(deleted_keys_have_no_destructor), CASE(destructors_after_exit))
