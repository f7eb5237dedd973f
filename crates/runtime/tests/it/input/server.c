/* A server for two clients, each of whom wants to take all there is. That there is enough is tested and done under a
   lock, but not under the same one hold of it. SERVER MODE PORT: with a thread for each client, or with one that waits for
   all of them and two that work. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define CLIENTS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int balance = 100;

static void serve(int client, const char *line) {
    int amount = 0;
    assert(sscanf(line, "take %d", &amount) == 1);
    pthread_mutex_lock(&lock);
    int enough = balance >= amount;
    pthread_mutex_unlock(&lock);
    if (enough) {
        pthread_mutex_lock(&lock); /* preempt here */
        balance -= amount;
        assert(balance >= 0);
        pthread_mutex_unlock(&lock);
    }
    struct iovec words[2] = {{enough ? "here" : "no", enough ? 4 : 2}, {"\n", 1}};
    assert(writev(client, words, 2) > 0);
}

/* Reads a line, byte by byte or as it comes; 0 if there is none yet. */
static int more(int client, char *line, size_t size) {
    size_t length = strlen(line);
    ssize_t got = read(client, line + length, size - 1 - length);
    if (got > 0)
        line[length + got] = 0;
    return strchr(line, '\n') != NULL;
}

static void *one_client(void *argument) {
    int client = (int)(long)argument;
    char line[80] = "";
    while (!more(client, line, sizeof line))
        ;
    serve(client, line);
    shutdown(client, SHUT_RDWR);
    close(client);
    return NULL;
}

static void with_threads(int listener) {
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        struct sockaddr_in from, peer;
        socklen_t size = sizeof from, peer_size = sizeof peer;
        int client = accept(listener, (struct sockaddr *)&from, &size);
        assert(client >= 0 && size == sizeof from);
        assert(getpeername(client, (struct sockaddr *)&peer, &peer_size) == 0 && peer.sin_port == from.sin_port);
        int on = 1;
        assert(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
        pthread_create(&threads[i], NULL, one_client, (void *)(long)client);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
}

static struct job {
    int client;
    char line[80];
} jobs[CLIENTS];
static int ready[CLIENTS], queued, taken, wake;

static void *worker(void *argument) {
    pthread_mutex_lock(&lock);
    while (taken == queued)
        pthread_cond_wait(&changed, &lock);
    struct job *job = &jobs[ready[taken++]];
    pthread_mutex_unlock(&lock);
    serve(job->client, job->line);
    assert(eventfd_write(wake, 1) == 0);
    return argument;
}

/* Which descriptors are ready, by epoll, poll or select: bit 0 the listener, bit 1 the counter, bit 2 + i client i. */
static int which(const char *mode, int listener, int epoll, int clients) {
    int fds[2 + CLIENTS] = {listener, wake}, count = 2 + clients, bits = 0;
    for (int i = 0; i < clients; i++)
        fds[2 + i] = strchr(jobs[i].line, '\n') ? -1 : jobs[i].client;
    if (strcmp(mode, "epoll") == 0) {
        struct epoll_event events[8];
        int got = epoll_wait(epoll, events, 8, -1);
        for (int i = 0; i < got; i++)
            bits |= 1 << events[i].data.u32;
    } else if (strcmp(mode, "poll") == 0) {
        struct pollfd polls[2 + CLIENTS];
        for (int i = 0; i < count; i++)
            polls[i] = (struct pollfd){fds[i], POLLIN, 0};
        assert(poll(polls, count, -1) > 0);
        for (int i = 0; i < count; i++)
            bits |= polls[i].revents ? 1 << i : 0;
    } else {
        fd_set set;
        FD_ZERO(&set);
        for (int i = 0; i < count; i++)
            if (fds[i] >= 0)
                FD_SET(fds[i], &set);
        assert(select(64, &set, NULL, NULL, NULL) > 0);
        for (int i = 0; i < count; i++)
            bits |= fds[i] >= 0 && FD_ISSET(fds[i], &set) ? 1 << i : 0;
    }
    return bits;
}

static void with_workers(const char *mode, int listener) {
    int epoll = epoll_create1(0), clients = 0, done = 0;
    pthread_t threads[CLIENTS];
    wake = eventfd(0, EFD_NONBLOCK);
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    /* By a copy of the descriptor, as some libraries do. */
    int copy = dup(epoll);
    epoll_ctl(copy, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN, .data.u32 = 0});
    epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &(struct epoll_event){.events = EPOLLIN, .data.u32 = 1});
    while (done < CLIENTS) {
        int bits = which(mode, listener, epoll, clients);
        if (bits & 1) {
            int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (client >= 0 && clients < CLIENTS) {
                struct epoll_event event = {.events = EPOLLIN, .data.u32 = 2 + clients};
                epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
                jobs[clients++].client = client;
            } else if (client >= 0) {
                close(client);
            }
        }
        eventfd_t count = 0;
        if (bits & 2 && eventfd_read(wake, &count) == 0)
            done += count;
        for (int i = 0; i < clients; i++) {
            struct job *job = &jobs[i];
            if (!(bits & 1 << (2 + i)) || strchr(job->line, '\n') || !more(job->client, job->line, sizeof job->line))
                continue;
            epoll_ctl(epoll, EPOLL_CTL_DEL, job->client, NULL);
            pthread_mutex_lock(&lock);
            ready[queued++] = i;
            pthread_cond_signal(&changed);
            pthread_mutex_unlock(&lock);
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        close(jobs[i].client);
    }
}

int main(int argc, char **argv) {
    assert(argc == 3);
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    socklen_t size = sizeof place;
    inet_pton(AF_INET, "127.0.0.1", &place.sin_addr);
    assert(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    assert(bind(listener, (struct sockaddr *)&place, size) == 0 && listen(listener, 5) == 0);
    assert(getsockname(listener, (struct sockaddr *)&place, &size) == 0 && ntohs(place.sin_port) == atoi(argv[2]));
    if (strcmp(argv[1], "threads") == 0)
        with_threads(listener);
    else
        with_workers(argv[1], listener);
    return 0;
}
