// Asks the bank at the socket that its first argument names for as much as the second says, and prints the answer.
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[64] = {0};
    if (argc != 3 || strlen(argv[1]) >= sizeof address.sun_path) {
        return 2;
    }
    strcpy(address.sun_path, argv[1]);
    int bank = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(bank, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("customer");
        return 1;
    }
    dprintf(bank, "withdraw %s\n", argv[2]);
    while (read(bank, answer, sizeof answer - 1) > 0) {
        fputs(answer, stdout);
        memset(answer, 0, sizeof answer);
    }
    return 0;
}
