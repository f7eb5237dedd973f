// A library whose resolver and constructor call functions of <string.h>: it is relocated and initialised before a library
// that is preloaded.
#include "plain.c"

static unsigned long resolved, constructed;

static int nothing(void) { return 0; }
static int (*resolve(void))(void) {
    resolved = plain();
    return nothing;
}
static int early(void) __attribute__((ifunc("resolve")));

// Data that the resolver must be called for when the library is relocated.
int (*early_data)(void) = early;

__attribute__((constructor)) static void construct(void) { constructed = plain(); }

unsigned long early_resolved(void) { return resolved; }
unsigned long early_constructed(void) { return constructed; }
