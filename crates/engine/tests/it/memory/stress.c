// Random calls of the malloc family by several threads, with the content of every block checked. Prints a sum over all
// content, which is the same with any allocator.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ROUNDS
#define ROUNDS 4000
#endif

enum { SLOTS = 500, THREADS = 3 };

static uint64_t sums[THREADS];

static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static size_t length(uint64_t *state) {
    uint32_t kind = next(state) % 100;
    if (kind < 80) return next(state) % 300;
    if (kind < 98) return next(state) % 20000;
    return next(state) % 400000;
}

static void *work(void *number) {
    uint64_t state = (uint64_t)number + 99, sum = 0;
    unsigned char *blocks[SLOTS] = {0}, fill[SLOTS] = {0};
    size_t sizes[SLOTS] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        int k = next(&state) % SLOTS;
        size_t n = length(&state);
        for (size_t at = 0; at < sizes[k]; at++)
            if (blocks[k][at] != fill[k]) {
                printf("a block of %zu bytes has lost its content\n", sizes[k]);
                exit(1);
            }
        size_t kept = 0;
        switch (next(&state) % 5) {
        case 0:
            kept = n < sizes[k] ? n : sizes[k];
            blocks[k] = realloc(blocks[k], n + 1);
            for (size_t at = 0; at < kept; at++) sum += blocks[k][at];
            break;
        case 1:
            free(blocks[k]);
            blocks[k] = calloc(n + 1, 1);
            for (size_t at = 0; at <= n; at++) sum += blocks[k][at];
            break;
        case 2:
            free(blocks[k]);
            blocks[k] = memalign((size_t)1 << next(&state) % 14, n + 1);
            break;
        default:
            free(blocks[k]);
            blocks[k] = malloc(n + 1);
        }
        sizes[k] = n + 1;
        fill[k] = (unsigned char)next(&state);
        memset(blocks[k], fill[k], sizes[k]);
        sum = sum * 31 + fill[k];
        if (i % 500 == 0) sched_yield();
    }
    for (int k = 0; k < SLOTS; k++) free(blocks[k]);
    sums[(uintptr_t)number] = sum;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) freopen(argv[1], "w", stdout);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) printf("%016llx\n", (unsigned long long)sums[i]);
    return 0;
}
