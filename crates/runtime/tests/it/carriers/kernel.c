/* What kernel threads have that fibers do not, and what both must get right. Each case ends with status 0 if all is as
 * it would be natively. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "%d: %s\n", __LINE__, #condition);          \
            _exit(9);                                                   \
        }                                                               \
    } while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int own = 7;

static void *locks(void *arg) {
    CHECK(own == 7);
    own = 8;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    CHECK(own == 8);
    return arg;
}

static pthread_t start(void *(*function)(void *), void *arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, arg) == 0);
    return thread;
}

static void join(pthread_t thread, void *expected) {
    void *result;
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == expected);
}

static int tasks(void) {
    DIR *directory = opendir("/proc/self/task");
    int count = -2;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void *counts(void *arg) {
    CHECK(tasks() >= 2);
    return arg;
}

/* There is one task for each thread, and none is left once it has ended. */
static void case_tasks(void) {
    CHECK(tasks() == 1);
    pthread_t one = start(counts, &one), two = start(locks, &two);
    CHECK(tasks() >= 2);
    join(one, &one);
    join(two, &two);
    for (int i = 0; tasks() != 1; i++) {
        CHECK(i < 1000);
        syscall(SYS_sched_yield);
    }
}

static clockid_t clock_of(pthread_t thread) {
    clockid_t clock;
    CHECK(pthread_getcpuclockid(thread, &clock) == 0);
    return clock;
}

static void *has_own_clock(void *main_thread) {
    CHECK(clock_of(pthread_self()) != clock_of(*(pthread_t *)main_thread));
    return NULL;
}

/* Each has a processor clock of its own, and an id that the program can use. */
static void case_ids(void) {
    pthread_t self = pthread_self(), one = start(has_own_clock, &self);
    join(one, NULL);
    cpu_set_t set;
    CHECK(sched_getaffinity(gettid(), sizeof set, &set) == 0);
    CHECK(pthread_getaffinity_np(self, sizeof set, &set) == 0);
}

static pthread_t early;
static pthread_mutex_t early_lock = PTHREAD_MUTEX_INITIALIZER;
static int early_done;

static void *runs_early(void *arg) {
    own = 9;
    pthread_mutex_lock(&early_lock);
    early_done = 1;
    pthread_mutex_unlock(&early_lock);
    CHECK(own == 9);
    return arg;
}

__attribute__((constructor)) static void make_early(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "constructor") == 0) {
        early = start(runs_early, &early);
        /* One that has begun, too: it stops in here. */
        pthread_mutex_lock(&early_lock);
        sched_yield();
        pthread_mutex_unlock(&early_lock);
    }
}

/* A thread that was made before main goes on in it. */
static void case_constructor(void) {
    pthread_t one = start(locks, &one);
    join(early, &early);
    CHECK(early_done);
    join(one, &one);
}

static void *ends_all(void *main_thread) {
    join(*(pthread_t *)main_thread, &lock);
    return NULL;
}

/* The process ends with its last thread, whichever that is. */
static void case_main_exits(void) {
    static pthread_t self;
    self = pthread_self();
    pthread_detach(start(ends_all, &self));
    start(locks, NULL);
    pthread_exit(&lock);
}

static void *forks(void *child) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        /* It outlives the thread that made it. */
        usleep(2000);
        _exit(own == 7 ? 5 : 6);
    }
    *(pid_t *)child = pid;
    return NULL;
}

/* A forked child has the one thread, and does not go with the thread that forked. */
static void case_forks(void) {
    pid_t child = 0;
    pthread_t one = start(forks, &child), two = start(locks, NULL);
    join(one, NULL);
    join(two, NULL);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static uid_t wanted;

static void *is_user(void *arg) {
    pthread_mutex_lock(&lock);
    uid_t real, effective, saved;
    CHECK(getresuid(&real, &effective, &saved) == 0);
    CHECK(effective == wanted);
    pthread_mutex_unlock(&lock);
    return arg;
}

/* Users are changed in all threads, as POSIX says. */
static void case_users(void) {
    wanted = geteuid() == 0 ? 65534 : geteuid();
    pthread_mutex_lock(&lock);
    pthread_t one = start(is_user, &one), two = start(is_user, &two);
    sched_yield();
    CHECK(seteuid(wanted) == 0);
    pthread_mutex_unlock(&lock);
    join(one, &one);
    join(two, &two);
}

static pthread_t handled_by;

static void handler(int signal) {
    (void)signal;
    handled_by = pthread_self();
}

static void *raises(void *arg) {
    pthread_mutex_lock(&lock);
    CHECK(raise(SIGUSR1) == 0);
    CHECK(pthread_equal(handled_by, pthread_self()));
    pthread_mutex_unlock(&lock);
    return arg;
}

static void case_signals(void) {
    struct sigaction action = {.sa_handler = handler};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t one = start(raises, &one), two = start(raises, &two);
    join(one, &one);
    join(two, &two);
}

/* The program's own stack may be used again as soon as its thread is joined. */
static void case_stacks(void) {
    size_t size = 64 << 10;
    void *stack = aligned_alloc(4096, size);
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack, size) == 0);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, locks, &size) == 0);
        join(thread, &size);
        memset(stack, 0xff, size);
    }
    free(stack);
}

static void *has_mask(void *arg) {
    sigset_t now;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGUSR2) && !sigismember(&now, SIGUSR1));
    sigaddset(&now, SIGUSR1);
    CHECK(pthread_sigmask(SIG_SETMASK, &now, NULL) == 0);
    return arg;
}

/* A thread begins with the mask of its creator, and has its own. */
static void case_masks(void) {
    sigset_t mask, now;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    CHECK(pthread_sigmask(SIG_SETMASK, &mask, NULL) == 0);
    pthread_t one = start(has_mask, &one), two = start(has_mask, &two);
    join(one, &one);
    join(two, &two);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    CHECK(!sigismember(&now, SIGUSR1) && sigismember(&now, SIGUSR2));
}

/* Many, together and one after the other; some are never joined, and wait when the process ends. */
static void case_many(void) {
    pthread_t all[40];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++)
            all[i] = start(locks, &all[i]);
        for (int i = 0; i < 40; i++)
            join(all[i], &all[i]);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 10; i++)
        start(locks, NULL);
    sched_yield();
}

static void *spin(void *arg) {
    /* It counts, so it is not taken for a loop that waits. */
    for (volatile long rounds = 0; rounds >= 0; rounds++)
        ;
    return arg;
}

static void case_spins(void) { join(start(spin, NULL), NULL); }

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"tasks", case_tasks},     {"ids", case_ids},         {"constructor", case_constructor},
        {"forks", case_forks},     {"users", case_users},     {"main_exits", case_main_exits},
        {"signals", case_signals}, {"stacks", case_stacks},   {"masks", case_masks},
        {"many", case_many},       {"spins", case_spins},
    };
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    return 8;
}
