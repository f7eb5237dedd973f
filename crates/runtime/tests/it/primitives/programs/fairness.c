/* Loops that wait without blocking; see fairness.rs. */
#include "cases.h"
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

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

/* Executions that are longer than the limit of steps, but end. */

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int messages;

static void *receives(void *arg)
{
    for (int i = 0; i < 100000; i++) {
        pthread_mutex_lock(&m);
        while (!messages)
            pthread_cond_wait(&changed, &m);
        messages--;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void many_messages(void)
{
    pthread_t t = start(receives, NULL);
    for (int i = 0; i < 100000; i++) {
        pthread_mutex_lock(&m);
        while (messages)
            pthread_cond_wait(&changed, &m);
        messages++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&m);
    }
    join(t);
}

/* Two threads that wait for each other, and count. */
static void *counts_rounds(void *arg)
{
    for (long rounds = 0; rounds < 10000000; rounds++)
        sched_yield();
    return arg;
}

static void both_count(void)
{
    pthread_t t = start(counts_rounds, NULL);
    counts_rounds(NULL);
    join(t);
}

static void waits_for_an_hour(void)
{
    struct timespec now;
    time_t end = time(NULL) + 3600;
    do {
        sched_yield();
        clock_gettime(CLOCK_REALTIME, &now);
    } while (now.tv_sec < end);
}

static void reads_zeros(void)
{
    char byte = 0;
    FILE *file = tmpfile();
    assert(file && ftruncate(fileno(file), 10000000) == 0);
    while (pread(fileno(file), &byte, 1, 0) == 1 && read(fileno(file), &byte, 1) == 1)
        sched_yield();
}

static void draws_until_zero(void)
{
    int drawn;
    do {
        sched_yield();
        assert(getrandom(&drawn, sizeof drawn, 0) == sizeof drawn);
    } while (drawn);
}

/* While threads take turns, this one has the lock whenever the other tries it. */
static void *locks_often(void *arg)
{
    pthread_mutex_lock(&m);
    sem_post(&sem);
    while (!done) {
        pthread_mutex_unlock(&m);
        pthread_mutex_lock(&m);
    }
    pthread_mutex_unlock(&m);
    return arg;
}

static void keeps_step(void)
{
    int value;
    sem_init(&sem, 0, 0);
    pthread_t t = start(locks_often, NULL);
    sem_wait(&sem);
    while (pthread_mutex_trylock(&m))
        sem_getvalue(&sem, &value);
    done = 1;
    pthread_mutex_unlock(&m);
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

/* They compute something besides. */
static volatile long rounds;

static void counts_meanwhile(void)
{
    long count = 0;
    pthread_t t = start(sets_done, NULL);
    while (!done)
        count++;
    join(t);
    assert(count > 0);
}

static atomic_int two[2];

static void *sets_both(void *arg)
{
    atomic_store(&two[0], 1);
    atomic_store(&two[1], 1);
    return arg;
}

static void alternates(void)
{
    unsigned count = 0;
    pthread_t t = start(sets_both, NULL);
    while (!atomic_load(&two[count % 2]))
        count++;
    join(t);
}

static void tells_its_rounds(void)
{
    pthread_t t = start(sets_done, NULL);
    while (!done)
        rounds++;
    join(t);
}

/* What one counts, the other waits for. */
static void *waits_for_rounds(void *arg)
{
    while (rounds < 10)
        ;
    done = 1;
    return arg;
}

static void counts_for_another(void)
{
    pthread_t t = start(waits_for_rounds, NULL);
    while (!done)
        rounds++;
    join(t);
}

/* A reader adds itself to the lock, and subtracts itself again as long as there is a writer. */
static void *adds_itself(void *arg)
{
    while (atomic_fetch_add(&word, 2) & 1)
        atomic_fetch_sub(&word, 2);
    atomic_fetch_sub(&word, 2);
    return arg;
}

static void takes_and_gives_back(void)
{
    atomic_store(&word, 1);
    pthread_t t = start(adds_itself, NULL);
    sched_yield();
    atomic_fetch_sub(&word, 1);
    join(t);
    assert(word == 0);
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

/* Loops whose rounds differ: the time to wait grows, and is another one each time. */
static volatile int raised;

static void *raises(void *arg)
{
    raised = 1;
    return arg;
}

static void backs_off(void)
{
    pthread_t t = start(raises, NULL);
    unsigned shift = 0;
    while (!raised) {
        for (volatile int i = 0; i < 1 << shift; i++)
            ;
        if (shift < 10)
            shift++;
    }
    pthread_join(t, NULL);
}

static void backs_off_at_random(void)
{
    pthread_t t = start(raises, NULL);
    unsigned number = 1;
    while (!raised) {
        number = number * 1103515245 + 12345;
        for (volatile unsigned i = 0; i < (number >> 16) % 512; i++)
            ;
    }
    pthread_join(t, NULL);
}

static void counts_up_and_down(void)
{
    pthread_t t = start(raises, NULL);
    long rounds = 0;
    while (!raised)
        if (++rounds % 1000 == 0)
            rounds = 0;
    pthread_join(t, NULL);
}

CASES(CASE(trylock), CASE(spin_trylock), CASE(tryrdlock), CASE(trywrlock), CASE(trywait), CASE(poll_at_once),
      CASE(read_at_once), CASE(tryjoin), CASE(looks_in_between), CASE(four_attempts), CASE(lone_spinner),
      CASE(spinner_among_others), CASE(both_yield), CASE(different_loops), CASE(many_messages),
      CASE(both_count), CASE(waits_for_an_hour), CASE(reads_zeros), CASE(draws_until_zero), CASE(keeps_step),
      CASE(counts_meanwhile), CASE(alternates), CASE(tells_its_rounds), CASE(counts_for_another), CASE(takes_and_gives_back),
      CASE(reads_a_flag),
      CASE(waits_for_a_sleeper), CASE(spin_lock_of_its_own), CASE(nobody_writes), CASE(counts_for_long),
      CASE(backs_off), CASE(backs_off_at_random), CASE(counts_up_and_down))
