/*
 * account.c put right: the balance is read and written back in one critical section.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static void deposit(int amount) {
    pthread_mutex_lock(&lock);
    balance += amount;
    pthread_mutex_unlock(&lock);
}

static void *depositor(void *amount) {
    deposit(*(int *)amount);
    return NULL;
}

int main(void) {
    int amounts[2] = {100, 50};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, depositor, &amounts[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(balance == 150);
    return 0;
}
