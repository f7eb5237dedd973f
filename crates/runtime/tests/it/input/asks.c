/* Connects to a port in two threads at the same time, waiting in the one and not in the other, and is told a number by
   each connection, which is the wrong one. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in place = {.sin_family = AF_INET};
static int number;

static void *by_message(void *argument) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = -1;
    socklen_t size = sizeof error;
    assert(connect(fd, (struct sockaddr *)&place, sizeof place) == 0 || errno == EINPROGRESS);
    assert(poll(&(struct pollfd){fd, POLLOUT, 0}, 1, -1) == 1);
    assert(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
    char text[2][8] = {"", ""};
    struct iovec pieces[2] = {{text[0], 1}, {text[1], 7}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    assert(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1) == 1);
    assert(recvmsg(fd, &message, 0) == 3 && text[0][0] == '4' && text[1][0] == '1');
    close(fd);
    return argument;
}

int main(int argc, char **argv) {
    assert(argc == 2);
    place.sin_port = htons(atoi(argv[1]));
    inet_pton(AF_INET, "127.0.0.1", &place.sin_addr);
    pthread_t thread;
    pthread_create(&thread, NULL, by_message, NULL);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(fd, (struct sockaddr *)&place, sizeof place) == 0);
    char text[8] = "";
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    assert(recvfrom(fd, text, sizeof text - 1, 0, (struct sockaddr *)&from, &size) == 3);
    pthread_join(thread, NULL);
    number = atoi(text);
    assert(number == 42);
    return 0;
}
