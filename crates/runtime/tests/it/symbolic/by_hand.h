/* Calls the callbacks of symbolic builds as instrumented code would, so that tests know what they must log. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <heisen.h>

struct frame {
    uint32_t live, pad;
    uint64_t callee, returner;
    uint32_t arguments[48], results[16];
};
struct table {
    uint32_t version, length;
    struct frame *frame;
    void *callbacks[11];
};

/* A value and the id of its expression. */
typedef struct {
    uint64_t v;
    uint32_t id;
} V;

static struct table *table(void) {
    static struct table *found;
    if (!found) found = dlsym(RTLD_DEFAULT, "heisen_symbolic_table");
    if (!found) abort();
    return found;
}

#define CALL(n, result, ...) ((result(*)(__VA_ARGS__))table()->callbacks[n])

enum { ADD = 1, SUB = 2, MUL = 3, SHL = 8, LSHR = 9, AND = 11, OR = 12, EQ = 14, ULT = 15, NOT = 25, ZEXT = 26, TRUNC = 28 };

static inline V constant(uint64_t v) { return (V){v, 0}; }
static inline uint64_t mask(int bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }

static inline uint64_t compute(int op, uint64_t a, uint64_t b) {
    switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case SHL: return a << b;
    case LSHR: return a >> b;
    case AND: return a & b;
    case OR: return a | b;
    case EQ: return a == b;
    case ULT: return a < b;
    case NOT: return ~a;
    case ZEXT: case TRUNC: return a;
    default: abort();
    }
}

static inline V unary(int op, int from, int to, V a) {
    uint32_t id = a.id ? CALL(0, uint32_t, uint32_t, uint32_t, uint64_t)(op | from << 8 | to << 16, a.id, a.v) : 0;
    return (V){compute(op, a.v, 0) & mask(to), id};
}

static inline V binary(int op, int from, int to, V a, V b) {
    uint32_t id = a.id | b.id ? CALL(1, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t)(
                                    op | from << 8 | to << 16, a.id, b.id, a.v, b.v)
                              : 0;
    return (V){compute(op, a.v, b.v) & mask(to), id};
}

static inline V choose(int bits, V condition, V a, V b) {
    uint32_t id = CALL(2, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t)(
        34 | bits << 8 | bits << 16, condition.id, condition.v, a.id, b.id, a.v, b.v);
    return (V){condition.v ? a.v : b.v, id};
}

static inline V load(const volatile void *at, int size) {
    uint64_t v = 0;
    memcpy(&v, (const void *)at, size);
    return (V){v, CALL(3, uint32_t, uint64_t, uint32_t, uint32_t, uint64_t)((uint64_t)at, size, 0, v)};
}

static inline void store(volatile void *at, int size, V value) {
    memcpy((void *)at, &value.v, size);
    CALL(4, void, uint64_t, uint64_t, uint32_t, uint32_t, uint64_t)((uint64_t)at, size, 0, value.id, value.v);
}

/* how: 0 exchange, 1 add, 8 signed minimum; for 4 bytes. */
static inline V update(int how, volatile uint32_t *at, V operand) {
    uint32_t old = *at;
    int32_t a = old, b = (uint32_t)operand.v;
    *at = how == 0 ? operand.v : how == 1 ? old + operand.v : (uint32_t)(a < b ? a : b);
    return (V){old, CALL(5, uint32_t, uint32_t, uint64_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t)(
                        how, (uint64_t)at, 4, 0, operand.id, operand.v, old)};
}

/* With `weak`, it fails although it could succeed. */
static inline V compare(volatile uint32_t *at, V expected, V value, int weak) {
    uint32_t old = *at;
    if (old == (uint32_t)expected.v && !weak) *at = value.v;
    return (V){old, CALL(6, uint32_t, uint64_t, uint32_t, uint32_t, uint32_t, uint64_t, uint32_t, uint64_t, uint64_t)(
                        (uint64_t)at, 4, 0, expected.id, expected.v, value.id, value.v, old)};
}

static inline void copy(void *to, const void *from, size_t bytes) {
    CALL(7, void, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t, uint32_t)((uint64_t)to, (uint64_t)from, bytes, 0, 0, 0);
    memmove(to, from, bytes);
}

static inline void fill(void *to, V byte, size_t bytes) {
    memset(to, byte.v, bytes);
    CALL(8, void, uint64_t, uint64_t, uint32_t, uint32_t, uint32_t, uint64_t)((uint64_t)to, bytes, 0, 0, byte.id, byte.v);
}

static inline int branch(V condition) {
    if (condition.id) CALL(9, void, uint32_t, uint32_t)(condition.id, condition.v);
    return condition.v;
}

static inline void pin(V value, int reason) {
    if (value.id) CALL(10, void, uint32_t, uint64_t, uint32_t)(value.id, value.v, reason);
}

/* An input of 4 bytes. */
static inline V input(const char *name, uint32_t value) {
    uint32_t place = value;
    heisen_input(&place, sizeof place, name);
    return load(&place, sizeof place);
}

static inline pthread_t start(void *(*function)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, 0, function, argument)) abort();
    return thread;
}

static inline void join(pthread_t thread) {
    if (pthread_join(thread, 0)) abort();
}
