// Bytes next to each other are different variables.
#include <pthread.h>
static struct {
    char a, b;
    short c;
    int d;
} s;
static void *worker(void *none) {
    s.a = 1;
    s.c = 2;
    s.a++;
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    s.b = 1;
    s.d = 2;
    s.b++;
    pthread_join(thread, 0);
    return s.a + s.b + s.c + s.d != 8;
}
