/*
 * A parser with a bug behind four bytes of its input and a race. A message that begins with "HEIS" is looked at twice,
 * and a second thread may empty the buffer in between. Neither a search over schedules nor one over inputs finds it
 * alone.
 *
 * The message is the first argument, or else comes from standard input.
 *
 * heisen check --input stdin:8 parser.c
 * heisen check --input argv:1 parser.c -- 12345678
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char message[8];
static size_t length;

static size_t size(void) {
    pthread_mutex_lock(&lock);
    size_t now = length;
    pthread_mutex_unlock(&lock);
    return now;
}

static void *parse(void *unused) {
    (void)unused;
    if (message[0] != 'H' || message[1] != 'E' || message[2] != 'I' || message[3] != 'S') {
        return NULL;
    }
    if (size() > 4) {
        /* The buffer may be empty now: preempt here. */
        assert(size() > 4);
    }
    return NULL;
}

static void *empty(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    length = 0;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        for (length = 0; length < sizeof message && argv[1][length] != 0; length++) {
            message[length] = argv[1][length];
        }
    } else {
        ssize_t got = read(STDIN_FILENO, message, sizeof message);
        length = got > 0 ? got : 0;
    }
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, parse, NULL);
    pthread_create(&threads[1], NULL, empty, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
