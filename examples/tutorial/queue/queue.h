/* A queue of jobs for worker threads. The C tutorial (docs/tutorial/c.md) finds its two bugs. */
#ifndef QUEUE_H
#define QUEUE_H

#include <pthread.h>
#include <stdbool.h>

enum { CAPACITY = 16 };

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int jobs[CAPACITY];
    int length;
    bool closed;
    int done;
};

void queue_init(struct queue *queue);
void queue_push(struct queue *queue, int job);
/* Waits for a job. Returns false once the queue is closed and empty. */
bool queue_pop(struct queue *queue, int *job);
/* No more jobs will come. */
void queue_close(struct queue *queue);
/* Counts a finished job. */
void queue_job_done(struct queue *queue);

#endif
