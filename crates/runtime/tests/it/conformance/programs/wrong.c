/* Cases that state something wrong, which the suite has to notice. */
#include "results.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *appends(void *letter)
{
    pthread_mutex_lock(&m);
    say("%s", (char *)letter);
    pthread_mutex_unlock(&m);
    return NULL;
}

static void *appends_later(void *letter)
{
    usleep(1000);
    return appends(letter);
}

CASE(states_what_never_happens, "AB", "BA", "A")
{
    beside(appends, "A", appends, "B");
}

/* Natively only in a few runs, if in any. */
CASE(forgets_what_is_rare, "AB")
{
    beside(appends, "A", appends_later, "B");
}

CASE(forgets_what_happens_always, "BA")
{
    say("AB");
}

ENDS(ends_otherwise, 3, "end")
{
    say("end");
    exit(4);
}

CASE(ends_with_a_bug, "end")
{
    say("end");
    if (getenv("CONFORMANCE_RUNS") == NULL)
        pthread_mutex_unlock(&m);
}

CASE(says_nothing_at_the_end, "end")
{
    say("end");
    if (getenv("CONFORMANCE_RUNS") == NULL)
        _exit(0);
}

static void *locks_often(void *arg)
{
    for (int i = 0; i < 20; i++)
        appends("");
    return arg;
}

CASE(has_too_many_schedules, "end")
{
    beside(locks_often, NULL, locks_often, NULL);
    say("end");
}

NATIVELY(is_told_that_it_is_watched)
{
    say("%s", getenv("CONFORMANCE_RUNS") == NULL ? "watched" : "natively");
}

CONFORMANCE_MAIN
