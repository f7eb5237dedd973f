// What the functions of <string.h> do: prints results that must be the same whoever serves the calls, and when. They are
// called by resolvers, by constructors, by `main` and by a forked child of it.
#include "plain.c"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void *__memcpy_chk(void *, const void *, size_t, size_t);
void *__memmove_chk(void *, const void *, size_t, size_t);
void *__memset_chk(void *, int, size_t, size_t);
char *__strcpy_chk(char *, const char *, size_t);
char *__strncpy_chk(char *, const char *, size_t, size_t);
char *__strcat_chk(char *, const char *, size_t);
char *__strncat_chk(char *, const char *, size_t, size_t);

// Searches and numbers, which no resolver may need.
static unsigned long searches(unsigned long sum) {
    static const char *const texts[] = {"", "a", "abcABC", "needle in needles", "  -12x", "0x1Fg", "99999999999999999999"};
    for (int i = 0; i < 7; i++) {
        const char *text = texts[i];
        for (int j = 0; j < 7; j++) {
            const char *found = strstr(text, texts[j]);
            sum = hash(sum, found ? found - text : -1);
            found = strpbrk(text, texts[j]);
            sum = hash(sum, found ? found - text : -1);
            sum = hash(sum, strspn(text, texts[j]) * 100 + strcspn(text, texts[j]));
            sum = hash(sum, sign(strcasecmp(text, texts[j])));
            sum = hash(sum, sign(strncasecmp(text, "ABCx", j)));
        }
        for (const char *c = "aleX"; *c; c++) {
            const char *found = memrchr(text, *c, strlen(text));
            sum = hash(sum, found ? found - text : -1);
            sum = hash(sum, strchrnul(text, *c) - text);
            sum = hash(sum, tolower(*c) * 256 + toupper(*c));
        }
        for (int base = 0; base < 38; base += 1 + base % 9) {
            char *end = 0;
            errno = 0;
            sum = hash(sum, strtol(text, &end, base));
            sum = hash(sum, strtoul(text, 0, base) ^ strtoll(text, 0, base) ^ strtoull(text, 0, base));
            sum = hash(sum, (end ? end - text : -1) * 256 + errno);
        }
        sum = hash(sum, atoi(text) ^ atol(text) ^ atoll(text));
    }
    return sum;
}

// These allocate, or are looked up when first called.
static unsigned long rest(void) {
    char to[64], *copy = strdup("copied"), *part = strndup("in part", 4);
    unsigned long sum = plain();
    sum = hash_bytes(sum, copy, 7);
    sum = hash_bytes(sum, part, 5);
    free(copy);
    free(part);
    __memset_chk(to, 'x', 64, 64);
    __memcpy_chk(to, "0123456789", 10, 64);
    __memmove_chk(to + 2, to, 10, 62);
    sum = hash_bytes(sum, to, 64);
    __strcpy_chk(to, "ab", 64);
    __strcat_chk(to, "cde", 64);
    __strncat_chk(to, "fgh", 2, 64);
    __strncpy_chk(to + 10, "ij", 20, 54);
    return searches(hash_bytes(sum, to, 64));
}

static unsigned long constructed;
__attribute__((constructor)) static void construct(void) { constructed = rest(); }

// Of the library.
unsigned long early_resolved(void), early_constructed(void);

int main(int argc, char **argv) {
    if (argc > 1) freopen(argv[1], "w", stdout);
    unsigned long one = plain(), all = rest();
    pid_t child = fork();
    if (!child) _exit(rest() == all && plain() == one ? 7 : 8);
    int status;
    waitpid(child, &status, 0);
    printf("%lx %lx\n", one, all);
    printf("%d %d\n", early_resolved() == one, early_constructed() == one);
    printf("%d %d\n", constructed == all, WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return 0;
}
