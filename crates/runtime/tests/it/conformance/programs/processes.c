/* Other processes: forks, and programs started. */
#include "results.h"
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>

extern char **environ;

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t has_it;
static int memory = 1;

static int status_of(pid_t child)
{
    int status;
    assert(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

CASE(a_child_has_its_own_memory, "2 1")
{
    pid_t child = fork();
    if (child == 0) {
        memory++;
        _exit(memory);
    }
    say("%d %d", status_of(child), memory);
}

static void *forks(void *arg)
{
    pid_t child = fork();
    if (child == 0)
        _exit(getpid() == gettid() ? 3 : 4);
    point();
    say("%d", status_of(child));
    return arg;
}

CASE(a_thread_forks, "3")
{
    join(start(forks, NULL));
}

CASE(two_threads_fork, "33")
{
    beside(forks, NULL, forks, NULL);
}

/* ---- handlers ---- */

static char *shared;

static void note_in_memory(char letter)
{
    shared[strlen(shared)] = letter;
}

static void prepare_first(void) { note_in_memory('a'); }
static void prepare_second(void) { note_in_memory('b'); }
static void parent_first(void) { say("p"); }
static void parent_second(void) { say("q"); }
static void child_first(void) { note_in_memory('c'); }
static void child_second(void) { note_in_memory('d'); }

CASE(handlers_around_a_fork, "pq bacd 0")
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(pthread_atfork(prepare_first, parent_first, child_first) == 0);
    assert(pthread_atfork(prepare_second, parent_second, child_second) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int status = status_of(child);
    say(" %s %d", shared, status);
}

static void lock(void) { pthread_mutex_lock(&m); }
static void unlock(void) { pthread_mutex_unlock(&m); }

static void *locks_a_while(void *arg)
{
    lock();
    memory = 2;
    point();
    memory = 1;
    unlock();
    return arg;
}

/* Handlers that take a mutex see to it that the child finds what it guards in order. */
CASE(a_mutex_around_a_fork, "1 0")
{
    pthread_atfork(lock, unlock, unlock);
    pthread_t t = start(locks_a_while, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(memory);
    say("%d ", status_of(child));
    join(t);
    say("%s", named(pthread_mutex_trylock(&m)));
}

static void *forks_and_says(void *arg)
{
    pid_t child = fork();
    if (child == 0)
        _exit(memory);
    say("%d", status_of(child));
    return arg;
}

CASE(two_forks_with_a_mutex_around_them, "11")
{
    pthread_atfork(lock, unlock, unlock);
    beside(forks_and_says, NULL, forks_and_says, NULL);
}

static void *holds(void *arg)
{
    lock();
    sem_post(&has_it);
    sem_wait(arg);
    unlock();
    return NULL;
}

CASE(a_child_finds_mutexes_as_they_were, "EBUSY")
{
    sem_t let_go;
    sem_init(&let_go, 0, 0);
    pthread_t t = start(holds, &let_go);
    sem_wait(&has_it);
    pid_t child = fork();
    if (child == 0)
        _exit(pthread_mutex_trylock(&m));
    say("%s", named(status_of(child)));
    sem_post(&let_go);
    join(t);
}

static void *gives_back(void *arg) { return arg; }

CASE(a_child_has_threads_and_time, "3")
{
    pid_t child = fork();
    if (child == 0) {
        int right = join(start(gives_back, (void *)4)) == (void *)4;
        _exit(right | (usleep(100) == 0) << 1);
    }
    say("%d", status_of(child));
}

/* A child is another thread to its parent's mutexes. */
NATIVELY(a_child_does_not_own_what_its_parent_owns)
{
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&checking);
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(i == 0   ? pthread_mutex_trylock(&recursive)
                  : i == 1 ? pthread_mutex_unlock(&recursive)
                  : i == 2 ? pthread_mutex_trylock(&checking)
                           : pthread_mutex_unlock(&checking));
        say("%s ", named(status_of(child)));
    }
}

CASE(a_child_that_exits_runs_its_handlers, "7")
{
    pid_t child = fork();
    if (child == 0)
        exit(7);
    say("%d", status_of(child));
}

CASE(a_child_that_is_killed, "-9")
{
    pid_t child = fork();
    if (child == 0)
        pause();
    kill(child, SIGKILL);
    say("%d", status_of(child));
}

/* ---- programs ---- */

static char *shell[] = {"sh", "-c", "exit ${N:-5}", NULL};
static char *with_n[] = {"N=6", NULL};

CASE(a_vfork, "3 5")
{
    pid_t child = vfork();
    if (child == 0)
        _exit(3);
    say("%d ", status_of(child));
    child = vfork();
    if (child == 0) {
        execv("/bin/sh", shell);
        _exit(99);
    }
    say("%d", status_of(child));
}

CASE(spawned, "5 6 ENOENT")
{
    pid_t child;
    assert(posix_spawn(&child, "/bin/sh", NULL, NULL, shell, environ) == 0);
    say("%d ", status_of(child));
    assert(posix_spawnp(&child, "sh", NULL, NULL, shell, with_n) == 0);
    say("%d ", status_of(child));
    say("%s", named(posix_spawn(&child, "/no/such/program", NULL, NULL, shell, environ)));
}

CASE(commands, "3 1 hello\\n 4")
{
    say("%d ", WEXITSTATUS(system("exit 3")));
    say("%d ", system(NULL) != 0);
    char line[20] = "";
    FILE *out = popen("echo 'hello\\n'; exit 4", "r");
    assert(out != NULL && fgets(line, sizeof line, out) != NULL);
    line[strcspn(line, "\n")] = 0;
    char *end = strstr(line, "\\n");
    say("%s%s ", line, end == NULL ? "\\n" : "");
    int c;
    while ((c = fgetc(out)) != EOF)
        ;
    say("%d", WEXITSTATUS(pclose(out)));
}

/* The whole process becomes another program. */
#define BECOMES(name, status, call)     \
    ENDS(name, status, "before")        \
    {                                   \
        say("before");                  \
        write_result();                 \
        setenv("N", "4", 1);            \
        call;                           \
        _exit(99);                      \
    }

BECOMES(becomes_by_execv, 4, execv("/bin/sh", shell))
BECOMES(becomes_by_execvp, 4, execvp("sh", shell))
BECOMES(becomes_by_execvpe, 6, execvpe("sh", shell, with_n))
BECOMES(becomes_by_execve, 6, execve("/bin/sh", shell, with_n))
BECOMES(becomes_by_execveat, 6, execveat(AT_FDCWD, "/bin/sh", shell, with_n, 0))
BECOMES(becomes_by_execl, 4, execl("/bin/sh", "sh", "-c", "exit $N", (char *)NULL))
BECOMES(becomes_by_execlp, 4, execlp("sh", "sh", "-c", "exit $N", (char *)NULL))
BECOMES(becomes_by_execle, 6, execle("/bin/sh", "sh", "-c", "exit $N", (char *)NULL, with_n))
BECOMES(becomes_by_fexecve, 6, fexecve(open("/bin/sh", O_RDONLY), shell, with_n))

NATIVELY(what_is_not_there)
{
    char *nothing[] = {"x", NULL};
    say("%s ", outcome(execv("/no/such/program", nothing)));
    say("%s ", outcome(execvp("no-such-program", nothing)));
    say("%s ", outcome(execve("/", nothing, environ)));
    say("%s ", outcome(execl("", "x", (char *)NULL)));
    say("%s ", outcome(fexecve(-1, nothing, environ)));
    say("%s ", outcome(fexecve(77, nothing, environ)));
    say("%s", outcome(waitpid(-1, NULL, 0)));
}

CONFORMANCE_MAIN
