// Runs small programs that are given as its arguments: a file, and one argument for each thread, made of operations of two
// characters. What was done in which order is appended to the file as one line, written by nobody else meanwhile.
//
// rX wX      plain read and write of variable X; 3 and 4 are those that atomics use
// aX sX      atomic load that acquires, store that releases
// qX zX      atomic load and store, relaxed
// iX vX      atomic load and store, sequentially consistent
// fX gX      atomic addition that does both, relaxed
// hX jX      atomic addition that only releases, only acquires
// kX mX      compare-exchange that fails and would release: acquires, relaxed
// eX cX bX   fence that releases, acquires, does both; X is not used
// lX uX      lock and unlock mutex X
//
// Each operation has a function of its own, s0 to s31, so that its place tells which it is: 8 for each thread.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 8
#define QUIET __attribute__((no_sanitize_thread))

static int variable[5];
static pthread_mutex_t mutex[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static const char *text[4];
static char order[1024];
static int length;

// Called after the operation: there is no scheduling point between the two.
QUIET static void done(int slot, char what, int x) {
    length += sprintf(order + length, "%d%c%d ", slot, what, x);
}

#define ATOMIC(x) (&variable[3 + (x)])
// On one line each: only the function tells them apart.
#define SLOT(n) static void s##n(char what, int x) { int seen = 0; switch (what) { \
    case 'r': seen = variable[x]; break; \
    case 'w': variable[x] = n; break; \
    case 'a': seen = __atomic_load_n(ATOMIC(x), __ATOMIC_ACQUIRE); break; \
    case 's': __atomic_store_n(ATOMIC(x), n, __ATOMIC_RELEASE); break; \
    case 'q': seen = __atomic_load_n(ATOMIC(x), __ATOMIC_RELAXED); break; \
    case 'z': __atomic_store_n(ATOMIC(x), n, __ATOMIC_RELAXED); break; \
    case 'i': seen = __atomic_load_n(ATOMIC(x), __ATOMIC_SEQ_CST); break; \
    case 'v': __atomic_store_n(ATOMIC(x), n, __ATOMIC_SEQ_CST); break; \
    case 'h': __atomic_fetch_add(ATOMIC(x), 1, __ATOMIC_RELEASE); break; \
    case 'j': __atomic_fetch_add(ATOMIC(x), 1, __ATOMIC_ACQUIRE); break; \
    case 'k': seen = -1; __atomic_compare_exchange_n(ATOMIC(x), &seen, n, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); break; \
    case 'm': seen = -1; __atomic_compare_exchange_n(ATOMIC(x), &seen, n, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED); break; \
    case 'e': __atomic_thread_fence(__ATOMIC_RELEASE); break; \
    case 'c': __atomic_thread_fence(__ATOMIC_ACQUIRE); break; \
    case 'b': __atomic_thread_fence(__ATOMIC_SEQ_CST); break; \
    case 'f': __atomic_fetch_add(ATOMIC(x), 1, __ATOMIC_ACQ_REL); break; \
    case 'g': __atomic_fetch_add(ATOMIC(x), 1, __ATOMIC_RELAXED); break; \
    case 'l': pthread_mutex_lock(&mutex[x]); break; \
    case 'u': pthread_mutex_unlock(&mutex[x]); break; \
    } (void)seen; done(n, what, x); }

SLOT(0) SLOT(1) SLOT(2) SLOT(3) SLOT(4) SLOT(5) SLOT(6) SLOT(7)
SLOT(8) SLOT(9) SLOT(10) SLOT(11) SLOT(12) SLOT(13) SLOT(14) SLOT(15)
SLOT(16) SLOT(17) SLOT(18) SLOT(19) SLOT(20) SLOT(21) SLOT(22) SLOT(23)
SLOT(24) SLOT(25) SLOT(26) SLOT(27) SLOT(28) SLOT(29) SLOT(30) SLOT(31)

static void (*const slots[])(char, int) = {
    s0,  s1,  s2,  s3,  s4,  s5,  s6,  s7,  s8,  s9,  s10, s11, s12, s13, s14, s15,
    s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31,
};

QUIET static void *run(void *which) {
    long me = (long)which;
    const char *program = text[me];
    for (int i = 0; program[2 * i]; i++) slots[me * SLOTS + i](program[2 * i], program[2 * i + 1] - '0');
    return 0;
}

QUIET int main(int count, char **arguments) {
    pthread_t threads[4];
    for (int i = 2; i < count; i++) text[i - 2] = arguments[i];
    for (long i = 0; i < count - 2; i++) pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < count - 2; i++) pthread_join(threads[i], 0);
    int file = open(arguments[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    order[length++] = '\n';
    return file < 0 || write(file, order, length) != length;
}
