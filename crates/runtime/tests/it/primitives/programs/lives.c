/* Objects that begin anew where others ended: each use of them is a proper one. */
#include "cases.h"

static void *uses_all(void *arg);

struct objects {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    sem_t semaphore;
    pthread_barrier_t barrier;
};

static struct objects shared;

static void init(struct objects *o)
{
    assert(pthread_mutex_init(&o->mutex, NULL) == 0 && pthread_cond_init(&o->cond, NULL) == 0);
    assert(pthread_rwlock_init(&o->rwlock, NULL) == 0 && sem_init(&o->semaphore, 0, 0) == 0);
    assert(pthread_barrier_init(&o->barrier, NULL, 2) == 0);
}

static void destroy(struct objects *o)
{
    assert(pthread_barrier_destroy(&o->barrier) == 0);
    assert(pthread_mutex_destroy(&o->mutex) == 0 && pthread_cond_destroy(&o->cond) == 0);
    assert(pthread_rwlock_destroy(&o->rwlock) == 0 && sem_destroy(&o->semaphore) == 0);
}

static void use(struct objects *o)
{
    pthread_t t = start(uses_all, o);
    pthread_mutex_lock(&o->mutex);
    pthread_cond_signal(&o->cond);
    pthread_mutex_unlock(&o->mutex);
    sem_wait(&o->semaphore);
    pthread_rwlock_wrlock(&o->rwlock);
    pthread_rwlock_unlock(&o->rwlock);
    pthread_barrier_wait(&o->barrier);
    join(t);
}

static void *uses_all(void *arg)
{
    struct objects *o = arg;
    sem_post(&o->semaphore);
    if (pthread_mutex_trylock(&o->mutex) == 0) pthread_mutex_unlock(&o->mutex);
    pthread_barrier_wait(&o->barrier);
    return arg;
}

static void initialised_again(void)
{
    for (int i = 0; i < 2; i++) {
        init(&shared);
        use(&shared);
        destroy(&shared);
    }
}

static void of_static_values_again(void)
{
    for (int i = 0; i < 2; i++) {
        shared.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        shared.cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        shared.rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
        sem_init(&shared.semaphore, 0, 0);
        pthread_barrier_init(&shared.barrier, NULL, 2);
        use(&shared);
        destroy(&shared);
    }
}

/* A barrier ends with its memory, too. */
static void not_destroyed_with_its_memory(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_barrier_t *barrier = malloc(sizeof *barrier), local;
        assert(pthread_barrier_init(barrier, NULL, 1) == 0 && pthread_barrier_init(&local, NULL, 1) == 0);
        pthread_barrier_wait(barrier);
        pthread_barrier_wait(&local);
        free(barrier);
    }
}

/* Who has the last of it destroys it, while the others are still on their way out. */
static void *leaves(void *arg)
{
    if (pthread_barrier_wait(&shared.barrier) == PTHREAD_BARRIER_SERIAL_THREAD) pthread_barrier_destroy(&shared.barrier);
    return arg;
}

static void destroyed_by_the_serial_thread(void)
{
    pthread_barrier_init(&shared.barrier, NULL, 2);
    pthread_t t = start(leaves, NULL);
    leaves(NULL);
    join(t);
}

static int woken;

static void *waits(void *arg)
{
    pthread_mutex_lock(&shared.mutex);
    while (!woken) pthread_cond_wait(&shared.cond, &shared.mutex);
    pthread_mutex_unlock(&shared.mutex);
    return arg;
}

/* POSIX allows that: after a broadcast nobody waits any more. */
static void destroyed_after_a_broadcast(void)
{
    init(&shared);
    pthread_t t = start(waits, NULL);
    pthread_mutex_lock(&shared.mutex);
    woken = 1;
    pthread_cond_broadcast(&shared.cond);
    pthread_mutex_unlock(&shared.mutex);
    assert(pthread_cond_destroy(&shared.cond) == 0);
    join(t);
}

CASES(CASE(initialised_again), CASE(of_static_values_again), CASE(not_destroyed_with_its_memory),
      CASE(destroyed_by_the_serial_thread), CASE(destroyed_after_a_broadcast))
