// One memory error each, by name, without any threads.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char global[64] __attribute__((aligned(64)));
static char *volatile p, *volatile q;
static volatile size_t size = 20;
static void (*volatile give)(void *) = free;

// Not instrumented, and so is what it calls.
__attribute__((noinline, no_sanitize_thread)) static void copy(char *to, const char *from) { strcpy(to, from); }

static int is(const char *name, const char *what) { return !strcmp(name, what); }

int main(int argc, char **argv) {
    const char *name = argv[1];
    char local[64] __attribute__((aligned(64)));
    p = malloc(20);
    memset(p, 1, 20);
    if (argc > 2) close(1), close(2);
    if (is(name, "read-after-free")) free(p), q = (char *)(intptr_t)p[3];
    if (is(name, "write-after-free")) free(p), *(long *)(p + 8) = 7;
    if (is(name, "double-free")) free(p), give(p);
    if (is(name, "double-free-later")) {
        free(p);
        for (int i = 0; i < 1000; i++) free(malloc(20));
        give(p);
    }
    if (is(name, "free-inside")) give(p + 16);
    if (is(name, "free-odd")) give(p + 3);
    if (is(name, "free-stack")) give(local);
    if (is(name, "free-stack-16")) give(local + 16);
    if (is(name, "free-global")) give(global);
    if (is(name, "free-code")) give((void *)main);
    if (is(name, "free-small-number")) give((void *)0x1230);
    if (is(name, "free-mapping")) give(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (is(name, "free-nowhere")) give((void *)0x601f00000010);
    if (is(name, "overflow-read")) q = (char *)(intptr_t)p[20];
    if (is(name, "overflow-write")) p[20] = 1;
    if (is(name, "overflow-far")) p[31 + 40] = 1;
    if (is(name, "overflow-half")) *(int64_t *)(p + 16) = 1;
    if (is(name, "underflow")) p[-1] = 1;
    if (is(name, "empty")) q = malloc(0), *q = 1;
    if (is(name, "large")) q = malloc(1 << 20), q[1 << 20] = 1;
    if (is(name, "large-after-free")) q = malloc(1 << 20), free(q), q[5000] = 1;
    if (is(name, "aligned")) q = memalign(256, 100), q[100] = 1;
    if (is(name, "aligned-after-free")) q = memalign(256, 100), free(q), q[99] = 1;
    if (is(name, "shrunk")) q = realloc(p, 10), q[10] = 1;
    if (is(name, "stale")) q = realloc(p, 1000), p[0] = 1;
    if (is(name, "realloc-freed")) free(p), q = realloc(p, 100);
    if (is(name, "realloc-inside")) q = realloc(p + 4, 100);
    if (is(name, "size-freed")) free(p), q = (char *)malloc_usable_size(p);
    // By functions of the C library.
    if (is(name, "memset-overflow")) memset(p, 1, 21);
    if (is(name, "memset-large")) q = malloc(300000), memset(q, 1, 300001);
    if (is(name, "memcpy-overflow")) memcpy(global, p + 10, 11);
    if (is(name, "memcpy-after-free")) free(p), memcpy(global, p, 20);
    if (is(name, "memcpy-to-freed")) free(p), memcpy(p, global, 5);
    if (is(name, "memmove-after-free")) free(p), memmove(global, p, 20);
    if (is(name, "memcmp-after-free")) free(p), q = (char *)(intptr_t)memcmp(p, global, size);
    if (is(name, "strlen-after-free")) p[9] = 0, free(p), q = (char *)strlen(p);
    if (is(name, "strlen-large")) q = malloc(300000), free(q), q = (char *)strlen(q);
    if (is(name, "strcpy-overflow")) strcpy(p, "twenty characters...");
    if (is(name, "strncpy-overflow")) strncpy(p, "few", size + 1);
    if (is(name, "strcat-overflow")) strcpy(p, "ten chars."), strcat(p, "ten chars.");
    if (is(name, "strdup-after-free")) p[9] = 0, free(p), q = strdup(p);
    // By code that is not instrumented: noticed when the block is freed.
    if (is(name, "trampled")) copy(p, "twenty characters...."), free(p);
    if (is(name, "trampled-record")) q = malloc(32), memset(q, 'x', 32), copy(q + 31, "xx"), free(q);
    if (is(name, "leak")) p = NULL;
    if (is(name, "leak-list")) {
        char **node = malloc(sizeof *node), **first = node;
        for (int i = 0; i < 9; i++) node = (char **)(*node = malloc(sizeof *node));
        *node = NULL;
        if (first == (char **)global) return 3;
        first = node = NULL;
        free(p);
    }
    if (is(name, "reachable")) {
        // From a variable, through another block, from inside, from a mapping and from the stack.
        char **chain = malloc(100);
        chain[3] = (char *)malloc(50) + 20;
        q = (char *)chain;
        char **mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mapped[700] = malloc(7);
        char *volatile here = malloc(70);
        exit(here == NULL);
    }
    return 0;
}
