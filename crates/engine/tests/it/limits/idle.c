// Waits for someone outside: "accept" and "epoll" for a connection, "tick" for one while time-outs pass, "fifo" for input,
// "pipe" for a process of its own, which waits, too; "inotify" for a change of files, "crossed" for a connection
// while two other threads wait for each other.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int listener(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (void *)&address, sizeof address) || listen(fd, 8)) exit(9);
    return fd;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

static pthread_rwlock_t locks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static pthread_barrier_t both;

static void *cross(void *mine) {
    int first = mine != 0;
    pthread_rwlock_wrlock(&locks[first]);
    pthread_barrier_wait(&both);
    pthread_rwlock_wrlock(&locks[!first]);
    return 0;
}

int main(int argc, char **argv) {
    char c;
    const char *mode = argv[1];
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    work(0);
    pthread_join(thread, 0);
    if (strcmp(mode, "fifo") == 0) {
        return read(open(argv[2], O_RDWR), &c, 1) != 1;
    } else if (strcmp(mode, "pipe") == 0) {
        int there[2], back[2];
        if (pipe(there) || pipe(back)) return 9;
        if (fork() == 0) _exit(read(there[0], &c, 1) != 1);
        return read(back[0], &c, 1) != 1;
    }
    int fd = listener(atoi(argv[2]));
    if (strcmp(mode, "inotify") == 0) {
        char events[4096];
        int changes = inotify_init();
        inotify_add_watch(changes, ".", IN_CREATE);
        return read(changes, events, sizeof events) < 0;
    } else if (strcmp(mode, "crossed") == 0) {
        pthread_barrier_init(&both, 0, 2);
        pthread_create(&thread, 0, cross, 0);
        pthread_create(&thread, 0, cross, &both);
    }
    if (strcmp(mode, "accept") == 0 || strcmp(mode, "crossed") == 0) return accept(fd, 0, 0) < 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    while (epoll_wait(epoll, &event, 1, strcmp(mode, "tick") == 0 ? 100 : -1) == 0) {}
    return 0;
}
