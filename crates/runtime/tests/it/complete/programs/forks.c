/* Handlers around fork, with locks held, and what the child finds. */
#include "cases.h"
#include <sys/wait.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int order, shared;

static void prepare(void)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    order = order * 10 + 1;
}

static void in_parent(void)
{
    order = order * 10 + 2;
    assert(pthread_mutex_unlock(&mutex) == 0);
}

static void in_child(void)
{
    order = order * 10 + 3;
    assert(pthread_mutex_unlock(&mutex) == 0);
}

static void *adds(void *arg)
{
    for (int i = 0; i < 2; i++) {
        assert(pthread_mutex_lock(&mutex) == 0);
        shared++;
        sched_yield();
        shared++;
        assert(pthread_mutex_unlock(&mutex) == 0);
    }
    return arg;
}

static void *does_nothing(void *arg)
{
    return arg;
}

static int forks(void)
{
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        /* No addition is half done, the mutex is free, and the child may go on with threads of its own. */
        if (shared % 2 != 0 || order != 13 || pthread_mutex_trylock(&mutex) != 0)
            _exit(1);
        pthread_t t;
        if (pthread_create(&t, NULL, does_nothing, NULL) != 0 || pthread_join(t, NULL) != 0)
            _exit(2);
        _exit(7);
    }
    int status;
    assert(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void handlers_with_a_lock(void)
{
    assert(pthread_atfork(prepare, in_parent, in_child) == 0);
    pthread_t t = start(adds, NULL);
    assert(forks() == 7);
    assert(order == 12);
    join(t);
    assert(shared == 4);
}

static void *forks_too(void *arg)
{
    pid_t child = fork();
    if (child == 0)
        _exit(pthread_mutex_trylock(&mutex) == 0 ? 7 : 1);
    int status;
    assert(child > 0 && waitpid(child, &status, 0) == child);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return arg;
}

static void two_at_once(void)
{
    assert(pthread_atfork(prepare, in_parent, in_child) == 0);
    pthread_t a = start(forks_too, NULL), b = start(forks_too, NULL), c = start(adds, NULL);
    join(a), join(b), join(c);
    assert(order == 1212);
}

static void without_handlers(void)
{
    assert(pthread_atfork(prepare, in_parent, in_child) == 0);
    pid_t child = _Fork();
    if (child == 0)
        _exit(order == 0 ? 7 : 1);
    int status;
    assert(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
}

CASES(CASE(handlers_with_a_lock), CASE(two_at_once), CASE(without_handlers))
