// Readers of a read-write lock are not ordered with each other, but with writers. A reader that writes races.
// race: read count | write count
// race: write count | write count
// race: read writer | write count
// race: write writer | write count
// race: write writer | read count
#include <pthread.h>
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int counter, total;
static void *reader(void *none) {
    pthread_rwlock_rdlock(&lock);
    int seen = total;
#ifndef CLEAN
    counter++; // @count
#endif
    pthread_rwlock_unlock(&lock);
    return seen > 1 ? none : 0;
}
static void *writer(void *none) {
    pthread_rwlock_wrlock(&lock);
    total++;
    pthread_rwlock_unlock(&lock);
#ifdef CLEAN
    pthread_rwlock_wrlock(&lock);
    counter++;
    pthread_rwlock_unlock(&lock);
#else
    counter++; // @writer
#endif
    return none;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, i ? reader : writer, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
