// A reader looks an item up and uses it after the lock is gone, or, FIXED, while it holds it.
#include <pthread.h>
#include <stdlib.h>

struct item {
    int key, value, uses;
};

static struct item *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    struct item *found = shared;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    long value = found->value;
    pthread_mutex_unlock(&lock);
    return (void *)value;
}

static struct item *make(int value) {
    struct item *item = malloc(sizeof *item);
    *item = (struct item){1, value, 0};
    return item;
}

static void *replacer(void *unused) {
    struct item *new = make(2);
    pthread_mutex_lock(&lock);
    struct item *old = shared;
    shared = new;
    pthread_mutex_unlock(&lock);
    free(old);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    shared = make(1);
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, replacer, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    free(shared);
    return 0;
}
