/*
 * pool.c put right: the semaphore starts with the number of connections.
 *
 * heisen: clean
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
    pthread_mutex_lock(&lock);
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
    sem_init(&available, 0, CONNECTIONS);
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&threads[i], NULL, client, NULL);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&available);
    return 0;
}
