/* A search drops what the program writes, and a shell's redirection would make the shell the program. So this library,
   preloaded after the runtime, appends the program's standard output to a file: one execution after the other. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void redirect(void) {
    const char *path = getenv("PROGRAM_OUTPUT");
    if (!path || !strcmp(program_invocation_short_name, "heisen")) return;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || dup2(file, 1) < 0) _exit(99);
    close(file);
    /* The programs that this one starts inherit its output as it is. */
    unsetenv("PROGRAM_OUTPUT");
    unsetenv("LD_PRELOAD");
}
