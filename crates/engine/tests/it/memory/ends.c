/* A thread says that it is ready, and only then writes memory that main ends. Compiled with FIXED, it writes before. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 16 };

static sem_t ready;
static char *memory;
static size_t offset;

static void *write_it(void *unused) {
#ifdef FIXED
    memory[offset] = 1;
    sem_post(&ready);
#else
    sem_post(&ready);
    memory[offset] = 1;
#endif
    return unused;
}

static void *map(void *at, int rights, int flags) {
    void *mapped = mmap(at, SIZE, rights, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    assert(mapped != MAP_FAILED);
    return mapped;
}

int main(int count, char **args) {
    assert(count == 3);
    int is_block = !strcmp(args[1], "free") || !strcmp(args[1], "realloc") || !strcmp(args[1], "smaller");
    memory = is_block ? malloc(SIZE) : map(NULL, PROT_READ | PROT_WRITE, 0);
    offset = strtoul(args[2], NULL, 10);
    sem_init(&ready, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, write_it, NULL);
    sem_wait(&ready);
    if (!strcmp(args[1], "free"))
        free(memory);
    else if (!strcmp(args[1], "realloc"))
        free(realloc(memory, 2 * SIZE));
    else if (!strcmp(args[1], "smaller"))
        memory = realloc(memory, SIZE / 2);
    else if (!strcmp(args[1], "munmap"))
        munmap(memory, SIZE);
    else if (!strcmp(args[1], "protect"))
        mprotect(memory, SIZE, PROT_READ);
    else if (!strcmp(args[1], "fixed"))
        map(memory, PROT_NONE, MAP_FIXED);
    else if (!strcmp(args[1], "shrink"))
        assert(mremap(memory, SIZE, 4096, 0) == memory);
    else
        assert(mremap(memory, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, map(NULL, PROT_NONE, 0)) != memory);
    pthread_join(thread, NULL);
    return 0;
}
