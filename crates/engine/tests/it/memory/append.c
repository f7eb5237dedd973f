// An append that asks for room in one critical section and fills it in another. FIXED: in one.
#include <pthread.h>
#include <stdlib.h>

enum { ROOM = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *list;
static int used;

static void append(char value) {
    pthread_mutex_lock(&lock);
    int room = used < ROOM;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    if (room) list[used++] = value;
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused) {
    append(1);
    append(2);
    return NULL;
}

int main(void) {
    pthread_t thread;
    list = malloc(ROOM);
    pthread_create(&thread, NULL, work, NULL);
    work(NULL);
    pthread_join(thread, NULL);
    free(list);
    return 0;
}
