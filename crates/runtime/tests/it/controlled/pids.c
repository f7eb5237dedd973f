/* Ids of the process, its threads and its children, in every call that takes or gives one. Prints those that must not
 * differ from run to run. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static volatile sig_atomic_t caught;

static void handler(int signal) { caught = signal; }

static void *thread(void *unused) {
    assert(gettid() != getpid() && syscall(SYS_gettid) == gettid());
    printf("thread %d of %d\n", gettid(), getpid());
    cpu_set_t cpus;
    assert(sched_getaffinity(gettid(), sizeof cpus, &cpus) == 0);
    return unused;
}

/* The process itself. */
static void own(void) {
    pid_t me = getpid();
    printf("process %d, parent %d\n", me, getppid());
    assert(me > 0 && gettid() == me && syscall(SYS_getpid) == me && syscall(SYS_gettid) == me);
    assert(syscall(SYS_getppid) == getppid() && getppid() != me);
    signal(SIGUSR1, handler);
    assert(kill(me, SIGUSR1) == 0 && caught == SIGUSR1);
    caught = 0;
    assert(syscall(SYS_kill, me, SIGUSR1) == 0 && caught == SIGUSR1);
    caught = 0;
    assert(sigqueue(me, SIGUSR1, (union sigval){.sival_int = 3}) == 0 && caught == SIGUSR1);
    caught = 0;
    assert(tgkill(me, me, SIGUSR1) == 0 && caught == SIGUSR1);
    caught = 0;
    assert(raise(SIGUSR1) == 0 && caught == SIGUSR1);
    assert(getpgid(me) == getpgrp() && getpgid(0) == getpgrp() && getsid(me) == getsid(0));
    assert(syscall(SYS_getpgid, me) == getpgrp() && syscall(SYS_getpgrp) == getpgrp());
    struct rlimit limit, other;
    assert(prlimit(me, RLIMIT_NOFILE, NULL, &limit) == 0 && getrlimit(RLIMIT_NOFILE, &other) == 0);
    assert(limit.rlim_cur == other.rlim_cur);
    int from = 42, to = 0;
    struct iovec local = {&to, sizeof to}, remote = {&from, sizeof from};
    assert(process_vm_readv(me, &local, 1, &remote, 1, 0) == sizeof to && to == 42);
    errno = 0;
    assert(getpriority(PRIO_PROCESS, me) != -1 || errno == 0);
    struct sched_param parameters;
    assert(sched_getparam(me, &parameters) == 0 && sched_getscheduler(me) == SCHED_OTHER);
    clockid_t clock;
    assert(clock_getcpuclockid(me, &clock) == 0);
    /* Nobody has these. */
    assert(kill(me + 900000, 0) == -1 && errno == ESRCH);
    assert(waitpid(me + 900000, NULL, 0) == -1 && errno == ECHILD);
    assert(getpgid(me + 900000) == -1 && errno == ESRCH);
    assert(kill(-(me + 900000), 0) == -1 && errno == ESRCH);
}

/* A child that is forked, and one of its own. */
static void forked(void) {
    pid_t me = getpid();
    int told[2];
    assert(pipe(told) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pid_t ids[3] = {getpid(), getppid(), gettid()};
        assert(syscall(SYS_getpid) == ids[0]);
        cpu_set_t cpus;
        assert(sched_getaffinity(getpid(), sizeof cpus, &cpus) == 0 && kill(getpid(), 0) == 0 && kill(me, 0) == 0);
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(getppid() == ids[0] && getpid() != ids[0] && gettid() == getpid() ? 5 : 6);
        int status;
        assert(waitpid(grandchild, &status, 0) == grandchild && WEXITSTATUS(status) == 5);
        assert(write(told[1], ids, sizeof ids) == sizeof ids);
        pause();
    }
    /* Whether a read has to wait depends on the child, which is not controlled: so it never has to. */
    int there = 0;
    while (there == 0)
        assert(ioctl(told[0], FIONREAD, &there) == 0);
    pid_t ids[3];
    assert(read(told[0], ids, sizeof ids) == sizeof ids);
    printf("child %d\n", child);
    assert(child != me && ids[0] == child && ids[1] == me && ids[2] == child);
    assert(waitpid(child, NULL, WNOHANG) == 0 && kill(child, 0) == 0);
    assert(kill(child, SIGSTOP) == 0);
    int status;
    assert(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    assert(kill(child, SIGCONT) == 0 && waitpid(-1, &status, WCONTINUED) == child && WIFCONTINUED(status));
    assert(kill(child, SIGTERM) == 0);
    siginfo_t info = {0};
    assert(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0 && info.si_pid == child);
    assert(waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_pid == child && info.si_status == SIGTERM);
    assert(kill(child, 0) == -1 && errno == ESRCH);
    assert(waitpid(child, &status, 0) == -1 && errno == ECHILD && wait(NULL) == -1 && errno == ECHILD);
}

/* Children one after the other, more than are remembered at a time. */
static void many(void) {
    pid_t last = 0;
    for (int i = 0; i < 1100; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(i % 100);
        int status;
        pid_t got = i % 4 == 0   ? wait(&status)
                    : i % 4 == 1 ? wait3(&status, 0, NULL)
                    : i % 4 == 2 ? wait4(child, &status, 0, NULL)
                                 : (pid_t)syscall(SYS_wait4, child, &status, 0, NULL);
        assert(got == child && child != last && WEXITSTATUS(status) == i % 100);
        last = child;
    }
    printf("last %d\n", last);
}

static void spawned(void) {
    char *arguments[] = {"sh", "-c", "exit 9", NULL};
    pid_t child;
    assert(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0);
    printf("spawned %d\n", child);
    int status;
    assert(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
    assert(posix_spawn(&child, "/nowhere", NULL, NULL, arguments, environ) == ENOENT);
    child = vfork();
    if (child == 0)
        _exit(4);
    assert(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
    assert(system("exit 3") >> 8 == 3);
}

int main(int argc, char **argv) {
    own();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    forked();
    if (argc > 1 && strcmp(argv[1], "many") == 0)
        many();
    spawned();
    fflush(stdout);
    return argc > 1 ? 1 : 0;
}
