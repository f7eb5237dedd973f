/* Cases in which the schedule decides how the program ends: by its exit status. */
#include "cases.h"
#include <signal.h>

static volatile sig_atomic_t hits;
static pthread_t taker;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t gate;

static void count(int signal)
{
    (void)signal;
    hits++;
    taker = pthread_self();
}

static void handle(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    assert(sigaction(signal, &action, NULL) == 0);
}

/* Ends at a place of its own for each outcome, so that they count as different ends. */
static void end_with(int outcome)
{
    switch (outcome) {
    case 0:
        exit(0);
    case 1:
        exit(1);
    default:
        exit(2);
    }
}

/* ---- which thread takes a signal for the process: 0, 1 or 2 ---- */

static void *waits(void *arg)
{
    while (sem_wait(&gate) != 0)
        ;
    return arg;
}

static void taken_by_any(void)
{
    sem_init(&gate, 0, 0);
    handle(SIGUSR1, count);
    pthread_t a = start(waits, NULL), b = start(waits, NULL);
    kill(getpid(), SIGUSR1);
    sem_post(&gate);
    sem_post(&gate);
    join(a);
    join(b);
    assert(hits == 1);
    end_with(pthread_equal(taker, a) ? 1 : pthread_equal(taker, b) ? 2 : 0);
}

/* ---- where a handler runs among the steps of its thread: 0, 1 or 2 ---- */

static volatile int stage, stage_seen;

static void sees(int signal)
{
    (void)signal;
    stage_seen = stage;
}

static void *goes_on(void *arg)
{
    pthread_mutex_lock(&m);
    stage = 1;
    pthread_mutex_unlock(&m);
    stage = 2;
    sem_wait(&gate);
    return arg;
}

static void handled_at_any_step(void)
{
    sem_init(&gate, 0, 0);
    handle(SIGUSR1, sees);
    pthread_t t = start(goes_on, NULL);
    pthread_kill(t, SIGUSR1);
    sem_post(&gate);
    join(t);
    end_with(stage_seen);
}

/* ---- a timer against a thread: 0 if it is late, 1 if it is early ---- */

static volatile int was_early;

static void rings(int signal)
{
    (void)signal;
    was_early = stage < 2;
    sem_post(&gate);
}

static void *works(void *arg)
{
    pthread_mutex_lock(&m);
    stage = 2;
    pthread_mutex_unlock(&m);
    return arg;
}

static void alarm_against_work(void)
{
    sem_init(&gate, 0, 0);
    handle(SIGALRM, rings);
    pthread_t t = start(works, NULL);
    alarm(1);
    while (sem_wait(&gate) != 0)
        ;
    join(t);
    end_with(was_early);
}

/* ---- bugs ---- */

/* The handler locks what its thread holds. */
static void locks(int signal)
{
    (void)signal;
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}

static void *sends_to(void *arg)
{
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    return NULL;
}

static void handler_that_locks(void)
{
    pthread_t self = pthread_self();
    handle(SIGUSR1, locks);
    pthread_t t = start(sends_to, &self);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    join(t);
}

/* The signal may come between the look and the wait. */
static void lost_before_pause(void)
{
    handle(SIGALRM, count);
    alarm(1);
    if (!hits)
        pause();
}

/* The handler of a timer comes while the balance is between two values. */
static volatile int balance = 2, sum_seen = 2, other;

static void audits(int signal)
{
    (void)signal;
    sum_seen = balance + other;
}

static void audit_by_timer(void)
{
    handle(SIGALRM, audits);
    alarm(1);
    balance -= 1;
    pthread_mutex_lock(&m);
    other += 1;
    pthread_mutex_unlock(&m);
    alarm(0);
    assert(sum_seen == 2);
}

/* ---- counts ---- */

/* Two threads; one sends the other a signal that nothing depends on. */
static void one_signal(void)
{
    pthread_t self = pthread_self();
    handle(SIGUSR1, count);
    pthread_t t = start(sends_to, &self);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    join(t);
    assert(hits == 1);
}

static void one_alarm(void)
{
    handle(SIGALRM, count);
    ualarm(500000, 0);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    usleep(900000);
}

CASES(CASE(taken_by_any), CASE(handled_at_any_step), CASE(alarm_against_work), CASE(handler_that_locks),
      CASE(lost_before_pause), CASE(audit_by_timer), CASE(one_signal), CASE(one_alarm))
