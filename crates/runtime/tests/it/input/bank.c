/* Reads lines from standard input in one thread and hands them to two others. "take N" must not take more than there
   is: that is tested and done under a lock, but not under the same one hold of it. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queue[64], queued, done;
static int balance = 100;

static void take(int amount) {
    pthread_mutex_lock(&lock);
    int enough = balance >= amount;
    pthread_mutex_unlock(&lock);
    if (enough) {
        pthread_mutex_lock(&lock); /* preempt here */
        balance -= amount;
        assert(balance >= 0);
        pthread_mutex_unlock(&lock);
    }
}

static void *worker(void *argument) {
    (void)argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (queued == 0 && !done)
            pthread_cond_wait(&changed, &lock);
        if (queued == 0) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        int amount = queue[--queued];
        pthread_mutex_unlock(&lock);
        take(amount);
    }
}

static void *reader(void *argument) {
    (void)argument;
    char line[80];
    while (fgets(line, sizeof line, stdin)) {
        int amount;
        if (sscanf(line, "take %d", &amount) != 1)
            continue;
        pthread_mutex_lock(&lock);
        if (queued < 64)
            queue[queued++] = amount;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, i == 0 ? reader : worker, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
