/* Children, for cases that are about other processes. */
#include <signal.h>
#include <sys/wait.h>

static inline int status_of(pid_t child)
{
    int status;
    pid_t got;
    while ((got = waitpid(child, &status, 0)) == -1)
        assert(errno == EINTR);
    assert(got == child);
    return status;
}

/* A child that waits to be killed. */
static inline pid_t sleeper(void)
{
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        sleep(30);
        _exit(2);
    }
    return child;
}
