/*
 * An optimistic counter: read value and version, compute, then store the new value if the version is still the same,
 * else try again. Three threads add one each.
 *
 * increment() gives up after two attempts, and its caller does not look at the result: an increment is lost if both
 * attempts are overtaken.
 *
 * Two preemptions are needed. Each overtaken attempt takes one, just before the pthread_mutex_lock of try_store(),
 * where the thread could go on; one of the other two threads then makes its whole increment and ends, so the way back
 * is free.
 *
 * heisen: bug=assertion preemptions=2 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { THREADS = 3, ATTEMPTS = 2 };

struct counter {
    int value;
    int version;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter counter;

static struct counter load(void) {
    pthread_mutex_lock(&lock);
    struct counter seen = counter;
    pthread_mutex_unlock(&lock);
    return seen;
}

static bool try_store(int value, int version) {
    pthread_mutex_lock(&lock); /* preempt here, both times */
    bool same = counter.version == version;
    if (same) {
        counter.value = value;
        counter.version++;
    }
    pthread_mutex_unlock(&lock);
    return same;
}

static bool increment(void) {
    for (int i = 0; i < ATTEMPTS; i++) {
        struct counter seen = load();
        if (try_store(seen.value + 1, seen.version))
            return true;
    }
    return false;
}

static void *incrementer(void *arg) {
    (void)arg;
    increment();
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, incrementer, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counter.value == THREADS);
    return 0;
}
