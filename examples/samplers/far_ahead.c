/*
 * A bug behind hundreds of quiet steps: a writer must get far ahead of the thread that flushes its log.
 *
 * The writer appends 200 entries. When the log is full it makes room by dropping the oldest, but it lets go of the lock
 * in between and does not look again. If the log is flushed just there, `count` is wrong from then on, and the next flush
 * finds more than was written.
 *
 * A uniformly random walk never gets there: as the flusher empties the log, the writer would have to win more than a
 * hundred choices in a row. What takes the writer far ahead is a thread that goes on for long, by priority or by bursts;
 * and then it takes three switches at the right places.
 *
 * portfolio: finds it; random: never
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

enum { ROOM = 64, ENTRIES = 200, FLUSHES = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int written, dropped, flushed, count;

static void append(void) {
    pthread_mutex_lock(&lock);
    if (count == ROOM) {
        pthread_mutex_unlock(&lock); /* not to be in the way while it makes room */
        pthread_mutex_lock(&lock);
        dropped++;
        count = ROOM - 1;
    }
    count++;
    written++;
    pthread_mutex_unlock(&lock);
}

static void flush(void) {
    pthread_mutex_lock(&lock);
    flushed += count;
    count = 0;
    assert(flushed + dropped <= written);
    pthread_mutex_unlock(&lock);
}

static void *flusher(void *arg) {
    for (int i = 0; i < FLUSHES; i++)
        flush();
    return arg;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, flusher, NULL);
    for (int i = 0; i < ENTRIES; i++)
        append();
    pthread_join(thread, NULL);
    return 0;
}
