/* Reads the first byte of standard input before it is ready, and then the rest, to the end, in each execution. */
#include "heisen.h"
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *nothing(void *argument) { return argument; }

int main(void) {
    char text[16] = "";
    assert(read(0, text, 1) == 1 && text[0] == 'a');
    heisen_ready();
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    struct stat stat;
    assert(fstat(0, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size == 4);
    assert(write(0, "x", 1) == -1);
    assert(read(0, text, sizeof text) == 3 && memcmp(text, "bcd", 3) == 0);
    assert(read(0, text, sizeof text) == 0);
    pthread_join(thread, NULL);
    return 0;
}
