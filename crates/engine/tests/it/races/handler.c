// A handler is after what the sender of the signal did before, not after what it does next.
// race: write late | read handler
#include <pthread.h>
#include <signal.h>
#include <semaphore.h>
static int value, other;
static int sum;
static sem_t handled;
static void handle(int number) {
    sum = value + other + number; // @handler
    sem_post(&handled);
}
static void *worker(void *none) {
    sem_wait(&handled);
    return none;
}
int main(void) {
    pthread_t thread;
    signal(SIGUSR1, handle);
    sem_init(&handled, 0, 0);
    pthread_create(&thread, 0, worker, 0);
    value = 1;
#ifdef CLEAN
    other = 1;
#endif
    pthread_kill(thread, SIGUSR1);
#ifndef CLEAN
    other = 1; // @late
#endif
    pthread_join(thread, 0);
    return sum == 0;
}
