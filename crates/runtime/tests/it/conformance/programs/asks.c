/* A program that knows of Heisen: the calls of heisen.h, which do nothing natively. */
#include "results.h"
#include "heisen.h"
#include <sys/resource.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

CASE(the_program_is_told, "1")
{
    say("%d", heisen_running() == (heisen_running != NULL));
}

CASE(what_is_told_is_no_step, "1")
{
    heisen_test_start();
    heisen_state(7);
    heisen_test_end();
    say("1");
}

static void *says_in_two_points(void *arg)
{
    heisen_point();
    say("%c", *(char *)arg);
    heisen_point_at(7);
    say("%c", *(char *)arg);
    return NULL;
}

CASE(points_let_others_go_on, "aabb", "abab", "abba", "baab", "baba", "bbaa")
{
    pthread_t a = start(says_in_two_points, "a"), b = start(says_in_two_points, "b");
    join(a);
    join(b);
}

/* Natively a mutex does what the region does under Heisen. */
static void begin(void)
{
    if (heisen_running())
        heisen_no_preempt_begin();
    else
        pthread_mutex_lock(&m);
}

static void end(void)
{
    if (heisen_running())
        heisen_no_preempt_end();
    else
        pthread_mutex_unlock(&m);
}

static void *says_in_a_region(void *arg)
{
    heisen_point();
    begin();
    say("%c", *(char *)arg);
    heisen_point();
    say("%c", *(char *)arg);
    heisen_point_at(1);
    say("%c", *(char *)arg);
    end();
    return NULL;
}

CASE(regions_are_not_preempted, "aaabbb", "bbbaaa")
{
    pthread_t a = start(says_in_a_region, "a"), b = start(says_in_a_region, "b");
    join(a);
    join(b);
}

static void begin_section(int other_name)
{
    if (!heisen_running())
        pthread_mutex_lock(&m);
    else if (other_name)
        __VERIFIER_atomic_begin();
    else
        heisen_atomic_begin();
}

static void end_section(int other_name)
{
    if (!heisen_running())
        pthread_mutex_unlock(&m);
    else if (other_name)
        __VERIFIER_atomic_end();
    else
        heisen_atomic_end();
}

static void *says_in_a_section(void *arg)
{
    begin_section(*(char *)arg == 'b');
    say("%c", *(char *)arg);
    heisen_point();
    say("%c", *(char *)arg);
    end_section(*(char *)arg == 'b');
    return NULL;
}

CASE(sections_are_one_step, "aabb", "bbaa")
{
    pthread_t a = start(says_in_a_section, "a"), b = start(says_in_a_section, "b");
    join(a);
    join(b);
}

/* Other values than 0 are Heisen's; natively there is only the first. */
CASE(a_choice, "0", "1", "2")
{
    unsigned chosen = heisen_choose(3);
    say("%u", chosen);
}

/* Without --at-ready it means nothing. */
CASE(a_program_is_ready, "before after")
{
    say("before ");
    heisen_ready();
    say("after");
}

/* Children are not controlled; what fails there fails as `assert` does. */
CASE(assertions, "holds -6")
{
    heisen_assert(case_count > 0);
    say("holds ");
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        heisen_assert(case_count < 0);
        _exit(0);
    }
    int status;
    assert(waitpid(child, &status, 0) == child);
    say("%d", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
}

CONFORMANCE_MAIN
