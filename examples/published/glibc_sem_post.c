/*
 * glibc, bug 12674: sem_post looks at a semaphore that may be gone.
 *
 * Versions before 2.21. musl had it as well, up to its commit 88c4e720317845a8e01aee03f142ba82674cd23d, which tells the
 * story. sem_post raised the value and read the number of waiting threads afterwards. A thread that has got through
 * sem_wait meanwhile may know that nobody needs the semaphore any more, and destroy it.
 *
 * The extract has a semaphore of a value and a number of waiting threads, with the operations of the old libraries in
 * their order, over a futex. The one that waits frees it.
 *
 * One preemption is enough, after the value was raised: the other thread takes it and frees the semaphore. None is not:
 * either sem_post comes to its end first, or the other thread waits, and only the last step of sem_post wakes it.
 *
 * heisen: bug=use-after-free preemptions=1 class=use-after-free
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct semaphore {
    atomic_int value;
    atomic_int waiting;
};

static void post(struct semaphore *semaphore) {
    atomic_fetch_add(&semaphore->value, 1);
    if (atomic_load(&semaphore->waiting) > 0) /* preempt here, fix */
        syscall(SYS_futex, &semaphore->value, FUTEX_WAKE_PRIVATE, 1, NULL);
}

static int try_wait(struct semaphore *semaphore) {
    int value = atomic_load(&semaphore->value);
    while (value > 0)
        if (atomic_compare_exchange_strong(&semaphore->value, &value, value - 1))
            return 1;
    return 0;
}

static void wait(struct semaphore *semaphore) {
    if (try_wait(semaphore))
        return;
    atomic_fetch_add(&semaphore->waiting, 1);
    while (!try_wait(semaphore))
        syscall(SYS_futex, &semaphore->value, FUTEX_WAIT_PRIVATE, 0, NULL);
    atomic_fetch_sub(&semaphore->waiting, 1);
}

static void *poster(void *semaphore) {
    post(semaphore);
    return NULL;
}

static void *waiter(void *semaphore) {
    wait(semaphore);
    free(semaphore); /* fix */
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
