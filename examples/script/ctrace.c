/*
 * A tracing library with a hash table whose readers are counted.
 *
 * Two threads trace what they do; each message looks up its thread in the table, as a reader. HASH_READ_ENTER counts the
 * reader under the mutex and, for the first one, shuts writers out. HASH_READ_EXIT counts down without the mutex: it reads
 * the count, and what another reader adds before it is written back is lost. The count then is too small, and the next
 * reader to leave makes it negative: nobody is the first reader any more, and writers are let in among readers. (If both
 * count down at once the count stays too large, and a writer waits for ever.)
 *
 * Two preemptions are needed: one thread is stopped in HASH_READ_EXIT (control point 43), the other counts itself in and
 * must still be inside when the first writes the old count back. Thereafter it leaves, and the next to enter finds -1.
 *
 * Stands for the ctrace of the paper's appendix: ctrace.rhai. With -DFIXED the count goes down under the mutex.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

enum { MESSAGES = 2, BUCKETS = 2 };

struct hash {
    pthread_mutex_t mutex; /* guards readers */
    sem_t free; /* taken by a writer, or by the first reader for all of them */
    int readers;
    int level[BUCKETS]; /* how much each thread traces */
};

static struct hash table = {.mutex = PTHREAD_MUTEX_INITIALIZER, .level = {1, 1}};
static int traced[BUCKETS];

__attribute__((noinline)) static void HASH_READ_ENTER(struct hash *hash) {
    pthread_mutex_lock(&hash->mutex);
    int readers = hash->readers;
    assert(readers >= 0);
    if (readers == 0)
        sem_wait(&hash->free);
    hash->readers = readers + 1;
    pthread_mutex_unlock(&hash->mutex);
}

__attribute__((noinline)) static void HASH_READ_EXIT(struct hash *hash) {
#ifdef FIXED
    pthread_mutex_lock(&hash->mutex);
#endif
    int readers = hash->readers;
    heisen_point_at(43);
    hash->readers = readers - 1;
    if (readers == 1)
        sem_post(&hash->free);
#ifdef FIXED
    pthread_mutex_unlock(&hash->mutex);
#endif
}

/* A writer. */
static void set_level(struct hash *hash, int bucket, int level) {
    sem_wait(&hash->free);
    hash->level[bucket] = level;
    sem_post(&hash->free);
}

static void trace(int bucket) {
    HASH_READ_ENTER(&table);
    int level = table.level[bucket];
    HASH_READ_EXIT(&table);
    if (level > 0)
        traced[bucket]++;
}

static void *first(void *arg) {
    (void)arg;
    for (int i = 0; i < MESSAGES; i++)
        trace(0);
    return NULL;
}

static void *second(void *arg) {
    (void)arg;
    for (int i = 0; i < MESSAGES; i++)
        trace(1);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&table.free, 0, 1);
    set_level(&table, 0, 2);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    set_level(&table, 0, 0);
    return traced[0] + traced[1] == 2 * MESSAGES ? 0 : 1;
}
