/* Ends of a process. */
#include "results.h"
#include <signal.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t never, has_it;

static void *says(void *letter)
{
    point();
    say("%s", (char *)letter);
    return NULL;
}

static void *waits_forever(void *arg)
{
    sem_wait(&never);
    say("never");
    return arg;
}

CASE(main_returns_while_a_thread_runs, "", "A")
{
    start(says, "A");
    point();
}

CASE(main_returns_while_threads_wait, "end")
{
    start(waits_forever, NULL);
    point();
    say("end");
}

static void *waits_on_a_condition(void *arg)
{
    pthread_mutex_lock(&m);
    pthread_cond_wait(&c, &m);
    return arg;
}

CASE(main_returns_while_a_condition_is_waited_for, "end")
{
    start(waits_on_a_condition, NULL);
    point();
    say("end");
}

CASE(main_returns_while_a_mutex_is_waited_for, "end")
{
    pthread_mutex_lock(&m);
    start(waits_on_a_condition, NULL);
    point();
    say("end");
}

static int ended;

static void *says_when(void *arg)
{
    point();
    say(ended ? "after" : "before");
    return arg;
}

static void ends(void *unused)
{
    (void)unused;
    ended = 1;
    point();
}

int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *module);
extern void *__dso_handle;

CASE(main_returns_and_its_objects_end_while_a_thread_runs, "", "before", "after")
{
    start(says_when, NULL);
    __cxa_thread_atexit_impl(ends, NULL, &__dso_handle);
}

static void *exits(void *status)
{
    point();
    say("x");
    exit((intptr_t)status);
}

ENDS(exit_from_a_thread, 7, "x")
{
    start(exits, (void *)7);
    waits_forever(NULL);
}

static void *exits_at_once(void *status)
{
    say("x");
    write_result();
    _exit((intptr_t)status);
}

ENDS(exit_at_once_from_a_thread, 8, "x")
{
    start(exits_at_once, (void *)8);
    waits_forever(NULL);
}

static void says_one(void) { say("1"); }
static void says_two(void) { say("2"); }

static void says_three(void)
{
    say("3");
    atexit(says_two);
}

CASE(handlers_run_in_reverse, "m321")
{
    atexit(says_one);
    atexit(says_three);
    say("m");
}

static void says_status(int status, void *words)
{
    say("%s%d", (char *)words, status);
}

ENDS(handlers_are_told_the_status, 5, "status 5")
{
    on_exit(says_status, "status ");
    exit(5);
}

ENDS(no_handlers_at_once, 6, "m")
{
    atexit(says_one);
    say("m");
    write_result();
    _Exit(6);
}

static void says_quickly(void)
{
    say("q");
    write_result();
}

ENDS(handlers_of_a_quick_exit, 9, "mq")
{
    atexit(says_one);
    at_quick_exit(says_quickly);
    say("m");
    quick_exit(9);
}

static void *holds(void *arg)
{
    pthread_mutex_lock(&m);
    sem_post(&has_it);
    point();
    say("A");
    pthread_mutex_unlock(&m);
    return arg;
}

static void locks(void)
{
    pthread_mutex_lock(&m);
    say("h");
    pthread_mutex_unlock(&m);
}

/* The thread goes on while the handler waits for its mutex. */
CASE(a_handler_that_locks, "Ah")
{
    atexit(locks);
    start(holds, NULL);
    sem_wait(&has_it);
}

static pthread_t joined_late;

static void joins(void)
{
    pthread_join(joined_late, NULL);
    say("j");
}

CASE(a_handler_that_joins, "Aj")
{
    joined_late = start(says, "A");
    atexit(joins);
}

static void creates(void)
{
    pthread_t t;
    pthread_create(&t, NULL, says, "B");
    pthread_join(t, NULL);
}

CASE(a_handler_that_creates, "mB")
{
    atexit(creates);
    say("m");
}

static void *outlives_main(void *arg)
{
    pthread_join(*(pthread_t *)arg, NULL);
    say("A");
    return NULL;
}

static pthread_t main_thread;

/* The process ends with its last thread, and with status 0. */
CASE(main_ends_before_the_others, "mA1")
{
    main_thread = pthread_self();
    atexit(says_one);
    start(outlives_main, &main_thread);
    say("m");
    pthread_exit(NULL);
}

CASE(main_ends_alone, "m1")
{
    atexit(says_one);
    say("m");
    pthread_exit(NULL);
}

static void *joins_main_and_exits(void *arg)
{
    pthread_join(main_thread, NULL);
    exit((intptr_t)arg);
}

ENDS(exit_after_main_has_ended, 4, "m1")
{
    main_thread = pthread_self();
    atexit(says_one);
    say("m");
    start(joins_main_and_exits, (void *)4);
    pthread_exit(NULL);
}

static pthread_key_t key;

static void says_value(void *value) { say("%s", (char *)value); }

/* A thread that is still running when the process ends gets no destructors; main has none after a return. */
CASE(no_destructors_for_those_that_run, "end")
{
    pthread_key_create(&key, says_value);
    pthread_setspecific(key, "never");
    start(waits_forever, NULL);
    point();
    say("end");
}

CASE(but_main_has_them_when_it_ends_itself, "mk")
{
    pthread_key_create(&key, says_value);
    pthread_setspecific(key, "k");
    say("m");
    pthread_exit(NULL);
}

static void cleans(void *letter) { say("%s", (char *)letter); }

CASE(main_cleans_up, "c")
{
    pthread_cleanup_push(cleans, "c");
    pthread_exit(NULL);
    pthread_cleanup_pop(0);
}

CASE(signals_that_are_ignored, "0 1 1 end")
{
    say("%d ", signal(SIGTERM, SIG_IGN) == SIG_ERR);
    say("%d ", signal(SIGTERM, SIG_IGN) == SIG_IGN);
    say("%d ", raise(SIGTERM) == 0);
    say("end");
}

CONFORMANCE_MAIN
