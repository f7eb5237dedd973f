// Whoever passes pthread_once is after the initialiser; who does not call it is not.
// race: write init | read use
#include <pthread.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int value;
static void init(void) {
    value = 42; // @init
}
static void *worker(void *none) {
    pthread_once(&once, init);
    return value == 42 ? none : 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
#ifdef CLEAN
    pthread_once(&once, init);
#endif
    int seen = value; // @use
    pthread_join(thread, 0);
    return seen > 42;
}
