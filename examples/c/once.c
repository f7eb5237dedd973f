/*
 * A table that is made on first use, by pthread_once, from a setting that has a lock. The lock is recursive, so that
 * the table can be used, and made, with the lock held as well as without.
 *
 * The reader starts to make the table and then needs the lock; the writer has the lock and then needs the table. If
 * the table is half made by the one when the other holds the lock, each waits for the other: a deadlock, though there
 * is only one mutex.
 *
 * One preemption is enough, just before the pthread_mutex_lock in make_table() in the reader, or just before the
 * pthread_once in the writer. None is not enough: either thread, left alone, makes the table and gives up the lock.
 *
 * heisen: bug=deadlock preemptions=1 class=deadlock
 */
#define _DEFAULT_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock;
static int scale = 2;
static int table[4];

static void make_table(void) {
    pthread_mutex_lock(&lock); /* preempt here, in the reader */
    for (int i = 0; i < 4; i++)
        table[i] = i * scale;
    pthread_mutex_unlock(&lock);
}

static void *reader(void *arg) {
    (void)arg;
    pthread_once(&once, make_table);
    assert(table[3] == 6);
    return NULL;
}

static void *writer(void *arg) {
    (void)arg;
    pthread_mutex_lock(&lock);
    pthread_once(&once, make_table); /* or here */
    scale = 10 * table[1];
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, writer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(scale == 20);
    return 0;
}
