/*
 * Figure 2 of "Production-guided concurrency debugging" (Cortex, PPoPP'16): the assertion fails only where the first
 * thread takes a path that it takes in no other schedule. The authors ran it ten thousand times, and it did not fail
 * once.
 *
 * Two preemptions are needed, and lead to the order 8, 1 to 4, 9, 10, 5, 6, 7 of the paper. The second thread must
 * have set z before the first looks at it, and must look at w after that was counted up: so it is preempted in
 * between, before line 9. And it must clear y after line 4 and before line 5, so the first is preempted there.
 *
 * heisen: bug=assertion preemptions=2 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static int w, x, y, z;

static void *t1(void *unused) {
    (void)unused;
    if (z > 0) { /* 1 */
        w++;     /* 2 */
    }
    x = 1;         /* 3 */
    y = 1;         /* 4 */
    if (y == 0) {  /* 5, preempt here */
        x--;       /* 6 */
    }
    assert(x > 0); /* 7 */
    return NULL;
}

static void *t2(void *unused) {
    (void)unused;
    z = 1;       /* 8 */
    if (w > 0) { /* 9, preempt here */
        y = 0;   /* 10 */
    }
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
