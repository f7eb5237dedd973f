/* What it does depends on the processor time that it has used. */
#include <pthread.h>
#include <time.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    for (int i = 0; i < 2; i++) {
        if (used.tv_nsec / 64 % 2) {
            pthread_mutex_lock(&first); /* now and then */
            pthread_mutex_unlock(&first);
        }
        pthread_mutex_lock(&second);
        pthread_mutex_unlock(&second);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
