/*
 * A pool of two connections for three clients. A semaphore counts the free ones, so that who has passed it is sure to
 * find one.
 *
 * The semaphore starts one too high. A third client so passes it while both connections are in use, finds none, and
 * the program ends with status 1.
 *
 * Two preemptions are needed, one for each client that is to keep its connection: just before the pthread_mutex_lock
 * of put_back(), say. Without one, a client gives its connection back before another runs.
 *
 * heisen: bug=exit-status preemptions=2 class=atomicity-violation
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS = 2, CLIENTS = 3 };

static sem_t available;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool in_use[CONNECTIONS];

static int take_out(void) {
    sem_wait(&available);
    pthread_mutex_lock(&lock);
    int connection = 0;
    while (connection < CONNECTIONS && in_use[connection])
        connection++;
    if (connection == CONNECTIONS) {
        fprintf(stderr, "no connection left\n");
        exit(1);
    }
    in_use[connection] = true;
    pthread_mutex_unlock(&lock);
    return connection;
}

static void put_back(int connection) {
    pthread_mutex_lock(&lock); /* preempt here, in two clients */
    in_use[connection] = false;
    pthread_mutex_unlock(&lock);
    sem_post(&available);
}

static void *client(void *arg) {
    (void)arg;
    int connection = take_out();
    put_back(connection);
    return NULL;
}

int main(void) {
    pthread_t threads[CLIENTS];
    sem_init(&available, 0, CONNECTIONS + 1);
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&threads[i], NULL, client, NULL);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&available);
    return 0;
}
