/*
 * glibc_sem_post.c put right, as in glibc 2.21: value and number of waiting threads are one word of 64 bits, so that the
 * step that raises the value tells the number, too. The semaphore is not looked at afterwards: what the kernel is given
 * is an address.
 *
 * heisen: clean
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAITING ((uint64_t)1 << 32)

/* The value is the lower half, at the same address. */
struct semaphore {
    _Atomic uint64_t both;
};

static void post(struct semaphore *semaphore) {
    uint64_t before = atomic_fetch_add(&semaphore->both, 1);
    if (before >= WAITING)
        syscall(SYS_futex, &semaphore->both, FUTEX_WAKE_PRIVATE, 1, NULL);
}

/* Takes one if there is one, and `less` with it: what the caller has added as one that waits. */
static int try_wait(struct semaphore *semaphore, uint64_t less) {
    uint64_t both = atomic_load(&semaphore->both);
    while ((uint32_t)both > 0)
        if (atomic_compare_exchange_strong(&semaphore->both, &both, both - 1 - less))
            return 1;
    return 0;
}

static void wait(struct semaphore *semaphore) {
    if (try_wait(semaphore, 0))
        return;
    atomic_fetch_add(&semaphore->both, WAITING);
    while (!try_wait(semaphore, WAITING))
        syscall(SYS_futex, &semaphore->both, FUTEX_WAIT_PRIVATE, 0, NULL);
}

static void *poster(void *semaphore) {
    post(semaphore);
    return NULL;
}

static void *waiter(void *semaphore) {
    wait(semaphore);
    free(semaphore);
    return NULL;
}

int main(void) {
    struct semaphore *semaphore = calloc(1, sizeof *semaphore);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, poster, semaphore);
    pthread_create(&threads[1], NULL, waiter, semaphore);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
