/* Pipes, event counters, timers, and waiting for several of them. */
#include "cases.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

static int to[2], back[2], counter;

static void pipes(void)
{
    assert(pipe(to) == 0 && pipe2(back, O_CLOEXEC) == 0);
}

static void *echoes(void *arg)
{
    char bytes[64];
    ssize_t got;
    while ((got = read(to[0], bytes, sizeof bytes)) > 0)
        assert(write(back[1], bytes, got) == got);
    assert(got == 0);
    assert(close(back[1]) == 0);
    return arg;
}

static void echo_through_pipes(void)
{
    pipes();
    pthread_t t = start(echoes, NULL);
    char bytes[8];
    for (int i = 0; i < 3; i++) {
        assert(write(to[1], "hello", 5) == 5);
        for (ssize_t done = 0, got; done < 5; done += got) {
            got = read(back[0], bytes + done, 5 - done);
            assert(got > 0);
        }
        assert(memcmp(bytes, "hello", 5) == 0);
    }
    assert(close(to[1]) == 0);
    assert(read(back[0], bytes, sizeof bytes) == 0);
    join(t);
}

#define MUCH 300000

static void *writes_much(void *arg)
{
    static char bytes[MUCH];
    memset(bytes, 'x', sizeof bytes);
    assert(write(to[1], bytes, sizeof bytes) == sizeof bytes);
    assert(close(to[1]) == 0);
    return arg;
}

static size_t reads_all(void)
{
    char bytes[5000];
    size_t all = 0;
    ssize_t got;
    while ((got = read(to[0], bytes, sizeof bytes)) > 0)
        all += got;
    assert(got == 0);
    return all;
}

static void a_write_larger_than_the_pipe(void)
{
    pipes();
    pthread_t t = start(writes_much, NULL);
    assert(reads_all() == MUCH);
    join(t);
}

static void *writes_pieces(void *arg)
{
    static char first[70000], second[3], third[70000];
    struct iovec pieces[] = {{first, sizeof first}, {second, sizeof second}, {third, sizeof third}};
    assert(writev(to[1], pieces, 3) == 140003);
    assert(close(to[1]) == 0);
    return arg;
}

static void several_pieces(void)
{
    pipes();
    pthread_t t = start(writes_pieces, NULL);
    char a[3], b[5];
    struct iovec pieces[] = {{a, sizeof a}, {b, sizeof b}};
    assert(readv(to[0], pieces, 2) == 8);
    assert(reads_all() == 140003 - 8);
    join(t);
}

static void not_blocking(void)
{
    pipes();
    char bytes[70000] = "";
    assert(fcntl(to[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(to[1], F_SETFL, O_NONBLOCK) == 0);
    assert(read(to[0], bytes, 1) == -1 && errno == EAGAIN);
    assert(write(to[1], bytes, sizeof bytes) == 65536);
    assert(write(to[1], bytes, 1) == -1 && errno == EAGAIN);
    assert(read(to[0], bytes, sizeof bytes) == 65536);
}

static void errors(void)
{
    char byte;
    pipes();
    assert(read(-1, &byte, 1) == -1 && errno == EBADF);
    assert(write(999, &byte, 1) == -1 && errno == EBADF);
    assert(read(to[1], &byte, 1) == -1 && errno == EBADF);
    assert(write(to[0], &byte, 1) == -1 && errno == EBADF);
    assert(close(999) == -1 && errno == EBADF);
    assert(dup(999) == -1 && errno == EBADF);
    assert(dup2(999, 3) == -1 && errno == EBADF);
    assert(poll(NULL, 1, 0) == -1 && errno == EFAULT);
    assert(epoll_wait(to[0], NULL, 1, 0) == -1);
    assert(timerfd_create(77, 0) == -1 && errno == EINVAL);
    struct timeval negative = {-1, 0};
    assert(select(0, NULL, NULL, NULL, &negative) == -1 && errno == EINVAL);
}

static void copies_are_the_same_pipe(void)
{
    pipes();
    int copy = dup(to[1]), other = fcntl(to[1], F_DUPFD, 20);
    assert(copy > 2 && other >= 20 && dup2(to[0], 40) == 40);
    pthread_t t = start(echoes, NULL);
    assert(write(copy, "a", 1) == 1 && write(other, "b", 1) == 1);
    char bytes[2];
    assert(read(back[0], bytes, 1) == 1);
    assert(close(copy) == 0 && close(other) == 0 && close(to[1]) == 0);
    while (read(back[0], bytes, 1) == 1)
        ;
    join(t);
}

static void *counts(void *arg)
{
    for (int i = 0; i < 3; i++)
        assert(eventfd_write(counter, 1) == 0);
    return arg;
}

static void event_counters(void)
{
    counter = eventfd(0, 0);
    pthread_t t = start(counts, NULL);
    eventfd_t sum = 0, value;
    while (sum < 3) {
        assert(eventfd_read(counter, &value) == 0 && value > 0);
        sum += value;
    }
    assert(sum == 3);
    join(t);
}

static void event_semaphores(void)
{
    counter = eventfd(0, EFD_SEMAPHORE);
    pthread_t t = start(counts, NULL);
    for (int i = 0; i < 3; i++) {
        uint64_t value;
        assert(read(counter, &value, 8) == 8 && value == 1);
    }
    join(t);
}

static void epoll_by_edges(void)
{
    counter = eventfd(0, EFD_NONBLOCK);
    int all = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLET, .data.u32 = 7};
    assert(epoll_ctl(all, EPOLL_CTL_ADD, counter, &wanted) == 0);
    pthread_t t = start(counts, NULL);
    eventfd_t sum = 0, value;
    while (sum < 3) {
        struct epoll_event got[4];
        assert(epoll_wait(all, got, 4, -1) == 1 && got[0].data.u32 == 7);
        while (eventfd_read(counter, &value) == 0)
            sum += value;
        assert(errno == EAGAIN);
    }
    join(t);
}

static int shared_epoll;

static void *adds_late(void *arg)
{
    struct epoll_event wanted = {.events = EPOLLIN};
    assert(epoll_ctl(shared_epoll, EPOLL_CTL_ADD, counter, &wanted) == 0);
    return arg;
}

static void what_is_added_while_a_thread_waits(void)
{
    shared_epoll = epoll_create1(0);
    counter = eventfd(1, 0);
    pthread_t t = start(adds_late, NULL);
    struct epoll_event got;
    assert(epoll_wait(shared_epoll, &got, 1, -1) == 1);
    join(t);
}

static void *writes_one(void *arg)
{
    assert(write(back[1], "x", 1) == 1);
    return arg;
}

static void poll_several(void)
{
    pipes();
    pthread_t t = start(writes_one, NULL);
    struct pollfd fds[] = {{to[0], POLLIN, 0}, {back[0], POLLIN, 0}, {-1, POLLIN, 0}};
    assert(poll(fds, 3, -1) == 1);
    assert(fds[0].revents == 0 && fds[1].revents == POLLIN && fds[2].revents == 0);
    fds[0] = (struct pollfd){to[1], POLLIN | POLLOUT, 0};
    assert(ppoll(fds, 2, NULL, NULL) == 2 && fds[0].revents == POLLOUT);
    join(t);
}

static void select_several(void)
{
    pipes();
    pthread_t t = start(writes_one, NULL);
    fd_set readers, writers;
    FD_ZERO(&readers);
    FD_ZERO(&writers);
    FD_SET(to[0], &readers);
    FD_SET(back[0], &readers);
    assert(select(back[1] + 1, &readers, &writers, NULL, NULL) == 1);
    assert(FD_ISSET(back[0], &readers) && !FD_ISSET(to[0], &readers));
    FD_ZERO(&readers);
    FD_SET(to[0], &readers);
    FD_SET(to[1], &writers);
    assert(pselect(back[1] + 1, &readers, &writers, NULL, NULL, NULL) == 1);
    assert(!FD_ISSET(to[0], &readers) && FD_ISSET(to[1], &writers));
    join(t);
}

static void waits_that_time_out(void)
{
    pipes();
    struct pollfd fd = {to[0], POLLIN, 0};
    struct timespec end = from_now(CLOCK_MONOTONIC, 20);
    assert(poll(&fd, 1, 20) == 0 && fd.revents == 0 && reached(CLOCK_MONOTONIC, end));
    struct timeval time = {0, 20000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(to[0], &set);
    end = from_now(CLOCK_MONOTONIC, 20);
    assert(select(to[0] + 1, &set, NULL, NULL, &time) == 0 && !FD_ISSET(to[0], &set));
    assert(reached(CLOCK_MONOTONIC, end) && time.tv_sec == 0 && time.tv_usec == 0);
    int all = epoll_create(1);
    struct epoll_event got;
    end = from_now(CLOCK_MONOTONIC, 20);
    assert(epoll_pwait(all, &got, 1, 20, NULL) == 0 && reached(CLOCK_MONOTONIC, end));
    end = from_now(CLOCK_MONOTONIC, 20);
    assert(poll(NULL, 0, 20) == 0 && reached(CLOCK_MONOTONIC, end));
    assert(poll(&fd, 1, 0) == 0);
}

static void timers(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec setting = {{0, 10000000}, {0, 20000000}}, left;
    struct timespec end = from_now(CLOCK_MONOTONIC, 20);
    assert(timerfd_settime(timer, 0, &setting, NULL) == 0);
    assert(timerfd_gettime(timer, &left) == 0 && left.it_value.tv_nsec > 0 && left.it_value.tv_sec == 0);
    assert(left.it_interval.tv_nsec == 10000000);
    uint64_t times;
    assert(read(timer, &times, 8) == 8 && times >= 1 && reached(CLOCK_MONOTONIC, end));
    usleep(50000);
    assert(read(timer, &times, 8) == 8 && times >= 4);
    memset(&setting, 0, sizeof setting);
    assert(timerfd_settime(timer, 0, &setting, &left) == 0 && left.it_interval.tv_nsec == 10000000);
    struct pollfd fd = {timer, POLLIN, 0};
    assert(poll(&fd, 1, 50) == 0);
    setting.it_value = from_now(CLOCK_REALTIME, 10);
    close(timer);
    timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    assert(timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, NULL) == 0);
    assert(read(timer, &times, 8) == -1 && errno == EAGAIN);
    fd.fd = timer;
    assert(poll(&fd, 1, -1) == 1 && read(timer, &times, 8) == 8 && times == 1);
}

static void *takes_one(void *arg)
{
    char byte;
    assert(read(to[0], &byte, 1) == 1);
    return arg;
}

static void two_readers_of_one_pipe(void)
{
    pipes();
    pthread_t a = start(takes_one, NULL), b = start(takes_one, NULL);
    assert(write(to[1], "x", 1) == 1);
    assert(write(to[1], "y", 1) == 1);
    join(a);
    join(b);
}

static void *empties(void *arg)
{
    assert(reads_all() == 5);
    return arg;
}

static void from_file_to_pipe(void)
{
    pipes();
    char name[] = "/tmp/heisen-XXXXXX";
    int file = mkstemp(name);
    assert(file >= 0 && unlink(name) == 0 && write(file, "12345", 5) == 5);
    pthread_t t = start(empties, NULL);
    off_t from = 0;
    while (from < 5)
        assert(sendfile(to[1], file, &from, 5 - from) > 0);
    assert(lseek(file, 1, SEEK_SET) == 1);
    char bytes[8];
    assert(read(file, bytes, 8) == 4 && read(file, bytes, 8) == 0);
    assert(close(to[1]) == 0);
    join(t);
}

static void files_and_their_locks(void)
{
    char name[] = "/tmp/heisen-XXXXXX";
    int file = mkstemp(name), again = open(name, O_RDWR);
    assert(file >= 0 && again >= 0 && unlink(name) == 0);
    assert(flock(file, LOCK_EX) == 0);
    assert(flock(again, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    assert(flock(file, LOCK_UN) == 0 && flock(again, LOCK_EX) == 0);
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert(fcntl(file, F_SETLKW, &range) == 0);
    assert(fcntl(999, F_SETLKW, &range) == -1 && errno == EBADF);
}

CASES(CASE(echo_through_pipes), CASE(a_write_larger_than_the_pipe), CASE(several_pieces), CASE(not_blocking),
      CASE(errors), CASE(copies_are_the_same_pipe), CASE(event_counters), CASE(event_semaphores),
      CASE(epoll_by_edges), CASE(what_is_added_while_a_thread_waits), CASE(poll_several), CASE(select_several),
      CASE(waits_that_time_out), CASE(timers), CASE(two_readers_of_one_pipe), CASE(from_file_to_pipe),
      CASE(files_and_their_locks))
