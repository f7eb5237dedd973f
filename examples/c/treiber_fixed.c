/*
 * The stack of treiber.c, put right: pop() counts in the upper half of the top, so a node that was taken off and put
 * back does not look as before.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { NODES = 3, NONE = NODES };

/* The top node in the lower half, how often it was taken off in the upper one. */
static _Atomic unsigned long top = NONE;
static atomic_uint next[NODES];

/* Whether a node is in the hands of a thread. */
static atomic_bool held[NODES];

static unsigned node_of(unsigned long word) {
    return (unsigned)word;
}

static void push(unsigned node) {
    unsigned long old = atomic_load(&top);
    do {
        atomic_store(&next[node], node_of(old));
    } while (!atomic_compare_exchange_strong(&top, &old, (old - node_of(old)) + node));
}

static unsigned pop(void) {
    unsigned long old = atomic_load(&top), new;
    do {
        if (node_of(old) == NONE) {
            return NONE;
        }
        new = (1UL << 32) + old - node_of(old) + atomic_load(&next[node_of(old)]);
    } while (!atomic_compare_exchange_strong(&top, &old, new));
    return node_of(old);
}

static unsigned take(void) {
    unsigned node = pop();
    if (node != NONE) {
        bool already = atomic_exchange(&held[node], true);
        assert(!already);
    }
    return node;
}

static void give_back(unsigned node) {
    atomic_store(&held[node], false);
    push(node);
}

static void *taker(void *unused) {
    (void)unused;
    take();
    take();
    return NULL;
}

static void *giver(void *unused) {
    (void)unused;
    unsigned first = take();
    take();
    if (first != NONE) {
        give_back(first);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (unsigned node = 0; node < NODES; node++) {
        push(node);
    }
    pthread_create(&threads[0], NULL, taker, NULL);
    pthread_create(&threads[1], NULL, giver, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
