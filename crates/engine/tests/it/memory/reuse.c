// Two threads that have nothing to do with each other use the same memory, one after the other: what the allocator, or the
// kernel, gives is new. With RACE there is a race as well, in a block of its own.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *way;
static char *address[2];
static char *shared;

static int is(const char *what) { return !strcmp(way, what); }

static char *take(size_t size) {
    char *p = NULL;
    if (is("malloc")) p = malloc(size);
    if (is("calloc")) p = calloc(1, size);
    if (is("realloc")) p = realloc(malloc(size / 2), size);
    if (is("reallocarray")) p = reallocarray(NULL, 2, size / 2);
    if (is("aligned_alloc")) p = aligned_alloc(64, size / 64 * 64);
    if (is("posix_memalign") && posix_memalign((void **)&p, 64, size)) abort();
    if (is("mmap")) p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (is("mmap64")) p = mmap64(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (is("mremap")) {
        p = mmap(0, size / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p = mremap(p, size / 2, size, MREMAP_MAYMOVE);
    }
    return p;
}

static void give(char *p, size_t size) {
    if (is("mmap") || is("mmap64") || is("mremap")) {
        munmap(p, size);
    } else {
        free(p);
    }
}

static void *worker(void *number) {
    // Too large for what threads keep to themselves; and one that covers whole pages of what is remembered.
    const size_t sizes[] = {8192, 1 << 17};
    for (int i = 0; i < 2; i++) {
        char *p = take(sizes[i]);
        for (size_t at = 0; at < sizes[i]; at += 16) *(long *)(p + at) = 1;
        address[(long)number] = p;
        give(p, sizes[i]);
    }
#ifdef RACE
    shared[70000]++;
#endif
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    way = argv[1];
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    shared = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, worker, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    // Under the default schedule, and without a heap that keeps what was freed, both have had much the same.
    return argc > 2 && labs(address[0] - address[1]) > 1 << 16;
}
