// One request for memory each, by name, with a size or an alignment that no block can have, or nearly so.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile size_t negative = (size_t)-16, three = 3, most = PTRDIFF_MAX;

static int is(const char *name, const char *what) { return !strcmp(name, what); }

int main(int argc, char **argv) {
    const char *name = argv[1];
    void *p = malloc(8), *q = NULL;
    if (is(name, "malloc")) q = malloc(negative);
    if (is(name, "new-size")) q = realloc(p, negative);
    if (is(name, "aligned-size")) q = aligned_alloc(64, negative);
    if (is(name, "alignment")) free(aligned_alloc(three * 8, 96));
    if (is(name, "calloc")) q = calloc(negative, 2);
    if (is(name, "reallocarray")) q = reallocarray(p, negative, 2);
    if (is(name, "posix_memalign") && posix_memalign(&q, three, 8) != EINVAL) return 1;
    if (is(name, "large")) q = malloc(most);
    return q != NULL;
}
