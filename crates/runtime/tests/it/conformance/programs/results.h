/* Small programs that end with a result: a case says words, and what was said when the process ends is its result. Each
   case states all results that it may have. Called without an argument the program lists its cases; with the name of
   one it runs that case, and with the environment variable CONFORMANCE_RUNS so many times, each in a process of its
   own. The result is appended as a line to the file that CONFORMANCE_RESULTS names.

   To add a case, write

       CASE(name, "a result", "another")
       {
           ... say("a result");
       }

   in a file that ends with CONFORMANCE_MAIN. To say something is no event: where another thread may say something
   between an operation and the words about it, put a `point()` there. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How the results of all schedules are found. */
enum search {
    ALL_SCHEDULES, /* every schedule: the results are exactly those stated */
    SAMPLES,       /* so many random schedules, in which each stated result must come up */
    AS_NATIVELY,   /* what the case says natively is the only result */
};

struct result_case {
    const char *name;
    void (*run)(void);
    enum search search;
    int executions;
    int status;
    const char *const *allowed;
};

static struct result_case cases[200];
static int case_count;

static inline void add_case(struct result_case added)
{
    cases[case_count++] = added;
}

#define CASE_OF(name, search, executions, status, ...)                                     \
    static void name(void);                                                                \
    __attribute__((constructor)) static void add_##name(void)                              \
    {                                                                                      \
        static const char *const allowed[] = {__VA_ARGS__};                                \
        struct result_case added = {#name, name, search, executions, status, allowed};     \
        add_case(added);                                                                   \
    }                                                                                      \
    static void name(void)

/* Every schedule is tried; the results are these. */
#define CASE(name, ...) CASE_OF(name, ALL_SCHEDULES, 0, 0, __VA_ARGS__, NULL)
/* The same for a process that ends with this status. */
#define ENDS(name, status, ...) CASE_OF(name, ALL_SCHEDULES, 0, status, __VA_ARGS__, NULL)
/* Too many schedules to try them all: so many random ones. */
#define SAMPLED(name, executions, ...) CASE_OF(name, SAMPLES, executions, 0, __VA_ARGS__, NULL)
/* The C library decides: the result natively is the result. */
#define NATIVELY(name) CASE_OF(name, AS_NATIVELY, 0, 0, NULL)

/* ---- what a case says ---- */

static char said[8192];
static int said_length;
static long case_process;

/* A system call that nobody intercepts. */
static inline long raw_call(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

/* Adds to the result; threads may do so at the same time. */
__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
    char words[1024];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(words, sizeof words, format, list);
    va_end(list);
    int at = __atomic_fetch_add(&said_length, length, __ATOMIC_RELAXED);
    assert(length < (int)sizeof words && at + length < (int)sizeof said - 1);
    memcpy(said + at, words, length);
}

/* Writes the result, at the latest when the process ends; in the process that runs the case only. */
__attribute__((destructor)) static void write_result(void)
{
    const char *path = getenv("CONFORMANCE_RESULTS");
    if (path == NULL || case_process != raw_call(SYS_getpid, 0, 0, 0, 0))
        return;
    case_process = 0;
    /* Other threads may go on and say more. */
    static char line[sizeof said];
    long length = strlen(strcpy(line, said));
    line[length++] = '\n';
    long file = raw_call(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file < 0 || raw_call(SYS_write, file, (long)line, length, 0) != length)
        abort();
}

static inline int list_cases(void)
{
    static const char *const searches[] = {"all", "samples", "natively"};
    for (int i = 0; i < case_count; i++) {
        printf("%s\t%s\t%d\t%d", cases[i].name, searches[cases[i].search], cases[i].executions, cases[i].status);
        for (const char *const *result = cases[i].allowed; *result != NULL; result++)
            printf("\t%s", *result);
        puts("");
    }
    return 0;
}

static inline void run_case(const struct result_case *wanted)
{
    case_process = raw_call(SYS_getpid, 0, 0, 0, 0);
    wanted->run();
    exit(wanted->status);
}

/* Some at a time, so that they disturb each other. */
static inline int run_often(const struct result_case *wanted, int runs)
{
    for (int started = 0, ended = 0; ended < runs;) {
        if (started < runs && started - ended < 5) {
            pid_t child = fork();
            assert(child >= 0);
            if (child == 0)
                run_case(wanted);
            started++;
            continue;
        }
        int status;
        assert(wait(&status) > 0);
        ended++;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted->status) {
            fprintf(stderr, "%s: a run ended with status %#x\n", wanted->name, status);
            return 98;
        }
    }
    return 0;
}

static inline int conformance(int argc, char **argv)
{
    if (argc < 2)
        return list_cases();
    for (int i = 0; i < case_count; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            const char *runs = getenv("CONFORMANCE_RUNS");
            if (runs != NULL)
                return run_often(&cases[i], atoi(runs));
            run_case(&cases[i]);
        }
    }
    return 99;
}

#define CONFORMANCE_MAIN                                                                   \
    int main(int argc, char **argv)                                                        \
    {                                                                                      \
        return conformance(argc, argv);                                                    \
    }

/* ---- what most cases need ---- */

static inline pthread_t start(void *(*f)(void *), const void *arg)
{
    pthread_t t;
    assert(pthread_create(&t, NULL, f, (void *)arg) == 0);
    return t;
}

static inline void *join(pthread_t t)
{
    void *result = NULL;
    assert(pthread_join(t, &result) == 0);
    return result;
}

/* A scheduling point that does nothing else. */
static inline void point(void)
{
    static sem_t nowhere;
    sem_post(&nowhere);
}

/* One thread runs `f` while the calling one runs `g`. */
static inline void beside(void *(*f)(void *), const void *a, void *(*g)(void *), const void *b)
{
    pthread_t t = start(f, a);
    point();
    g((void *)b);
    join(t);
}

/* The name of an error number. */
static inline const char *named(int error)
{
    switch (error) {
    case 0: return "0";
    case EAGAIN: return "EAGAIN";
    case ENOMSG: return "ENOMSG";
    case EBADF: return "EBADF";
    case EBUSY: return "EBUSY";
    case ECHILD: return "ECHILD";
    case EDEADLK: return "EDEADLK";
    case EFAULT: return "EFAULT";
    case EINVAL: return "EINVAL";
    case ENOENT: return "ENOENT";
    case ENOMEM: return "ENOMEM";
    case ENOSYS: return "ENOSYS";
    case ENOTSUP: return "ENOTSUP";
    case EOVERFLOW: return "EOVERFLOW";
    case EPERM: return "EPERM";
    case ERANGE: return "ERANGE";
    case ESRCH: return "ESRCH";
    case ETIMEDOUT: return "ETIMEDOUT";
    default: break;
    }
    static char number[32];
    snprintf(number, sizeof number, "error %d", error);
    return number;
}

/* What a call that sets errno gives: its result, or the error's name. */
static inline const char *outcome(long result)
{
    static char number[32];
    if (result == -1)
        return named(errno);
    snprintf(number, sizeof number, "%ld", result);
    return number;
}

/* A moment so far from now on the given clock. */
static inline struct timespec from_now(clockid_t clock, long milliseconds)
{
    struct timespec t;
    assert(clock_gettime(clock, &t) == 0);
    long long nanoseconds = t.tv_nsec + (milliseconds % 1000) * 1000000ll;
    t.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
    t.tv_nsec = nanoseconds % 1000000000;
    if (t.tv_nsec < 0) {
        t.tv_sec--;
        t.tv_nsec += 1000000000;
    }
    return t;
}

static inline int reached(clockid_t clock, struct timespec t)
{
    struct timespec now;
    assert(clock_gettime(clock, &now) == 0);
    return now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec);
}

#define HOUR 3600000L
