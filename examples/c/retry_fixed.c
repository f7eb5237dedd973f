/*
 * retry.c put right: increment() tries until it succeeds. An attempt fails only if another thread's has succeeded, so
 * every thread is done after three at most.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { THREADS = 3 };

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
    pthread_mutex_lock(&lock);
    bool same = counter.version == version;
    if (same) {
        counter.value = value;
        counter.version++;
    }
    pthread_mutex_unlock(&lock);
    return same;
}

static void increment(void) {
    struct counter seen;
    do {
        seen = load();
    } while (!try_store(seen.value + 1, seen.version));
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
