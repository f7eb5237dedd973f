/*
 * A thread that waits for a condition is interrupted by another one.
 *
 * PR_WaitCondVar first looks whether the thread has been interrupted, and only then takes the mutex and waits.
 * PR_Interrupt sets the mark and wakes the thread if it is waiting. An interrupt between the look and the wait finds nobody
 * to wake, and the thread goes to sleep with its mark set: nobody will ever wake it. A deadlock, with main in pthread_join.
 *
 * One preemption is enough, at control point 42.
 *
 * Stands for bug 5 of RADBench in the paper's appendix (Mozilla NSPR, nspr2): interrupt.rhai. With -DFIXED the look is
 * under the mutex, too.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

enum status { SUCCESS, INTERRUPTED };

struct thread {
    bool interrupted;
    bool waiting;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool notified; /* here it never is: only an interrupt ends the wait */
static struct thread sleeper;

/* Waits until somebody notifies the condition or interrupts the thread. */
__attribute__((noinline)) static enum status PR_WaitCondVar(struct thread *self) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    bool interrupted = self->interrupted;
    heisen_point_at(42);
#ifndef FIXED
    pthread_mutex_lock(&lock);
#endif
    while (!interrupted && !notified) {
        self->waiting = true;
        pthread_cond_wait(&condition, &lock);
        self->waiting = false;
        interrupted = self->interrupted;
    }
    self->interrupted = false;
    pthread_mutex_unlock(&lock);
    return interrupted ? INTERRUPTED : SUCCESS;
}

__attribute__((noinline)) static void PR_Interrupt(struct thread *thread) {
    pthread_mutex_lock(&lock);
    thread->interrupted = true;
    if (thread->waiting)
        pthread_cond_signal(&condition);
    pthread_mutex_unlock(&lock);
}

static void *sleeper_main(void *arg) {
    (void)arg;
    enum status status = PR_WaitCondVar(&sleeper);
    assert(status == INTERRUPTED);
    return NULL;
}

static void *waker_main(void *arg) {
    (void)arg;
    usleep(1000); /* the other one is asleep by now, most of the time */
    PR_Interrupt(&sleeper);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, sleeper_main, NULL);
    pthread_create(&threads[1], NULL, waker_main, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
