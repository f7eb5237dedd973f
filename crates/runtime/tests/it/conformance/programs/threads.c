/* Threads: creation, end, joining, and what each has of its own. */
#include "results.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

static sem_t go, done;

static void *gives_back(void *arg)
{
    point();
    return arg;
}

static void *says(void *letter)
{
    point();
    say("%s", (char *)letter);
    return NULL;
}

CASE(join_gives_the_result, "42")
{
    say("%ld", (long)join(start(gives_back, (void *)42)));
}

static void ends_deep_down(long value)
{
    if (value > 100)
        pthread_exit((void *)value);
    ends_deep_down(value + 10);
    say("never");
}

static void *ends_early(void *arg)
{
    ends_deep_down((long)arg);
    say("never");
    return NULL;
}

CASE(exit_gives_the_result, "107")
{
    say("%ld", (long)join(start(ends_early, (void *)7)));
}

static void *waits_for_a_signal(void *how)
{
    sigset_t set;
    sigemptyset(&set);
    if ((long)how == 0) {
        pause();
    } else if ((long)how == 1) {
        sigsuspend(&set);
    } else {
        int signal;
        sigaddset(&set, SIGUSR1);
        sigwait(&set, &signal);
    }
    return NULL;
}

CASE(who_waits_for_a_signal_can_be_cancelled, "yes yes yes ")
{
    for (long how = 0; how < 3; how++) {
        pthread_t t = start(waits_for_a_signal, (void *)how);
        assert(pthread_cancel(t) == 0);
        say(join(t) == PTHREAD_CANCELED ? "yes " : "no ");
    }
}

static void *waits_for_a_child(void *unused)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return unused;
}

CASE(who_waits_for_a_child_can_be_cancelled, "yes", "no")
{
    pthread_t t = start(waits_for_a_child, NULL);
    assert(pthread_cancel(t) == 0);
    say(join(t) == PTHREAD_CANCELED ? "yes" : "no");
}

CASE(two_threads_run_in_any_order, "AB", "BA")
{
    pthread_t a = start(says, "A"), b = start(says, "B");
    join(a);
    join(b);
}

CASE(joined_threads_run_one_after_the_other, "ABC")
{
    join(start(says, "A"));
    join(start(says, "B"));
    join(start(says, "C"));
}

CASE(the_creator_goes_on, "Am", "mA")
{
    pthread_t a = start(says, "A");
    point();
    say("m");
    join(a);
}

static void *creates(void *arg)
{
    join(start(says, "inner"));
    say(" outer");
    return arg;
}

CASE(threads_create_threads, "inner outer")
{
    join(start(creates, NULL));
}

static void *joins(void *thread)
{
    return join(*(pthread_t *)thread);
}

CASE(joined_by_a_third, "5")
{
    pthread_t a = start(gives_back, (void *)5);
    say("%ld", (long)join(start(joins, &a)));
}

SAMPLED(many_threads, 20, "780")
{
    pthread_t threads[40];
    long sum = 0;
    for (long i = 0; i < 40; i++)
        threads[i] = start(gives_back, (void *)i);
    for (int i = 0; i < 40; i++)
        sum += (long)join(threads[i]);
    say("%ld", sum);
}

/* ---- joining in time ---- */

CASE(a_thread_may_have_ended_already, "0", "EBUSY")
{
    pthread_t a = start(gives_back, NULL);
    int result = pthread_tryjoin_np(a, NULL);
    say("%s", named(result));
    if (result != 0)
        join(a);
}

CASE(joined_or_too_late, "0", "ETIMEDOUT")
{
    struct timespec later = from_now(CLOCK_REALTIME, HOUR);
    pthread_t a = start(gives_back, NULL);
    int result = pthread_timedjoin_np(a, NULL, &later);
    say("%s", named(result));
    if (result != 0)
        join(a);
}

static void *waits_to_go(void *arg)
{
    sem_wait(&go);
    return arg;
}

CASE(too_late_for_a_thread_that_waits, "EBUSY ETIMEDOUT ETIMEDOUT ETIMEDOUT 3")
{
    pthread_t a = start(waits_to_go, (void *)3);
    struct timespec soon = from_now(CLOCK_REALTIME, 3), even_so = from_now(CLOCK_MONOTONIC, 3);
    say("%s ", named(pthread_tryjoin_np(a, NULL)));
    say("%s ", named(pthread_timedjoin_np(a, NULL, &soon)));
    say("%s ", named(pthread_clockjoin_np(a, NULL, CLOCK_MONOTONIC, &even_so)));
    say("%s ", named(pthread_clockjoin_np(a, NULL, CLOCK_REALTIME, &soon)));
    sem_post(&go);
    void *result;
    assert(pthread_timedjoin_np(a, &result, NULL) == 0);
    say("%ld", (long)result);
}

/* ---- detached ---- */

static void *says_and_posts(void *letter)
{
    say("%s", (char *)letter);
    sem_post(&done);
    return NULL;
}

CASE(a_detached_thread_runs_to_its_end, "0 d")
{
    pthread_t a = start(waits_to_go, NULL);
    say("%s ", named(pthread_detach(a)));
    pthread_t b = start(says_and_posts, "d");
    assert(pthread_detach(b) == 0);
    sem_wait(&done);
    sem_post(&go);
}

CASE(made_detached, "d")
{
    pthread_attr_t attr;
    pthread_t t;
    assert(pthread_attr_init(&attr) == 0);
    assert(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    assert(pthread_create(&t, &attr, says_and_posts, "d") == 0);
    sem_wait(&done);
}

static void *detaches_itself(void *arg)
{
    assert(pthread_detach(pthread_self()) == 0);
    return says_and_posts(arg);
}

CASE(a_thread_detaches_itself, "s")
{
    start(detaches_itself, "s");
    sem_wait(&done);
}

/* ---- who it is ---- */

static pthread_t seen;

static void *looks_at_itself(void *main_thread)
{
    seen = pthread_self();
    return (void *)(intptr_t)pthread_equal(seen, *(pthread_t *)main_thread);
}

CASE(self_and_equal, "0 1 1")
{
    pthread_t self = pthread_self(), a = start(looks_at_itself, &self);
    say("%ld ", (long)join(a));
    say("%d ", pthread_equal(seen, a) != 0);
    say("%d", pthread_equal(self, pthread_self()) != 0);
}

static void *id_of_thread(void *arg)
{
    assert(gettid() == syscall(SYS_gettid));
    point();
    return (void *)(intptr_t)gettid();
}

CASE(ids, "1 1 1")
{
    pthread_t a = start(id_of_thread, NULL), b = start(id_of_thread, NULL);
    long first = (long)join(a), second = (long)join(b);
    say("%d %d %d", gettid() == getpid(), first != getpid(), first != second);
}

static void *named_by_itself(void *name)
{
    char got[16];
    assert(pthread_setname_np(pthread_self(), name) == 0);
    point();
    assert(pthread_getname_np(pthread_self(), got, sizeof got) == 0);
    say("%s ", got);
    sem_post(&done);
    sem_wait(&go);
    return NULL;
}

CASE(names, "alpha alpha beta ERANGE ERANGE ")
{
    char got[16];
    pthread_t a = start(named_by_itself, "alpha");
    sem_wait(&done);
    assert(pthread_getname_np(a, got, sizeof got) == 0);
    say("%s ", got);
    assert(pthread_setname_np(a, "beta") == 0 && pthread_getname_np(a, got, sizeof got) == 0);
    say("%s ", got);
    say("%s ", named(pthread_setname_np(a, "sixteen letters.")));
    say("%s ", named(pthread_getname_np(a, got, 15)));
    sem_post(&go);
    join(a);
}

static void *says_name(void *arg)
{
    char got[16];
    assert(pthread_getname_np(pthread_self(), got, sizeof got) == 0);
    say("%s", got);
    return arg;
}

CASE(names_are_inherited, "parent")
{
    pthread_setname_np(pthread_self(), "parent");
    join(start(says_name, NULL));
}

/* ---- what is its own ---- */

static __thread int own = 5;

static void *has_its_own(void *arg)
{
    own += (intptr_t)arg;
    errno = (intptr_t)arg;
    point();
    assert(errno == (intptr_t)arg);
    return (void *)(intptr_t)own;
}

CASE(variables_of_a_thread, "6 7 5")
{
    pthread_t a = start(has_its_own, (void *)1), b = start(has_its_own, (void *)2);
    long first = (long)join(a), second = (long)join(b);
    say("%ld %ld %d", first, second, own);
}

static void cleans(void *letter)
{
    point();
    say("%s", (char *)letter);
}

static void *has_cleanups(void *arg)
{
    pthread_cleanup_push(cleans, "1");
    pthread_cleanup_push(cleans, "2");
    pthread_cleanup_push(cleans, "never");
    pthread_cleanup_pop(0);
    pthread_cleanup_push(cleans, "0");
    pthread_cleanup_pop(1);
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

CASE(cleanup_handlers_run_at_the_end, "0218")
{
    say("%ld", (long)join(start(has_cleanups, (void *)8)));
}

static pthread_key_t key;

static void *has_cleanups_and_a_key(void *arg)
{
    pthread_setspecific(key, "key");
    return has_cleanups(arg);
}

CASE(cleanup_handlers_before_destructors_of_keys, "021key")
{
    pthread_key_create(&key, cleans);
    join(start(has_cleanups_and_a_key, NULL));
}

/* ---- stacks ---- */

static int deep(int n)
{
    volatile char room[1024];
    room[n % 1024] = 1;
    return n == 0 ? 0 : deep(n - 1) + room[n % 1024];
}

static void *goes_deep(void *depth)
{
    point();
    return (void *)(intptr_t)deep((intptr_t)depth);
}

static pthread_t start_with_stack(size_t size, size_t guard, void *(*f)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t t;
    assert(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, size) == 0);
    assert(pthread_attr_setguardsize(&attr, guard) == 0 && pthread_create(&t, &attr, f, arg) == 0);
    assert(pthread_attr_destroy(&attr) == 0);
    return t;
}

CASE(deep_recursion, "3000 3000")
{
    pthread_t t = start(goes_deep, (void *)3000);
    say("%d ", deep(3000));
    say("%ld", (long)join(t));
}

CASE(deep_recursion_on_a_large_stack, "15000")
{
    say("%ld", (long)join(start_with_stack(32 << 20, 4096, goes_deep, (void *)15000)));
}

CASE(a_small_stack, "4")
{
    say("%ld", (long)join(start_with_stack(PTHREAD_STACK_MIN, 0, goes_deep, (void *)4)));
}

static void *describes_itself(void *arg)
{
    pthread_attr_t attr;
    void *base;
    size_t size, guard;
    int state;
    assert(pthread_getattr_np(pthread_self(), &attr) == 0);
    assert(pthread_attr_getstack(&attr, &base, &size) == 0 && pthread_attr_getguardsize(&attr, &guard) == 0);
    assert(pthread_attr_getdetachstate(&attr, &state) == 0);
    int inside = (char *)&attr >= (char *)base && (char *)&attr < (char *)base + size;
    say("%d %d %zu %d", inside, size >= (size_t)arg, guard, state);
    return NULL;
}

CASE(a_thread_describes_itself, "1 1 8192 0")
{
    join(start_with_stack(1 << 20, 8192, describes_itself, (void *)(1 << 20)));
}

CASE(on_a_stack_of_the_programs, "1 1 0 0 1")
{
    char *room = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t t;
    assert(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, room, 1 << 20) == 0);
    assert(pthread_create(&t, &attr, describes_itself, (void *)(1 << 20)) == 0);
    join(t);
    int used = 0;
    for (int i = 0; i < 1 << 20; i++)
        used |= room[i];
    say(" %d", used != 0);
}

/* ---- jumps ---- */

static jmp_buf places[2];

static void jumps_back(int which)
{
    point();
    longjmp(places[which], 7);
}

static void *jumps(void *arg)
{
    volatile int rounds = 0;
    int which = (intptr_t)arg, value = setjmp(places[which]);
    assert(value == (rounds == 0 ? 0 : 7));
    if (rounds++ < 2)
        jumps_back(which);
    return (void *)(intptr_t)rounds;
}

CASE(jumps_within_a_thread, "3 3")
{
    pthread_t a = start(jumps, (void *)0);
    long mine = (long)jumps((void *)1);
    say("%ld %ld", (long)join(a), mine);
}

/* ---- attributes, processors, priorities ---- */

NATIVELY(attributes)
{
    pthread_attr_t attr;
    int value;
    size_t size;
    struct sched_param parameters = {0};
    assert(pthread_attr_init(&attr) == 0);
    assert(pthread_attr_getstacksize(&attr, &size) == 0);
    say("%zu ", size);
    assert(pthread_attr_getguardsize(&attr, &size) == 0);
    say("%zu ", size);
    for (int i = -1; i < 3; i++) {
        say("%s", named(pthread_attr_setdetachstate(&attr, i)));
        assert(pthread_attr_getdetachstate(&attr, &value) == 0);
        say("%d ", value);
        say("%s", named(pthread_attr_setinheritsched(&attr, i)));
        assert(pthread_attr_getinheritsched(&attr, &value) == 0);
        say("%d ", value);
        say("%s", named(pthread_attr_setscope(&attr, i)));
        assert(pthread_attr_getscope(&attr, &value) == 0);
        say("%d ", value);
        say("%s", named(pthread_attr_setschedpolicy(&attr, i)));
        assert(pthread_attr_getschedpolicy(&attr, &value) == 0);
        say("%d ", value);
    }
    parameters.sched_priority = 1000;
    say("%s ", named(pthread_attr_setschedparam(&attr, &parameters)));
    say("%s ", named(pthread_attr_setstacksize(&attr, 100)));
    say("%s", named(pthread_attr_destroy(&attr)));
}

static void *looks_at_processors(void *arg)
{
    cpu_set_t a, b;
    say("%s ", named(pthread_getaffinity_np(pthread_self(), sizeof a, &a)));
    say("%d ", sched_getaffinity(gettid(), sizeof b, &b));
    say("%d ", CPU_EQUAL(&a, &b));
    CPU_ZERO(&a);
    CPU_SET(sched_getcpu(), &a);
    say("%s ", named(pthread_setaffinity_np(pthread_self(), sizeof a, &a)));
    say("%d ", sched_setaffinity(0, sizeof a, &a));
    sched_getaffinity(0, sizeof b, &b);
    say("%d ", CPU_EQUAL(&a, &b));
    return arg;
}

CASE(processors, "0 0 1 0 0 1 0 0 1 0 0 1 ")
{
    looks_at_processors(NULL);
    join(start(looks_at_processors, NULL));
}

static void *looks_at_priorities(void *arg)
{
    struct sched_param parameters;
    int policy;
    say("%s ", named(pthread_getschedparam(pthread_self(), &policy, &parameters)));
    say("%d %d ", policy, parameters.sched_priority);
    say("%s ", named(pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters)));
    say("%s ", named(pthread_setschedprio(pthread_self(), 0)));
    say("%s ", named(pthread_setschedprio(pthread_self(), 1000)));
    say("%d ", sched_getscheduler(gettid()));
    say("%d ", sched_getparam(gettid(), &parameters));
    say("%d ", sched_setparam(0, &parameters));
    say("%d ", sched_setscheduler(0, SCHED_BATCH, &parameters));
    say("%d ", sched_getscheduler(0));
    say("%d ", getpriority(PRIO_PROCESS, gettid()));
    say("%d ", setpriority(PRIO_PROCESS, gettid(), 3));
    say("%d, ", getpriority(PRIO_PROCESS, 0));
    return arg;
}

NATIVELY(priorities)
{
    join(start(looks_at_priorities, NULL));
}

CASE(the_clock_of_a_thread, "0 0 1")
{
    clockid_t clock;
    struct timespec used;
    say("%s ", named(pthread_getcpuclockid(pthread_self(), &clock)));
    say("%d ", clock_gettime(clock, &used));
    say("%d", used.tv_sec < 60);
}

CONFORMANCE_MAIN
