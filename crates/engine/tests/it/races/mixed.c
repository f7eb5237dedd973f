// An atomic and a plain access of the same variable race.
// race: atomic write store | read load
#include <pthread.h>
static int value;
static void *writer(void *none) {
    __atomic_store_n(&value, 1, __ATOMIC_SEQ_CST); // @store
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, writer, 0);
#ifdef CLEAN
    int seen = __atomic_load_n(&value, __ATOMIC_RELAXED);
#else
    int seen = value; // @load
#endif
    pthread_join(thread, 0);
    return seen > 1;
}
