/* Three philosophers, each with the left fork first. They think before, and not all as long. */
#include <pthread.h>
#include <stdint.h>
static pthread_mutex_t fork[3] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
};
static void *philosopher(void *arg) {
    static __thread pthread_mutex_t thought = PTHREAD_MUTEX_INITIALIZER;
    intptr_t left = (intptr_t)arg, right = (left + 1) % 3;
    for (int i = 0; i < 20 + 150 * left; i++) {
        pthread_mutex_lock(&thought);
        pthread_mutex_unlock(&thought);
    }
    pthread_mutex_lock(&fork[left]);
    pthread_mutex_lock(&fork[right]);
    pthread_mutex_unlock(&fork[right]);
    pthread_mutex_unlock(&fork[left]);
    return arg;
}
int main(void) {
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++) pthread_create(&threads[i], 0, philosopher, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
