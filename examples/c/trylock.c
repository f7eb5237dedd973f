/*
 * A counter whose updates are combined: a thread announces its amount and, if it gets the lock, adds up all that has
 * been announced. A thread that does not get the lock goes away: whoever holds it will see to the amount.
 *
 * The bug shows only if pthread_mutex_trylock fails at the wrong moment: when the holder has already taken what was
 * announced and is about to unlock. Nobody then sees to the late amount.
 *
 * One preemption is enough, just before the holder's pthread_mutex_unlock: the other thread announces, fails to get
 * the lock and ends. None is not enough: trylock then never fails.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int announced;
static int total;

static void add(int amount) {
    atomic_fetch_add(&announced, amount);
    if (pthread_mutex_trylock(&lock) == 0) {
        total += atomic_exchange(&announced, 0);
        pthread_mutex_unlock(&lock); /* preempt here */
    }
}

static void *adder(void *amount) {
    add(*(int *)amount);
    return NULL;
}

int main(void) {
    int amounts[2] = {3, 4};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, adder, &amounts[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(total == 7);
    return 0;
}
