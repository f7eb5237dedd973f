/* Loops that wait without blocking; see fairness.rs. */
#include "cases.h"
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static int ends[2];
static volatile int done;

/* Each of these: the main thread has something, starts a thread that spins until it gets it, lets go of it in one step,
 * and joins. */

static void *tries_mutex(void *arg)
{
    while (pthread_mutex_trylock(&m))
        ;
    pthread_mutex_unlock(&m);
    return arg;
}

static void trylock(void)
{
    pthread_mutex_lock(&m);
    pthread_t t = start(tries_mutex, NULL);
    pthread_mutex_unlock(&m);
    join(t);
}

static void *tries_spin_lock(void *arg)
{
    while (pthread_spin_trylock(&spin))
        ;
    pthread_spin_unlock(&spin);
    return arg;
}

static void spin_trylock(void)
{
    pthread_spin_init(&spin, 0);
    pthread_spin_lock(&spin);
    pthread_t t = start(tries_spin_lock, NULL);
    pthread_spin_unlock(&spin);
    join(t);
}

static void *tries_to_read(void *arg)
{
    while (pthread_rwlock_tryrdlock(&rw))
        ;
    pthread_rwlock_unlock(&rw);
    return arg;
}

static void *tries_to_write(void *arg)
{
    while (pthread_rwlock_trywrlock(&rw))
        ;
    pthread_rwlock_unlock(&rw);
    return arg;
}

static void tryrdlock(void)
{
    pthread_rwlock_wrlock(&rw);
    pthread_t t = start(tries_to_read, NULL);
    pthread_rwlock_unlock(&rw);
    join(t);
}

static void trywrlock(void)
{
    pthread_rwlock_rdlock(&rw);
    pthread_t t = start(tries_to_write, NULL);
    pthread_rwlock_unlock(&rw);
    join(t);
}

static void *tries_semaphore(void *arg)
{
    while (sem_trywait(&sem))
        ;
    return arg;
}

static void trywait(void)
{
    sem_init(&sem, 0, 0);
    pthread_t t = start(tries_semaphore, NULL);
    sem_post(&sem);
    join(t);
}

static void *polls(void *arg)
{
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};
    while (poll(&fd, 1, 0) == 0)
        ;
    return arg;
}

static void *reads(void *arg)
{
    char byte;
    while (read(ends[0], &byte, 1) < 0)
        ;
    return arg;
}

static void over_a_pipe(void *(*how)(void *))
{
    assert(pipe2(ends, O_NONBLOCK) == 0);
    pthread_t t = start(how, NULL);
    assert(write(ends[1], "x", 1) == 1);
    join(t);
}

static void poll_at_once(void) { over_a_pipe(polls); }
static void read_at_once(void) { over_a_pipe(reads); }

static void *nothing(void *arg) { return arg; }

static void tryjoin(void)
{
    pthread_t t = start(nothing, NULL);
    while (pthread_tryjoin_np(t, NULL))
        ;
}

/* Something else happens between the attempts, so it is no spinning. */
static void *tries_and_looks(void *arg)
{
    while (sem_trywait(&sem)) {
        int value;
        sem_getvalue(&sem, &value);
        if (value == 7)
            break;
    }
    return arg;
}

static void looks_in_between(void)
{
    sem_init(&sem, 0, 0);
    pthread_t t = start(tries_and_looks, NULL);
    sem_post(&sem);
    join(t);
}

/* A loop that gives up. */
static void *gives_up(void *arg)
{
    int i = 0;
    while (pthread_mutex_trylock(&m))
        if (++i == 4)
            assert(!"it gave up");
    pthread_mutex_unlock(&m);
    return arg;
}

static void four_attempts(void)
{
    pthread_mutex_lock(&m);
    pthread_t t = start(gives_up, NULL);
    pthread_mutex_unlock(&m);
    join(t);
}

/* Loops that never end. */

static void *ends_with_lock(void *arg)
{
    pthread_mutex_lock(&m);
    return arg;
}

static void lone_spinner(void)
{
    join(start(ends_with_lock, NULL));
    tries_mutex(NULL);
}

static void *yields(void *arg)
{
    while (!done)
        sched_yield();
    return arg;
}

static void spinner_among_others(void)
{
    join(start(ends_with_lock, NULL));
    pthread_t t = start(yields, NULL);
    tries_mutex(NULL);
    join(t);
}

static void both_yield(void)
{
    pthread_t t = start(yields, NULL);
    yields(NULL);
    join(t);
}

static void different_loops(void)
{
    pthread_t t = start(yields, NULL);
    sem_init(&sem, 0, 0);
    while (!done) {
        for (int i = 0; i < 12; i++)
            sem_post(&sem);
        for (int i = 0; i < 12; i++)
            sem_wait(&sem);
        sched_yield();
    }
    join(t);
}

/* Loops that wait for memory to change. */

static atomic_int word;

static void *sets_done(void *arg)
{
    done = 1;
    return arg;
}

static void reads_a_flag(void)
{
    pthread_t t = start(sets_done, NULL);
    while (!done)
        ;
    join(t);
}

static void *sets_word(void *arg)
{
    sleep(100);
    atomic_store(&word, 1);
    return arg;
}

static void waits_for_a_sleeper(void)
{
    pthread_t t = start(sets_word, NULL);
    while (!atomic_load(&word))
        __builtin_ia32_pause();
    join(t);
}

static void *exchanges(void *counter)
{
    while (atomic_exchange(&word, 1))
        ;
    ++*(int *)counter;
    sem_post(&sem);
    atomic_store(&word, 0);
    return counter;
}

static void spin_lock_of_its_own(void)
{
    int counter = 0;
    sem_init(&sem, 0, 0);
    pthread_t a = start(exchanges, &counter), b = start(exchanges, &counter);
    join(a);
    join(b);
    assert(counter == 2);
}

static void *reads_word(void *arg)
{
    while (!atomic_load(&word))
        ;
    return arg;
}

static void nobody_writes(void)
{
    pthread_t a = start(reads_word, NULL), b = start(reads_word, NULL);
    join(a);
    join(b);
}

static void counts_for_long(void)
{
    pthread_t t = start(nothing, NULL);
    for (volatile long i = 0; i < 300000000; i++)
        ;
    join(t);
}

CASES(CASE(trylock), CASE(spin_trylock), CASE(tryrdlock), CASE(trywrlock), CASE(trywait), CASE(poll_at_once),
      CASE(read_at_once), CASE(tryjoin), CASE(looks_in_between), CASE(four_attempts), CASE(lone_spinner),
      CASE(spinner_among_others), CASE(both_yield), CASE(different_loops), CASE(reads_a_flag),
      CASE(waits_for_a_sleeper), CASE(spin_lock_of_its_own), CASE(nobody_writes), CASE(counts_for_long))
