/* Processes by their ids: groups, sessions, limits, memory; and the time that they take. */
#include "results.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>

static int status_of(pid_t child)
{
    int status;
    assert(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A child that waits to be ended. */
static pid_t sleeper(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    assert(child > 0);
    return child;
}

/* ---- groups and sessions ---- */

CASE(a_child_gets_a_group, "0 1 1 0 -15")
{
    pid_t child = sleeper();
    say("%d ", getpgid(child) == child);
    assert(setpgid(child, 0) == 0);
    say("%d ", getpgid(child) == child);
    say("%d ", getpgid(0) == getpgrp() && getpgrp() != child);
    say("%d ", killpg(child, SIGTERM));
    say("%d", status_of(child));
}

CASE(a_group_of_two, "1 -9 -9")
{
    pid_t first = sleeper(), second = sleeper();
    assert(setpgid(first, first) == 0 && setpgid(second, first) == 0);
    say("%d ", getpgid(second) == first);
    assert(killpg(first, SIGKILL) == 0);
    say("%d ", status_of(first));
    say("%d", status_of(second));
}

CASE(a_child_begins_a_session, "7")
{
    pid_t child = fork();
    if (child == 0) {
        int right = setsid() == getpid();
        right |= (getsid(0) == getpid()) << 1;
        right |= (getpgrp() == getpid()) << 2;
        _exit(right);
    }
    say("%d", status_of(child));
}

/* The terminal of a session belongs to one of its groups. */
static int with_a_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (setsid() != getpid() || master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return 100;
    int terminal = open(ptsname(master), O_RDWR);
    if (terminal < 0)
        return 101;
    int right = tcgetpgrp(terminal) == getpgrp();
    pid_t child = sleeper();
    signal(SIGTTOU, SIG_IGN);
    right |= (setpgid(child, child) == 0) << 1;
    right |= (tcsetpgrp(terminal, child) == 0) << 2;
    right |= (tcgetpgrp(terminal) == child) << 3;
    right |= (tcsetpgrp(terminal, getpgrp()) == 0 && tcgetpgrp(terminal) == getpid()) << 4;
    kill(child, SIGKILL);
    return right | (status_of(child) == -9) << 5;
}

CASE(a_terminal_and_its_group, "63")
{
    pid_t child = fork();
    if (child == 0)
        _exit(with_a_terminal());
    say("%d", status_of(child));
}

CASE(a_terminal_that_is_none, "-1 -1")
{
    int ends[2];
    assert(pipe(ends) == 0);
    say("%d ", tcgetpgrp(ends[0]));
    say("%d", tcsetpgrp(ends[0], getpgrp()));
    assert(errno == ENOTTY);
}

NATIVELY(groups_that_are_none)
{
    say("%s ", outcome(setpgid(-1, 0)));
    say("%s ", outcome(setpgid(0, -1)));
    say("%s ", outcome(setpgid(1, 1)));
    say("%s ", outcome(killpg(-1, 0)));
    say("%s", outcome(getsid(-1)));
}

/* ---- what others can be asked ---- */

CASE(limits_of_a_child, "64 64 256 64")
{
    struct rlimit64 limit = {64, 256}, got;
    pid_t child = sleeper();
    assert(prlimit64(child, RLIMIT_NOFILE, &limit, NULL) == 0);
    assert(prlimit64(child, RLIMIT_NOFILE, NULL, &got) == 0);
    say("%d ", (int)got.rlim_cur);
    assert(prlimit64(getpid(), RLIMIT_NOFILE, &limit, NULL) == 0);
    struct rlimit own;
    assert(getrlimit(RLIMIT_NOFILE, &own) == 0);
    say("%d %d ", (int)own.rlim_cur, (int)own.rlim_max);
    assert(prlimit64(0, RLIMIT_NOFILE, NULL, &got) == 0);
    say("%d", (int)got.rlim_cur);
    kill(child, SIGKILL);
    assert(status_of(child) == -9);
}

static char memory[] = "abcdef";

static struct iovec piece(char *at, size_t length)
{
    return (struct iovec){at, length};
}

CASE(memory_of_a_child, "6 abcdef 2 abXYef abcdef")
{
    pid_t child = sleeper();
    char copy[7] = "";
    struct iovec all = piece(copy, 6), there = piece(memory, 6), two = piece("XY", 2), middle = piece(memory + 2, 2);
    say("%zd ", process_vm_readv(child, &all, 1, &there, 1, 0));
    say("%s ", copy);
    say("%zd ", process_vm_writev(child, &two, 1, &middle, 1, 0));
    assert(process_vm_readv(child, &all, 1, &there, 1, 0) == 6);
    say("%s %s", copy, memory);
    kill(child, SIGKILL);
    assert(status_of(child) == -9);
}

CASE(memory_of_oneself, "2 abXYef")
{
    struct iovec two = piece("XY", 2), middle = piece(memory + 2, 2);
    say("%zd ", process_vm_writev(getpid(), &two, 1, &middle, 1, 0));
    say("%s", memory);
}

/* The same for all threads, and by any of their ids. */
CASE(the_share_of_a_thread, "0 0 1 ESRCH")
{
    struct timespec own, same;
    say("%d ", sched_rr_get_interval(0, &own));
    say("%d ", sched_rr_get_interval(gettid(), &same));
    say("%d ", own.tv_sec == same.tv_sec && own.tv_nsec == same.tv_nsec);
    say("%s", outcome(sched_rr_get_interval(999999999, &own)));
}

/* ---- time that was taken ---- */

static void work(void)
{
    for (volatile int i = 0; i < 3000000; i++)
        ;
}

static struct timeval taken(void)
{
    struct rusage usage;
    struct timeval all;
    assert(getrusage(RUSAGE_SELF, &usage) == 0);
    timeradd(&usage.ru_utime, &usage.ru_stime, &all);
    return all;
}

CASE(processor_time_is_taken, "1 1 1")
{
    struct tms parts, more;
    clock_t start = clock();
    struct timeval before = taken();
    assert(times(&parts) != (clock_t)-1);
    work();
    struct timeval after = taken();
    assert(times(&more) != (clock_t)-1);
    say("%d ", clock() > start);
    say("%d ", timercmp(&after, &before, >));
    say("%d", more.tms_utime + more.tms_stime >= parts.tms_utime + parts.tms_stime);
}

CASE(children_take_time, "0 1")
{
    struct rusage usage;
    assert(getrusage(RUSAGE_CHILDREN, &usage) == 0);
    say("%ld ", usage.ru_maxrss);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert(status_of(child) == 0);
    assert(getrusage(RUSAGE_CHILDREN, &usage) == 0);
    say("%d", usage.ru_maxrss > 0);
}

CONFORMANCE_MAIN
