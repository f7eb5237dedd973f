// A structure is copied whole, while another thread writes one field of it.
// race: write field | read copy
#include <pthread.h>
#include <string.h>
struct point {
    long x, y, z;
};
static struct point p, q;
static void *worker(void *none) {
#ifdef CLEAN
    q.x = 1;
#else
    p.z = 1; // @field
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    struct point mine;
    pthread_create(&thread, 0, worker, 0);
    memcpy(&mine, &p, sizeof mine); // @copy
    pthread_join(thread, 0);
    return mine.x + q.y > 1;
}
