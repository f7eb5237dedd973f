/*
 * A work-stealing queue after the protocol of Cilk ("The implementation of the Cilk-5 multithreaded language",
 * PLDI'98, section 5), as it is tested in "Iterative context bounding" (PLDI'07, section 4) with three bugs. This has
 * three places where a bug can be put in: BUG is 1, 2 or 3, and anything else is the queue as it should be.
 *
 * The victim pushes and pops at the tail, mostly without the lock; a thief steals at the head, always with it. Each
 * first moves its end over the item that it wants and then looks at the other end: if both want the same last item, at
 * least one of them sees the other. A thief then gives way; the victim tries again with the lock, so after the thief.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* How many items there are, and how often the thief tries. */
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef STEALS
#define STEALS 1
#endif
enum { SIZE = ITEMS + 2, NOTHING = -1 };

static atomic_int head, tail;
static atomic_int slots[SIZE];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void push(int item) {
    int t = atomic_load(&tail);
    atomic_store(&slots[t % SIZE], item);
    atomic_store(&tail, t + 1);
}

static int try_pop(void) {
#if BUG == 1
    int h = atomic_load(&head);
#endif
    int t = atomic_load(&tail) - 1;
    atomic_store(&tail, t);
#if BUG != 1
    int h = atomic_load(&head);
#endif
    if (h <= t) {
        return atomic_load(&slots[t % SIZE]);
    }
    atomic_store(&tail, t + 1);
    return NOTHING;
}

static int pop(void) {
    int item = try_pop();
    if (item == NOTHING) {
#if BUG == 2
        item = try_pop();
#else
        pthread_mutex_lock(&lock);
        item = try_pop();
        pthread_mutex_unlock(&lock);
#endif
    }
    return item;
}

static int steal(void) {
    int item = NOTHING;
    pthread_mutex_lock(&lock);
    int h = atomic_load(&head);
    atomic_store(&head, h + 1);
    if (h < atomic_load(&tail)) {
        item = atomic_load(&slots[h % SIZE]);
    }
#if BUG == 3
    pthread_mutex_unlock(&lock);
#endif
    if (item == NOTHING) {
        atomic_store(&head, h);
    }
#if BUG != 3
    pthread_mutex_unlock(&lock);
#endif
    return item;
}

/* How often each item was taken: once is right. */
static atomic_int taken[ITEMS];

static void take(int item) {
    int before = atomic_fetch_add(&taken[item], 1);
    assert(before == 0);
}

static void *victim(void *unused) {
    (void)unused;
    for (int item = 1; item < ITEMS; item++) {
        push(item);
    }
    for (int item; (item = pop()) != NOTHING;) {
        take(item);
    }
    return NULL;
}

static void *thief(void *unused) {
    (void)unused;
    for (int i = 0; i < STEALS; i++) {
        int item = steal();
        if (item != NOTHING) {
            take(item);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    push(0);
    pthread_create(&threads[0], NULL, victim, NULL);
    pthread_create(&threads[1], NULL, thief, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < ITEMS; i++) {
        assert(taken[i] == 1);
    }
    return 0;
}
