/* Calls that change the machine, with arguments that make no sense, so that none does harm should it come to the kernel. */
#include "cases.h"
#include <fcntl.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NOWHERE "/nonexistent/heisen"
#define REFUSED(call) (errno = 0, (call) == -1 && errno == EPERM)

static const char name[1000];

static void *nothing(void *arg)
{
    return arg;
}

static void reboots(void)
{
    join(start(nothing, NULL));
    assert(REFUSED(reboot(0x11111111)) && REFUSED(syscall(SYS_reboot, 1, 2, 3, NULL)));
    assert(REFUSED(syscall(SYS_kexec_load, 0, 99999, NULL, 0x77)));
}

static void names(void)
{
    assert(REFUSED(sethostname(name, sizeof name)) && REFUSED(setdomainname(name, sizeof name)));
    assert(REFUSED(syscall(SYS_sethostname, name, sizeof name)) && REFUSED(syscall(SYS_setdomainname, name, sizeof name)));
}

static void mounts(void)
{
    assert(REFUSED(mount(NOWHERE, NOWHERE, "none", 0, NULL)) && REFUSED(umount(NOWHERE)));
    assert(REFUSED(umount2(NOWHERE, 0x7000)) && REFUSED(syscall(SYS_pivot_root, NOWHERE, NOWHERE)));
    assert(REFUSED(syscall(SYS_mount, NOWHERE, NOWHERE, "none", 0, NULL)));
}

static void accounting(void)
{
    assert(REFUSED(swapon(NOWHERE, 0)) && REFUSED(swapoff(NOWHERE)) && REFUSED(acct(NOWHERE)));
    assert(REFUSED(quotactl(QCMD(Q_SYNC, USRQUOTA), NOWHERE, 0, NULL)));
}

static void kernel_code(void)
{
    assert(REFUSED(syscall(SYS_init_module, NULL, 0, "")) && REFUSED(syscall(SYS_finit_module, -1, "", 0)));
    assert(REFUSED(syscall(SYS_delete_module, "heisen nonexistent", O_NONBLOCK)));
    assert(REFUSED(syscall(SYS_bpf, 77777, NULL, 0)));
}

static void devices(void)
{
    char byte = 'x';
    assert(REFUSED(iopl(99)) && REFUSED(ioperm(1 << 20, 1, 1)) && REFUSED(klogctl(99, NULL, 0)));
    assert(REFUSED(ioctl(-1, TIOCSTI, &byte)) && REFUSED(syscall(SYS_ioctl, -1, TIOCSTI, &byte)));
    /* Others are as they are. */
    assert(ioctl(-1, TIOCGWINSZ, &byte) == -1 && errno == EBADF);
}

static long inlined(long number, long a, long b)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

/* Natively 0 for the exit status; root would get EINVAL. */
static void instructions(void)
{
    join(start(nothing, NULL));
    assert(inlined(SYS_reboot, 1, 2) == -EPERM && inlined(SYS_sethostname, (long)name, sizeof name) == -EPERM);
}

/* A child, and what it executes. */
static void children(void)
{
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        if (!REFUSED(sethostname(name, sizeof name)) || inlined(SYS_sethostname, (long)name, sizeof name) != -EPERM)
            _exit(3);
        execl("/proc/self/exe", "refused", "instructions", (char *)NULL);
        _exit(4);
    }
    int status;
    assert(waitpid(child, &status, 0) == child && status == 0);
}

CASES(CASE(reboots), CASE(names), CASE(mounts), CASE(accounting), CASE(kernel_code), CASE(devices), CASE(instructions),
      CASE(children))
