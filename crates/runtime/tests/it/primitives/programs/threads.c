/* Threads: creation, results, attributes, stacks, names, and what belongs to each thread alone. */
#include "cases.h"
#include <ctype.h>
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t gate;

static void pause_here(void)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}

/* ---- results ---- */

static void *add_one(void *arg)
{
    pause_here();
    return (void *)((intptr_t)arg + 1);
}

static void join_gives_the_result(void)
{
    pthread_t a = start(add_one, (void *)41), b = start(add_one, (void *)-1);
    assert(join(a) == (void *)42);
    assert(join(b) == NULL);
    assert(pthread_join(start(add_one, NULL), NULL) == 0);
}

static __attribute__((noinline)) void leave(int depth, void *value)
{
    char room[64];
    memset(room, depth, sizeof room);
    if (depth > 0)
        leave(depth - 1, value);
    else
        pthread_exit(value);
    assert(room[0] == depth);
}

static void *leaves(void *arg)
{
    leave(20, arg);
    return NULL;
}

static void exit_from_nested_calls(void)
{
    pthread_t a = start(leaves, (void *)7), b = start(leaves, (void *)8);
    assert(join(b) == (void *)8);
    assert(join(a) == (void *)7);
}

static int cleaned[3], cleanups;

static void clean(void *arg)
{
    pause_here();
    cleaned[cleanups++] = (int)(intptr_t)arg;
}

static void *leaves_with_cleanup(void *arg)
{
    pthread_cleanup_push(clean, (void *)1);
    pthread_cleanup_push(clean, (void *)2);
    pthread_cleanup_push(clean, (void *)3);
    leave(3, arg);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void exit_runs_cleanup_handlers(void)
{
    assert(join(start(leaves_with_cleanup, (void *)5)) == (void *)5);
    assert(cleanups == 3 && cleaned[0] == 3 && cleaned[1] == 2 && cleaned[2] == 1);
}

static void *pops_cleanup(void *arg)
{
    pthread_cleanup_push(clean, (void *)1);
    pthread_cleanup_push(clean, (void *)2);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(1);
    return arg;
}

static void cleanup_handlers_pop(void)
{
    join(start(pops_cleanup, NULL));
    assert(cleanups == 1 && cleaned[0] == 1);
}

/* ---- the main thread ---- */

static int went_on;

static void check_went_on(void)
{
    if (went_on != 2)
        _exit(3);
}

static void *goes_on(void *arg)
{
    for (int i = 0; i < 5; i++)
        pause_here();
    pthread_mutex_lock(&m);
    went_on++;
    pthread_mutex_unlock(&m);
    return arg;
}

static void main_leaves_the_others(void)
{
    atexit(check_went_on);
    start(goes_on, NULL);
    start(goes_on, NULL);
    leave(4, (void *)9);
}

static pthread_t main_thread;

static void *joins_main(void *arg)
{
    assert(join(main_thread) == (void *)77);
    exit(0);
    return arg;
}

static void main_is_joined(void)
{
    main_thread = pthread_self();
    start(joins_main, NULL);
    pthread_exit((void *)77);
}

static void main_alone_leaves(void)
{
    pthread_exit((void *)1);
}

/* ---- identity ---- */

static void *tells_itself(void *arg)
{
    pthread_t before = pthread_self();
    pause_here();
    assert(pthread_equal(before, pthread_self()));
    *(pthread_t *)arg = before;
    return NULL;
}

static void self_and_equal(void)
{
    pthread_t told[2];
    pthread_t a = start(tells_itself, &told[0]), b = start(tells_itself, &told[1]);
    assert(!pthread_equal(a, b) && !pthread_equal(a, pthread_self()));
    join(a);
    join(b);
    assert(pthread_equal(told[0], a) && pthread_equal(told[1], b));
}

static void *tells_tid(void *arg)
{
    pid_t tid = gettid();
    pause_here();
    assert(tid == gettid());
    *(pid_t *)arg = tid;
    assert(sem_post(&gate) == 0);
    /* Stays alive until both have told theirs: ids are used again. */
    while (((volatile pid_t *)arg)[1] == 0)
        sched_yield();
    return NULL;
}

static void thread_ids(void)
{
    static pid_t told[2][2];
    assert(sem_init(&gate, 0, 0) == 0);
    pthread_t a = start(tells_tid, told[0]), b = start(tells_tid, told[1]);
    sem_wait(&gate);
    sem_wait(&gate);
    assert(told[0][0] > 0 && told[1][0] > 0 && told[0][0] != told[1][0]);
    assert(gettid() == getpid() && told[0][0] != getpid() && told[1][0] != getpid());
    told[0][1] = told[1][1] = 1;
    join(a);
    join(b);
}

/* ---- detached threads ---- */

static void *posts(void *arg)
{
    pause_here();
    assert(sem_post(&gate) == 0);
    return arg;
}

static void detach_after_creation(void)
{
    assert(sem_init(&gate, 0, 0) == 0);
    pthread_t a = start(posts, NULL), b = start(posts, NULL);
    assert(pthread_detach(a) == 0);
    assert(pthread_detach(b) == 0);
    sem_wait(&gate);
    sem_wait(&gate);
}

static void *detaches_itself(void *arg)
{
    assert(pthread_detach(pthread_self()) == 0);
    return posts(arg);
}

static void detach_oneself(void)
{
    assert(sem_init(&gate, 0, 0) == 0);
    start(detaches_itself, NULL);
    sem_wait(&gate);
}

static int detach_state(void)
{
    pthread_attr_t attr;
    int state = -1;
    assert(pthread_getattr_np(pthread_self(), &attr) == 0);
    assert(pthread_attr_getdetachstate(&attr, &state) == 0);
    assert(pthread_attr_destroy(&attr) == 0);
    return state;
}

static void *is_detached(void *arg)
{
    assert(detach_state() == PTHREAD_CREATE_DETACHED);
    return posts(arg);
}

static void *is_joinable(void *arg)
{
    assert(detach_state() == PTHREAD_CREATE_JOINABLE);
    return arg;
}

static void created_detached(void)
{
    pthread_attr_t attr;
    pthread_t t;
    assert(sem_init(&gate, 0, 0) == 0);
    assert(pthread_attr_init(&attr) == 0);
    assert(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    assert(pthread_create(&t, &attr, is_detached, NULL) == 0);
    assert(pthread_attr_destroy(&attr) == 0);
    join(start(is_joinable, NULL));
    sem_wait(&gate);
}

/* ---- stacks ---- */

static void stack_of_self(char **low, size_t *size, size_t *guard)
{
    pthread_attr_t attr;
    void *base;
    assert(pthread_getattr_np(pthread_self(), &attr) == 0);
    assert(pthread_attr_getstack(&attr, &base, size) == 0);
    assert(pthread_attr_getguardsize(&attr, guard) == 0);
    assert(pthread_attr_destroy(&attr) == 0);
    *low = base;
}

static void *looks_at_stack(void *arg)
{
    char local, *low;
    size_t size, guard;
    stack_of_self(&low, &size, &guard);
    assert(low <= &local && &local < low + size);
    assert(((uintptr_t)__builtin_frame_address(0) & 15) == 0);
    assert(size >= (size_t)(intptr_t)arg);
    /* All but a little of it can be used. */
    size_t use = (size_t)(&local - low) - 8192;
    volatile char *room = __builtin_alloca(use);
    for (size_t i = 0; i < use; i += 4096)
        room[i] = 1;
    pause_here();
    return low;
}

static pthread_t start_with_stack(size_t size, void *(*f)(void *))
{
    pthread_attr_t attr;
    pthread_t t;
    assert(pthread_attr_init(&attr) == 0);
    assert(pthread_attr_setstacksize(&attr, size) == 0);
    /* Less than asked for may be had: glibc takes its own share of it. */
    assert(pthread_create(&t, &attr, f, (void *)(size / 2)) == 0);
    assert(pthread_attr_destroy(&attr) == 0);
    return t;
}

static void stack_sizes(void)
{
    pthread_t small = start_with_stack(64 << 10, looks_at_stack);
    pthread_t large = start_with_stack(64 << 20, looks_at_stack);
    pthread_t usual = start(looks_at_stack, (void *)(64 << 10));
    void *a = join(small), *b = join(large), *c = join(usual);
    assert(a != b && b != c && a != c);
    assert(looks_at_stack((void *)(64 << 10)) != NULL);
}

static pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;

static void *lives_in_little(void *arg)
{
    pause_here();
    pthread_mutex_lock(&m);
    pthread_cond_signal(&nobody);
    pthread_cond_broadcast(&nobody);
    struct timespec t = {0, 1000};
    assert(pthread_cond_timedwait(&nobody, &m, &t) == ETIMEDOUT);
    pthread_mutex_unlock(&m);
    usleep(1);
    sched_yield();
    return arg;
}

static void the_smallest_stack(void)
{
    join(start_with_stack(PTHREAD_STACK_MIN, lives_in_little));
}

static char *own_low;
static size_t own_size = 256 << 10;

static void *is_on_own_stack(void *arg)
{
    char local, *low;
    size_t size, guard;
    assert(own_low <= &local && &local < own_low + own_size);
    stack_of_self(&low, &size, &guard);
    assert(low == own_low && size == own_size);
    pause_here();
    return arg;
}

static void stack_of_the_program(void)
{
    pthread_attr_t attr;
    own_low = mmap(NULL, own_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(own_low != MAP_FAILED);
    assert(pthread_attr_init(&attr) == 0);
    assert(pthread_attr_setstack(&attr, own_low, own_size) == 0);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        assert(pthread_create(&t, &attr, is_on_own_stack, (void *)9) == 0);
        assert(join(t) == (void *)9);
    }
    /* It is the program's again. */
    memset(own_low, 0, own_size);
    assert(munmap(own_low, own_size) == 0);
}

static void *guard_is(void *arg)
{
    char *low;
    size_t size, guard;
    stack_of_self(&low, &size, &guard);
    assert(guard == (size_t)(intptr_t)arg);
    return NULL;
}

static void guard_sizes(void)
{
    size_t sizes[] = {0, 4096, 64 << 10};
    for (int i = 0; i < 3; i++) {
        pthread_attr_t attr;
        pthread_t t;
        assert(pthread_attr_init(&attr) == 0);
        assert(pthread_attr_setguardsize(&attr, sizes[i]) == 0);
        assert(pthread_create(&t, &attr, guard_is, (void *)sizes[i]) == 0);
        join(t);
    }
    join(start(guard_is, (void *)4096));
}

/* ---- many ---- */

static int sum;

static void *adds(void *arg)
{
    pthread_mutex_lock(&m);
    sum += (int)(intptr_t)arg;
    pthread_mutex_unlock(&m);
    return NULL;
}

static void many_threads(void)
{
    enum { MANY = 150 };
    pthread_t t[MANY];
    for (int i = 0; i < MANY; i++)
        t[i] = start(adds, (void *)(intptr_t)i);
    for (int i = MANY - 1; i >= 0; i--)
        join(t[i]);
    assert(sum == MANY * (MANY - 1) / 2);
}

static void *grows(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    if (depth == 0)
        return (void *)1;
    pthread_t a = start(grows, (void *)(depth - 1)), b = start(grows, (void *)(depth - 1));
    return (void *)((intptr_t)join(a) + (intptr_t)join(b));
}

static void a_tree_of_threads(void)
{
    assert(grows((void *)4) == (void *)16);
}

/* ---- other joins ---- */

static void *waits_at_gate(void *arg)
{
    sem_wait(&gate);
    return arg;
}

static void joins_with_a_limit(void)
{
    void *result = NULL;
    assert(sem_init(&gate, 0, 0) == 0);
    pthread_t t = start(waits_at_gate, (void *)3);
    assert(pthread_tryjoin_np(t, &result) == EBUSY);
    struct timespec past = {0, 0}, soon = from_now(CLOCK_REALTIME, 20);
    assert(pthread_timedjoin_np(t, &result, &past) == ETIMEDOUT);
    assert(pthread_timedjoin_np(t, &result, &soon) == ETIMEDOUT);
    assert(reached(CLOCK_REALTIME, soon));
    soon = from_now(CLOCK_MONOTONIC, 20);
    assert(pthread_clockjoin_np(t, &result, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    assert(reached(CLOCK_MONOTONIC, soon));
    sem_post(&gate);
    assert(pthread_timedjoin_np(t, &result, NULL) == 0 && result == (void *)3);
    t = start(add_one, (void *)3);
    int busy;
    while ((busy = pthread_tryjoin_np(t, &result)) == EBUSY)
        sched_yield();
    assert(busy == 0 && result == (void *)4);
}

static void joining_oneself_is_refused(void)
{
    assert(pthread_join(pthread_self(), NULL) == EDEADLK);
}

/* ---- names ---- */

static void *has_name(void *arg)
{
    char name[16];
    assert(pthread_setname_np(pthread_self(), arg) == 0);
    pause_here();
    assert(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    assert(strcmp(name, arg) == 0);
    return NULL;
}

static void *has_name_of_creator(void *arg)
{
    char name[16];
    assert(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    assert(strcmp(name, arg) == 0);
    return NULL;
}

static void names(void)
{
    char name[16];
    pthread_t a = start(has_name, "first"), b = start(has_name, "second");
    join(a);
    join(b);
    assert(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    assert(strcmp(name, "threads") == 0);
    join(start(has_name_of_creator, "threads"));
    assert(pthread_setname_np(pthread_self(), "fifteen letters") == 0);
    assert(pthread_setname_np(pthread_self(), "sixteen letters!") == ERANGE);
    assert(pthread_getname_np(pthread_self(), name, 15) == ERANGE);
    join(start(has_name_of_creator, "fifteen letters"));
}

/* ---- what each thread has of its own ---- */

static __thread int counter = 5;
static __thread char zeros[3], text[] = "fresh";
static __thread _Alignas(64) int aligned = 6;

static void *counts(void *arg)
{
    assert(counter == 5 && aligned == 6 && strcmp(text, "fresh") == 0 && zeros[2] == 0);
    assert(((uintptr_t)&aligned & 63) == 0);
    for (int i = 0; i < 4; i++) {
        counter += (int)(intptr_t)arg;
        pause_here();
    }
    strcpy(text, "used");
    assert(counter == 5 + 4 * (int)(intptr_t)arg);
    return &counter;
}

static void thread_locals(void)
{
    counter = 1;
    pthread_t a = start(counts, (void *)10), b = start(counts, (void *)100);
    join(a);
    join(b);
    assert(counter == 1 && strcmp(text, "fresh") == 0);
    /* Fresh again in the next one. */
    join(start(counts, (void *)1));
}

static void *has_errno(void *arg)
{
    int mine = (int)(intptr_t)arg;
    errno = mine;
    pause_here();
    assert(errno == mine);
    assert(close(-1) == -1 && errno == EBADF);
    sched_yield();
    assert(errno == EBADF);
    return NULL;
}

static void errno_of_each(void)
{
    errno = 3;
    pthread_t a = start(has_errno, (void *)1), b = start(has_errno, (void *)2);
    assert(errno == 3);
    join(a);
    join(b);
    assert(errno == 3);
}

static void *uses_locale(void *arg)
{
    char out[32];
    assert(isalpha('x') && !isalpha('1') && toupper('q') == 'Q' && isspace('\t'));
    assert(strtol("  -12x", NULL, 10) == -12);
    assert(snprintf(out, sizeof out, "%.3f %s", 1.5, strerror(ENOENT)) > 0);
    assert(strcmp(out, "1.500 No such file or directory") == 0);
    assert(strcasecmp("HeiSen", "hEIsEN") == 0);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = uselocale(c);
    assert(old == LC_GLOBAL_LOCALE);
    pause_here();
    assert(uselocale((locale_t)0) == c);
    uselocale(old);
    freelocale(c);
    return arg;
}

static void locales(void)
{
    pthread_t a = start(uses_locale, NULL), b = start(uses_locale, NULL);
    join(a);
    assert(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
    join(b);
}

static void *rounds_up(void *arg)
{
    assert(fegetround() == FE_UPWARD);
    volatile double x = 1, y = 3;
    double third = x / y;
    pause_here();
    assert(x / y == third && fegetround() == FE_UPWARD);
    assert(fesetround(FE_DOWNWARD) == 0);
    pause_here();
    assert(x / y < third);
    return arg;
}

static void floating_point_is_inherited(void)
{
    volatile double x = 1, y = 3;
    double nearest = x / y;
    assert(fesetround(FE_UPWARD) == 0);
    pthread_t t = start(rounds_up, NULL);
    assert(fesetround(FE_TONEAREST) == 0);
    pause_here();
    assert(x / y == nearest);
    join(t);
    assert(fegetround() == FE_TONEAREST);
}

/* ---- libc ---- */

static void *volatile blocks[64];

static void *allocates(void *arg)
{
    for (int i = (int)(intptr_t)arg; i < 64; i += 2) {
        blocks[i] = malloc((size_t)i * 37 + 1);
        memset(blocks[i], i, (size_t)i * 37 + 1);
        if (i % 8 < 2)
            pause_here();
    }
    return NULL;
}

static void *releases(void *arg)
{
    for (int i = (int)(intptr_t)arg; i < 64; i += 2) {
        assert(((char *)blocks[i])[i * 37] == (char)i);
        blocks[i] = realloc(blocks[i], 4000);
        assert(((char *)blocks[i])[i * 37] == (char)i);
        if (i % 8 < 2)
            pause_here();
        free(blocks[i]);
    }
    return NULL;
}

static void memory_goes_between_threads(void)
{
    pthread_t a = start(allocates, (void *)0), b = start(allocates, (void *)1);
    join(a);
    join(b);
    a = start(releases, (void *)0), b = start(releases, (void *)1);
    join(a);
    join(b);
}

static FILE *file;

static void *writes_lines(void *arg)
{
    for (int i = 0; i < 10; i++) {
        assert(fprintf(file, "line %d of %d\n", i, (int)(intptr_t)arg) > 0);
        fputs("and ", file);
        pause_here();
        putc('\n', file);
    }
    return NULL;
}

static void files_of_several_threads(void)
{
    char line[64];
    int lines = 0, c, newlines = 0;
    file = tmpfile();
    assert(file != NULL);
    pthread_t a = start(writes_lines, (void *)1), b = start(writes_lines, (void *)2);
    join(a);
    join(b);
    rewind(file);
    while (fgets(line, sizeof line, file))
        lines += strstr(line, "line ") != NULL;
    assert(lines == 20);
    rewind(file);
    while ((c = getc(file)) != EOF)
        newlines += c == '\n';
    assert(newlines == 40);
    fclose(file);
}

static void *sets_itself_up(void *arg)
{
    cpu_set_t cpus;
    struct sched_param parameters;
    int policy, old;
    assert(pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus) == 0);
    assert(CPU_COUNT(&cpus) > 0);
    assert(pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus) == 0);
    assert(pthread_getschedparam(pthread_self(), &policy, &parameters) == 0);
    assert(policy == SCHED_OTHER && parameters.sched_priority == 0);
    assert(pthread_setschedparam(pthread_self(), policy, &parameters) == 0);
    assert(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0 && old == PTHREAD_CANCEL_ENABLE);
    assert(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0 && old == PTHREAD_CANCEL_DISABLE);
    assert(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old) == 0);
    pthread_testcancel();
    assert(sched_getcpu() >= 0);
    assert(sched_getaffinity(gettid(), sizeof cpus, &cpus) == 0 && sched_setaffinity(gettid(), sizeof cpus, &cpus) == 0);
    assert(sched_getscheduler(gettid()) == SCHED_OTHER && sched_getparam(gettid(), &parameters) == 0);
    assert(sched_setscheduler(gettid(), SCHED_OTHER, &parameters) == 0);
    assert(setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, (id_t)gettid())) == 0);
    assert(syscall(SYS_tgkill, getpid(), gettid(), 0) == 0 && tgkill(getpid(), gettid(), 0) == 0);
    assert(syscall(SYS_sched_getaffinity, gettid(), sizeof cpus, &cpus) > 0);
    assert(pthread_kill(pthread_self(), 0) == 0);
    return arg;
}

static void threads_set_themselves_up(void)
{
    pthread_t t = start(sets_itself_up, NULL);
    join(t);
    sets_itself_up(NULL);
}

CASES(CASE(join_gives_the_result), CASE(exit_from_nested_calls), CASE(exit_runs_cleanup_handlers),
      CASE(cleanup_handlers_pop), CASE(main_leaves_the_others), CASE(main_is_joined), CASE(main_alone_leaves),
      CASE(self_and_equal), CASE(thread_ids), CASE(detach_after_creation), CASE(detach_oneself),
      CASE(created_detached), CASE(stack_sizes), CASE(the_smallest_stack), CASE(stack_of_the_program),
      CASE(guard_sizes), CASE(many_threads), CASE(a_tree_of_threads), CASE(joins_with_a_limit),
      CASE(joining_oneself_is_refused), CASE(names), CASE(thread_locals),
      CASE(errno_of_each), CASE(locales), CASE(floating_point_is_inherited), CASE(memory_goes_between_threads),
      CASE(files_of_several_threads), CASE(threads_set_themselves_up))
