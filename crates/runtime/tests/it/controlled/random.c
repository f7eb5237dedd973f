/* Prints what it takes for random, from every source there is. Ends with 1, so that its output is kept. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *name, const unsigned char *bytes, int count) {
    printf("%s ", name);
    for (int i = 0; i < count; i++)
        printf("%02x", bytes[i]);
    puts("");
}

static void descriptor(const char *path, int flags) {
    unsigned char bytes[16];
    for (int how = 0; how < 2; how++) {
        int fd = how ? openat(AT_FDCWD, path, flags) : open(path, flags);
        assert(fd >= 0 && read(fd, bytes, sizeof bytes) == sizeof bytes);
        assert(!(fcntl(fd, F_GETFD) & FD_CLOEXEC) == !(flags & O_CLOEXEC));
        close(fd);
        show(path, bytes, sizeof bytes);
    }
}

int main(void) {
    unsigned char bytes[16];
    assert(getrandom(bytes, sizeof bytes, GRND_NONBLOCK) == sizeof bytes);
    show("getrandom", bytes, sizeof bytes);
    assert(syscall(SYS_getrandom, bytes, sizeof bytes, 0) == sizeof bytes);
    show("syscall", bytes, sizeof bytes);
    assert(getentropy(bytes, sizeof bytes) == 0);
    show("getentropy", bytes, sizeof bytes);
    arc4random_buf(bytes, sizeof bytes);
    show("arc4random_buf", bytes, sizeof bytes);
    printf("arc4random %u\n", arc4random());
    for (int i = 0; i < 1000; i++)
        assert(arc4random_uniform(7) < 7 && arc4random_uniform(1) == 0 && arc4random_uniform(0) == 0);
    show("AT_RANDOM", (unsigned char *)getauxval(AT_RANDOM), 16);
    descriptor("/dev/urandom", O_RDONLY);
    descriptor("/dev/random", O_RDONLY | O_CLOEXEC);
    FILE *file = fopen("/dev/urandom", "rb");
    assert(file && fread(bytes, 1, sizeof bytes, file) == sizeof bytes && fclose(file) == 0);
    show("fopen", bytes, sizeof bytes);
    srandom(getentropy(bytes, 1) ? 0 : bytes[0]);
    printf("random %ld\n", random());

    /* A child has bytes of its own. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        assert(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
        show("child", bytes, sizeof bytes);
        fflush(stdout);
        _exit(0);
    }
    assert(waitpid(child, NULL, 0) == child);
    assert(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
    show("parent", bytes, sizeof bytes);

    /* What is wrong is refused as the kernel does. */
    assert(getrandom(bytes, 1, 0x1000) == -1 && errno == EINVAL);
    assert(getrandom((void *)1, 1, 0) == -1 && errno == EFAULT);
    assert(getrandom(NULL, 0, 0) == 0);
    assert(getentropy(bytes, 257) == -1 && errno == EIO);
    assert(open("/dev/urandom/x", O_RDONLY) == -1 && errno == ENOTDIR);
    assert(open("/dev/urando", O_RDONLY) == -1 && errno == ENOENT);
    assert(open("/dev/urandoms", O_RDONLY) == -1 && errno == ENOENT);
    return 1;
}
