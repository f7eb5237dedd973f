/* Sockets between threads of one program, over the loopback device and in the file system. */
#include "cases.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static union {
    struct sockaddr any;
    struct sockaddr_in net;
    struct sockaddr_un file;
} place;
static socklen_t place_size;
static int listener;

static void listen_on_network(void)
{
    place.net = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    place_size = sizeof place.net;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert(bind(listener, &place.any, place_size) == 0 && listen(listener, 5) == 0);
    assert(getsockname(listener, &place.any, &place_size) == 0);
}

static void listen_on_name(void)
{
    /* A name that no file system knows, made of the process's real number: several executions run at a time. */
    place.file = (struct sockaddr_un){.sun_family = AF_UNIX};
    char number[20];
    ssize_t got = readlink("/proc/self", number, sizeof number - 1);
    assert(got > 0);
    number[got] = 0;
    int length = snprintf(place.file.sun_path + 1, 50, "heisen-%s", number);
    place_size = offsetof(struct sockaddr_un, sun_path) + 1 + length;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert(bind(listener, &place.any, place_size) == 0 && listen(listener, 5) == 0);
}

static void *serves(void *arg)
{
    for (intptr_t left = (intptr_t)arg; left > 0; left--) {
        int fd = accept(listener, NULL, NULL);
        assert(fd >= 0);
        char bytes[100];
        ssize_t got;
        while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
            assert(send(fd, bytes, got, 0) == got);
        assert(got == 0 && close(fd) == 0);
    }
    return NULL;
}

static void *asks(void *arg)
{
    int fd = socket(place.any.sa_family, SOCK_STREAM, 0);
    assert(connect(fd, &place.any, place_size) == 0);
    char bytes[8];
    assert(send(fd, "ping", 4, 0) == 4);
    assert(recv(fd, bytes, 4, MSG_WAITALL) == 4 && memcmp(bytes, "ping", 4) == 0);
    assert(shutdown(fd, SHUT_WR) == 0);
    assert(recv(fd, bytes, 4, 0) == 0);
    assert(close(fd) == 0);
    return arg;
}

static void serve_two(void)
{
    pthread_t server = start(serves, (void *)2), one = start(asks, NULL), two = start(asks, NULL);
    join(one);
    join(two);
    join(server);
    assert(close(listener) == 0);
}

static void over_the_network(void)
{
    listen_on_network();
    serve_two();
}

static void by_name(void)
{
    listen_on_name();
    serve_two();
}

static int pair[2];

static void *sends_much(void *arg)
{
    static char bytes[500000];
    assert(send(pair[1], bytes, sizeof bytes, 0) == sizeof bytes);
    struct iovec pieces[] = {{bytes, 300000}, {bytes, 100000}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    assert(sendmsg(pair[1], &message, 0) == 400000);
    assert(close(pair[1]) == 0);
    return arg;
}

static void a_send_larger_than_the_socket(void)
{
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pthread_t t = start(sends_much, NULL);
    static char bytes[50000];
    ssize_t all = 0, got;
    while ((got = recv(pair[0], bytes, sizeof bytes, 0)) > 0)
        all += got;
    assert(got == 0 && all == 900000);
    join(t);
}

static void *sends_messages(void *arg)
{
    for (int i = 1; i <= 3; i++)
        assert(send(pair[1], "abc", i, 0) == i);
    return arg;
}

static void messages_stay_whole(void)
{
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    pthread_t t = start(sends_messages, NULL);
    char bytes[8];
    struct iovec piece = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    assert(recv(pair[0], bytes, sizeof bytes, 0) == 1);
    assert(recvmsg(pair[0], &message, 0) == 2);
    assert(recvfrom(pair[0], bytes, sizeof bytes, 0, NULL, NULL) == 3);
    assert(recv(pair[0], bytes, sizeof bytes, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    join(t);
}

static void receiving_times_out(void)
{
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct timeval time = {0, 20000};
    assert(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
    struct timespec end = from_now(CLOCK_MONOTONIC, 20);
    char byte;
    assert(recv(pair[0], &byte, 1, 0) == -1 && errno == EAGAIN && reached(CLOCK_MONOTONIC, end));
}

static void a_connection_that_does_not_block(void)
{
    listen_on_network();
    pthread_t t = start(serves, (void *)1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 1;
    assert(connect(fd, &place.any, place_size) == 0 || errno == EINPROGRESS);
    struct pollfd wanted = {fd, POLLOUT, 0};
    assert(poll(&wanted, 1, -1) == 1 && wanted.revents == POLLOUT);
    socklen_t size = sizeof error;
    assert(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
    assert(send(fd, "x", 1, 0) == 1);
    wanted.events = POLLIN;
    assert(poll(&wanted, 1, -1) == 1);
    char byte;
    assert(recv(fd, &byte, 1, 0) == 1 && byte == 'x');
    assert(recv(fd, &byte, 1, 0) == -1 && errno == EAGAIN);
    assert(close(fd) == 0);
    join(t);
}

static void nobody_listens(void)
{
    listen_on_network();
    assert(close(listener) == 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(fd, &place.any, place_size) == -1 && errno == ECONNREFUSED);
    assert((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
    char byte;
    assert(recv(fd, &byte, 1, 0) == -1 && errno == ENOTCONN);
    assert(send(999, &byte, 1, 0) == -1 && errno == EBADF);
    assert(accept(fd, NULL, NULL) == -1 && errno == EINVAL);
    assert(connect(0, &place.any, place_size) == -1 && errno == ENOTSOCK);
}

CASES(CASE(over_the_network), CASE(by_name), CASE(a_send_larger_than_the_socket), CASE(messages_stay_whole),
      CASE(receiving_times_out), CASE(a_connection_that_does_not_block), CASE(nobody_listens))
