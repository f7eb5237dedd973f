// Two threads may close a connection: whether it is open is asked in one critical section and changed in another. FIXED:
// in one.
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *buffer;
static int open = 1;

static void *closer(void *unused) {
    pthread_mutex_lock(&lock);
    int was = open;
#ifdef FIXED
    open = 0;
    pthread_mutex_unlock(&lock);
    if (was) free(buffer);
#else
    pthread_mutex_unlock(&lock);
    if (was) {
        free(buffer);
        pthread_mutex_lock(&lock);
        open = 0;
        pthread_mutex_unlock(&lock);
    }
#endif
    return NULL;
}

int main(void) {
    pthread_t thread;
    buffer = malloc(100);
    pthread_create(&thread, NULL, closer, NULL);
    closer(NULL);
    pthread_join(thread, NULL);
    return 0;
}
