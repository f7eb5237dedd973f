/*
 * A cache server that adds to a value without its lock.
 *
 * Two connections, each with a thread of its own, are sent commands to add to the same item: one in the binary protocol
 * (complete_incr_bin), one as text (process_arithmetic_command). The item is looked up under the lock of the cache, but
 * its value is read, increased and written back after the lock has been given up. Of two such updates at once one is lost,
 * and the total is wrong in the end.
 *
 * One preemption is enough, at control point 42 of either thread.
 *
 * Stands for bug 8 of RADBench in the paper's appendix (memcached): incr.rhai. With -DFIXED the lock is held throughout.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct item {
    const char *key;
    unsigned long value;
};

/* What a client sends: the binary protocol has the number as it is, the text protocol as digits. */
struct connection {
    const char *key;
    unsigned long delta;
    const char *text;
    unsigned long reply;
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct item cache[] = {{"hits", 100}, {"misses", 0}};
static struct connection binary = {.key = "hits", .delta = 5};
static struct connection text = {.key = "hits", .text = "7"};

/* With the lock. */
static struct item *item_get(const char *key) {
    for (size_t i = 0; i < sizeof cache / sizeof cache[0]; i++)
        if (strcmp(cache[i].key, key) == 0)
            return &cache[i];
    return NULL;
}

__attribute__((noinline)) static void complete_incr_bin(struct connection *c) {
    pthread_mutex_lock(&cache_lock);
    struct item *it = item_get(c->key);
#ifndef FIXED
    pthread_mutex_unlock(&cache_lock);
#endif
    unsigned long value = it->value + c->delta;
    heisen_point_at(42);
    it->value = value;
#ifdef FIXED
    pthread_mutex_unlock(&cache_lock);
#endif
    c->reply = value;
}

__attribute__((noinline)) static void process_arithmetic_command(struct connection *c) {
    unsigned long delta = strtoul(c->text, NULL, 10);
    pthread_mutex_lock(&cache_lock);
    struct item *it = item_get(c->key);
#ifndef FIXED
    pthread_mutex_unlock(&cache_lock);
#endif
    unsigned long value = it->value + delta;
    heisen_point_at(42);
    it->value = value;
#ifdef FIXED
    pthread_mutex_unlock(&cache_lock);
#endif
    c->reply = value;
}

static void *connection_main(void *arg) {
    struct connection *c = arg;
    if (c->text)
        process_arithmetic_command(c);
    else
        complete_incr_bin(c);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, connection_main, &binary);
    pthread_create(&threads[1], NULL, connection_main, &text);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(cache[0].value == 112);
    return 0;
}
