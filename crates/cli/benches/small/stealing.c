// The owner of a queue puts two items in and takes them out; another thread steals one. The last is fought for under a lock.
#include <pthread.h>
#include <stdatomic.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_long head, tail, items[4];
static void put(long item) {
    long at = atomic_load(&tail);
    atomic_store(&items[at], item);
    atomic_store(&tail, at + 1);
}
static long take(void) {
    long at = atomic_load(&tail) - 1;
    atomic_store(&tail, at);
    if (atomic_load(&head) <= at) return atomic_load(&items[at]);
    pthread_mutex_lock(&lock);
    long item = -1;
    if (atomic_load(&head) <= at) item = atomic_load(&items[at]);
    else atomic_store(&tail, at + 1);
    pthread_mutex_unlock(&lock);
    return item;
}
static long steal(void) {
    pthread_mutex_lock(&lock);
    long at = atomic_load(&head), item = -1;
    atomic_store(&head, at + 1);
    if (at + 1 <= atomic_load(&tail)) item = atomic_load(&items[at]);
    else atomic_store(&head, at);
    pthread_mutex_unlock(&lock);
    return item;
}
static void *thief(void *unused) {
    steal();
    return unused;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, thief, 0);
    put(1);
    put(2);
    take();
    take();
    pthread_join(other, 0);
    return 0;
}
