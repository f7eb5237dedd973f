/* Initialisers of static variables in functions, and cancellation, as C++ sees them. */
#include "cases.h"
#include <stdexcept>
#include <thread>

static int made, attempts, destroyed;

struct Slow {
    int value;
    Slow()
    {
        int seen = made;
        sched_yield();
        made = seen + 1;
        value = 7;
    }
};

static void uses()
{
    static Slow slow;
    assert(slow.value == 7 && made == 1);
}

static void made_once()
{
    std::thread a(uses), b(uses), c(uses);
    uses();
    a.join(), b.join(), c.join();
    assert(made == 1);
}

struct Fails {
    Fails()
    {
        int attempt = ++attempts;
        sched_yield();
        if (attempt == 1)
            throw std::runtime_error("the first attempt");
    }
};

static int caught;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void retries()
{
    try {
        static Fails fails;
    } catch (const std::runtime_error &) {
        pthread_mutex_lock(&mutex);
        caught++;
        pthread_mutex_unlock(&mutex);
    }
}

static void an_exception_leaves_it_to_the_next()
{
    std::thread a(retries), b(retries), c(retries);
    a.join(), b.join(), c.join();
    assert(attempts == 2 && caught == 1);
}

struct Locks {
    Locks()
    {
        pthread_mutex_lock(&mutex);
        made++;
        pthread_mutex_unlock(&mutex);
    }
};

static void uses_two()
{
    static Locks first, second;
}

static void initialisers_that_lock()
{
    pthread_mutex_lock(&mutex);
    std::thread a(uses_two), b(uses_two);
    sched_yield();
    pthread_mutex_unlock(&mutex);
    a.join(), b.join();
    assert(made == 2);
}

/* Forced unwinding: destructors run, and catch (...) sees it and has to pass it on. */
struct Destroyed {
    ~Destroyed() { destroyed += 1; }
};

static void *catches(void *arg)
{
    Destroyed outer;
    try {
        Destroyed inner;
        for (;;)
            sleep(1);
    } catch (...) {
        destroyed += 10;
        throw;
    }
    return arg;
}

static void cancelled_through_destructors()
{
    pthread_t t = start(catches, NULL);
    assert(pthread_cancel(t) == 0);
    assert(join(t) == PTHREAD_CANCELED);
    assert(destroyed == 12);
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

struct Unlocks {
    ~Unlocks()
    {
        assert(pthread_mutex_trylock(&mutex) == EBUSY);
        pthread_mutex_unlock(&mutex);
        destroyed++;
    }
};

static void handler(void *arg) { destroyed += *(int *)arg; }

static void *waits(void *arg)
{
    int ten = 10;
    pthread_mutex_lock(&mutex);
    Unlocks unlocks;
    pthread_cleanup_push(handler, &ten);
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
    return arg;
}

static void cancelled_in_a_wait()
{
    pthread_t t = start(waits, NULL);
    assert(pthread_cancel(t) == 0);
    assert(join(t) == PTHREAD_CANCELED);
    assert(destroyed == 11);
}

static int recursive(int depth)
{
    static int value = recursive(depth + 1);
    return value;
}

static void recursive_initialiser() { recursive(0); }

CASES(CASE(made_once), CASE(an_exception_leaves_it_to_the_next), CASE(initialisers_that_lock),
      CASE(cancelled_through_destructors), CASE(cancelled_in_a_wait), CASE(recursive_initialiser))
