/* What the random programs share: their variables and locks, the jitter between two operations of a native run, and the outcome that
   each run tells.

   Called with the number of a program it runs that one, and appends to the file that OUTCOMES names a line "begin" and then the
   outcome, each time a thread comes to end the process: the last one counts. With the number of runs and a seed besides, it runs
   the program natively so many times, each in a process of its own, and prints the outcomes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Four variables of a byte each, and then what each of four threads has found out. One word, so that one load tells it all. */
static atomic_ulong world;
#define AT(variable) (8 * (variable))
#define VALUE(variable) ((unsigned)(atomic_load(&world) >> AT(variable) & 0xff))
#define ADD(variable, number) atomic_fetch_add(&world, (unsigned long)(number) << AT(variable))
#define PUBLISH(thread, number) ADD(4 + (thread), (number) & 0x3f)

static pthread_mutex_t mutex[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t sem;
/* Each is protected by one of the locks above. */
static int locked[2], read_locked, spin_locked, flag;
static pthread_t main_thread, threads[4];

/* A system call that is neither intercepted nor a cancellation point. */
static inline long raw_call(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

/* 0 where there is no jitter, as under Heisen. */
static unsigned long jitter_seed;
static __thread unsigned long jitter_state;

static void jitter(void)
{
    if (jitter_seed == 0)
        return;
    if (jitter_state == 0)
        jitter_state = jitter_seed ^ (unsigned long)raw_call(SYS_gettid, 0, 0, 0, 0) * 0x9e3779b97f4a7c15ul;
    jitter_state = jitter_state * 6364136223846793005ul + 1442695040888963407ul;
    unsigned long random = jitter_state >> 33;
    if (random % 8 < 3) {
        struct timespec pause = {0, (long)(random / 8 % 250) * 1000};
        raw_call(SYS_nanosleep, (long)&pause, 0, 0, 0);
    } else if (random % 8 == 3) {
        raw_call(SYS_sched_yield, 0, 0, 0, 0);
    }
}

static int outcomes = -1;
/* What the calling thread ends the process with, for the handlers of that. */
static __thread int number;

static void tell(const char *how)
{
    char line[64];
    int length = snprintf(line, sizeof line, "%s %d %lx\n", how, number, atomic_load(&world));
    raw_call(SYS_write, outcomes, (long)line, length, 0);
    jitter();
}

static void at_exit(int status, void *unused)
{
    (void)status;
    (void)unused;
    tell("exit handler");
}

static void at_quick(void)
{
    tell("quick handler");
}

static inline void init_once(void)
{
    ADD(3, 1);
}

static inline void on_signal(int signal)
{
    (void)signal;
    ADD(2, 1);
}

static inline void unlock_mutex(void *which)
{
    pthread_mutex_unlock(which);
}

/* A moment that comes soon. */
static inline struct timespec soon(void)
{
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    moment.tv_nsec += 1000000;
    if (moment.tv_nsec >= 1000000000) {
        moment.tv_sec++;
        moment.tv_nsec -= 1000000000;
    }
    return moment;
}

/* What a child that exits at once exits with. */
static inline int forked(int status)
{
    pid_t child = fork();
    if (child == 0)
        _exit(status);
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    return WEXITSTATUS(ended);
}

struct program {
    void (*run)(void);
    int handlers;
};

static void run(const struct program *program)
{
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&barrier, NULL, 2);
    main_thread = pthread_self();
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    if (program->handlers) {
        on_exit(at_exit, NULL);
        at_quick_exit(at_quick);
    }
    raw_call(SYS_write, outcomes, (long)"begin\n", 6, 0);
    program->run();
}

/* The outcome of a native run: the last line that it told. */
static void run_natively(const struct program *program, unsigned long seed)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        outcomes = ends[1];
        jitter_seed = seed * 2 + 1;
        run(program);
        _exit(99);
    }
    close(ends[1]);
    char told[1 << 12];
    ssize_t length = 0, got;
    struct pollfd readable = {ends[0], POLLIN, 0};
    int hangs = 0;
    do {
        hangs = poll(&readable, 1, 20000) == 0;
        got = hangs ? 0 : read(ends[0], told + length, sizeof told - 1 - length);
        length += got > 0 ? got : 0;
    } while (got > 0);
    if (hangs)
        kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    close(ends[0]);
    told[length > 0 ? length - 1 : 0] = 0;
    const char *last = strrchr(told, '\n');
    if (hangs)
        puts("deadlock");
    else if (last == NULL)
        printf("nothing told, status %#x\n", status);
    else
        puts(last + 1);
    /* A child must not print it again. */
    fflush(stdout);
}

static int start(int argc, char **argv, const struct program *programs)
{
    if (argc < 2)
        return 98;
    const struct program *program = &programs[atoi(argv[1])];
    if (argc > 3) {
        for (int i = 0; i < atoi(argv[2]); i++)
            run_natively(program, strtoul(argv[3], NULL, 10) + i);
        return 0;
    }
    outcomes = open(getenv("OUTCOMES"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    run(program);
    return 97;
}
