/* Sees as many processors as its argument says; without one, the same everywhere. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static int count;

static int in_set(pthread_t thread) {
    cpu_set_t set;
    assert(pthread_getaffinity_np(thread, sizeof set, &set) == 0);
    return CPU_COUNT(&set);
}

static void *other(void *unused) {
    cpu_set_t set;
    assert(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(sched_getcpu(), &set));
    (void)unused;
    return (void *)(long)in_set(pthread_self());
}

int main(int argc, char **argv) {
    count = in_set(pthread_self());
    cpu_set_t set;
    assert(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == count);
    assert(sched_getaffinity(getpid(), sizeof set, &set) == 0 && CPU_COUNT(&set) == count);
    CPU_ZERO(&set);
    assert(syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0 && CPU_COUNT(&set) == count);
    unsigned cpu, node;
    assert(getcpu(&cpu, &node) == 0 && CPU_ISSET(cpu, &set));
    assert(syscall(SYS_getcpu, &cpu, &node, NULL) == 0 && CPU_ISSET(cpu, &set));
    assert(sched_getcpu() >= 0 && CPU_ISSET(sched_getcpu(), &set));
    if (argc > 1) {
        int asked = atoi(argv[1]);
        assert(count == asked && sysconf(_SC_NPROCESSORS_ONLN) == asked && sysconf(_SC_NPROCESSORS_CONF) == asked);
        assert(get_nprocs() == asked && get_nprocs_conf() == asked && sysconf(_SC_PAGESIZE) == 4096);
        assert(sched_getaffinity(0, 4, &set) == -1 && errno == EINVAL);
        CPU_ZERO(&set);
        CPU_SET(asked, &set);
        assert(sched_setaffinity(0, sizeof set, &set) == -1 && errno == EINVAL);
    }

    /* A thread that confines itself is confined, and so are those that it creates. */
    pthread_t thread;
    void *seen;
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, &seen);
    assert((long)seen == count);
    assert(sched_getaffinity(0, sizeof set, &set) == 0);
    int one = 0;
    while (!CPU_ISSET(one, &set))
        one++;
    CPU_ZERO(&set);
    CPU_SET(one, &set);
    assert(sched_setaffinity(0, sizeof set, &set) == 0 && in_set(pthread_self()) == 1 && sched_getcpu() == one);
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, &seen);
    assert((long)seen == 1);
    return 0;
}
