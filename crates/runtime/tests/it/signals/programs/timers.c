/* Timers: alarm, setitimer, timer_create, on virtual time. */
#include "cases.h"
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t hits, seen_code, seen_value, seen_overrun;
static pthread_t taker;
static sem_t gate;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void count(int signal)
{
    (void)signal;
    hits++;
    taker = pthread_self();
}

static void tell(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    seen_code = info->si_code;
    seen_value = info->si_value.sival_int;
    seen_overrun = info->si_overrun;
    hits++;
    taker = pthread_self();
}

static void handle(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    assert(sigaction(signal, &action, NULL) == 0);
}

static void handle_info(int signal)
{
    struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO};
    assert(sigaction(signal, &action, NULL) == 0);
}

/* Waits for a handler of a signal that is blocked, and misses none. */
static void wait_for(int signal, int times)
{
    sigset_t set;
    sigemptyset(&set);
    while (hits < times)
        assert(sigsuspend(&set) == -1 && errno == EINTR);
    (void)signal;
}

static void block(int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    assert(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
}

static void alarm_rings(void)
{
    struct timespec t = from_now(CLOCK_MONOTONIC, 1000);
    handle(SIGALRM, count);
    block(SIGALRM);
    assert(alarm(1) == 0);
    wait_for(SIGALRM, 1);
    assert(hits == 1 && reached(CLOCK_MONOTONIC, t) && alarm(0) == 0);
}

static void alarm_is_taken_back(void)
{
    handle(SIGALRM, count);
    block(SIGALRM);
    alarm(100);
    unsigned left = alarm(0);
    sigset_t set;
    assert(sigpending(&set) == 0);
    /* Either it was early enough or it has rung. */
    assert(sigismember(&set, SIGALRM) ? left == 0 : left == 100 || left == 99);
    struct itimerval now;
    assert(getitimer(ITIMER_REAL, &now) == 0 && now.it_value.tv_sec == 0 && now.it_value.tv_usec == 0);
}

static void alarm_by_sigwait(void)
{
    sigset_t set;
    int got;
    block(SIGALRM);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    alarm(1);
    assert(sigwait(&set, &got) == 0 && got == SIGALRM);
}

static void interval_rings_again(void)
{
    struct itimerval t = {{0, 20000}, {0, 10000}}, old;
    struct timespec end = from_now(CLOCK_MONOTONIC, 50);
    handle(SIGALRM, count);
    block(SIGALRM);
    assert(setitimer(ITIMER_REAL, &t, NULL) == 0);
    wait_for(SIGALRM, 3);
    assert(reached(CLOCK_MONOTONIC, end));
    assert(getitimer(ITIMER_REAL, &old) == 0 && old.it_interval.tv_usec == 20000);
    assert(old.it_value.tv_sec == 0 && old.it_value.tv_usec > 0 && old.it_value.tv_usec <= 20000);
    assert(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, &old) == 0);
    assert(old.it_interval.tv_usec == 20000);
    t.it_value.tv_usec = 1000000;
    assert(setitimer(ITIMER_REAL, &t, NULL) == -1 && errno == EINVAL);
    assert(ualarm(1000, 0) == 0);
    wait_for(SIGALRM, 4);
}

static void timer_sends_a_signal(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 5};
    struct itimerspec t = {{0, 0}, {1, 0}}, now;
    struct timespec end = from_now(CLOCK_MONOTONIC, 1000);
    timer_t timer;
    handle_info(SIGRTMIN);
    block(SIGRTMIN);
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    assert(timer_gettime(timer, &now) == 0 && now.it_value.tv_sec == 0 && now.it_value.tv_nsec == 0);
    assert(timer_settime(timer, 0, &t, NULL) == 0);
    wait_for(SIGRTMIN, 1);
    assert(seen_code == SI_TIMER && seen_value == 5 && seen_overrun == 0 && timer_getoverrun(timer) == 0);
    assert(reached(CLOCK_MONOTONIC, end));
    assert(timer_gettime(timer, &now) == 0 && now.it_value.tv_sec == 0 && now.it_value.tv_nsec == 0);
    assert(timer_delete(timer) == 0);
}

static void timer_by_absolute_time(void)
{
    struct itimerspec t = {{0, 0}, from_now(CLOCK_REALTIME, 20)};
    timer_t timer;
    handle(SIGALRM, count);
    block(SIGALRM);
    assert(timer_create(CLOCK_REALTIME, NULL, &timer) == 0);
    assert(timer_settime(timer, TIMER_ABSTIME, &t, NULL) == 0);
    wait_for(SIGALRM, 1);
    assert(reached(CLOCK_REALTIME, t.it_value) && timer_delete(timer) == 0);
}

static void timer_that_says_nothing(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    struct itimerspec t = {{0, 0}, {0, 5000000}}, now;
    timer_t timer;
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &t, NULL) == 0);
    do {
        usleep(1000);
        assert(timer_gettime(timer, &now) == 0);
    } while (now.it_value.tv_nsec != 0);
    assert(timer_delete(timer) == 0);
}

static void notify(union sigval value)
{
    pthread_mutex_lock(&m);
    hits += value.sival_int;
    pthread_mutex_unlock(&m);
    sem_post(&gate);
}

static void timer_starts_threads(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 2};
    event.sigev_notify_function = notify;
    struct itimerspec t = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    sem_init(&gate, 0, 0);
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &t, NULL) == 0);
    sem_wait(&gate);
    sem_wait(&gate);
    assert(timer_delete(timer) == 0);
    pthread_mutex_lock(&m);
    assert(hits >= 4);
    pthread_mutex_unlock(&m);
}

static void *has_a_timer(void *arg)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec t = {{0, 0}, {0, 1000000}};
    timer_t timer;
    event._sigev_un._tid = gettid();
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &t, NULL) == 0);
    wait_for(SIGUSR1, 1);
    assert(pthread_equal(taker, pthread_self()) && timer_delete(timer) == 0);
    return arg;
}

static void timer_for_one_thread(void)
{
    handle(SIGUSR1, count);
    block(SIGUSR1);
    join(start(has_a_timer, NULL));
}

static void overruns_are_counted(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec t = {{0, 1000000}, {0, 1000000}}, off = {{0, 0}, {0, 0}};
    struct timespec end = from_now(CLOCK_MONOTONIC, 20);
    timer_t timer;
    handle_info(SIGUSR1);
    block(SIGUSR1);
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &t, NULL) == 0);
    while (!reached(CLOCK_MONOTONIC, end))
        usleep(5000);
    /* Time has passed, so it has fired, many times. */
    wait_for(SIGUSR1, 1);
    assert(seen_overrun == timer_getoverrun(timer));
    assert(timer_settime(timer, 0, &off, NULL) == 0 && timer_delete(timer) == 0);
}

static void bad_timers(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 99};
    struct itimerspec bad = {{0, 0}, {0, 1000000000}};
    timer_t timer;
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == -1 && errno == EINVAL);
    assert(timer_create(77, NULL, &timer) == -1 && errno == EINVAL);
    assert(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
    assert(timer_settime(timer, 0, &bad, NULL) == -1 && errno == EINVAL);
    assert(timer_delete(timer) == 0);
}

static void *locks(void *arg)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
    }
    return arg;
}

/* Nobody handles it: that it does not go off is what the program is written for. */
static void watchdog(void)
{
    alarm(10);
    pthread_t t = start(locks, NULL);
    locks(NULL);
    usleep(1000);
    join(t);
    alarm(0);
}

static void watchdog_goes_off(void)
{
    alarm(1);
    sleep(5);
}

/* The last thread that ends does, timers or not. */
static void timers_keep_nobody_alive(void)
{
    handle(SIGALRM, count);
    alarm(100);
    pthread_exit(NULL);
}

CASES(CASE(alarm_rings), CASE(alarm_is_taken_back), CASE(alarm_by_sigwait), CASE(interval_rings_again),
      CASE(timer_sends_a_signal), CASE(timer_by_absolute_time), CASE(timer_that_says_nothing),
      CASE(timer_starts_threads), CASE(timer_for_one_thread), CASE(overruns_are_counted), CASE(bad_timers),
      CASE(watchdog), CASE(timers_keep_nobody_alive), CASE(watchdog_goes_off))
