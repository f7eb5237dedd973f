/*
 * A worker gives up when there is no memory, with the lock held. Then nobody else gets it.
 *
 * heisen: bug=deadlock preemptions=0 class=deadlock with --faults 1:malloc
 */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *last;

static void *worker(void *arg) {
    pthread_mutex_lock(&lock);
    int *next = malloc(sizeof *next);
    if (!next)
        return NULL; /* forgets to unlock */
    *next = *(int *)arg;
    free(last);
    last = next;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int numbers[2] = {1, 2};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(last);
    return 0;
}
