/* Two locks in both orders, after and before many quiet steps. */
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void quiet(int steps) {
    static __thread pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < steps; i++) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
}
static void *forward(void *arg) {
    quiet(10);
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    quiet(200);
    return arg;
}
static void *backward(void *arg) {
    quiet(200);
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return arg;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, forward, 0);
    pthread_create(&two, 0, backward, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
