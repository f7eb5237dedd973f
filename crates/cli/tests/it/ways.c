/* Reads standard input in the way that the first argument names, and fails if it has read "HEI". */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static void look(const char *b) { assert(b[0] != 'H' || b[1] != 'E' || b[2] != 'I'); }
int main(int argc, char **argv) {
    static char b[16], c[16];
    FILE *f = stdin;
    switch (atoi(argv[1])) {
    case 0: assert(read(0, b, 8) == 3 || argc > 2); look(b); break;
    case 1: assert(read(0, b, 1) == 1 && read(0, b + 1, 1) == 1 && read(0, b + 2, 9) >= 1); look(b); break;
    case 2: assert(pread(0, b, 2, 1) == 2 && pread64(0, c, 1, 0) == 1); memmove(b + 1, b, 2); b[0] = c[0]; look(b); break;
    case 3: { struct iovec v[2] = {{b, 2}, {c, 5}}; assert(readv(0, v, 2) >= 3); b[2] = c[0]; look(b); break; }
    case 4: assert(fread(b, 1, 8, f) >= 3); look(b); break;
    case 5: for (int i = 0; i < 3; i++) { b[i] = i == 0 ? getchar() : i == 1 ? getc(f) : fgetc(f); } look(b); break;
    case 6: if (fgets(b, 9, f)) look(b); break;
    case 7: { char *line = 0; size_t room = 0; if (getline(&line, &room, f) >= 3) look(line); break; }
    case 8: { char *line = 0; size_t room = 0; if (getdelim(&line, &room, 'E', f) == 2) { assert(fgetc(f) != 'I' || line[0] != 'H'); } break; }
    case 9: { int d = dup(0); assert(read(0, b, 1) == 1 && read(d, b + 1, 2) == 2); look(b); break; }
    case 10: assert(read(0, c, 3) == 3 && lseek(0, 0, SEEK_SET) == 0 && read(0, b, 3) == 3 && !memcmp(b, c, 3)); look(b); break;
    case 11: assert(setvbuf(f, 0, _IONBF, 0) == 0 && fread(b, 3, 1, f) == 1); look(b); break;
    case 12: { unsigned word = 0; assert(read(0, &word, 3) == 3); assert(word != 0x494548); break; }
    case 13: b[0] = getchar(); assert(read(0, b + 1, 2) == 0 && fread(b + 1, 1, 2, f) == 2); look(b); break;
    }
    return 0;
}
