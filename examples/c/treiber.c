/*
 * Treiber's stack, with nodes that are used again: the ABA problem.
 *
 * pop() takes the top node off by comparing the top with what it has seen. That it is the same node does not mean that
 * it still has the same next one: meanwhile it may have been taken off and put back.
 *
 * One preemption is enough, between the look at next and the comparison: the other thread pops two nodes, pushes the
 * first again, and ends with the second in its hands. The comparison succeeds, and makes that second node the top.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { NODES = 3, NONE = NODES };

/* The top node in the lower half, how often it was taken off in the upper one; here that always remains 0. */
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
        new = old - node_of(old) + atomic_load(&next[node_of(old)]);
    } while (!atomic_compare_exchange_strong(&top, &old, new)); /* preempt here */
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
