// Bit-fields that are neighbours share a byte: to write one is to write the other.
// race: write a | write b
#include <pthread.h>
static struct {
    unsigned a : 4;
#ifdef CLEAN
    unsigned : 0;
#endif
    unsigned b : 4;
} s;
static void *worker(void *none) {
    s.a = 1; // @a
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    s.b = 2; // @b
    pthread_join(thread, 0);
    return 0;
}
