/*
 * A bounded buffer with one slot: a producer puts two items, two consumers take one each.
 *
 * get() and put() test with `if`, not `while`, before they wait. Between the signal that wakes a consumer and the
 * moment it has the mutex again, the other consumer may take the item, and the first one finds the buffer empty.
 *
 * No preemption is needed, as every switch of the failing run lies where a thread blocks or ends:
 *   - consumer 1 finds the buffer empty and waits;
 *   - the producer puts an item, which signals consumer 1, and then waits at its second put, as the slot is full;
 *   - consumer 2 takes the item and ends;
 *   - consumer 1 goes on after pthread_cond_wait, though the slot is empty again.
 *
 * heisen: bug=assertion preemptions=0 class=missed-recheck
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

enum { SLOTS = 1, CONSUMERS = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static int slots[SLOTS];
static int first, count;

static void put(int item) {
    pthread_mutex_lock(&lock);
    if (count == SLOTS)
        pthread_cond_wait(&not_full, &lock);
    assert(count < SLOTS);
    slots[(first + count++) % SLOTS] = item;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}

static int get(void) {
    pthread_mutex_lock(&lock);
    if (count == 0)
        pthread_cond_wait(&not_empty, &lock);
    assert(count > 0);
    int item = slots[first];
    first = (first + 1) % SLOTS;
    count--;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&lock);
    return item;
}

static void *producer(void *arg) {
    (void)arg;
    for (int i = 1; i <= CONSUMERS; i++)
        put(i);
    return NULL;
}

static void *consumer(void *arg) {
    *(int *)arg = get();
    return NULL;
}

int main(void) {
    pthread_t threads[1 + CONSUMERS];
    int got[CONSUMERS];
    pthread_create(&threads[0], NULL, producer, NULL);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&threads[1 + i], NULL, consumer, &got[i]);
    for (int i = 0; i < 1 + CONSUMERS; i++)
        pthread_join(threads[i], NULL);
    assert(got[0] + got[1] == 1 + 2);
    return 0;
}
