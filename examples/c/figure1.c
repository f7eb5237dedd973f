/*
 * Figure 1 of "Production-guided concurrency debugging" (Cortex, PPoPP'16): two threads, one variable. The first
 * thread takes for granted that x is what it has just made it.
 *
 * One preemption is enough, between lines 1 and 2. None is not, as each thread alone is right.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x;

static void *t1(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    x++;           /* 1 */
    assert(x > 0); /* 2, preempt here */
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *t2(void *unused) {
    (void)unused;
    x = 0; /* 3 */
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
