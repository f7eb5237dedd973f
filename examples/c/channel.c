/*
 * A use after free in the shape of the one in Dryad's channels ("Iterative context bounding", PLDI 2007, figure 3).
 *
 * A channel has two workers that take messages from a work queue. For each message a worker first alerts the
 * application, then does some bookkeeping in the channel, under the channel's own lock. channel_close() sends every
 * worker a STOP and returns when the application has been alerted of all of them. main takes that for "the workers are
 * finished" and deletes the channel, but a worker may still have its bookkeeping before it. The channel is a page of
 * its own that is unmapped on deletion, so the first touch after that crashes without the help of a sanitizer.
 *
 * One preemption is enough, in alert_application(), just before the pthread_mutex_lock of channel->lock: main is able
 * to return from channel_close(), to delete the channel, and blocks in pthread_join. All other switches are free, where
 * threads wait for messages and alerts, or end; there are six if the threads are taken in turn, as in the paper.
 * Without a preemption there is no crash: a worker that goes on after its last alert has left the channel before main
 * runs.
 *
 * heisen: bug=crash preemptions=1 class=order-violation
 */
#define _DEFAULT_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

enum { WORKERS = 2 };
enum message { DATA, STOP };

struct channel {
    pthread_mutex_t lock;
    int handled;
};

/* The messages, and how many of each the application has been alerted of. They outlive the channel. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static enum message queue[8];
static int queue_head, queue_tail;
static pthread_mutex_t alert_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t alerted = PTHREAD_COND_INITIALIZER;
static int alerts[2];

static void post(enum message message) {
    pthread_mutex_lock(&queue_lock);
    queue[queue_tail++] = message;
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static enum message take(void) {
    pthread_mutex_lock(&queue_lock);
    while (queue_head == queue_tail)
        pthread_cond_wait(&queue_filled, &queue_lock);
    enum message message = queue[queue_head++];
    pthread_mutex_unlock(&queue_lock);
    return message;
}

static void await_alerts(enum message message, int count) {
    pthread_mutex_lock(&alert_lock);
    while (alerts[message] < count)
        pthread_cond_wait(&alerted, &alert_lock);
    pthread_mutex_unlock(&alert_lock);
}

static void alert_application(struct channel *channel, enum message message) {
    pthread_mutex_lock(&alert_lock);
    alerts[message]++;
    pthread_cond_signal(&alerted);
    pthread_mutex_unlock(&alert_lock);

    pthread_mutex_lock(&channel->lock); /* preempt here: the channel may be gone */
    channel->handled++;
    pthread_mutex_unlock(&channel->lock);
}

static void *worker(void *channel) {
    enum message message;
    do {
        message = take();
        alert_application(channel, message);
    } while (message != STOP);
    return NULL;
}

static void channel_close(void) {
    for (int i = 0; i < WORKERS; i++)
        post(STOP);
    await_alerts(STOP, WORKERS);
}

int main(void) {
    struct channel *channel =
        mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(channel != MAP_FAILED);
    pthread_mutex_init(&channel->lock, NULL);
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, worker, channel);

    post(DATA);
    await_alerts(DATA, 1);

    channel_close();
    munmap(channel, sizeof *channel);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
