/* Sorting and searching with a comparison of the program. Elements are compared in the order of glibc up to 2.36, which
   merges halves. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak, visibility("hidden")))

typedef int plain_comparison(const void *, const void *);
typedef int comparison(const void *, const void *, void *);

struct order {
    size_t size;
    comparison *compare;
    void *argument;
    char *room;
};

static void sort(const struct order *order, char *elements, size_t count) {
    if (count < 2)
        return;
    size_t left = count / 2, right = count - left, size = order->size;
    char *first = elements, *second = elements + left * size, *out = order->room;
    sort(order, first, left);
    sort(order, second, right);
    while (left && right) {
        if (order->compare(first, second, order->argument) <= 0) {
            memcpy(out, first, size);
            first += size;
            left--;
        } else {
            memcpy(out, second, size);
            second += size;
            right--;
        }
        out += size;
    }
    memcpy(out, first, left * size);
    memcpy(elements, order->room, (count - right) * size);
}

WEAK void qsort_r(void *elements, size_t count, size_t size, comparison *compare, void *argument) {
    if (count < 2 || size == 0)
        return;
    struct order order = {size, compare, argument, malloc(count * size)};
    if (!order.room)
        abort();
    sort(&order, elements, count);
    free(order.room);
}

static int plain(const void *a, const void *b, void *compare) {
    return ((plain_comparison *)compare)(a, b);
}

WEAK void qsort(void *elements, size_t count, size_t size, plain_comparison *compare) {
    qsort_r(elements, count, size, plain, (void *)compare);
}

WEAK void *bsearch(const void *key, const void *elements, size_t count, size_t size,
                   plain_comparison *compare) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const char *element = (const char *)elements + middle * size;
        int order = compare(key, element);
        if (order == 0)
            return (void *)element;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}
