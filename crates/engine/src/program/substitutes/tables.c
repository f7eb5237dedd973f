/* The numbers of buckets of std::unordered_map of libstdc++, and its hash of bytes: MurmurHash64A of Austin Appleby. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WEAK __attribute__((weak, visibility("hidden")))

/* Whole 8 bytes, or the fewer that are left. */
static uint64_t word(const unsigned char *bytes, size_t count) {
    uint64_t word = 0;
    memcpy(&word, bytes, count);
    return word;
}

static uint64_t mixed(uint64_t value) {
    return value ^ value >> 47;
}

WEAK size_t _ZSt11_Hash_bytesPKvmm(const void *bytes, size_t length, size_t seed) {
    const uint64_t factor = 0xc6a4a7935bd1e995;
    const unsigned char *next = bytes, *end = next + (length & ~(size_t)7);
    uint64_t hash = seed ^ length * factor;
    for (; next != end; next += 8)
        hash = (hash ^ mixed(word(next, 8) * factor) * factor) * factor;
    if (length & 7)
        hash = (hash ^ word(next, length & 7)) * factor;
    return mixed(mixed(hash) * factor);
}

/* When a table grows. */
struct policy {
    float most_per_bucket;
    size_t grows_at;
};

struct growth {
    _Bool grows;
    size_t buckets;
};

/* Ascending primes, which libstdc++ exports. */
extern const unsigned long _ZNSt8__detail12__prime_listE[];
enum { LAST = 303 };

/* Floating-point operations take no expressions. By default a bucket has one element, so none is needed. */
static _Bool is_one_per_bucket(const struct policy *policy) {
    uint32_t bits;
    memcpy(&bits, &policy->most_per_bucket, sizeof bits);
    return bits == 0x3f800000;
}

static size_t elements(const struct policy *policy, size_t buckets) {
    return is_one_per_bucket(policy) ? buckets : buckets * (double)policy->most_per_bucket;
}

WEAK size_t _ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(struct policy *policy, size_t wanted) {
    static const unsigned char few[] = {2, 2, 2, 3, 5, 5, 7, 7, 11, 11, 11, 11, 13, 13};
    if (wanted == 0)
        return 1;
    size_t found;
    if (wanted < sizeof few) {
        found = few[wanted];
    } else {
        size_t low = 6, high = LAST;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (_ZNSt8__detail12__prime_listE[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        found = _ZNSt8__detail12__prime_listE[low];
        if (low == LAST) {
            policy->grows_at = SIZE_MAX;
            return found;
        }
    }
    policy->grows_at = elements(policy, found);
    return found;
}

WEAK struct growth _ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm(struct policy *policy, size_t buckets,
                                                                                size_t elements_now, size_t more) {
    size_t then = elements_now + more;
    if (then <= policy->grows_at)
        return (struct growth){0, 0};
    size_t least = policy->grows_at ? 0 : 11, count = least > then ? least : then, needed;
    _Bool is_enough;
    if (is_one_per_bucket(policy)) {
        needed = count;
        is_enough = needed < buckets;
    } else {
        double exactly = count / (double)policy->most_per_bucket;
        needed = exactly;
        is_enough = exactly < buckets;
    }
    if (is_enough) {
        policy->grows_at = elements(policy, buckets);
        return (struct growth){0, 0};
    }
    size_t wanted = needed + 1, twice = 2 * buckets;
    size_t found = _ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(policy, wanted > twice ? wanted : twice);
    return (struct growth){1, found};
}
