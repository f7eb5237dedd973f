// What was written into a pipe is after what the writer did before.
// race: write late | read seen
#include <pthread.h>
#include <unistd.h>
static int ends[2], value, other;
static void *writer(void *none) {
    value = 1;
#ifdef CLEAN
    other = 1;
#endif
    if (write(ends[1], "x", 1) != 1) return none;
#ifndef CLEAN
    other = 1; // @late
#endif
    return none;
}
int main(void) {
    pthread_t thread;
    char byte;
    if (pipe(ends)) return 1;
    pthread_create(&thread, 0, writer, 0);
    if (read(ends[0], &byte, 1) != 1) return 1;
    int seen = value + other; // @seen
    pthread_join(thread, 0);
    return seen > 2;
}
