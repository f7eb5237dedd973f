// The rules of the malloc family, as glibc has them: prints what they lead to, which must be the same with any allocator.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define CHECK(what) printf("%3d %s\n", __LINE__, (what) ? "yes" : "NO: " #what)

static int zeros(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i]) return 0;
    return 1;
}

static int aligned(void *p, size_t to) { return p && (uintptr_t)p % to == 0; }

// So that the compiler does not know what is asked for.
static volatile size_t zero = 0, huge = (size_t)1 << 47, most = SIZE_MAX;

// Nothing can be linked with it any more, but old programs have it.
void cfree(void *) __attribute__((weak));

int main(int argc, char **argv) {
    if (argc > 1) freopen(argv[1], "w", stdout);
    // malloc
    char *a = malloc(zero), *b = malloc(zero);
    CHECK(a && b && a != b);
    CHECK(aligned(a, 16) && aligned(b, 16));
    free(a);
    free(b);
    for (size_t n = 1; n < 3000; n += 7) {
        char *p = malloc(n);
        if (!aligned(p, 16) || malloc_usable_size(p) < n) CHECK(!"aligned and large enough");
        memset(p, 0xff, n);
        free(p);
    }
    errno = 0;
    CHECK(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(malloc(most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(malloc(most / 2) == NULL && errno == ENOMEM);
    errno = 17;
    free(NULL);
    free(malloc(10));
    CHECK(errno == 17);
    if (cfree) cfree(malloc(10));

    // calloc
    a = calloc(zero, 10);
    b = calloc(10, zero);
    CHECK(a && b);
    free(a);
    free(b);
    errno = 0;
    CHECK(calloc(most / 2, 3) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(most, most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(1, huge) == NULL && errno == ENOMEM);
    for (int round = 0; round < 20; round++)
        for (size_t n = 1; n < 300000; n = n * 3 + 1) {
            unsigned char *p = calloc(n, 1);
            if (!p || !zeros(p, n)) CHECK(!"zeros");
            memset(p, 0xaa, n);
            free(p);
        }

    // realloc
    a = realloc(NULL, 20);
    CHECK(a != NULL);
    memcpy(a, "0123456789012345678", 20);
    a = realloc(a, 200000);
    CHECK(a && !strcmp(a, "0123456789012345678"));
    memset(a + 20, 7, 200000 - 20);
    a = realloc(a, 10000);
    CHECK(a && !strcmp(a, "0123456789012345678") && a[9999] == 7);
    a = realloc(a, 10010);
    CHECK(a && a[9999] == 7);
    a = realloc(a, 5);
    CHECK(a && !memcmp(a, "01234", 5));
    errno = 0;
    CHECK(realloc(a, huge) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(realloc(a, most) == NULL && errno == ENOMEM);
    CHECK(!memcmp(a, "01234", 5));
    CHECK(realloc(a, zero) == NULL);
    a = realloc(NULL, zero);
    CHECK(a != NULL);
    free(a);
    errno = 0;
    CHECK(reallocarray(NULL, most / 2, 3) == NULL && errno == ENOMEM);
    a = reallocarray(NULL, 5, 5);
    CHECK(a && malloc_usable_size(a) >= 25);
    strcpy(a, "twenty-four characters..");
    a = reallocarray(a, 50, 50);
    CHECK(a && !strcmp(a, "twenty-four characters.."));
    free(a);
    // Byte by byte: it must not take for ever.
    a = malloc(1);
    for (size_t n = 1; n < 30000; n++) {
        a = realloc(a, n);
        a[n - 1] = (char)n;
    }
    int same = 1;
    for (size_t n = 1; n < 30000; n++) same &= a[n - 1] == (char)n;
    CHECK(same);
    free(a);

    // Alignment
    for (size_t to = 1; to <= 1 << 22; to *= 2) {
        for (size_t n = 0; n < 70000; n = n * 5 + 3) {
            char *p = memalign(to, n), *q = aligned_alloc(to, n);
            if (!aligned(p, to) || !aligned(p, 16) || !aligned(q, to)) CHECK(!"aligned");
            if (malloc_usable_size(p) < n) CHECK(!"large enough");
            memset(p, 1, n);
            memset(q, 2, n);
            p = realloc(p, n + 100);
            if (!p || (n && (p[0] != 1 || p[n - 1] != 1))) CHECK(!"moved with its content");
            free(p);
            free(q);
        }
    }
    a = memalign(3, 100);
    CHECK(aligned(a, 4));
    free(a);
    a = memalign(zero, 100);
    CHECK(aligned(a, 16));
    free(a);
    errno = 0;
    CHECK(memalign(most, 10) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(memalign(64, most - 10) == NULL && errno == ENOMEM);
    void *p = &p;
    for (size_t to = 0; to < 8; to++) CHECK(posix_memalign(&p, to, 10) == EINVAL && p == &p);
    CHECK(posix_memalign(&p, 24, 10) == EINVAL && p == &p);
    CHECK(posix_memalign(&p, 8, 10) == 0 && aligned(p, 16));
    free(p);
    CHECK(posix_memalign(&p, 1 << 16, 10) == 0 && aligned(p, 1 << 16));
    free(p);
    p = &p;
    errno = 17;
    CHECK(posix_memalign(&p, 64, most - 1000) == ENOMEM && p == &p);
    CHECK(posix_memalign(&p, 64, 0) == 0);
    free(p);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    a = valloc(10);
    b = pvalloc(10);
    CHECK(aligned(a, page) && aligned(b, page) && malloc_usable_size(b) >= page);
    memset(b, 3, page);
    free(a);
    free(b);
    errno = 0;
    CHECK(pvalloc(most) == NULL && errno == ENOMEM);
    CHECK(malloc_usable_size(NULL) == 0);

    // What the C library allocates is freed here.
    a = strdup("duplicate");
    b = strndup("duplicate", 3);
    wchar_t *w = wcsdup(L"wide");
    CHECK(!strcmp(a, "duplicate") && !strcmp(b, "dup") && !wcscmp(w, L"wide"));
    free(w);
    free(b);
    free(a);
    CHECK(asprintf(&a, "%d-%s", 42, "x") == 4 && !strcmp(a, "42-x"));
    free(a);
    a = NULL;
    size_t room = 0;
    FILE *stream = open_memstream(&a, &room);
    for (int i = 0; i < 1000; i++) fprintf(stream, "%d,", i);
    fclose(stream);
    CHECK(room == 3890 && strlen(a) == room);
    stream = fmemopen(a, room, "r");
    char *line = NULL;
    size_t length = 0;
    CHECK(getdelim(&line, &length, ',', stream) == 2 && !strcmp(line, "0,"));
    CHECK(getline(&line, &length, stream) == 3888);
    fclose(stream);
    free(line);
    free(a);
    a = realpath("/", NULL);
    CHECK(!strcmp(a, "/"));
    free(a);
    a = getcwd(NULL, 0);
    CHECK(a && a[0] == '/');
    free(a);
    return 0;
}
