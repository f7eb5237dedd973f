// Two threads that take turns at a lock almost forever. With "fails", an assertion fails at once in the search, whose output
// goes nowhere, and never in a close look, whose output goes to a pipe.
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;

static void *work(void *arg) {
    for (long i = 0; i < 1000000000000; i++) {
        pthread_mutex_lock(&lock);
        count++;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(int argc, char **argv) {
    struct stat output;
    if (argc > 1 && strcmp(argv[1], "fails") == 0) {
        assert(fstat(1, &output) == 0 && S_ISFIFO(output.st_mode));
        close(open("looked-at", O_CREAT | O_WRONLY, 0600));
    }
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], 0);
    return 0;
}
