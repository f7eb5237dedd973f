/* Prints whatever may differ from run to run, and fails under one of its schedules. */
#include "cases.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static void *pays(void *arg)
{
    struct timespec now = from_now(CLOCK_REALTIME, 0), up = from_now(CLOCK_MONOTONIC, 0);
    pthread_mutex_lock(&m);
    int seen = balance;
    void *block = malloc(100);
    printf("%d: %d at %ld.%09ld and %ld.%09ld, in %lx (%d), stack %p, heap %p, %d\n", (int)(intptr_t)arg, seen,
           (long)now.tv_sec, now.tv_nsec, (long)up.tv_sec, up.tv_nsec, (unsigned long)pthread_self(), gettid(),
           (void *)&seen, block, rand());
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    balance = seen + 1;
    pthread_mutex_unlock(&m);
    return NULL;
}

static void two_payments(void)
{
    pthread_t a = start(pays, (void *)1), b = start(pays, (void *)2);
    usleep(100);
    join(a);
    join(b);
    fflush(stdout);
    fprintf(stderr, "balance %d\n", balance);
    assert(balance == 2);
}

static void *pays_at_once(void *arg)
{
    pthread_mutex_lock(&m);
    balance++;
    pthread_mutex_unlock(&m);
    return arg;
}

static void payments_at_once(void)
{
    pthread_t a = start(pays_at_once, NULL), b = start(pays_at_once, NULL), c = start(pays_at_once, NULL);
    join(a);
    join(b);
    join(c);
    assert(balance == 3);
}

CASES(CASE(two_payments), CASE(payments_at_once))
