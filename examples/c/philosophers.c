/*
 * N dining philosophers, 3 unless N is defined. Each takes the fork to the left, then the one to the right, eats once
 * and puts both back.
 *
 * If all hold their left fork, each waits for the next one for ever: a deadlock.
 *
 * One preemption is enough, whatever N is. Philosopher 0 takes fork 0 and is preempted just before the
 * pthread_mutex_lock of fork 1. If the others then come in falling order, each takes its left fork and finds the right
 * one held, philosopher N-1 by 0, N-2 by N-1, ..., 1 by 2. Those switches are free, as the thread that is left can't
 * go on. None is not enough: whoever takes the first of the forks that are held in the end finds the next one free.
 *
 * heisen: bug=deadlock preemptions=1 class=deadlock
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef N
#define N 3
#endif

static pthread_mutex_t forks[N];
static int meals[N];

static void *philosopher(void *arg) {
    int id = *(int *)arg;
    pthread_mutex_t *left = &forks[id];
    pthread_mutex_t *right = &forks[(id + 1) % N];

    pthread_mutex_lock(left);
    pthread_mutex_lock(right); /* preempt here, in one philosopher */
    meals[id]++;
    pthread_mutex_unlock(right);
    pthread_mutex_unlock(left);
    return NULL;
}

int main(void) {
    pthread_t threads[N];
    int ids[N];
    for (int i = 0; i < N; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (int i = 0; i < N; i++) {
        ids[i] = i;
        pthread_create(&threads[i], NULL, philosopher, &ids[i]);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N; i++)
        assert(meals[i] == 1);
    return 0;
}
