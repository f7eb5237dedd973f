/* Named semaphores. */
#include "cases.h"
#include <fcntl.h>

static sem_t *semaphore;
static char name[64];
static int order;

static void make(unsigned value)
{
    /* The real number of the process: several executions run at a time. */
    char number[20];
    ssize_t got = readlink("/proc/self", number, sizeof number - 1);
    assert(got > 0);
    number[got] = 0;
    snprintf(name, sizeof name, "/heisen-test-%s", number);
    sem_unlink(name);
    semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, value);
    assert(semaphore != SEM_FAILED);
}

static void *posts(void *arg)
{
    sem_t *same = sem_open(name, 0);
    assert(same == semaphore); /* In one process a name is one semaphore. */
    order = 1;
    assert(sem_post(same) == 0);
    assert(sem_close(same) == 0);
    return arg;
}

static void waited_for(void)
{
    int value;
    make(0);
    assert(sem_open(name, O_CREAT | O_EXCL, 0600, 0) == SEM_FAILED && errno == EEXIST);
    assert(sem_trywait(semaphore) == -1 && errno == EAGAIN);
    pthread_t t = start(posts, NULL);
    assert(sem_wait(semaphore) == 0 && order == 1);
    join(t);
    assert(sem_getvalue(semaphore, &value) == 0 && value == 0);
    assert(sem_unlink(name) == 0 && sem_unlink(name) == -1 && errno == ENOENT);
    assert(sem_close(semaphore) == 0);
    assert(sem_open(name, 0) == SEM_FAILED && errno == ENOENT);
}

static void times_out(void)
{
    make(1);
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    assert(sem_timedwait(semaphore, &soon) == 0);
    assert(sem_timedwait(semaphore, &soon) == -1 && errno == ETIMEDOUT);
    assert(sem_unlink(name) == 0 && sem_close(semaphore) == 0);
}

CASES(CASE(waited_for), CASE(times_out))
