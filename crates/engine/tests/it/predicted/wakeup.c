/* A signal that the other thread waits for, late; with LOOKS it looks first whether it has to. With BARE it looks, but
   the flag is set without the mutex. */
#include <pthread.h>
#include <stdatomic.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static atomic_int done;
static void quiet(int steps) {
    static __thread pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < steps; i++) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
}
static void *waits(void *arg) {
    pthread_mutex_lock(&mutex);
#if defined LOOKS || defined BARE
    while (!done)
#endif
        pthread_cond_wait(&ready, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}
static void *signals(void *arg) {
    quiet(200);
#ifdef BARE
    done = 1;
    pthread_cond_signal(&ready);
#else
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&mutex);
#endif
    return arg;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, waits, 0);
    pthread_create(&two, 0, signals, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
