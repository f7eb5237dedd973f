/*
 * once.c put right: the writer has the table made before it takes the lock, so nobody waits for the table with the
 * lock held, and the lock need not be recursive.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int scale = 2;
static int table[4];

static void make_table(void) {
    pthread_mutex_lock(&lock);
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
    pthread_once(&once, make_table);
    pthread_mutex_lock(&lock);
    scale = 10 * table[1];
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, writer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(scale == 20);
    return 0;
}
