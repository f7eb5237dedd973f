// Nothing races: what `pthread_once` orders stays ordered, whatever is done to the bytes beside its control word.
#include <pthread.h>
static struct {
    pthread_once_t once;
    int neighbour;
} __attribute__((aligned(8))) both = {PTHREAD_ONCE_INIT, 0};
static int data;
static void initialise(void) {
    both.neighbour = 1;
    data = 1;
}
static void *worker(void *none) {
    pthread_once(&both.once, initialise);
    return data ? none : (void *)1;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_once(&both.once, initialise);
    int seen = data;
    pthread_join(thread, 0);
    return seen != 1;
}
