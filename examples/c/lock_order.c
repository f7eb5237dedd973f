/*
 * Transfers between two accounts, each with its own lock, while a third thread prints statements.
 *
 * A transfer locks the account it takes from, then the one it gives to. Two transfers in opposite directions so take
 * the two locks in opposite order, and each may end up holding the one and waiting for the other: a deadlock. The
 * clerk holds one lock at a time; it is no part of the circle, only one thread more to choose from.
 *
 * One preemption is enough, just before the second pthread_mutex_lock of a transfer: the opposite transfer then takes
 * its first lock and blocks at its second, and the preempted one can't go on either. None is not enough: a transfer
 * that is not preempted meets no lock that is held, and leaves none held.
 *
 * heisen: bug=deadlock preemptions=1 class=deadlock
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account a = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account b = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(struct account *from, struct account *to, int amount) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock); /* preempt here */
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *forth(void *arg) {
    (void)arg;
    transfer(&a, &b, 10);
    return NULL;
}

static void *back(void *arg) {
    (void)arg;
    transfer(&b, &a, 30);
    return NULL;
}

static void *clerk(void *arg) {
    (void)arg;
    pthread_mutex_lock(&a.lock);
    assert(a.balance >= 90);
    pthread_mutex_unlock(&a.lock);
    return NULL;
}

int main(void) {
    void *(*const roles[3])(void *) = {forth, clerk, back};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, roles[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(a.balance == 120 && b.balance == 80);
    return 0;
}
