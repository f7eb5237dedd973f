/*
 * The program of figure2.c, put right: a lock keeps lines 9 and 10 out of what the first thread does with y. The race
 * for z is still there, and does no harm.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int w, x, y, z;

static void *t1(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    if (z > 0) { /* 1 */
        w++;     /* 2 */
    }
    x = 1;         /* 3 */
    y = 1;         /* 4 */
    if (y == 0) {  /* 5 */
        x--;       /* 6 */
    }
    assert(x > 0); /* 7 */
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *t2(void *unused) {
    (void)unused;
    z = 1;       /* 8 */
    pthread_mutex_lock(&lock);
    if (w > 0) { /* 9 */
        y = 0;   /* 10 */
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, t1, NULL);
    pthread_create(&threads[1], NULL, t2, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
