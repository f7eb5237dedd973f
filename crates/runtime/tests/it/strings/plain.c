// Included by the programs beside it: calls functions of <string.h> and folds all their results into one number.
#define _GNU_SOURCE
#include <string.h>
#include <strings.h>

// Each result is folded into this, so that nothing but these functions is needed to tell.
static unsigned long hash(unsigned long sum, unsigned long value) { return (sum ^ value) * 1099511628211ul; }

static unsigned long hash_bytes(unsigned long sum, const char *at, size_t count) {
    for (size_t i = 0; i < count; i++) sum = hash(sum, (unsigned char)at[i]);
    return sum;
}

static int sign(int n) { return (n > 0) - (n < 0); }

// Everything that needs neither memory nor relocation, at all alignments and many sizes.
static unsigned long plain(void) {
    char from[200], to[200];
    unsigned long sum = 14695981039346656037ul;
    for (volatile size_t n = 0; n < 70; n += 1 + n / 9)
        for (volatile size_t shift = 0; shift < 9; shift += 4) {
            for (int i = 0; i < 200; i++) from[i] = 'a' + (i * 7 + (int)n) % 26, to[i] = 'z';
            sum = hash(sum, (char *)memcpy(to + shift, from + 3, n) - to);
            sum = hash(sum, (char *)mempcpy(to + 100, from + shift, n) - to);
            sum = hash_bytes(sum, to, 200);
            sum = hash(sum, (char *)memmove(from + shift, from + 2, n) - from);
            sum = hash(sum, (char *)memmove(from + 100, from + 100 - shift, n) - from);
            sum = hash_bytes(sum, from, 200);
            sum = hash(sum, (char *)memset(to + shift, 0x17f, n) - to);
            bzero(to + 150, n / 2);
            sum = hash_bytes(sum, to, 200);
            memcpy(to, from, 100);
            sum = hash(sum, sign(memcmp(to + shift, from + shift, n)));
            to[shift + n] ^= (char)0x80;
            sum = hash(sum, sign(memcmp(to, from, 100)));
            sum = hash(sum, bcmp(to, from, 100) != 0);
            sum = hash(sum, bcmp(to, from, shift) != 0);
            char *found = memchr(from + shift, 'a', n);
            sum = hash(sum, found ? found - from : -1);
            from[shift + n] = 0;
            sum = hash(sum, strlen(from + shift));
            sum = hash(sum, strnlen(from + shift, n / 2 + 3));
            found = strchr(from + shift, 'c');
            sum = hash(sum, found ? found - from : -1);
            sum = hash(sum, strchr(from + shift, 0) - from);
            found = strrchr(from + shift, 'c');
            sum = hash(sum, found ? found - from : -1);
            sum = hash(sum, strrchr(from + shift, 0) - from);
            sum = hash(sum, strcpy(to + 1, from + shift) - to);
            sum = hash(sum, stpcpy(to + 90, from + shift) - to);
            sum = hash_bytes(sum, to, 200);
            sum = hash(sum, sign(strcmp(to + 1, from + shift)));
            to[1 + n / 2] = 'b';
            sum = hash(sum, sign(strcmp(to + 1, from + shift)));
            sum = hash(sum, sign(strncmp(to + 1, from + shift, n / 2)));
            sum = hash(sum, sign(strncmp(to + 1, from + shift, n)));
            sum = hash(sum, strncpy(to, from + shift, n + 5) - to);
            sum = hash_bytes(sum, to, 200);
            to[7] = 0;
            sum = hash(sum, strcat(to, from + shift) - to);
            sum = hash(sum, strncat(to, from + shift, 4) - to);
            sum = hash(sum, strncat(to, from + shift, 0) - to);
            sum = hash_bytes(sum, to, 200);
        }
    return sum;
}
