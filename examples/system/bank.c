// A bank that serves each customer in a thread of its own, on the socket that its argument names. Between looking at
// the balance and changing it another thread may do the same: 100 can be paid out twice.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static long balance = 100;

__attribute__((noinline)) static int pay_out(long amount) {
    balance -= amount;
    return 1;
}

static void *serve(void *arg) {
    int customer = (int)(long)arg;
    char line[64] = {0};
    long amount;
    if (read(customer, line, sizeof line - 1) > 0 && sscanf(line, "withdraw %ld", &amount) == 1) {
        int paid = balance >= amount && pay_out(amount);
        dprintf(customer, paid ? "here you are\n" : "sorry\n");
    }
    close(customer);
    return NULL;
}

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
        return 2;
    }
    strcpy(address.sun_path, argv[1]);
    unlink(argv[1]);
    int door = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(door, (struct sockaddr *)&address, sizeof address) != 0 || listen(door, 8) != 0) {
        perror("bank");
        return 1;
    }
    puts("open");
    fflush(stdout);
    for (;;) {
        pthread_t thread;
        long customer = accept(door, NULL, NULL);
        if (customer >= 0 && pthread_create(&thread, NULL, serve, (void *)customer) == 0) {
            pthread_detach(thread);
        }
    }
}
