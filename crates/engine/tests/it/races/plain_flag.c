// The flag is not even atomic: both the flag and the message race.
// race: write flag | read flag_seen
// race: write data | read data_seen
#include <pthread.h>
static int data, flag;
static void *sender(void *none) {
    data = 1; // @data
#ifdef CLEAN
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
#else
    flag = 1; // @flag
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sender, 0);
    int seen = 0;
#ifdef CLEAN
    int there = __atomic_load_n(&flag, __ATOMIC_ACQUIRE);
#else
    int there = flag; // @flag_seen
#endif
    if (there)
        seen = data; // @data_seen
    pthread_join(thread, 0);
    return seen > 1;
}
