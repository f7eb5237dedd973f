/* Programs so small that their schedules can be counted by hand; see counts.rs. */
#include "cases.h"
#include <linux/futex.h>
#include <sys/syscall.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t sem;
static volatile int flag;
static uint32_t word;

static void *locks(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static void alone(void)
{
    for (int i = 0; i < 3; i++)
        locks(&one);
}

static void *nothing(void *arg)
{
    return arg;
}

static void a_thread_of_no_steps(void)
{
    join(start(nothing, NULL));
}

static void two_mutexes(void)
{
    pthread_t t = start(locks, &one);
    locks(&two);
    join(t);
}

static void the_same_mutex(void)
{
    pthread_t t = start(locks, &one);
    locks(&one);
    join(t);
}

static void two_threads(void)
{
    pthread_t a = start(locks, &one), b = start(locks, &two);
    join(a);
    join(b);
}

static void *waits(void *arg)
{
    sem_wait(&sem);
    return arg;
}

static void semaphore(void)
{
    pthread_t t = start(waits, NULL);
    sem_post(&sem);
    join(t);
}

static void *posts(void *arg)
{
    sem_post(&sem);
    return arg;
}

static void wait_for(long milliseconds)
{
    pthread_t t = start(posts, NULL);
    struct timespec end = from_now(CLOCK_REALTIME, milliseconds);
    sem_timedwait(&sem, &end);
    join(t);
}

static void timeout(void)
{
    wait_for(500);
}

static void far_timeout(void)
{
    wait_for(3600 * 1000);
}

static void *raises_flag(void *arg)
{
    flag = 1;
    return arg;
}

static void yielding(void)
{
    pthread_t t = start(raises_flag, NULL);
    while (!flag)
        sched_yield();
    join(t);
}

static void *signals(void *arg)
{
    pthread_mutex_lock(&one);
    flag = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&one);
    return arg;
}

static void condition(void)
{
    pthread_mutex_lock(&one);
    pthread_t t = start(signals, NULL);
    while (!flag)
        pthread_cond_wait(&cond, &one);
    pthread_mutex_unlock(&one);
    join(t);
}

static void *meets(void *arg)
{
    pthread_barrier_wait(&barrier);
    return arg;
}

static void meeting(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t t = start(meets, NULL);
    pthread_barrier_wait(&barrier);
    join(t);
}

static void init(void)
{
}

static void *initialises(void *arg)
{
    pthread_once(&once, init);
    return arg;
}

static void initialiser(void)
{
    pthread_t t = start(initialises, NULL);
    pthread_once(&once, init);
    join(t);
}

static void *reads(void *arg)
{
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
    return arg;
}

static void two_readers(void)
{
    pthread_t t = start(reads, NULL);
    reads(NULL);
    join(t);
}

static void *writes(void *arg)
{
    pthread_rwlock_wrlock(&rw);
    pthread_rwlock_unlock(&rw);
    return arg;
}

static void reader_and_writer(void)
{
    pthread_t t = start(writes, NULL);
    reads(NULL);
    join(t);
}

static void *sleeps(void *arg)
{
    sem_post(&sem);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return arg;
}

static void waiters(void)
{
    pthread_t a = start(sleeps, NULL), b = start(sleeps, NULL);
    sem_wait(&sem);
    sem_wait(&sem);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    join(a);
    join(b);
}

CASES(CASE(alone), CASE(a_thread_of_no_steps), CASE(two_mutexes), CASE(the_same_mutex), CASE(two_threads),
      CASE(semaphore), CASE(timeout), CASE(far_timeout), CASE(yielding), CASE(condition), CASE(meeting), CASE(initialiser),
      CASE(two_readers), CASE(reader_and_writer), CASE(waiters))
