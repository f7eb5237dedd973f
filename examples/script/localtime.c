/*
 * A localtime for several threads, which is not safe for them.
 *
 * MT_safe_localtime keeps what it worked out last in a static struct and says for which time that is. It sets the time
 * before the fields: another thread that asks for the same time meanwhile takes the cache for valid and gets the fields of
 * the time before. The check at the end of the function, that the fields belong to the time, fails.
 *
 * One preemption is enough, after the time of the cache is set and before the last field is.
 *
 * Stands for bug 4 of RADBench in the paper's appendix (Mozilla NSPR, nspr1): localtime.rhai. With -DFIXED a mutex is held
 * throughout.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stddef.h>

struct exploded {
    long time; /* the time that the fields are for, in minutes */
    long hour;
    long minute;
};

enum { NOON = 12 * 60, LATE = 23 * 60 + 59 };

static struct exploded cache = {.time = NOON, .hour = 12};
#ifdef FIXED
static pthread_mutex_t monitor = PTHREAD_MUTEX_INITIALIZER;
#endif

__attribute__((noinline)) static void MT_safe_localtime(long time, long *hour, long *minute) {
#ifdef FIXED
    pthread_mutex_lock(&monitor);
#endif
    if (cache.time != time) {
        cache.time = time;
        cache.hour = time / 60 % 24;
        cache.minute = time % 60;
    }
    long got_hour = cache.hour;
    long got_minute = cache.minute;
#ifdef FIXED
    pthread_mutex_unlock(&monitor);
#endif
    assert(got_hour * 60 + got_minute == time);
    *hour = got_hour;
    *minute = got_minute;
}

static void *clock_main(void *arg) {
    long hour, minute;
    (void)arg;
    MT_safe_localtime(LATE, &hour, &minute);
    assert(hour == 23 && minute == 59);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, clock_main, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
