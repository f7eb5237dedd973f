/* What the drivers share: the first argument says how many bytes are inputs, the second one where the output goes, the third
 * one how often all is done. */
#include <heisen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t marked;

/* Makes the first bytes of a block inputs, as many as are wanted. */
static void mark(void *at, size_t room) {
    if (marked) heisen_input(at, marked < room ? marked : room, "data");
}

/* A text that compresses. */
__attribute__((unused)) static void fill(char *text, size_t length) {
    for (size_t i = 0; i < length; i++) text[i] = "abracadabra, said the wizard"[(i * i / 7) % 28];
    mark(text, length);
}

/* What a driver does. Returns 0 if it succeeds. */
static int once(void);

int main(int argc, char **argv) {
    unsigned long rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
    if (argc > 1) marked = strtoul(argv[1], NULL, 10);
    if (argc > 2 && !freopen(argv[2], "w", stdout)) return 99;
    for (; rounds > 0; rounds--) {
        int failed = once();
        if (failed) return failed;
    }
    return 0;
}
