/*
 * xz_decoder.c put right, as in XZ Utils 5.8.1: after an error the buffer is left to the main thread, which frees it when
 * no thread is left.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 8, PIECE = 4 };

struct coder {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done, failed;
};

struct worker {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct coder *coder;
    unsigned char *in;
    size_t in_filled, in_pos;
};

static void *worker_decoder(void *arg) {
    struct worker *thr = arg;
    bool failed = false;
    while (!failed && thr->in_pos < BLOCK) {
        pthread_mutex_lock(&thr->mutex);
        while (thr->in_filled == thr->in_pos)
            pthread_cond_wait(&thr->cond, &thr->mutex);
        size_t in_filled = thr->in_filled;
        pthread_mutex_unlock(&thr->mutex);

        while (!failed && thr->in_pos < in_filled)
            failed = thr->in[thr->in_pos++] == 0;
    }
    if (!failed) {
        free(thr->in);
        thr->in = NULL;
    }

    pthread_mutex_lock(&thr->coder->mutex);
    thr->coder->done = true;
    thr->coder->failed = failed;
    pthread_cond_signal(&thr->coder->cond);
    pthread_mutex_unlock(&thr->coder->mutex);
    return NULL;
}

/* Gives the thread another piece, and says whether it has failed. */
static bool feed(struct worker *thr, const unsigned char *piece) {
    size_t in_filled = thr->in_filled;
    memcpy(thr->in + in_filled, piece, PIECE);
    pthread_mutex_lock(&thr->mutex);
    thr->in_filled = in_filled + PIECE;
    pthread_cond_signal(&thr->cond);
    pthread_mutex_unlock(&thr->mutex);

    pthread_mutex_lock(&thr->coder->mutex);
    bool failed = thr->coder->failed;
    pthread_mutex_unlock(&thr->coder->mutex);
    return failed;
}

int main(void) {
    static const unsigned char damaged[BLOCK] = {1, 0, 3, 4, 5, 6, 7, 8};
    struct coder coder = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
    struct worker thr = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, &coder, malloc(BLOCK), 0, 0};
    pthread_t thread;
    pthread_create(&thread, NULL, worker_decoder, &thr);

    bool failed = false;
    for (size_t at = 0; !failed && at < BLOCK; at += PIECE)
        failed = feed(&thr, damaged + at);
    pthread_mutex_lock(&coder.mutex);
    while (!coder.done)
        pthread_cond_wait(&coder.cond, &coder.mutex);
    assert(coder.failed);
    pthread_mutex_unlock(&coder.mutex);
    pthread_join(thread, NULL);
    free(thr.in);
    return 0;
}
