/*
 * A database server whose log is rotated while a row is inserted.
 *
 * Each insert goes to the table and then to the log, from which other servers copy it. MYSQL_LOG_new_file closes the log
 * and opens a new one, under the lock of the log. mysql_insert takes that lock to write; but whether there is a log at all
 * it asks before, without the lock. If a rotation is between close and open just then, there seems to be none, and the row
 * is in the table but in no log.
 *
 * Two threads rotate, one inserts. One preemption is enough, of a rotating thread at control point 41. The points 51 and
 * 52 are before the question for the log and after the write to it.
 *
 * Stands for bug 15 of RADBench in the paper's appendix (MySQL): rotate.rhai. With -DFIXED the question is asked under the
 * lock.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { FILES = 3, ROWS = 4 };

static struct {
    pthread_mutex_t lock;
    bool open;
    int file;           /* the current one */
    int written[FILES]; /* entries in each */
} mysql_log = {.lock = PTHREAD_MUTEX_INITIALIZER, .open = true};

static int table[ROWS], rows; /* only the inserting thread has to do with them */

/* With the lock. */
static void log_write(void) {
    assert(mysql_log.open);
    mysql_log.written[mysql_log.file]++;
}

__attribute__((noinline)) static void MYSQL_LOG_new_file(void) {
    pthread_mutex_lock(&mysql_log.lock);
    mysql_log.open = false;
    heisen_point_at(41);
    mysql_log.file++;
    mysql_log.open = true;
    pthread_mutex_unlock(&mysql_log.lock);
}

__attribute__((noinline)) static void mysql_insert(int row) {
    table[rows++] = row;
    heisen_point_at(51);
#ifdef FIXED
    pthread_mutex_lock(&mysql_log.lock);
    if (mysql_log.open)
        log_write();
    pthread_mutex_unlock(&mysql_log.lock);
#else
    if (mysql_log.open) {
        pthread_mutex_lock(&mysql_log.lock);
        log_write();
        pthread_mutex_unlock(&mysql_log.lock);
    }
#endif
    heisen_point_at(52);
}

static void *rotate_main(void *arg) {
    (void)arg;
    MYSQL_LOG_new_file();
    return NULL;
}

static void *insert_main(void *arg) {
    (void)arg;
    mysql_insert(7);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, rotate_main, NULL);
    pthread_create(&threads[1], NULL, rotate_main, NULL);
    pthread_create(&threads[2], NULL, insert_main, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    int logged = 0;
    for (int i = 0; i < FILES; i++)
        logged += mysql_log.written[i];
    assert(logged == rows);
    return 0;
}
