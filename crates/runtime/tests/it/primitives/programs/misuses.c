/* Uses of synchronisation objects that POSIX leaves undefined. */
#include "cases.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t go, ready;

static void *nothing(void *arg)
{
    return arg;
}

static void *unlocks(void *arg)
{
    pthread_mutex_unlock(&m);
    return arg;
}

static void unlocked_by_another(void)
{
    pthread_mutex_lock(&m);
    join(start(unlocks, NULL));
}

static void unlocked_though_free(void)
{
    pthread_mutex_unlock(&m);
}

static void unlocked_twice(void)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_mutex_unlock(&m);
}

static void destroyed_while_held(void)
{
    pthread_mutex_lock(&m);
    assert(pthread_mutex_destroy(&m) == EBUSY);
    pthread_mutex_unlock(&m);
}

static void *waits(void *arg)
{
    pthread_mutex_lock(&m);
    sem_post(&ready);
    pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    return arg;
}

static pthread_t start_waiter(void)
{
    sem_init(&ready, 0, 0);
    pthread_t t = start(waits, NULL);
    sem_wait(&ready);
    /* Once the mutex is free again, the other one waits on the condition variable. */
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return t;
}

static void condition_destroyed_with_a_waiter(void)
{
    start_waiter();
    pthread_cond_destroy(&c);
}

static void mutex_of_a_waiter_destroyed(void)
{
    pthread_t t = start_waiter();
    assert(pthread_mutex_destroy(&m) == EBUSY);
    pthread_cond_signal(&c);
    join(t);
}

static void joined_twice(void)
{
    pthread_t t = start(nothing, NULL);
    join(t);
    pthread_join(t, NULL);
}

static pthread_t shared;

static void *joins(void *arg)
{
    pthread_join(shared, NULL);
    return arg;
}

static void *waits_to_go(void *arg)
{
    sem_wait(&go);
    return arg;
}

static void joined_by_two(void)
{
    shared = start(waits_to_go, NULL);
    pthread_t t = start(joins, NULL);
    sem_post(&go);
    pthread_join(shared, NULL);
    join(t);
}

static void joined_though_detached(void)
{
    pthread_t t = start(waits_to_go, NULL);
    assert(pthread_detach(t) == 0);
    assert(pthread_join(t, NULL) == EINVAL);
    sem_post(&go);
}

static void detached_twice(void)
{
    pthread_t t = start(waits_to_go, NULL);
    assert(pthread_detach(t) == 0);
    assert(pthread_detach(t) == EINVAL);
    sem_post(&go);
}

static void *signals(void *arg)
{
    for (int i = 0; i < 3; i++) {
        pthread_cond_signal(&c);
        sched_yield();
    }
    return arg;
}

static void waits_without_the_mutex(void)
{
    struct timespec t = from_now(CLOCK_REALTIME, 10);
    pthread_t other = start(signals, NULL);
    pthread_cond_timedwait(&c, &m, &t);
    join(other);
}

static void *holds(void *arg)
{
    pthread_mutex_lock(&m);
    sem_post(&ready);
    sem_wait(&go);
    pthread_mutex_unlock(&m);
    return arg;
}

static void waits_with_the_mutex_of_another(void)
{
    struct timespec t = from_now(CLOCK_REALTIME, 10);
    pthread_t other = start(holds, NULL);
    sem_wait(&ready);
    pthread_cond_timedwait(&c, &m, &t);
    sem_post(&go);
    join(other);
}

static void rwlock_unlocked_though_free(void)
{
    pthread_rwlock_unlock(&rw);
}

static void *unlocks_rw(void *arg)
{
    pthread_rwlock_unlock(&rw);
    return arg;
}

static void rwlock_unlocked_by_another(void)
{
    pthread_rwlock_wrlock(&rw);
    join(start(unlocks_rw, NULL));
}

static void rwlock_destroyed_while_held(void)
{
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_destroy(&rw);
}

static void *arrives(void *arg)
{
    sem_post(&ready);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void barrier_destroyed_with_a_waiter(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    start(arrives, NULL);
    sem_wait(&ready);
    pthread_barrier_destroy(&barrier);
}

/* Only if the other one is overtaken on its way to the mutex does that go while it is still wanted. */
static void *locks_late(void *arg)
{
    sem_post(&go);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}

static void destroyed_too_early(void)
{
    pthread_t t = start(locks_late, NULL);
    sem_wait(&go);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_mutex_destroy(&m);
    join(t);
}

static void mutex_locked_after_its_end(void)
{
    pthread_mutex_destroy(&m);
    assert(pthread_mutex_lock(&m) == EINVAL);
}

static void mutex_tried_after_its_end(void)
{
    pthread_mutex_destroy(&m);
    assert(pthread_mutex_trylock(&m) != 0);
}

static void mutex_unlocked_after_its_end(void)
{
    pthread_mutex_destroy(&m);
    assert(pthread_mutex_unlock(&m) == EINVAL);
}

static void mutex_destroyed_twice(void)
{
    pthread_mutex_destroy(&m);
    assert(pthread_mutex_destroy(&m) == 0);
}

static void *destroys_the_condition(void *arg)
{
    pthread_cond_destroy(&c);
    return arg;
}

/* Only if the other one comes first. */
static void condition_signalled_too_late(void)
{
    pthread_t t = start(destroys_the_condition, NULL);
    pthread_cond_signal(&c);
    join(t);
}

static void condition_signalled_after_its_end(void)
{
    pthread_cond_destroy(&c);
    assert(pthread_cond_signal(&c) == 0);
}

static void condition_waited_on_after_its_end(void)
{
    struct timespec t = from_now(CLOCK_REALTIME, 10);
    pthread_cond_destroy(&c);
    pthread_mutex_lock(&m);
    pthread_cond_timedwait(&c, &m, &t);
    pthread_mutex_unlock(&m);
}

static void rwlock_locked_after_its_end(void)
{
    pthread_rwlock_destroy(&rw);
    pthread_rwlock_wrlock(&rw);
    pthread_rwlock_unlock(&rw);
}

static void semaphore_posted_after_its_end(void)
{
    sem_init(&ready, 0, 0);
    sem_destroy(&ready);
    sem_post(&ready);
}

static void barrier_used_after_its_end(void)
{
    pthread_barrier_init(&barrier, NULL, 1);
    pthread_barrier_destroy(&barrier);
    pthread_barrier_wait(&barrier);
}

static void barrier_not_initialised(void)
{
    assert(pthread_barrier_init(&barrier, NULL, 0) == EINVAL);
    pthread_barrier_wait(&barrier);
}

static void barrier_initialised_twice(void)
{
    pthread_barrier_init(&barrier, NULL, 1);
    pthread_barrier_init(&barrier, NULL, 1);
}

static void barrier_initialised_with_a_waiter(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    start(arrives, NULL);
    sem_wait(&ready);
    pthread_barrier_init(&barrier, NULL, 2);
}

static void *locks_and_unlocks(void *arg)
{
    sem_post(&ready);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}

static void mutex_initialised_with_a_waiter(void)
{
    pthread_mutex_lock(&m);
    start(locks_and_unlocks, NULL);
    sem_wait(&ready);
    pthread_mutex_init(&m, NULL);
}

CASES(CASE(unlocked_by_another), CASE(unlocked_though_free), CASE(unlocked_twice), CASE(destroyed_while_held),
      CASE(condition_destroyed_with_a_waiter), CASE(mutex_of_a_waiter_destroyed), CASE(joined_twice),
      CASE(joined_by_two), CASE(joined_though_detached), CASE(detached_twice), CASE(waits_without_the_mutex),
      CASE(waits_with_the_mutex_of_another), CASE(rwlock_unlocked_though_free), CASE(rwlock_unlocked_by_another),
      CASE(rwlock_destroyed_while_held), CASE(barrier_destroyed_with_a_waiter), CASE(destroyed_too_early),
      CASE(mutex_locked_after_its_end), CASE(mutex_tried_after_its_end), CASE(mutex_unlocked_after_its_end),
      CASE(mutex_destroyed_twice), CASE(condition_signalled_too_late), CASE(condition_signalled_after_its_end),
      CASE(condition_waited_on_after_its_end), CASE(rwlock_locked_after_its_end),
      CASE(semaphore_posted_after_its_end), CASE(barrier_used_after_its_end), CASE(barrier_not_initialised),
      CASE(barrier_initialised_twice), CASE(barrier_initialised_with_a_waiter), CASE(mutex_initialised_with_a_waiter))
