/*
 * A bank account with two depositors.
 *
 * deposit() reads the balance in one critical section and writes the new one in a second. Every access is under the
 * lock, so there is no data race, yet what was read may be out of date by the time it is written back: a deposit of
 * the other thread in between is lost.
 *
 * One preemption is enough, just before the second pthread_mutex_lock of deposit(): the other thread then makes its
 * whole deposit and ends, and the first writes back its old sum. None is not enough, as neither thread ever blocks
 * when they run one after the other.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static void deposit(int amount) {
    pthread_mutex_lock(&lock);
    int sum = balance;
    pthread_mutex_unlock(&lock);

    sum += amount;

    pthread_mutex_lock(&lock); /* preempt here */
    balance = sum;
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
