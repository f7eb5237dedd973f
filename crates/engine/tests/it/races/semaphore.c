// A post is before the wait that it lets pass; what comes after the post is not.
// race: write late | read seen
#include <pthread.h>
#include <semaphore.h>
static sem_t full;
static int value, other;
static void *producer(void *none) {
    value = 1;
#ifdef CLEAN
    other = 1;
#endif
    sem_post(&full);
#ifndef CLEAN
    other = 1; // @late
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    sem_init(&full, 0, 0);
    pthread_create(&thread, 0, producer, 0);
    sem_wait(&full);
    int seen = value + other; // @seen
    pthread_join(thread, 0);
    return seen > 2;
}
