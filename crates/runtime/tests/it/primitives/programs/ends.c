/* The ways in which a process ends, good and bad. */
#include "cases.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static sem_t never;
static int handlers;

static void pause_here(void)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}

static void wait_for_ever(void)
{
    for (;;)
        sem_wait(&never);
}

static void *waits(void *arg)
{
    wait_for_ever();
    return arg;
}

/* ---- good ---- */

static void last_handler(void)
{
    /* Registered first, so run last. */
    pause_here();
    if (handlers != 1)
        _exit(9);
}

static void first_handler(void)
{
    pause_here();
    handlers++;
}

static void fails(void)
{
    _exit(9);
}

static void *exits_well(void *arg)
{
    pause_here();
    exit(0);
    return arg;
}

static void exit_from_a_thread(void)
{
    assert(atexit(last_handler) == 0 && atexit(first_handler) == 0);
    start(exits_well, NULL);
    wait_for_ever();
}

static void *exits_with_seven(void *arg)
{
    pause_here();
    exit(7);
    return arg;
}

static void exit_with_seven(void)
{
    start(exits_with_seven, NULL);
    wait_for_ever();
}

static void *exits_at_once(void *arg)
{
    pause_here();
    _exit(0);
    return arg;
}

static void exit_at_once(void)
{
    assert(atexit(fails) == 0);
    start(exits_at_once, NULL);
    wait_for_ever();
}

static void quick_handler(void)
{
    pause_here();
    _exit(6);
}

static void *exits_quickly(void *arg)
{
    assert(atexit(fails) == 0 && at_quick_exit(quick_handler) == 0);
    quick_exit(0);
    return arg;
}

static void exit_quickly_with_six(void)
{
    start(exits_quickly, NULL);
    wait_for_ever();
}

static void return_while_others_wait(void)
{
    start(waits, NULL);
    start(waits, NULL);
    assert(atexit(last_handler) == 0 && atexit(first_handler) == 0);
}

static void *holds_for_a_while(void *arg)
{
    pthread_mutex_lock(&other);
    sem_post(&never);
    for (int i = 0; i < 4; i++)
        pause_here();
    pthread_mutex_unlock(&other);
    return arg;
}

static void locks_other(void)
{
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
}

/* While handlers run, so do the other threads. */
static void handlers_wait_for_threads(void)
{
    start(holds_for_a_while, NULL);
    assert(atexit(locks_other) == 0);
    sem_wait(&never);
}

static volatile sig_atomic_t caught;

static void on_signal(int signal)
{
    caught = signal;
}

static void *raises(void *arg)
{
    pause_here();
    assert(raise(SIGUSR1) == 0 && caught == SIGUSR1);
    caught = 0;
    assert(pthread_kill(pthread_self(), SIGUSR2) == 0 && caught == SIGUSR2);
    caught = 0;
    return arg;
}

static void signals_that_are_caught(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    assert(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    join(start(raises, NULL));
    raises(NULL);
    /* To the process, of which there is only this thread by now. */
    assert(kill(getpid(), SIGUSR1) == 0 && caught == SIGUSR1);
}

static sigjmp_buf back;

static void on_fault(int signal)
{
    siglongjmp(back, signal);
}

static void *recovers(void *arg)
{
    if (sigsetjmp(back, 1) == 0) {
        *(volatile int *)8 = 1;
        assert(0);
    }
    pause_here();
    return arg;
}

static void faults_that_are_caught(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    assert(sigaction(SIGSEGV, &action, NULL) == 0);
    join(start(recovers, NULL));
    join(start(recovers, NULL));
}

static void on_overflow(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    _exit(0);
}

static __attribute__((noinline)) int overflows(volatile char *below)
{
    volatile char room[512];
    room[0] = below ? *below : 0;
    return overflows(room) + room[0];
}

static void *overflows_on_other_stack(void *arg)
{
    static char room[64 << 10];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room}, old;
    assert(sigaltstack(&stack, &old) == 0 && old.ss_flags == SS_DISABLE);
    assert(sigaltstack(NULL, &old) == 0 && old.ss_sp == room && old.ss_size == sizeof room);
    overflows(NULL);
    return arg;
}

static void overflows_that_are_caught(void)
{
    struct sigaction action = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    assert(sigaction(SIGSEGV, &action, NULL) == 0);
    start(overflows_on_other_stack, NULL);
    wait_for_ever();
}

static void *three(void *arg)
{
    pause_here();
    return arg;
}

/* The child has one thread, the one that forked, and may make more. */
static void *forks(void *arg)
{
    int status;
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        assert(gettid() == getpid());
        _exit(join(start(three, (void *)3)) == (void *)3 ? 7 : 9);
    }
    assert(waitpid(child, &status, 0) == child);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return arg;
}

static void fork_in_threads(void)
{
    pthread_t a = start(forks, NULL), b = start(forks, NULL);
    forks(NULL);
    join(a);
    join(b);
}

/* ---- bad ---- */

static void return_five(void)
{
    pause_here();
    exit(5);
}

static void *aborts(void *arg)
{
    pause_here();
    abort();
    return arg;
}

static void abort_in_a_thread(void)
{
    join(start(aborts, NULL));
}

static int zero;

static void *asserts(void *arg)
{
    pause_here();
    assert(zero == 1);
    return arg;
}

static void assert_in_a_thread(void)
{
    join(start(asserts, NULL));
}

static void *touches_nothing(void *arg)
{
    pause_here();
    *(volatile int *)arg = 1;
    return arg;
}

static void null_pointer(void)
{
    join(start(touches_nothing, NULL));
}

static void *divides(void *arg)
{
    volatile int one = 1;
    one = one / zero;
    return arg;
}

static void division_by_zero(void)
{
    join(start(divides, NULL));
}

static void *goes_too_deep(void *arg)
{
    overflows(NULL);
    return arg;
}

static void overflow(void)
{
    join(start(goes_too_deep, NULL));
}

static void overflow_of_a_small_stack(void)
{
    pthread_attr_t attr;
    pthread_t t;
    assert(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 64 << 10) == 0);
    assert(pthread_create(&t, &attr, goes_too_deep, NULL) == 0);
    join(t);
}

static void overflow_of_the_main_stack(void)
{
    overflows(NULL);
}

static void *terminates(void *arg)
{
    raise(SIGTERM);
    return arg;
}

static void killed_by_a_signal(void)
{
    join(start(terminates, NULL));
}

static void lock_twice(void)
{
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&m);
}

static void *locks_backwards(void *arg)
{
    pthread_mutex_lock(&other);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_mutex_unlock(&other);
    return arg;
}

static void locks_in_two_orders(void)
{
    pthread_t t = start(locks_backwards, NULL);
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    pthread_mutex_unlock(&m);
    join(t);
}

static pthread_rwlock_t rw = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void *writes(void *arg)
{
    pthread_rwlock_wrlock(&rw);
    pthread_rwlock_unlock(&rw);
    return arg;
}

/* Where writers come first, one that waits between two reads of the same thread stops both for ever. */
static void read_twice(void)
{
    pthread_t t = start(writes, NULL);
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
    pthread_rwlock_unlock(&rw);
    join(t);
}

static pthread_rwlock_t first = PTHREAD_RWLOCK_INITIALIZER, second = PTHREAD_RWLOCK_INITIALIZER;

static void *reads_backwards(void *arg)
{
    pthread_rwlock_rdlock(&second);
    pthread_rwlock_wrlock(&first);
    pthread_rwlock_unlock(&first);
    pthread_rwlock_unlock(&second);
    return arg;
}

/* Another reader of both is not to blame. */
static void *reads_first(void *arg)
{
    pthread_rwlock_rdlock(&first);
    pthread_rwlock_unlock(&first);
    return arg;
}

static void rwlocks_crosswise(void)
{
    join(start(reads_first, NULL));
    pthread_t t = start(reads_backwards, NULL);
    pthread_rwlock_rdlock(&first);
    pthread_rwlock_wrlock(&second);
    pthread_rwlock_unlock(&second);
    pthread_rwlock_unlock(&first);
    join(t);
}

static void read_then_write(void)
{
    pthread_rwlock_rdlock(&first);
    pthread_rwlock_wrlock(&first);
}

static void *keeps_reading(void *arg)
{
    pthread_rwlock_rdlock(&first);
    return arg;
}

static void reader_that_ended(void)
{
    join(start(keeps_reading, NULL));
    pthread_rwlock_wrlock(&first);
}

static pthread_cond_t unsignalled = PTHREAD_COND_INITIALIZER;

static void *signals_with_both(void *arg)
{
    pthread_mutex_lock(&other);
    pthread_mutex_lock(&m);
    pthread_cond_signal(&unsignalled);
    pthread_mutex_unlock(&m);
    pthread_mutex_unlock(&other);
    return arg;
}

/* Who waits on a condition variable keeps another lock, without which nobody can signal. */
static void waits_with_another_lock(void)
{
    pthread_mutex_lock(&other);
    pthread_mutex_lock(&m);
    pthread_t t = start(signals_with_both, NULL);
    pthread_cond_wait(&unsignalled, &m);
    join(t);
}

static void too_few_at_the_barrier(void)
{
    pthread_barrier_t barrier;
    assert(pthread_barrier_init(&barrier, NULL, 2) == 0);
    pthread_barrier_wait(&barrier);
}

static void spin_twice(void)
{
    pthread_spinlock_t lock;
    assert(pthread_spin_init(&lock, 0) == 0);
    pthread_spin_lock(&lock);
    pthread_spin_lock(&lock);
}

static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static void *signals_once(void *arg)
{
    pthread_cond_signal(&c);
    return arg;
}

static void lost_signal(void)
{
    pthread_t t = start(signals_once, NULL);
    pthread_mutex_lock(&m);
    pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    join(t);
}

static void yields_for_ever(void)
{
    for (;;)
        sched_yield();
}

CASES(CASE(exit_from_a_thread), CASE(exit_with_seven), CASE(exit_at_once), CASE(exit_quickly_with_six),
      CASE(return_while_others_wait), CASE(handlers_wait_for_threads), CASE(signals_that_are_caught),
      CASE(faults_that_are_caught), CASE(overflows_that_are_caught), CASE(fork_in_threads), CASE(return_five), CASE(abort_in_a_thread),
      CASE(assert_in_a_thread), CASE(null_pointer), CASE(division_by_zero), CASE(overflow),
      CASE(overflow_of_a_small_stack), CASE(overflow_of_the_main_stack), CASE(killed_by_a_signal), CASE(lock_twice),
      CASE(locks_in_two_orders), CASE(read_twice), CASE(rwlocks_crosswise), CASE(read_then_write),
      CASE(reader_that_ended), CASE(waits_with_another_lock), CASE(too_few_at_the_barrier), CASE(spin_twice), CASE(lost_signal),
      CASE(yields_for_ever))
