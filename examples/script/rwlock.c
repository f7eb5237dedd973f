/*
 * A reader-writer lock that takes a reader's unlock for a writer's.
 *
 * The lock counts readers and remembers the writer. PR_RWLock_Unlock asks whether there is a writer: then the lock is
 * free, otherwise there is one reader less. But it forgets to forget the writer. As long as readers come one at a time that
 * does no harm: freeing the lock or counting the only reader out is the same. A reader that locks twice, though, and
 * unlocks once after a writer has been there, has freed the lock while it is still reading, and the next writer gets in.
 *
 * Each call is atomic, under a mutex: it is the order of whole calls that matters. Two preemptions: the writer locks and
 * unlocks; the reader locks twice and unlocks once; the writer locks again.
 *
 * Stands for bug 6 of RADBench in the paper's appendix (Mozilla NSPR, nspr3): rwlock.rhai. With -DFIXED the writer is
 * forgotten.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct rwlock {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    int readers;
    bool locked; /* by a writer */
    bool writer; /* whose turn it is or, by mistake, was */
};

static struct rwlock rwlock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};
static int reading; /* read locks really held, with the mutex */

__attribute__((noinline)) static void PR_RWLock_Rlock(struct rwlock *lock) {
    pthread_mutex_lock(&lock->mutex);
    while (lock->locked)
        pthread_cond_wait(&lock->freed, &lock->mutex);
    lock->readers++;
    reading++;
    pthread_mutex_unlock(&lock->mutex);
}

__attribute__((noinline)) static void PR_RWLock_Wlock(struct rwlock *lock) {
    pthread_mutex_lock(&lock->mutex);
    while (lock->locked || lock->readers > 0)
        pthread_cond_wait(&lock->freed, &lock->mutex);
    lock->locked = true;
    lock->writer = true;
    assert(reading == 0);
    pthread_mutex_unlock(&lock->mutex);
}

__attribute__((noinline)) static void PR_RWLock_Unlock(struct rwlock *lock) {
    pthread_mutex_lock(&lock->mutex);
    if (!lock->locked)
        reading--;
    if (lock->writer) {
        lock->locked = false;
        lock->readers = 0;
#ifdef FIXED
        lock->writer = false;
#endif
    } else {
        lock->readers--;
    }
    if (lock->readers == 0)
        pthread_cond_broadcast(&lock->freed);
    pthread_mutex_unlock(&lock->mutex);
}

__attribute__((noinline)) static void *reader_main(void *arg) {
    (void)arg;
    PR_RWLock_Rlock(&rwlock);
    PR_RWLock_Rlock(&rwlock);
    PR_RWLock_Unlock(&rwlock);
    PR_RWLock_Unlock(&rwlock);
    return NULL;
}

__attribute__((noinline)) static void *writer_main(void *arg) {
    (void)arg;
    for (int i = 0; i < 2; i++) {
        PR_RWLock_Wlock(&rwlock);
        PR_RWLock_Unlock(&rwlock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, reader_main, NULL);
    pthread_create(&threads[1], NULL, writer_main, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
