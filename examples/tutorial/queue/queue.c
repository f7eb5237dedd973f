/* A queue of jobs for worker threads. The C tutorial (docs/tutorial/c.md) finds its two bugs. */
#include "queue.h"

void queue_init(struct queue *queue) {
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->length = 0;
    queue->closed = false;
    queue->done = 0;
}

void queue_push(struct queue *queue, int job) {
    pthread_mutex_lock(&queue->lock);
    queue->jobs[queue->length++] = job;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

bool queue_pop(struct queue *queue, int *job) {
    pthread_mutex_lock(&queue->lock);
    while (queue->length == 0 && !queue->closed)
        pthread_cond_wait(&queue->changed, &queue->lock);
    bool popped = queue->length > 0;
    if (popped)
        *job = queue->jobs[--queue->length];
    pthread_mutex_unlock(&queue->lock);
    return popped;
}

void queue_close(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void queue_job_done(struct queue *queue) {
    queue->done++;
}
