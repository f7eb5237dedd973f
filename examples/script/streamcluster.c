/*
 * A clustering kernel with a barrier of its own, which one thread joins too late.
 *
 * The main thread and three workers run pkmedian: in each round all add to the cost, meet at the barrier, and go on to the
 * next round together. The barrier knows how many threads take part. The workers are counted when they are made; the main
 * thread counts itself in, but only in pkmedian. If the workers get to the barrier before that, they are complete without
 * it: they go through all the rounds and leave, and the main thread begins its first round when the last one is over.
 *
 * One preemption is enough, of the main thread at control point 42.
 *
 * Stands for streamcluster of the paper's appendix (PARSEC): streamcluster.rhai. With -DFIXED the main thread counts
 * itself in before it makes the workers.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

enum { WORKERS = 3, ROUNDS = 2 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int members;
    int here;  /* members that wait */
    int round; /* rounds that are over */
} meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .all_here = PTHREAD_COND_INITIALIZER};

static int cost[WORKERS + 1]; /* of each thread */

static void join_meeting(void) {
    pthread_mutex_lock(&meeting.lock);
    meeting.members++;
    pthread_mutex_unlock(&meeting.lock);
}

/* Waits until all members are here, at the end of the same round. */
__attribute__((noinline)) static void barrier(int round) {
    pthread_mutex_lock(&meeting.lock);
    assert(meeting.round == round);
    meeting.here++;
    if (meeting.here == meeting.members) {
        meeting.here = 0;
        meeting.round++;
        pthread_cond_broadcast(&meeting.all_here);
    }
    while (meeting.round == round)
        pthread_cond_wait(&meeting.all_here, &meeting.lock);
    pthread_mutex_unlock(&meeting.lock);
}

__attribute__((noinline)) static void pkmedian(int id) {
    heisen_point_at(42);
#ifndef FIXED
    if (id == 0)
        join_meeting();
#endif
    for (int round = 0; round < ROUNDS; round++) {
        cost[id] += round;
        barrier(round);
    }
}

static void *localSearchSub(void *arg) {
    usleep(1000); /* until the points have come: the main thread is in time, most of the time */
    pkmedian((int)(size_t)arg);
    return NULL;
}

int main(void) {
    pthread_t threads[WORKERS];
#ifdef FIXED
    join_meeting();
#endif
    for (int i = 0; i < WORKERS; i++)
        join_meeting();
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, localSearchSub, (void *)(size_t)(i + 1));
    pkmedian(0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    assert(cost[0] == cost[WORKERS] && meeting.round == ROUNDS);
    return 0;
}
