/*
 * Calls the functions of the C library through which expressions pass, once with plain strings and once with inputs that have
 * the same values, and branches on whether both results are equal: they are, so each expression has to say so, too.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <heisen.h>

static uint64_t state = 88172645463325252ull;
static uint32_t any(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static int differences;
#define SAME(plain, input) same((uint64_t)(plain), (uint64_t)(input), __LINE__)
static void same(uint64_t plain, uint64_t input, int line) {
    if (plain != input) {
        differences++;
        fprintf(stderr, "line %d: %llx, %llx\n", line, (unsigned long long)plain, (unsigned long long)input);
    }
}

/* Where a pointer points to in its block. */
static uint64_t place(const void *at, const void *block) { return at ? (const char *)at - (const char *)block + 1 : 0; }

static void random_string(char *out, size_t room) {
    static const char *const alphabets[] = {"ab", "aAbB", "\x80\xff\x01" "aZ", "abcdefghij", " \t0123456789+-xX"};
    const char *from = alphabets[any(5)];
    size_t length = any(room), count = strlen(from);
    for (size_t i = 0; i < length; i++) out[i] = from[any(count)];
    out[length] = 0;
}

static const char *const numbers[] = {
    "", "0", "-0", "+7", "  42x", "\t\n-17", "0x", "0x1f", "0XfFg", "-0x", "0xg", "08", "0777", "zz", "-zZ9", "+-1", "- 1", "2147483648",
    "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "-18446744073709551615", "99999999999999999999999999",
    "000000000000000000000000000000012", "0xffffffffffffffff", "0x10000000000000000", "1z141z4", "9", "\x80" "1",
};

static void of_numbers(const char *plain, const char *input) {
    SAME(atoi(plain), atoi(input));
    SAME(atol(plain), atol(input));
    SAME(atoll(plain), atoll(input));
    static const int bases[] = {10, 0, 16, 8, 2, 36, 1, 37, -1};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        char *a, *b;
#define END(f) a = b = NULL; errno = 0; SAME(f(plain, &a, bases[i]), f(input, &b, bases[i])); SAME(place(a, plain), place(b, input))
        END(strtol);
        END(strtoul);
        END(strtoll);
        END(strtoull);
    }
    SAME(strtol(plain, NULL, 10), strtol(input, NULL, 10));
}

static void of_strings(const char *a, const char *b, const char *x, const char *y, size_t most, int c) {
    char out[2][128], *copies[2];
    SAME(strlen(a), strlen(x));
    SAME(strnlen(a, most), strnlen(x, most));
    SAME(strcmp(a, b), strcmp(x, y));
    SAME(strcmp(a, a), strcmp(x, x));
    SAME(strncmp(a, b, most), strncmp(x, y, most));
    SAME(strcasecmp(a, b), strcasecmp(x, y));
    SAME(strncasecmp(a, b, most), strncasecmp(x, y, most));
    SAME(place(strchr(a, c), a), place(strchr(x, c), x));
    SAME(place(strchr(a, a[0]), a), place(strchr(x, x[0]), x));
    SAME(place(strrchr(a, c), a), place(strrchr(x, c), x));
    SAME(place(strrchr(a, 0), a), place(strrchr(x, 0), x));
    SAME(place(strchrnul(a, c), a), place(strchrnul(x, c), x));
    SAME(place(strstr(a, b), a), place(strstr(x, y), x));
    SAME(place(strstr(a, "aB"), a), place(strstr(x, "aB"), x));
    SAME(strspn(a, b), strspn(x, y));
    SAME(strcspn(a, b), strcspn(x, y));
    SAME(strcspn(a, "bZ"), strcspn(x, "bZ"));
    SAME(place(strpbrk(a, b), a), place(strpbrk(x, y), x));
    for (int i = 0; i < 2; i++) memset(out[i], '#', sizeof out[i]);
    SAME(place(strcpy(out[0], a), out[0]), place(strcpy(out[1], x), out[1]));
    SAME(place(strcat(out[0], b), out[0]), place(strcat(out[1], y), out[1]));
    SAME(place(strncat(out[0], a, most), out[0]), place(strncat(out[1], x, most), out[1]));
    SAME(place(stpcpy(out[0] + 64, b), out[0]), place(stpcpy(out[1] + 64, y), out[1]));
    SAME(place(strncpy(out[0] + 90, b, most), out[0]), place(strncpy(out[1] + 90, y, most), out[1]));
    SAME(place(mempcpy(out[0] + 112, a, 3), out[0]), place(mempcpy(out[1] + 112, x, 3), out[1]));
    for (size_t i = 0; i < sizeof out[0]; i++) SAME(out[0][i], out[1][i]);
    copies[0] = strdup(a), copies[1] = strdup(x);
    for (size_t i = 0; i <= strlen(a); i++) SAME(copies[0][i], copies[1][i]);
    free(copies[0]), free(copies[1]);
    copies[0] = strndup(a, most), copies[1] = strndup(x, most);
    for (size_t i = 0; i <= strnlen(a, most); i++) SAME(copies[0][i], copies[1][i]);
    free(copies[0]), free(copies[1]);
}

static void of_blocks(const char *a, const char *b, const char *x, const char *y, size_t bytes, int c) {
    SAME(memcmp(a, b, bytes), memcmp(x, y, bytes));
    SAME(bcmp(a, b, bytes) != 0, bcmp(x, y, bytes) != 0);
    SAME(place(memchr(a, c, bytes), a), place(memchr(x, c, bytes), x));
    SAME(place(memrchr(a, c, bytes), a), place(memrchr(x, c, bytes), x));
}

static void of_characters(int plain, int input) {
    SAME(tolower(plain), tolower(input));
    SAME(toupper(plain), toupper(input));
    SAME((isalpha)(plain), (isalpha)(input));
    SAME(isalpha(plain), isalpha(input));
    SAME(isspace(plain), isspace(input));
    SAME(isxdigit(plain), isxdigit(input));
    SAME(abs(plain), abs(input));
    SAME(labs(plain), labs(input));
}

int main(int argc, char **argv) {
    static char plain[2][48], input[2][48];
    int rounds = argc > 1 ? atoi(argv[1]) : 12;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 2; i++) {
            memset(plain[i], 0, sizeof plain[i]);
            random_string(plain[i], 14);
        }
        if (any(3) == 0) strcpy(plain[1], plain[0]), plain[1][any(8)] ^= 0x20;
        memcpy(input, plain, sizeof plain);
        heisen_input(input, sizeof input, "strings");
        int c = "abAZ\xff"[any(5)];
        of_strings(plain[0], plain[1], input[0], input[1], any(16), c);
        of_blocks(plain[0], plain[1], input[0], input[1], any(20), c);
        of_numbers(plain[0], input[0]);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i += rounds > 20 ? 1 : 4) {
        memset(plain[0], 0, sizeof plain[0]);
        strcpy(plain[0], numbers[i]);
        memcpy(input[0], plain[0], sizeof plain[0]);
        heisen_input(input[0], sizeof input[0], "number");
        of_numbers(plain[0], input[0]);
    }
    for (int c = -128; c < 256; c += rounds > 20 ? 1 : 15) {
        int copy = c;
        heisen_input(&copy, sizeof copy, "character");
        of_characters(c, copy);
    }
    return differences != 0;
}
