/* Signals and changes to other processes. Run in a process namespace of its own; BYSTANDER is a process there. */
#include "cases.h"
#include "processes.h"
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static volatile sig_atomic_t hits;

static void count(int signal)
{
    (void)signal;
    hits++;
}

static void *nothing(void *arg)
{
    return arg;
}

#define REFUSED(call) (errno = 0, (call) == -1 && errno == EPERM)

static void everyone(void)
{
    join(start(nothing, NULL));
    assert(kill(-1, 0) == 0);
    assert(REFUSED(kill(-1, SIGKILL)) && REFUSED(killpg(1, SIGKILL)) && REFUSED(syscall(SYS_kill, -1, SIGKILL)));
}

static void everyone_by_instruction(void)
{
    long result;
    join(start(nothing, NULL));
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_kill), "D"(-1L), "S"((long)SIGKILL) : "rcx", "r11", "memory");
    assert(result == -EPERM);
}

static void bystander(void)
{
    pid_t other = atoi(getenv("BYSTANDER"));
    struct rlimit limit = {100, 100};
    struct iovec from = {&limit, 1}, to = {&limit, 1};
    struct sched_param parameters = {0};
    assert(kill(other, 0) == 0);
    assert(REFUSED(kill(other, SIGKILL)) && REFUSED(syscall(SYS_kill, other, SIGKILL)));
    assert(REFUSED(kill(-other, SIGKILL)) && REFUSED(killpg(other, SIGKILL)));
    assert(REFUSED(tgkill(other, other, SIGKILL)) && REFUSED(syscall(SYS_tkill, other, SIGKILL)));
    assert(REFUSED(sigqueue(other, SIGKILL, (union sigval){0})));
    int fd = pidfd_open(other, 0);
    assert(fd >= 0 && pidfd_send_signal(fd, 0, NULL, 0) == 0 && REFUSED(pidfd_send_signal(fd, SIGKILL, NULL, 0)));
    assert(REFUSED(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0)) && close(fd) == 0);
    assert(REFUSED(syscall(SYS_ioprio_set, 1, other, 0)) && REFUSED(syscall(SYS_ioprio_set, 3, 0, 0)));
    assert(REFUSED(setpriority(PRIO_PROCESS, other, 19)) && REFUSED(setpriority(PRIO_USER, 0, 19)));
    assert(REFUSED(prlimit(other, RLIMIT_NOFILE, &limit, NULL)) && prlimit(other, RLIMIT_NOFILE, NULL, &limit) == 0);
    assert(REFUSED(process_vm_writev(other, &from, 1, &to, 1, 0)));
    assert(REFUSED(sched_setscheduler(other, SCHED_BATCH, &parameters)) && REFUSED(sched_setparam(other, &parameters)));
    assert(REFUSED(kill(getppid(), SIGKILL)) && kill(getppid(), 0) == 0);
    assert(kill(123456789, SIGKILL) == -1 && errno == ESRCH);
}

/* Alone in its process group, the program is all that it reaches. */
static void own_group(void)
{
    signal(SIGUSR1, count);
    join(start(nothing, NULL));
    assert(kill(0, SIGUSR1) == 0 && hits == 1);
    assert(killpg(getpgrp(), SIGUSR1) == 0 && hits == 2);
    assert(killpg(0, SIGUSR1) == 0 && hits == 3);
}

/* Children are the program's own: by their ids, as a part of its group, and in a group of theirs. */
static void children(void)
{
    pid_t child = sleeper();
    assert(setpriority(PRIO_PROCESS, child, 19) == 0);
    assert(kill(child, SIGKILL) == 0 && WTERMSIG(status_of(child)) == SIGKILL);
    child = sleeper();
    pid_t apart = sleeper();
    assert(setpgid(apart, apart) == 0);
    /* They do not have this handler. */
    signal(SIGUSR1, count);
    assert(kill(0, SIGUSR1) == 0 && hits == 1 && WTERMSIG(status_of(child)) == SIGUSR1);
    assert(killpg(apart, SIGUSR2) == 0 && WTERMSIG(status_of(apart)) == SIGUSR2);
}

/* So are theirs. */
static void grandchildren(void)
{
    pid_t *grandchild = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(grandchild != MAP_FAILED);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        *grandchild = sleeper();
        _exit(0);
    }
    assert(status_of(child) == 0);
    /* Its parent is gone. */
    assert(kill(*grandchild, SIGKILL) == 0);
}

CASES(CASE(everyone), CASE(everyone_by_instruction), CASE(bystander), CASE(own_group), CASE(children), CASE(grandchildren))
