// Three philosophers eat once; each takes the fork with the lower number first.
#include <pthread.h>
static pthread_mutex_t forks[3];
static void *eat(void *me) {
    long left = (long)me, right = (left + 1) % 3;
    pthread_mutex_t *first = &forks[left < right ? left : right], *second = &forks[left < right ? right : left];
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_mutex_init(&forks[i], 0);
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, eat, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
