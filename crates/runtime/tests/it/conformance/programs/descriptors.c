/* Descriptors by the less common calls: whoever reads waits for who writes, and what was written is what is read. */
#include "results.h"
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/pidfd.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

/* What a compiler makes of calls whose sizes it checks. */
extern ssize_t __read_chk(int fd, void *to, size_t length, size_t size);
extern ssize_t __recv_chk(int fd, void *to, size_t length, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *to, size_t length, size_t size, int flags, struct sockaddr *from,
                              socklen_t *from_length);
extern int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
extern int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
                       size_t size);
extern int __open_2(const char *path, int flags);
extern int __open64_2(const char *path, int flags);

static int ends[2], others[2];
static char text[64];

static void *writes(void *words)
{
    assert(write(ends[1], words, strlen(words)) == (ssize_t)strlen(words));
    return NULL;
}

static void *closes(void *arg)
{
    point();
    assert(close(ends[1]) == 0);
    return arg;
}

/* ---- reading and waiting ---- */

CASE(a_checked_read_waits, "3 abc")
{
    assert(pipe(ends) == 0);
    pthread_t t = start(writes, "abc");
    say("%zd ", __read_chk(ends[0], text, 10, sizeof text));
    say("%s", text);
    join(t);
}

CASE(a_checked_receive_waits, "2 abc")
{
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pthread_t t = start(writes, "abc");
    say("%zd ", __recv_chk(ends[0], text, 2, sizeof text, 0));
    assert(__recv_chk(ends[0], text + 2, 2, sizeof text - 2, 0) == 1);
    say("%s", text);
    join(t);
}

CASE(a_checked_receive_sees_the_end, "0")
{
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pthread_t t = start(closes, NULL);
    say("%zd", __recvfrom_chk(ends[0], text, 2, sizeof text, 0, NULL, NULL));
    join(t);
}

CASE(checked_polls_wait, "1 in 1 in")
{
    assert(pipe(ends) == 0);
    pthread_t t = start(writes, "ab");
    struct pollfd fd = {ends[0], POLLIN, 0};
    say("%d ", __poll_chk(&fd, 1, -1, sizeof fd));
    say("%s ", fd.revents == POLLIN ? "in" : "?");
    fd.revents = 0;
    say("%d ", __ppoll_chk(&fd, 1, NULL, NULL, sizeof fd));
    say("%s", fd.revents == POLLIN ? "in" : "?");
    join(t);
}

/* That its time is over first is possible, too. */
CASE(a_checked_poll_may_end_before, "1", "0")
{
    assert(pipe(ends) == 0);
    pthread_t t = start(writes, "ab");
    struct pollfd fd = {ends[0], POLLIN, 0};
    say("%d", __poll_chk(&fd, 1, 2, sizeof fd));
    join(t);
}

CASE(epoll_with_a_time_of_nanoseconds, "0 1 5", "1 5")
{
    assert(pipe(ends) == 0);
    int all = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u64 = 5}};
    assert(epoll_ctl(all, EPOLL_CTL_ADD, ends[0], &event) == 0);
    event.data.u64 = 0;
    pthread_t t = start(writes, "ab");
    struct timespec soon = {0, 2000000};
    int got = epoll_pwait2(all, &event, 1, &soon, NULL);
    if (got == 0) {
        say("0 ");
        got = epoll_pwait2(all, &event, 1, NULL, NULL);
    }
    say("%d %d", got, (int)event.data.u64);
    join(t);
}

/* ---- moving ---- */

CASE(splice_moves_what_comes, "3 abc")
{
    assert(pipe(ends) == 0 && pipe(others) == 0);
    pthread_t t = start(writes, "abc");
    say("%zd ", splice(ends[0], NULL, others[1], NULL, 100, 0));
    assert(read(others[0], text, sizeof text) == 3);
    say("%s", text);
    join(t);
}

CASE(splice_need_not_wait, "EAGAIN EAGAIN 1")
{
    assert(pipe(ends) == 0 && pipe(others) == 0);
    say("%s ", outcome(splice(ends[0], NULL, others[1], NULL, 100, SPLICE_F_NONBLOCK)));
    assert(fcntl64(ends[0], F_SETFL, O_NONBLOCK) == 0);
    say("%s ", outcome(splice(ends[0], NULL, others[1], NULL, 100, 0)));
    writes("x");
    say("%zd", splice(ends[0], NULL, others[1], NULL, 100, SPLICE_F_NONBLOCK));
}

static void *moves(void *arg)
{
    assert(splice(ends[0], NULL, others[1], NULL, 1, 0) == 1);
    return arg;
}

/* Each waits for a byte of its own. */
CASE(two_threads_splice, "ab")
{
    assert(pipe(ends) == 0 && pipe(others) == 0);
    pthread_t t = start(moves, NULL), u = start(moves, NULL);
    writes("a");
    writes("b");
    join(t);
    join(u);
    assert(read(others[0], text, sizeof text) == 2);
    say("%s", text);
}

static int file_with(const char *words)
{
    int fd = memfd_create("file", 0);
    assert(fd >= 0 && pwrite(fd, words, strlen(words), 0) == (ssize_t)strlen(words));
    return fd;
}

CASE(a_file_is_sent, "2 4 cd")
{
    int fd = file_with("abcd");
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    off64_t at = 2;
    say("%zd ", sendfile64(ends[1], fd, &at, 100));
    assert(read(ends[0], text, sizeof text) == 2);
    say("%d %s", (int)at, text);
}

static void *drains(void *arg)
{
    static char all[1 << 16];
    for (long left = *(long *)arg; left > 0;) {
        ssize_t got = read(ends[0], all, sizeof all);
        assert(got > 0);
        left -= got;
    }
    return NULL;
}

/* What does not fit waits until there is room. */
CASE(a_file_is_sent_to_a_full_pipe, "1")
{
    static char much[1 << 16];
    memset(much, 'x', sizeof much);
    int fd = memfd_create("file", 0);
    assert(write(fd, much, sizeof much) == sizeof much);
    assert(pipe(ends) == 0 && write(ends[1], much, sizeof much) == sizeof much);
    long left = 2 * sizeof much;
    pthread_t t = start(drains, &left);
    off64_t at = 0;
    while (at < (off64_t)sizeof much)
        assert(sendfile64(ends[1], fd, &at, sizeof much - at) > 0);
    say("1");
    join(t);
}

/* ---- messages ---- */

static struct iovec pieces[2];
static struct mmsghdr messages[2];

static void set_messages(char *first, size_t first_length, char *second, size_t second_length)
{
    pieces[0] = (struct iovec){first, first_length};
    pieces[1] = (struct iovec){second, second_length};
    for (int i = 0; i < 2; i++) {
        memset(&messages[i], 0, sizeof messages[i]);
        messages[i].msg_hdr.msg_iov = &pieces[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
}

static void *sends_two(void *arg)
{
    set_messages("abc", 3, "de", 2);
    assert(sendmmsg(ends[1], messages, 2, 0) == 2);
    assert(messages[0].msg_len == 3 && messages[1].msg_len == 2);
    return arg;
}

CASE(several_messages, "2 3abc 2de")
{
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    sends_two(NULL);
    static char second[20];
    set_messages(text, sizeof text, second, sizeof second);
    say("%d ", recvmmsg(ends[0], messages, 2, 0, NULL));
    say("%u%s %u%s", messages[0].msg_len, text, messages[1].msg_len, second);
}

static void *receives_one(void *arg)
{
    char words[20] = "";
    struct iovec piece = {words, sizeof words};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}};
    assert(recvmmsg(ends[0], &message, 1, 0, NULL) == 1);
    say("%s", words);
    return arg;
}

CASE(several_messages_are_waited_for, "abcde")
{
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    pthread_t t = start(sends_two, NULL);
    receives_one(NULL);
    receives_one(NULL);
    join(t);
}

static void *sends_one_by_one(void *arg)
{
    assert(send(ends[1], "abc", 3, 0) == 3);
    assert(send(ends[1], "de", 2, 0) == 2);
    return arg;
}

static void receive_two(int flags)
{
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    pthread_t t = start(sends_one_by_one, NULL);
    static char second[20];
    set_messages(text, sizeof text, second, sizeof second);
    say("%d ", recvmmsg(ends[0], messages, 2, flags, NULL));
    say("%s%s", text, second);
    join(t);
}

CASE(all_messages_are_waited_for, "2 abcde") { receive_two(0); }
CASE(one_message_is_waited_for, "1 abc", "2 abcde") { receive_two(MSG_WAITFORONE); }

CASE(no_message_is_waited_for, "EAGAIN")
{
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    set_messages(text, sizeof text, text, sizeof text);
    say("%s", outcome(recvmmsg(ends[0], messages, 2, MSG_DONTWAIT, NULL)));
}

#define MANY 700

static void *receives_many(void *arg)
{
    char byte;
    for (int i = 0; i < MANY; i++)
        assert(recv(ends[0], &byte, 1, 0) == 1);
    return arg;
}

/* More than there is room for. */
SAMPLED(all_messages_are_sent, 20, "700")
{
    static struct mmsghdr many[MANY];
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    pthread_t t = start(receives_many, NULL);
    set_messages("x", 1, "y", 1);
    for (int i = 0; i < MANY; i++)
        many[i] = messages[0];
    say("%d", sendmmsg(ends[1], many, MANY, 0));
    join(t);
}

static struct sockaddr_un name_of(const char *name, socklen_t *length)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* A name without a file; each process has its own. */
    int written = snprintf(address.sun_path + 1, 50, "heisen-%s-%ld", name, raw_call(SYS_getpid, 0, 0, 0, 0));
    *length = offsetof(struct sockaddr_un, sun_path) + 1 + written;
    return address;
}

static int bound_to(int kind, const char *name)
{
    socklen_t length;
    struct sockaddr_un address = name_of(name, &length);
    int fd = socket(AF_UNIX, kind, 0);
    assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0);
    return fd;
}

static void *sends_to(void *arg)
{
    socklen_t length;
    struct sockaddr_un address = name_of("to", &length);
    assert(sendto(bound_to(SOCK_DGRAM, "from"), "abc", 3, 0, (struct sockaddr *)&address, length) == 3);
    return arg;
}

static void receive_from(int checked)
{
    int fd = bound_to(SOCK_DGRAM, "to");
    pthread_t t = start(sends_to, NULL);
    struct sockaddr_un from;
    socklen_t length = sizeof from, expected;
    struct sockaddr_un right = name_of("from", &expected);
    say("%zd ", checked ? __recvfrom_chk(fd, text, 20, sizeof text, 0, (struct sockaddr *)&from, &length)
                        : recvfrom(fd, text, 20, 0, (struct sockaddr *)&from, &length));
    say("%s %d", text, length == expected && memcmp(&from, &right, length) == 0);
    join(t);
}

CASE(a_message_and_its_sender, "3 abc 1") { receive_from(0); }
CASE(a_checked_message_and_its_sender, "3 abc 1") { receive_from(1); }

static void *connects(void *arg)
{
    socklen_t length;
    struct sockaddr_un address = name_of("server", &length);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert(connect(fd, (struct sockaddr *)&address, length) == 0);
    assert(write(fd, "abc", 3) == 3);
    return arg;
}

CASE(an_accepted_connection, "cloexec 3 abc")
{
    int fd = bound_to(SOCK_STREAM, "server");
    assert(listen(fd, 5) == 0);
    pthread_t t = start(connects, NULL);
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert(peer >= 0);
    say("%s ", fcntl64(peer, F_GETFD) & FD_CLOEXEC ? "cloexec" : "-");
    say("%zd ", read(peer, text, sizeof text));
    say("%s", text);
    join(t);
}

/* ---- coming and going ---- */

CASE(copies_are_the_same_descriptor, "3 abc 3 abc")
{
    assert(pipe(ends) == 0);
    pthread_t t = start(writes, "abcabc");
    assert(dup3(ends[0], 50, O_CLOEXEC) == 50 && fcntl64(50, F_GETFD) == FD_CLOEXEC);
    int copy = fcntl64(ends[0], F_DUPFD, 60);
    assert(copy >= 60 && fcntl64(copy, F_GETFD) == 0);
    say("%zd ", read(50, text, 3));
    say("%s ", text);
    say("%zd ", read(copy, text, 3));
    say("%s", text);
    join(t);
}

static void *closes_a_range(void *arg)
{
    assert(close_range(ends[1], ends[1], 0) == 0);
    return arg;
}

static void *closes_all_from(void *arg)
{
    closefrom(ends[1]);
    return arg;
}

static void end_by(void *(*close_it)(void *))
{
    int low[2];
    assert(pipe(low) == 0 && dup2(low[0], 70) == 70 && dup2(low[1], 71) == 71);
    close(low[0]);
    close(low[1]);
    ends[0] = 70;
    ends[1] = 71;
    pthread_t t = start(close_it, NULL);
    ssize_t got = read(ends[0], text, sizeof text);
    join(t);
    say("%zd %s", got, outcome(write(ends[1], "x", 1)));
}

/* Who reads sees that the other end is gone. */
CASE(a_range_is_closed, "0 EBADF") { end_by(closes_a_range); }
CASE(all_from_one_on_are_closed, "0 EBADF") { end_by(closes_all_from); }

static sem_t about_to;

static void *tells_and_closes_a_range(void *arg)
{
    sem_post(&about_to);
    return closes_a_range(arg);
}

static void *tells_and_closes_all_from(void *arg)
{
    sem_post(&about_to);
    return closes_all_from(arg);
}

static void *tells_and_closes(void *arg)
{
    sem_post(&about_to);
    return closes(arg);
}

static void *tells_and_replaces(void *arg)
{
    sem_post(&about_to);
    assert(dup2(0, ends[1]) == ends[1]);
    return arg;
}

static void *tells_and_replaces_by_dup3(void *arg)
{
    sem_post(&about_to);
    assert(dup3(0, ends[1], 0) == ends[1]);
    return arg;
}

/* Who has been told that the other end will be closed may look before it is. */
static void look_at_the_end(void *(*close_it)(void *))
{
    int low[2];
    assert(pipe(low) == 0 && dup2(low[0], 70) == 70 && dup2(low[1], 71) == 71);
    close(low[0]);
    close(low[1]);
    ends[0] = 70;
    ends[1] = 71;
    pthread_t t = start(close_it, NULL);
    sem_wait(&about_to);
    struct pollfd ask = {ends[0], POLLIN, 0};
    say("%d", poll(&ask, 1, 0));
    join(t);
}

CASE(an_end_is_looked_at_by_close, "0", "1") { look_at_the_end(tells_and_closes); }
CASE(an_end_is_looked_at_by_close_range, "0", "1") { look_at_the_end(tells_and_closes_a_range); }
CASE(an_end_is_looked_at_by_closefrom, "0", "1") { look_at_the_end(tells_and_closes_all_from); }
CASE(an_end_is_looked_at_by_dup2, "0", "1") { look_at_the_end(tells_and_replaces); }
CASE(an_end_is_looked_at_by_dup3, "0", "1") { look_at_the_end(tells_and_replaces_by_dup3); }

NATIVELY(wrong_descriptors)
{
    say("%s ", outcome(dup3(1, 1, 0)));
    say("%s ", outcome(dup3(-1, 5, 0)));
    say("%s ", outcome(close_range(5, 4, 0)));
    say("%s ", outcome(fcntl64(99, F_GETFD)));
    say("%s ", outcome(accept4(99, NULL, NULL, 0)));
    say("%s ", outcome(sendto(99, "x", 1, 0, NULL, 0)));
    say("%s ", outcome(recvfrom(99, text, 1, 0, NULL, NULL)));
    say("%s ", outcome(sendmmsg(99, messages, 1, 0)));
    say("%s ", outcome(recvmmsg(99, messages, 1, 0, NULL)));
    say("%s ", outcome(splice(99, NULL, 98, NULL, 1, 0)));
    say("%s ", outcome(sendfile64(99, 98, NULL, 1)));
    struct epoll_event event;
    say("%s ", outcome(epoll_pwait2(99, &event, 1, NULL, NULL)));
    say("%s", outcome(pidfd_open(-5, 0)));
}

/* ---- opening ---- */

static void say_first(int fd)
{
    assert(fd >= 0 && read(fd, text, 3) == 3);
    say("%s ", text);
    close(fd);
}

CASE(ways_to_open, "abc abc abc abc abc")
{
    char path[40];
    int fd = file_with("abcd");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    say_first(open64(path, O_RDONLY));
    say_first(openat64(AT_FDCWD, path, O_RDONLY));
    say_first(__open_2(path, O_RDONLY));
    say_first(__open64_2(path, O_RDONLY));
    FILE *stream = fopen64(path, "r");
    assert(stream != NULL && fread(text, 1, 3, stream) == 3 && fclose(stream) == 0);
    say("%s", text);
}

CASE(ways_to_create, "0600 0640")
{
    char path[40];
    struct stat it;
    snprintf(path, sizeof path, "created-%ld", raw_call(SYS_getpid, 0, 0, 0, 0));
    umask(0);
    int fd = open64(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert(fd >= 0 && fstat(fd, &it) == 0 && unlink(path) == 0);
    say("%04o ", it.st_mode & 0777);
    fd = openat64(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0640);
    assert(fd >= 0 && fstat(fd, &it) == 0 && unlink(path) == 0);
    say("%04o", it.st_mode & 0777);
}

static int is_random(int fd)
{
    char a[16], b[16];
    assert(fd >= 0 && read(fd, a, sizeof a) == sizeof a && read(fd, b, sizeof b) == sizeof b);
    close(fd);
    return memcmp(a, b, sizeof a) != 0;
}

CASE(random_bytes_differ, "1 1 1 1 1")
{
    say("%d ", is_random(open64("/dev/urandom", O_RDONLY)));
    say("%d ", is_random(openat64(AT_FDCWD, "/dev/urandom", O_RDONLY)));
    say("%d ", is_random(__open_2("/dev/random", O_RDONLY)));
    say("%d ", is_random(__open64_2("/dev/urandom", O_RDONLY)));
    FILE *stream = fopen64("/dev/urandom", "r");
    char a[16], b[16];
    assert(stream != NULL && fread(a, sizeof a, 1, stream) == 1 && fread(b, sizeof b, 1, stream) == 1);
    say("%d", memcmp(a, b, sizeof a) != 0);
}

/* ---- what belongs to the kernel ---- */

static int set, queue;

static void *raises(void *by)
{
    struct sembuf up = {0, (short)(intptr_t)by, 0};
    assert(semop(set, &up, 1) == 0);
    return NULL;
}

CASE(semaphores_of_system_v, "0 EAGAIN EAGAIN 0")
{
    set = semget(IPC_PRIVATE, 1, 0600);
    assert(set >= 0);
    pthread_t t = start(raises, (void *)2);
    struct sembuf down = {0, -1, 0}, never = {0, -9, IPC_NOWAIT};
    struct timespec soon = {0, 1000000};
    assert(semop(set, &down, 1) == 0);
    join(t);
    say("0 %s ", semop(set, &never, 1) == -1 ? named(errno) : "0");
    never.sem_flg = 0;
    say("%s ", semtimedop(set, &never, 1, &soon) == -1 ? named(errno) : "0");
    say("%d", semctl(set, 0, IPC_RMID));
}

struct message {
    long kind;
    char text[4];
};

static void *sends_message(void *arg)
{
    struct message message = {7, "abc"};
    assert(msgsnd(queue, &message, sizeof message.text, 0) == 0);
    return arg;
}

CASE(messages_of_system_v, "4 abc ENOMSG")
{
    queue = msgget(IPC_PRIVATE, 0600);
    assert(queue >= 0);
    pthread_t t = start(sends_message, NULL);
    struct message message;
    say("%zd %s ", msgrcv(queue, &message, sizeof message.text, 7, 0), message.text);
    join(t);
    say("%s", msgrcv(queue, &message, sizeof message.text, 7, IPC_NOWAIT) == -1 ? named(errno) : "0");
    assert(msgctl(queue, IPC_RMID, NULL) == 0);
}

CASE(locks_from_here_on, "0 0 0 0")
{
    int file = memfd_create("lock", 0);
    assert(file >= 0);
    say("%d %d ", lockf(file, F_LOCK, 10), lockf64(file, F_TEST, 10));
    say("%d %d", lockf64(file, F_LOCK, 0), lockf(file, F_ULOCK, 0));
}

/* ---- children ---- */

CASE(signals_from_a_descriptor, "1 1")
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    int fd = signalfd(-1, &set, 0);
    assert(fd >= 0);
    pid_t child = fork();
    if (child == 0)
        _exit(kill(getppid(), SIGUSR1));
    struct signalfd_siginfo info;
    assert(read(fd, &info, sizeof info) == sizeof info);
    int status;
    say("%d %d", info.ssi_signo == SIGUSR1, waitpid(child, &status, 0) == child);
}

CASE(a_child_as_a_descriptor, "1 1 4")
{
    assert(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(ends[0], &byte, 1) == 1 ? 4 : 5);
    }
    int fd = pidfd_open(child, 0);
    assert(fd >= 0);
    struct pollfd ask = {fd, POLLIN, 0};
    assert(poll(&ask, 1, 0) == 0);
    writes("x");
    say("%d ", poll(&ask, 1, -1));
    siginfo_t info;
    assert(waitid(P_PIDFD, fd, &info, WEXITED) == 0);
    say("%d %d", info.si_pid == child, info.si_status);
}

CONFORMANCE_MAIN
