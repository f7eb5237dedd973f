/* Several small programs in one: each case asserts what it expects of the threading library. Called without an argument
   the program lists its cases; with one it runs that case. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

static int run_cases(int argc, char **argv, const struct test_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (argc < 2) {
            puts(cases[i].name);
        } else if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 99;
}

#define CASES(...)                                                                  \
    int main(int argc, char **argv)                                                 \
    {                                                                               \
        static const struct test_case cases[] = {__VA_ARGS__};                      \
        return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);          \
    }
#define CASE(f) {#f, f}

static inline pthread_t start(void *(*f)(void *), void *arg)
{
    pthread_t t;
    assert(pthread_create(&t, NULL, f, arg) == 0);
    return t;
}

static inline void *join(pthread_t t)
{
    void *result = NULL;
    assert(pthread_join(t, &result) == 0);
    return result;
}

/* A moment so far from now on the given clock. */
static inline struct timespec from_now(clockid_t clock, long milliseconds)
{
    struct timespec t;
    assert(clock_gettime(clock, &t) == 0);
    t.tv_sec += milliseconds / 1000;
    t.tv_nsec += milliseconds % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static inline int reached(clockid_t clock, struct timespec t)
{
    struct timespec now;
    assert(clock_gettime(clock, &now) == 0);
    return now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec);
}
