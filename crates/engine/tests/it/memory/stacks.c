// Pointers to variables of functions, given to another thread: by name, some are used too late.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

static int *volatile shared;
static volatile int sum;
static sem_t given, used;

static int is(const char *name, const char *what) { return !strcmp(name, what); }

__attribute__((noinline)) static void give(int *value) { shared = value; sem_post(&given); }

__attribute__((noinline)) static void lends(void) {
    volatile int local[64];
    for (int i = 0; i < 64; i++) local[i] = i;
    give((int *)&local[32]);
}

__attribute__((noinline)) static void lends_and_waits(void) {
    volatile int local[64];
    for (int i = 0; i < 64; i++) local[i] = i;
    give((int *)&local[32]);
    sem_wait(&used);
}

static void *uses(void *arg) {
    sem_wait(&given);
    sum += *shared;
    sem_post(&used);
    return arg;
}

static void *writes(void *arg) {
    sem_wait(&given);
    *shared = 1;
    sem_post(&used);
    return arg;
}

static void *lends_only(void *arg) {
    lends();
    return arg;
}

static void *lends_for_long(void *arg) {
    lends_and_waits();
    return arg;
}

int main(int argc, char **argv) {
    const char *name = argv[1];
    pthread_t one, two;
    sem_init(&given, 0, 0);
    sem_init(&used, 0, 0);
    if (is(name, "of-main") || is(name, "write")) {
        pthread_create(&one, NULL, is(name, "write") ? writes : uses, NULL);
        lends();
        sem_wait(&used);
        pthread_join(one, NULL);
    }
    if (is(name, "of-a-thread")) {
        pthread_create(&one, NULL, lends_only, NULL);
        pthread_join(one, NULL);
        uses(NULL);
    }
    if (is(name, "in-time")) {
        pthread_create(&one, NULL, uses, NULL);
        lends_and_waits();
        pthread_join(one, NULL);
    }
    if (is(name, "thread-in-time")) {
        pthread_create(&one, NULL, lends_for_long, NULL);
        pthread_create(&two, NULL, uses, NULL);
        pthread_join(one, NULL);
        pthread_join(two, NULL);
    }
    // Who brings the stack may read it afterwards.
    if (is(name, "own-memory")) {
        pthread_attr_t attributes;
        size_t size = 1 << 18;
        void *stack = aligned_alloc(4096, size);
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stack, size);
        pthread_create(&one, &attributes, lends_only, NULL);
        pthread_join(one, NULL);
        uses(NULL);
        free(stack);
    }
    return 0;
}
