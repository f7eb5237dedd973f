/* Cancellation at the points that POSIX lists, and what runs when it strikes. */
#include "cases.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int ready, cleaned, destroyed;

static void clean(void *arg)
{
    cleaned = cleaned * 10 + (int)(intptr_t)arg;
}

static void clean_and_unlock(void *arg)
{
    clean(arg);
    /* It is held: an error otherwise. */
    assert(pthread_mutex_trylock(&mutex) == EBUSY);
    assert(pthread_mutex_unlock(&mutex) == 0);
}

static void cancel_and_join(pthread_t t)
{
    assert(pthread_cancel(t) == 0);
    assert(join(t) == PTHREAD_CANCELED);
}

static void *tests(void *arg)
{
    pthread_cleanup_push(clean, (void *)1);
    pthread_cleanup_push(clean, (void *)2);
    for (;;) {
        pthread_testcancel();
        sched_yield();
    }
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return arg;
}

static void handlers_in_reverse(void)
{
    pthread_t t = start(tests, NULL);
    usleep(1000);
    assert(pthread_cancel(t) == 0);
    assert(join(t) == PTHREAD_CANCELED);
    assert(cleaned == 21);
}

static void *waits(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    pthread_cleanup_push(clean_and_unlock, (void *)1);
    while (!ready)
        assert(pthread_cond_wait(&cond, &mutex) == 0);
    pthread_cleanup_pop(1);
    return arg;
}

static void *waits_long(void *arg)
{
    struct timespec late = from_now(CLOCK_REALTIME, 1000000);
    assert(pthread_mutex_lock(&mutex) == 0);
    pthread_cleanup_push(clean_and_unlock, (void *)1);
    while (!ready)
        assert(pthread_cond_timedwait(&cond, &mutex, &late) != EINVAL);
    pthread_cleanup_pop(1);
    return arg;
}

static void a_wait_has_the_mutex_again(void)
{
    cancel_and_join(start(waits, NULL));
    assert(cleaned == 1);
    assert(pthread_mutex_trylock(&mutex) == 0);
}

static void a_timed_wait_too(void)
{
    cancel_and_join(start(waits_long, NULL));
    assert(cleaned == 1);
}

/* The mutex is held by another when the request comes. */
static void while_the_mutex_is_held(void)
{
    pthread_t t = start(waits, NULL);
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(pthread_cancel(t) == 0);
    assert(cleaned == 0);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(join(t) == PTHREAD_CANCELED);
    assert(cleaned == 1);
}

/* A signal and a request: one waiter of two is cancelled, and the other must have the signal, or the cancelled one had
   it and returned. Either way nobody is left asleep if there are as many signals as threads that need one. */
static int woken;

static void *waits_once(void *arg)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    pthread_cleanup_push(clean_and_unlock, (void *)1);
    while (!ready)
        assert(pthread_cond_wait(&cond, &mutex) == 0);
    ready--;
    woken++;
    pthread_cleanup_pop(1);
    return arg;
}

static void a_signal_is_not_lost(void)
{
    pthread_t a = start(waits_once, NULL), b = start(waits_once, NULL);
    assert(pthread_mutex_lock(&mutex) == 0);
    ready = 1;
    assert(pthread_cond_signal(&cond) == 0);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_cancel(a) == 0);
    void *of_a = join(a);
    assert(of_a == NULL || of_a == PTHREAD_CANCELED);
    if (of_a == NULL)
        assert(pthread_cancel(b) == 0);
    void *of_b = join(b);
    /* Whoever is cancelled has not used it up; b may have got through before its request. */
    assert(of_a == PTHREAD_CANCELED ? of_b == NULL : of_b == PTHREAD_CANCELED);
    assert(woken == 1 && ready == 0);
}

static void *takes(void *arg)
{
    assert(sem_wait(&semaphore) == 0);
    return arg;
}

static void a_semaphore_keeps_its_value(void)
{
    int value;
    assert(sem_init(&semaphore, 0, 0) == 0);
    cancel_and_join(start(takes, NULL));
    assert(sem_getvalue(&semaphore, &value) == 0 && value == 0);
    pthread_t t = start(takes, NULL);
    assert(pthread_cancel(t) == 0);
    assert(sem_post(&semaphore) == 0);
    void *result = join(t);
    assert(sem_getvalue(&semaphore, &value) == 0);
    assert(value == (result == PTHREAD_CANCELED ? 1 : 0));
    assert(sem_destroy(&semaphore) == 0);
}

static void *sleeps(void *arg)
{
    for (;;)
        sleep(1000);
    return arg;
}

static void *sleeps_shortly(void *arg)
{
    struct timespec hour = {3600, 0};
    for (;;) {
        usleep(1000);
        nanosleep(&hour, NULL);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, NULL);
    }
    return arg;
}

static void a_sleep_ends(void)
{
    cancel_and_join(start(sleeps, NULL));
    cancel_and_join(start(sleeps_shortly, NULL));
}

static void *joins(void *arg)
{
    return join(*(pthread_t *)arg);
}

static void a_join_leaves_the_thread_joinable(void)
{
    assert(sem_init(&semaphore, 0, 0) == 0);
    pthread_t inner = start(takes, NULL);
    cancel_and_join(start(joins, &inner));
    assert(sem_post(&semaphore) == 0);
    assert(join(inner) == NULL);
}

static void *disabled(void *arg)
{
    int old;
    assert(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0 && old == PTHREAD_CANCEL_ENABLE);
    pthread_cleanup_push(clean, (void *)1);
    sem_post(&semaphore);
    pthread_testcancel();
    usleep(1000);
    ready = 1;
    assert(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0 && old == PTHREAD_CANCEL_DISABLE);
    ready = 2;
    pthread_testcancel();
    ready = 3;
    pthread_cleanup_pop(0);
    return arg;
}

static void a_disabled_request_waits(void)
{
    assert(sem_init(&semaphore, 0, 0) == 0);
    pthread_t t = start(disabled, NULL);
    assert(sem_wait(&semaphore) == 0);
    assert(pthread_cancel(t) == 0);
    void *result = join(t);
    assert((result == PTHREAD_CANCELED && ready == 2 && cleaned == 1) ||
           (result == NULL && ready == 3 && cleaned == 0));
}

static void *to_itself(void *arg)
{
    pthread_cleanup_push(clean, (void *)1);
    assert(pthread_cancel(pthread_self()) == 0);
    ready = 1;
    pthread_testcancel();
    ready = 2;
    pthread_cleanup_pop(0);
    return arg;
}

static void a_thread_cancels_itself(void)
{
    assert(join(start(to_itself, NULL)) == PTHREAD_CANCELED);
    assert(ready == 1 && cleaned == 1);
}

/* Locking is no cancellation point. */
static void *locks_only(void *arg)
{
    assert(pthread_cancel(pthread_self()) == 0);
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
    assert(pthread_cond_signal(&cond) == 0);
    sched_yield();
    return arg;
}

static void not_everything_is_a_point(void)
{
    assert(sem_init(&semaphore, 0, 0) == 0);
    assert(join(start(locks_only, &mutex)) == &mutex);
}

static pthread_key_t key;

static void destroy(void *arg)
{
    pthread_testcancel(); /* No effect any more. */
    destroyed += (int)(intptr_t)arg;
}

static void *with_a_key(void *arg)
{
    assert(pthread_setspecific(key, (void *)7) == 0);
    for (;;)
        usleep(1000);
    return arg;
}

static void keys_are_destroyed(void)
{
    assert(pthread_key_create(&key, destroy) == 0);
    pthread_t t = start(with_a_key, NULL);
    usleep(100000);
    cancel_and_join(t);
    assert(destroyed == 7);
}

static void handler_that_waits(void *arg)
{
    (void)arg;
    pthread_testcancel();
    usleep(1000);
    clean((void *)3);
}

static void *exits(void *arg)
{
    pthread_cleanup_push(handler_that_waits, NULL);
    pthread_exit(arg);
    pthread_cleanup_pop(0);
}

/* A thread that ends by itself is not cancelled in its handlers. */
static void too_late(void)
{
    pthread_t t = start(exits, &ready);
    usleep(100);
    assert(pthread_cancel(t) == 0);
    assert(join(t) == &ready && cleaned == 3);
}

static void *nothing(void *arg)
{
    return arg;
}

static void errors(void)
{
    int old;
    assert(pthread_setcancelstate(17, &old) == EINVAL);
    assert(pthread_setcanceltype(17, &old) == EINVAL);
    assert(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old) == 0 && old == PTHREAD_CANCEL_DEFERRED);
    assert(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
    /* One that has ended but was not joined can be asked all the same. */
    pthread_t t = start(nothing, &old);
    usleep(20000);
    assert(pthread_cancel(t) == 0);
    assert(join(t) == &old);
}

static void *cancels_main(void *arg)
{
    assert(pthread_cancel(*(pthread_t *)arg) == 0);
    pthread_t main_thread = *(pthread_t *)arg;
    assert(join(main_thread) == PTHREAD_CANCELED);
    exit(cleaned == 1 ? 0 : 9);
}

static void main_is_cancelled(void)
{
    static pthread_t self;
    self = pthread_self();
    pthread_cleanup_push(clean, (void *)1);
    start(cancels_main, &self);
    for (;;)
        sleep(1);
    pthread_cleanup_pop(0);
}

static void asynchronous(void)
{
    int old = 17;
    /* Natively this succeeds. */
    int result = pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    assert(result == ENOTSUP || (result == 0 && old == PTHREAD_CANCEL_DEFERRED));
}

CASES(CASE(handlers_in_reverse), CASE(a_wait_has_the_mutex_again), CASE(a_timed_wait_too),
      CASE(while_the_mutex_is_held), CASE(a_signal_is_not_lost), CASE(a_semaphore_keeps_its_value), CASE(a_sleep_ends),
      CASE(a_join_leaves_the_thread_joinable), CASE(a_disabled_request_waits), CASE(a_thread_cancels_itself),
      CASE(not_everything_is_a_point), CASE(keys_are_destroyed), CASE(too_late), CASE(errors),
      CASE(main_is_cancelled), CASE(asynchronous))
