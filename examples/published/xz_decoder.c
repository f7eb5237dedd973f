/*
 * XZ Utils, CVE-2025-31115: a decoder's thread frees the buffer that it is still being fed through.
 *
 * liblzma from 5.3.3alpha to 5.8.0, put right in 5.8.1 by commit d5a2ffe41bb77b918a8c96084885d4dbe4bf6480. The main thread
 * copies compressed data into a buffer of the thread that decodes a block, piece by piece as it comes. That thread frees
 * the buffer when it is done, and it also is when it finds the data damaged, be it in the first piece. The main thread
 * then copies the next piece to freed memory or, if the pointer has been cleared by then, to an offset of null.
 *
 * The extract has one such thread with its buffer, and both mutexes and conditions of stream_decoder_mt.c. What is decoded
 * is a row of bytes that must not be 0. The real library is checked, too: see docs/evidence/published.md.
 *
 * One preemption is enough: between two pieces the main thread has looked for an error for the last time, and then the
 * other thread finds one. None is not: the main thread copies all pieces before it waits.
 *
 * heisen: bug=crash preemptions=1
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
    free(thr->in);
    thr->in = NULL; /* fix */

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
    memcpy(thr->in + in_filled, piece, PIECE); /* fix */
    pthread_mutex_lock(&thr->mutex);
    thr->in_filled = in_filled + PIECE;
    pthread_cond_signal(&thr->cond);
    pthread_mutex_unlock(&thr->mutex);

    pthread_mutex_lock(&thr->coder->mutex);
    bool failed = thr->coder->failed;
    pthread_mutex_unlock(&thr->coder->mutex); /* preempt here */
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
    return 0;
}
