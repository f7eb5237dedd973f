/* What a child process finds of the signals of its parent, and signals that come from it. */
#include "cases.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static volatile sig_atomic_t hits;

static void count(int signal)
{
    (void)signal;
    hits++;
}

static void change(int how, int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    assert(pthread_sigmask(how, &set, NULL) == 0);
}

/* What the kernel knows of this process: a line of /proc/self/status as a number. */
#define STATE "sed -n 's/^%s:.//p' /proc/self/status | tail -c 17"

static unsigned long long set_in_child(const char *line)
{
    char command[200], answer[64] = "";
    snprintf(command, sizeof command, "exec " STATE, line);
    FILE *out = popen(command, "r");
    assert(out != NULL && fgets(answer, sizeof answer, out) != NULL);
    assert(pclose(out) == 0);
    return strtoull(answer, NULL, 16);
}

static unsigned long long own_set(const char *name)
{
    char line[200];
    unsigned long long set = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert(file != NULL);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            set = strtoull(line + strlen(name) + 1, NULL, 16);
    fclose(file);
    return set;
}

static int has(unsigned long long set, int signal)
{
    return set >> (signal - 1) & 1;
}

static void *reads_its_child(void *arg)
{
    change(SIG_BLOCK, SIGUSR1);
    unsigned long long blocked = set_in_child("SigBlk"), ignored = set_in_child("SigIgn");
    assert(has(blocked, SIGUSR1) && !has(blocked, SIGUSR2) && !has(blocked, SIGHUP));
    assert(has(ignored, SIGHUP) && !has(ignored, SIGUSR2) && !has(ignored, SIGTERM));
    return arg;
}

/* The child has the mask of the thread that starts it, not of another, and what is ignored. */
static void started_programs(void)
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR2, count);
    change(SIG_BLOCK, SIGUSR2);
    change(SIG_UNBLOCK, SIGUSR2);
    join(start(reads_its_child, NULL));
    assert(!has(set_in_child("SigBlk"), SIGUSR1));
}

static int ends_with(pid_t child)
{
    int status;
    pid_t got;
    while ((got = waitpid(child, &status, 0)) == -1)
        assert(errno == EINTR);
    assert(got == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void *forks(void *arg)
{
    change(SIG_BLOCK, SIGUSR1);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        /* Without the runtime, by the kernel alone. */
        raise(SIGUSR1);
        int good = hits == 0;
        change(SIG_UNBLOCK, SIGUSR1);
        good = good && hits == 1;
        raise(SIGUSR2);
        kill(getpid(), SIGUSR2);
        _exit(good && hits == 3 && has(own_set("SigCgt"), SIGUSR1) ? 7 : 9);
    }
    assert(ends_with(child) == 7);
    return arg;
}

static void forked_children(void)
{
    signal(SIGUSR1, count);
    signal(SIGUSR2, count);
    change(SIG_BLOCK, SIGUSR2);
    change(SIG_UNBLOCK, SIGUSR2);
    join(start(forks, NULL));
    assert(hits == 0);
}

static void vforked_children(void)
{
    volatile int ours = 1;
    signal(SIGUSR1, count);
    change(SIG_BLOCK, SIGHUP);
    pid_t child = vfork();
    assert(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
        _exit(9);
    }
    assert(ours == 1 && ends_with(child) == 5);
    raise(SIGUSR1);
    assert(hits == 1);
}

static void spawned_children(void)
{
    char *arguments[] = {"sh", "-c", "kill -USR1 $$; exit 4", NULL};
    pid_t child;
    change(SIG_BLOCK, SIGUSR1);
    assert(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    assert(ends_with(child) == 4);
    assert(system("exit 3") == 3 << 8);
}

/* Nothing in the program can send it: the wait is for the child. */
static void the_end_of_a_child(void)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGCHLD, count);
    change(SIG_BLOCK, SIGCHLD);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0)
        _exit(6);
    while (!hits)
        sigsuspend(&none);
    assert(ends_with(child) == 6);
}

static void signals_from_a_child(void)
{
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    change(SIG_BLOCK, SIGUSR1);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0)
        _exit(kill(getppid(), SIGUSR1) == 0 ? 8 : 9);
    assert(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_code == SI_USER && info.si_pid == child);
    assert(ends_with(child) == 8);
}

static void a_broken_pipe(void)
{
    int ends[2];
    signal(SIGPIPE, count);
    assert(pipe(ends) == 0 && close(ends[0]) == 0);
    assert(write(ends[1], "x", 1) == -1 && errno == EPIPE);
    sched_yield();
    assert(hits == 1);
    signal(SIGPIPE, SIG_IGN);
    assert(write(ends[1], "x", 1) == -1 && errno == EPIPE && hits == 1);
}

CASES(CASE(started_programs), CASE(forked_children), CASE(vforked_children), CASE(spawned_children),
      CASE(the_end_of_a_child), CASE(signals_from_a_child), CASE(a_broken_pipe))
