/*
 * lock_order.c put right: a transfer locks the account with the lower number first, whichever way the money goes.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

struct account {
    pthread_mutex_t lock;
    int number;
    int balance;
};

static struct account a = {PTHREAD_MUTEX_INITIALIZER, 1, 100};
static struct account b = {PTHREAD_MUTEX_INITIALIZER, 2, 100};

static void transfer(struct account *from, struct account *to, int amount) {
    struct account *first = from->number < to->number ? from : to;
    struct account *second = first == from ? to : from;
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
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
