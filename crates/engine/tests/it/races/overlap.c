// Accesses of different sizes overlap in one byte, across a boundary of 8.
// race: write wide | write narrow
#include <pthread.h>
#include <string.h>
static _Alignas(16) char bytes[16];
static void *worker(void *none) {
#ifdef CLEAN
    bytes[10] = 1;
#else
    bytes[9] = 1; // @narrow
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    struct __attribute__((packed)) { int value; } *odd = (void *)(bytes + 6);
    pthread_create(&thread, 0, worker, 0);
    odd->value = 5; // @wide
    pthread_join(thread, 0);
    return 0;
}
