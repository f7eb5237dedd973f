/* Two workers take two jobs. The test is flaky, but fails very rarely. */
#include "queue.h"
#include <assert.h>

static struct queue queue;

static void *worker(void *unused) {
    int job;
    while (queue_pop(&queue, &job))
        queue_job_done(&queue);
    return unused;
}

int main(void) {
    queue_init(&queue);
    pthread_t workers[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, worker, NULL);
    queue_push(&queue, 1);
    queue_push(&queue, 2);
    queue_close(&queue);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    assert(queue.done == 2);
}
