/* Programs that wait for descriptors in vain, or for what comes from another process. */
#include "cases.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int to[2], back[2];

static void *passes_on(void *arg)
{
    char byte;
    assert(read(to[0], &byte, 1) == 1);
    assert(write(back[1], &byte, 1) == 1);
    return arg;
}

/* Each waits for the other to speak first. */
static void two_that_listen(void)
{
    assert(pipe(to) == 0 && pipe(back) == 0);
    pthread_t t = start(passes_on, NULL);
    char byte;
    assert(read(back[0], &byte, 1) == 1);
    join(t);
}

static void a_child_speaks(void)
{
    assert(pipe(to) == 0 && pipe(back) == 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(20000);
        assert(write(to[1], "x", 1) == 1);
        _exit(3);
    }
    pthread_t t = start(passes_on, NULL);
    char byte;
    assert(read(back[0], &byte, 1) == 1 && byte == 'x');
    join(t);
}

static int file;

static void *locks_later(void *arg)
{
    assert(flock(file, LOCK_EX) == 0);
    return arg;
}

/* The lock is waited for while the thread that holds it goes on. */
static void a_lock_on_a_file(void)
{
    char name[] = "/tmp/heisen-XXXXXX";
    file = mkstemp(name);
    int again = open(name, O_RDWR);
    assert(unlink(name) == 0 && flock(again, LOCK_EX) == 0);
    pthread_t t = start(locks_later, NULL);
    for (int i = 0; i < 3; i++)
        sched_yield();
    assert(flock(again, LOCK_UN) == 0);
    join(t);
}

CASES(CASE(two_that_listen), CASE(a_child_speaks), CASE(a_lock_on_a_file))
