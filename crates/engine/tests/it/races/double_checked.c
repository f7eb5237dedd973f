// Double-checked locking: the first check is not ordered with the initialisation.
// race: read check | write set
// race: read use | write init
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int value, ready;
static int is_ready(void) {
#ifdef CLEAN
    return __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
#else
    return ready; // @check
#endif
}
static void *get(void *none) {
    if (!is_ready()) {
        pthread_mutex_lock(&lock);
        if (!__atomic_load_n(&ready, __ATOMIC_RELAXED)) {
            value = 42; // @init
#ifdef CLEAN
            __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
#else
            ready = 1; // @set
#endif
        }
        pthread_mutex_unlock(&lock);
    }
    int seen = value; // @use
    return seen == 42 ? none : (void *)1;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, get, 0);
    get(0);
    pthread_join(thread, 0);
    return 0;
}
