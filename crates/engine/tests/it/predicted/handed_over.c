/* Two locks in both orders. A flag that is looked at under a lock of its own keeps them apart, which no order of locks
   shows: nothing to be found, but a hint. */
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t flag = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *forward(void *arg) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    pthread_mutex_lock(&flag);
    done = 1;
    pthread_mutex_unlock(&flag);
    return arg;
}
static void *backward(void *arg) {
    pthread_mutex_lock(&flag);
    int over = done;
    pthread_mutex_unlock(&flag);
    if (over) {
        pthread_mutex_lock(&b);
        pthread_mutex_lock(&a);
        pthread_mutex_unlock(&a);
        pthread_mutex_unlock(&b);
    }
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
