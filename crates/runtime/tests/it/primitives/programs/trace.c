/* A wait and a sleep that run out of time while another thread holds a mutex; then it fails, so that there is a
   schedule to be replayed. */
#include "cases.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static void *holds(void *arg)
{
    pthread_mutex_lock(&n);
    sleep(1);
    pthread_mutex_unlock(&n);
    return arg;
}

static void gives_up(void)
{
    pthread_t t = start(holds, NULL);
    struct timespec until = from_now(CLOCK_REALTIME, 2000);
    pthread_mutex_lock(&m);
    int result = pthread_cond_timedwait(&c, &m, &until);
    pthread_mutex_unlock(&m);
    join(t);
    assert(result == 0);
}

CASES(CASE(gives_up))
