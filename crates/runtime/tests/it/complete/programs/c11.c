/* C11 threads: the same objects by other names, with results of their own. */
#include "cases.h"
#include <threads.h>

static mtx_t mutex;
static cnd_t cond;
static int counter, ready;

static int adds(void *arg)
{
    for (int i = 0; i < 2; i++) {
        assert(mtx_lock(&mutex) == thrd_success);
        int seen = counter;
        thrd_yield();
        counter = seen + 1;
        assert(mtx_unlock(&mutex) == thrd_success);
    }
    return *(int *)arg;
}

static void threads_and_a_mutex(void)
{
    thrd_t a, b;
    int three = 3, minus = -4, result;
    assert(mtx_init(&mutex, mtx_plain) == thrd_success);
    assert(thrd_create(&a, adds, &three) == thrd_success && thrd_create(&b, adds, &minus) == thrd_success);
    assert(thrd_join(a, &result) == thrd_success && result == 3);
    assert(thrd_join(b, &result) == thrd_success && result == -4);
    assert(counter == 4);
    mtx_destroy(&mutex);
}

static int exits(void *arg)
{
    assert(!thrd_equal(thrd_current(), *(thrd_t *)arg));
    thrd_exit(-7);
}

static int ends(void *arg)
{
    (void)arg;
    return 1;
}

static void exit_and_detach(void)
{
    thrd_t self = thrd_current(), t;
    int result;
    assert(thrd_equal(self, thrd_current()));
    assert(thrd_create(&t, exits, &self) == thrd_success);
    assert(thrd_join(t, &result) == thrd_success && result == -7);
    assert(thrd_create(&t, ends, NULL) == thrd_success);
    assert(thrd_detach(t) == thrd_success);
    assert(thrd_create(&t, ends, NULL) == thrd_success && thrd_join(t, NULL) == thrd_success);
}

static int tries(void *arg)
{
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    assert(mtx_trylock(&mutex) == thrd_busy);
    if (arg != NULL) {
        assert(mtx_timedlock(&mutex, &soon) == thrd_timedout);
        assert(reached(CLOCK_REALTIME, soon));
    }
    return 0;
}

static void kinds_of_mutexes(void)
{
    thrd_t t;
    assert(mtx_init(&mutex, mtx_recursive) == thrd_success);
    assert(mtx_lock(&mutex) == thrd_success && mtx_trylock(&mutex) == thrd_success);
    assert(thrd_create(&t, tries, NULL) == thrd_success && thrd_join(t, NULL) == thrd_success);
    assert(mtx_unlock(&mutex) == thrd_success);
    assert(thrd_create(&t, tries, NULL) == thrd_success && thrd_join(t, NULL) == thrd_success);
    assert(mtx_unlock(&mutex) == thrd_success);
    mtx_destroy(&mutex);
    assert(mtx_init(&mutex, mtx_timed) == thrd_success);
    assert(mtx_lock(&mutex) == thrd_success);
    assert(thrd_create(&t, tries, &t) == thrd_success && thrd_join(t, NULL) == thrd_success);
    assert(mtx_unlock(&mutex) == thrd_success);
}

static int waits(void *arg)
{
    assert(mtx_lock(&mutex) == thrd_success);
    while (!ready)
        assert(cnd_wait(&cond, &mutex) == thrd_success);
    if (arg == NULL)
        ready--;
    assert(mtx_unlock(&mutex) == thrd_success);
    return 0;
}

static void conditions(void)
{
    thrd_t a, b;
    assert(mtx_init(&mutex, mtx_timed) == thrd_success && cnd_init(&cond) == thrd_success);
    assert(thrd_create(&a, waits, NULL) == thrd_success && thrd_create(&b, waits, NULL) == thrd_success);
    for (int i = 0; i < 2; i++) {
        assert(mtx_lock(&mutex) == thrd_success);
        ready++;
        assert(cnd_signal(&cond) == thrd_success);
        assert(mtx_unlock(&mutex) == thrd_success);
    }
    assert(thrd_join(a, NULL) == thrd_success && thrd_join(b, NULL) == thrd_success && ready == 0);
    assert(thrd_create(&a, waits, &a) == thrd_success && thrd_create(&b, waits, &b) == thrd_success);
    assert(mtx_lock(&mutex) == thrd_success);
    ready = 1;
    assert(cnd_broadcast(&cond) == thrd_success);
    assert(mtx_unlock(&mutex) == thrd_success);
    assert(thrd_join(a, NULL) == thrd_success && thrd_join(b, NULL) == thrd_success);
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    assert(mtx_lock(&mutex) == thrd_success);
    assert(cnd_timedwait(&cond, &mutex, &soon) == thrd_timedout);
    assert(mtx_trylock(&mutex) == thrd_busy);
    assert(mtx_unlock(&mutex) == thrd_success);
    cnd_destroy(&cond);
    mtx_destroy(&mutex);
}

static once_flag flag = ONCE_FLAG_INIT;

static void initialise(void)
{
    int seen = counter;
    thrd_yield();
    counter = seen + 1;
}

static int calls_once(void *arg)
{
    (void)arg;
    call_once(&flag, initialise);
    assert(counter == 1);
    return 0;
}

static void once(void)
{
    thrd_t a, b;
    assert(thrd_create(&a, calls_once, NULL) == thrd_success && thrd_create(&b, calls_once, NULL) == thrd_success);
    calls_once(NULL);
    assert(thrd_join(a, NULL) == thrd_success && thrd_join(b, NULL) == thrd_success);
}

static tss_t key;

static void destroy(void *value)
{
    counter += *(int *)value;
}

static int sets(void *value)
{
    assert(tss_get(key) == NULL);
    assert(tss_set(key, value) == thrd_success && tss_get(key) == value);
    return 0;
}

static void storage(void)
{
    thrd_t a, b;
    int one = 1, ten = 10;
    assert(tss_create(&key, destroy) == thrd_success);
    assert(thrd_create(&a, sets, &one) == thrd_success && thrd_create(&b, sets, &ten) == thrd_success);
    assert(thrd_join(a, NULL) == thrd_success && thrd_join(b, NULL) == thrd_success);
    assert(counter == 11);
    tss_delete(key);
}

static void sleeping(void)
{
    struct timespec until = from_now(CLOCK_REALTIME, 5), time = {0, 5000000}, none = {0, -1};
    assert(thrd_sleep(&time, NULL) == 0 && reached(CLOCK_REALTIME, until));
    assert(thrd_sleep(&none, NULL) == -2);
}

CASES(CASE(threads_and_a_mutex), CASE(exit_and_detach), CASE(kinds_of_mutexes), CASE(conditions), CASE(once),
      CASE(storage), CASE(sleeping))
