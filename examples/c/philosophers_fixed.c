/*
 * philosophers.c put right: everyone takes the fork with the lower number first, so the philosopher between the last
 * fork and fork 0 goes the other way round, and no circle of waiting can close.
 *
 * heisen: clean
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
    int next = (id + 1) % N;
    pthread_mutex_t *first = &forks[id < next ? id : next];
    pthread_mutex_t *second = &forks[id < next ? next : id];

    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    meals[id]++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
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
