/*
 * trylock.c put right: after it has unlocked, a thread looks once more whether something was announced meanwhile, and
 * if so tries again.
 *
 * heisen: clean
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
    while (atomic_load(&announced) != 0 && pthread_mutex_trylock(&lock) == 0) {
        total += atomic_exchange(&announced, 0);
        pthread_mutex_unlock(&lock);
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
