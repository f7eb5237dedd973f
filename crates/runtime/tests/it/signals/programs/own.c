/* Signals that the runtime uses itself, sent by the program and by its children: they are the program's, as natively. */
#include "cases.h"
#include "processes.h"

static const int own[] = {SIGSYS, SIGSEGV, SIGBUS, SIGTRAP, SIGFPE, SIGILL, SIGSTKFLT};
#define COUNT (sizeof own / sizeof *own)

static volatile sig_atomic_t hits, last, code;

static void count(int signal, siginfo_t *info, void *context)
{
    (void)context;
    hits++;
    last = signal;
    code = info->si_code;
}

static void handle(int signal)
{
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO};
    assert(sigaction(signal, &action, NULL) == 0);
}

static void change(int how, int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    assert(pthread_sigmask(how, &set, NULL) == 0);
}

static void *nothing(void *arg)
{
    return arg;
}

/* Each way of sending, each signal: the handler has run when the call returns. */
static void handled(void)
{
    join(start(nothing, NULL));
    for (size_t i = 0; i < COUNT; i++) {
        union sigval value = {.sival_int = 7};
        handle(own[i]);
        hits = 0;
        assert(raise(own[i]) == 0 && hits == 1 && last == own[i] && code == SI_TKILL);
        assert(kill(getpid(), own[i]) == 0 && hits == 2 && code == SI_USER);
        assert(pthread_kill(pthread_self(), own[i]) == 0 && hits == 3 && code == SI_TKILL);
        assert(sigqueue(getpid(), own[i], value) == 0 && hits == 4 && code == SI_QUEUE);
    }
}

/* A child has neither the handlers of the runtime nor what it noted: the default action ends it. */
static void default_in_a_child(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        pid_t child = sleeper();
        assert(kill(child, own[i]) == 0);
        int status = status_of(child);
        assert(WIFSIGNALED(status) && WTERMSIG(status) == own[i]);
    }
}

/* In a child, a signal does not turn into a system call, and `fork` goes on to work. */
static void handled_in_a_child(void)
{
    for (size_t i = 0; i < COUNT; i++)
        handle(own[i]);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < COUNT; i++) {
            hits = 0;
            if (kill(getpid(), own[i]) != 0 || raise(own[i]) != 0 || hits != 2 || last != own[i])
                _exit(8);
        }
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(4);
        _exit(grandchild > 0 && status_of(grandchild) == 4 << 8 ? 7 : 9);
    }
    assert(status_of(child) == 7 << 8);
}

/* The program is in the middle of something else when the signal comes. */
static void handled_from_a_child(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        handle(own[i]);
        hits = 0;
        pid_t parent = getpid(), child = fork();
        assert(child >= 0);
        if (child == 0)
            _exit(kill(parent, own[i]) == 0 ? 5 : 6);
        assert(status_of(child) == 5 << 8);
        sched_yield();
        assert(hits == 1 && last == own[i] && code == SI_USER);
    }
}

/* All threads block it: it is pending, also where the kernel must not block it. */
static void blocked_from_a_child(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        sigset_t set;
        siginfo_t info;
        change(SIG_BLOCK, own[i]);
        pid_t parent = getpid(), child = fork();
        assert(child >= 0);
        if (child == 0)
            _exit(kill(parent, own[i]) == 0 ? 5 : 6);
        sigemptyset(&set);
        sigaddset(&set, own[i]);
        assert(sigwaitinfo(&set, &info) == own[i] && info.si_code == SI_USER && info.si_pid == child);
        assert(status_of(child) == 5 << 8);
    }
}

/* A fault still is one, in a program that is also sent the signal. */
static char *volatile page;

static void repair(int signal, siginfo_t *info, void *context)
{
    (void)context;
    assert(signal == SIGSEGV);
    if (info->si_code > 0) {
        assert(info->si_addr == page);
        assert(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
    }
    hits++;
}

static void faults_and_sent(void)
{
    struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(page != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0);
    *page = 1;
    assert(hits == 1 && raise(SIGSEGV) == 0 && hits == 2);
    assert(mprotect(page, 4096, PROT_READ) == 0);
    *page = 2;
    assert(hits == 3 && *page == 2);
}

#define KILLED(name, signal)                                                        \
    static void name(void)                                                          \
    {                                                                               \
        join(start(nothing, NULL));                                                 \
        kill(getpid(), signal);                                                     \
    }

KILLED(killed_by_sigsys, SIGSYS)
KILLED(killed_by_sigsegv, SIGSEGV)
KILLED(killed_by_sigbus, SIGBUS)
KILLED(killed_by_sigtrap, SIGTRAP)
KILLED(killed_by_sigstkflt, SIGSTKFLT)

/* The child sends what nobody handles. */
#define KILLED_BY_CHILD(name, signal)                                               \
    static void name(void)                                                          \
    {                                                                               \
        pid_t parent = getpid(), child = fork();                                    \
        assert(child >= 0);                                                         \
        if (child == 0)                                                             \
            _exit(kill(parent, signal));                                            \
        status_of(child);                                                           \
        sched_yield();                                                              \
    }

KILLED_BY_CHILD(child_sends_sigsys, SIGSYS)
KILLED_BY_CHILD(child_sends_sigsegv, SIGSEGV)
KILLED_BY_CHILD(child_sends_sigstkflt, SIGSTKFLT)

CASES(CASE(handled), CASE(default_in_a_child), CASE(handled_in_a_child), CASE(handled_from_a_child),
      CASE(blocked_from_a_child), CASE(faults_and_sent), CASE(killed_by_sigsys), CASE(killed_by_sigsegv),
      CASE(killed_by_sigbus), CASE(killed_by_sigtrap), CASE(killed_by_sigstkflt), CASE(child_sends_sigsys),
      CASE(child_sends_sigsegv), CASE(child_sends_sigstkflt))
