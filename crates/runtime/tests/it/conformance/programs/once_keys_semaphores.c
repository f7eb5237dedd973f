/* One-time initialisation, keys, semaphores. */
#include "results.h"

/* ---- once ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT, other = PTHREAD_ONCE_INIT;
static volatile int runs;

static void initialise(void)
{
    point();
    runs++;
}

static void *calls_once(void *letter)
{
    assert(pthread_once(&once, initialise) == 0);
    say("%s%d", (char *)letter, runs);
    return NULL;
}

CASE(an_initialiser_runs_once, "A1B1", "B1A1")
{
    beside(calls_once, "A", calls_once, "B");
}

static void initialise_both(void)
{
    pthread_once(&other, initialise);
    say("outer");
}

CASE(an_initialiser_may_initialise_another, "outer 1")
{
    pthread_once(&once, initialise_both);
    pthread_once(&once, initialise_both);
    say(" %d", runs);
}

static void ends_the_thread(void)
{
    if (runs++ == 0)
        pthread_exit(NULL);
}

static void *calls_once_and_ends(void *arg)
{
    pthread_once(&once, ends_the_thread);
    say("never");
    return arg;
}

CASE(an_initialiser_that_does_not_return_is_run_again, "2")
{
    join(start(calls_once_and_ends, NULL));
    pthread_once(&once, ends_the_thread);
    pthread_once(&once, ends_the_thread);
    say("%d", runs);
}

/* ---- keys ---- */

static pthread_key_t key, second;

static void says_value(void *value)
{
    say("%s", (char *)value);
}

static void *sets(void *value)
{
    assert(pthread_getspecific(key) == NULL);
    assert(pthread_setspecific(key, value) == 0);
    point();
    assert(pthread_getspecific(key) == value);
    return NULL;
}

CASE(each_thread_has_its_value, "AB", "BA")
{
    pthread_key_create(&key, says_value);
    pthread_t a = start(sets, "A"), b = start(sets, "B");
    join(a);
    join(b);
}

CASE(the_main_thread_has_no_destructors_at_exit, "A.")
{
    pthread_key_create(&key, says_value);
    join(start(sets, "A"));
    sets("never");
    say(".");
}

static void sets_again(void *value)
{
    say("%ld", (long)value);
    if ((long)value > 1)
        pthread_setspecific(key, (void *)((long)value - 1));
}

static void *sets_number(void *value)
{
    pthread_setspecific(key, value);
    return NULL;
}

CASE(a_destructor_may_set_its_value_again, "321")
{
    pthread_key_create(&key, sets_again);
    join(start(sets_number, (void *)3));
}

CASE(but_only_four_rounds_are_made, "9876")
{
    pthread_key_create(&key, sets_again);
    join(start(sets_number, (void *)9));
}

static void sets_the_second(void *value)
{
    say("%s", (char *)value);
    pthread_setspecific(second, "second");
}

CASE(a_destructor_may_set_another_value, "first second")
{
    pthread_key_create(&key, sets_the_second);
    pthread_key_create(&second, says_value);
    join(start(sets, "first "));
}

CASE(a_deleted_key_has_no_destructor, "0 .")
{
    pthread_key_create(&key, says_value);
    pthread_setspecific(key, "never");
    say("%s ", named(pthread_key_delete(key)));
    pthread_key_t again;
    assert(pthread_key_create(&again, NULL) == 0 && again == key);
    assert(pthread_getspecific(again) == NULL);
    join(start(sets, "never"));
    say(".");
}

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void locks(void *value)
{
    pthread_mutex_lock(&m);
    point();
    say("%s", (char *)value);
    point();
    say("%s", (char *)value);
    pthread_mutex_unlock(&m);
}

CASE(destructors_may_lock, "AABB", "BBAA")
{
    pthread_key_create(&key, locks);
    pthread_t a = start(sets, "A");
    locks((char[]){"B"});
    join(a);
}

CASE(joined_only_after_the_destructors, "Aj")
{
    pthread_key_create(&key, locks);
    pthread_t a = start(sets_number, "");
    join(a);
    pthread_key_delete(key);
    pthread_key_create(&key, says_value);
    join(start(sets, "A"));
    say("j");
}

NATIVELY(keys_run_out)
{
    pthread_key_t last = 0;
    int count = 0, result;
    while ((result = pthread_key_create(&key, NULL)) == 0) {
        last = key;
        count++;
    }
    say("%s after %d, ", named(result), count);
    say("%s ", named(pthread_key_delete(last)));
    say("%s ", named(pthread_key_delete(last)));
    say("%s ", named(pthread_setspecific(last, "x")));
    say("%s", named(pthread_key_delete(5000)));
}

/* ---- semaphores ---- */

static sem_t sem, back;

static void *posts(void *arg)
{
    say("p");
    assert(sem_post(&sem) == 0);
    return arg;
}

static void *waits(void *arg)
{
    assert(sem_wait(&sem) == 0);
    say("w");
    return arg;
}

CASE(a_wait_needs_a_post, "pw")
{
    beside(posts, NULL, waits, NULL);
}

static void *enters(void *letter)
{
    sem_wait(&sem);
    say("%s", (char *)letter);
    point();
    say("%s", (char *)letter);
    sem_post(&sem);
    return NULL;
}

CASE(one_at_a_time, "AABB", "BBAA")
{
    sem_init(&sem, 0, 1);
    beside(enters, "A", enters, "B");
}

CASE(two_at_a_time, "AABB", "BBAA", "ABAB", "ABBA", "BABA", "BAAB")
{
    sem_init(&sem, 0, 2);
    beside(enters, "A", enters, "B");
}

static void *goes_there_and_back(void *arg)
{
    for (int i = 0; i < 2; i++) {
        sem_wait(&sem);
        say("b");
        sem_post(&back);
    }
    return arg;
}

CASE(there_and_back, "abab")
{
    pthread_t t = start(goes_there_and_back, NULL);
    for (int i = 0; i < 2; i++) {
        say("a");
        sem_post(&sem);
        sem_wait(&back);
    }
    join(t);
}

static void *tries(void *arg)
{
    int result = sem_trywait(&sem);
    point();
    say("%s ", result == 0 ? "0" : named(errno));
    return arg;
}

CASE(a_try_may_come_too_early, "p0 ", "EAGAIN p", "pEAGAIN ")
{
    beside(posts, NULL, tries, NULL);
}

CASE(one_of_two_tries_succeeds, "0 EAGAIN ", "EAGAIN 0 ")
{
    sem_init(&sem, 0, 1);
    beside(tries, NULL, tries, NULL);
}

CASE(the_value, "0 3 2 1 EAGAIN 0 1")
{
    int value;
    say("%d ", sem_init(&sem, 0, 3));
    sem_getvalue(&sem, &value);
    say("%d ", value);
    sem_wait(&sem);
    sem_getvalue(&sem, &value);
    say("%d ", value);
    sem_trywait(&sem);
    sem_getvalue(&sem, &value);
    say("%d ", value);
    sem_wait(&sem);
    say("%s ", outcome(sem_trywait(&sem)));
    sem_getvalue(&sem, &value);
    say("%d ", value);
    sem_post(&sem);
    sem_getvalue(&sem, &value);
    say("%d", value);
    assert(sem_destroy(&sem) == 0);
}

CASE(time_runs_out, "ETIMEDOUT1 ETIMEDOUT1 0")
{
    sem_init(&sem, 0, 0);
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    say("%s", outcome(sem_timedwait(&sem, &soon)));
    say("%d ", reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 5);
    say("%s", outcome(sem_clockwait(&sem, CLOCK_MONOTONIC, &soon)));
    say("%d ", reached(CLOCK_MONOTONIC, soon));
    sem_post(&sem);
    say("%s", outcome(sem_timedwait(&sem, &soon)));
}

static void *waits_in_time(void *arg)
{
    struct timespec later = from_now(CLOCK_REALTIME, HOUR);
    int result = sem_timedwait(&sem, &later);
    say("%s", result == 0 ? "0" : named(errno));
    return arg;
}

CASE(posted_or_too_late, "p0", "ETIMEDOUTp", "pETIMEDOUT")
{
    beside(posts, NULL, waits_in_time, NULL);
}

CASE(the_greatest_value, "EINVAL 0 EOVERFLOW")
{
    say("%s ", outcome(sem_init(&sem, 0, 0x80000000u)));
    say("%s ", outcome(sem_init(&sem, 0, SEM_VALUE_MAX)));
    say("%s", outcome(sem_post(&sem)));
}

CONFORMANCE_MAIN
