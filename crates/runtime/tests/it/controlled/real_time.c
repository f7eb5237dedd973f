/* Sleeps and time-outs take as long as they say, and threads run meanwhile. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct timespec in(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *signals(void *unused) {
    usleep(60000);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void) {
    double start = now(CLOCK_MONOTONIC);
    pthread_t thread;
    pthread_create(&thread, NULL, signals, NULL);
    struct timespec until = in(CLOCK_REALTIME, 20000);
    pthread_mutex_lock(&mutex);
    int result = 0;
    while (!ready && result == 0)
        result = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    assert(result == 0);
    pthread_join(thread, NULL);
    double passed = now(CLOCK_MONOTONIC) - start;
    assert(passed >= 0.06 && passed < 10);

    start = now(CLOCK_REALTIME);
    sem_t never;
    sem_init(&never, 0, 0);
    until = in(CLOCK_REALTIME, 50);
    assert(sem_timedwait(&never, &until) == -1 && errno == ETIMEDOUT);
    passed = now(CLOCK_REALTIME) - start;
    assert(passed >= 0.049 && passed < 10);

    start = now(CLOCK_MONOTONIC);
    until = in(CLOCK_MONOTONIC, 30);
    assert(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
    passed = now(CLOCK_MONOTONIC) - start;
    assert(passed >= 0.03 && passed < 10);
    return 0;
}
