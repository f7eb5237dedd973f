/* Signals by functions of old, and jumps. */
#include "results.h"
#include <setjmp.h>
#include <signal.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Not declared any more. */
extern __sighandler_t bsd_signal(int signal, __sighandler_t handler);
extern __sighandler_t __sysv_signal(int signal, __sighandler_t handler);
extern void __longjmp_chk(jmp_buf buffer, int value) __attribute__((noreturn));

/* The header gives `sigpause` the meaning of X/Open, under this name; the function of that name is BSD's. */
extern int __xpg_sigpause(int signal);
extern int bsd_sigpause(int mask) __asm__("sigpause");
#define sigpause(mask) bsd_sigpause(mask)

/* A set of one signal. */
#define BIT(signal) (1 << ((signal)-1))

static void says(int signal)
{
    say("%c", signal == SIGUSR1 ? '1' : '2');
}

/* ---- handlers ---- */

CASE(a_handler_stays, "11 11")
{
    assert(bsd_signal(SIGUSR1, says) == SIG_DFL);
    assert(gsignal(SIGUSR1) == 0 && gsignal(SIGUSR1) == 0);
    say(" ");
    assert(ssignal(SIGUSR1, SIG_DFL) == says && ssignal(SIGUSR1, says) == SIG_DFL);
    assert(gsignal(SIGUSR1) == 0 && gsignal(SIGUSR1) == 0);
}

CASE(a_handler_for_once, "2 default 2 default")
{
    for (int i = 0; i < 2; i++) {
        assert((i == 0 ? sysv_signal(SIGUSR2, says) : __sysv_signal(SIGUSR2, says)) == SIG_DFL);
        assert(gsignal(SIGUSR2) == 0);
        struct sigaction now;
        assert(sigaction(SIGUSR2, NULL, &now) == 0);
        say(" %s%s", now.sa_handler == SIG_DFL ? "default" : "handled", i == 0 ? " " : "");
    }
}

static int depth;

static void says_inside(int signal)
{
    say("(");
    if (depth++ == 0) {
        bsd_signal(signal, says_inside);
        gsignal(signal);
        __sysv_signal(signal, says_inside);
    }
    say(")");
}

/* BSD's handlers block their signal, System V's do not. */
CASE(handlers_within_themselves, "()() (())")
{
    bsd_signal(SIGUSR1, says_inside);
    gsignal(SIGUSR1);
    say(" ");
    depth = 0;
    __sysv_signal(SIGUSR1, says_inside);
    gsignal(SIGUSR1);
}

CASE(an_ignored_signal, "0 ignored")
{
    say("%d ", sigignore(SIGTERM));
    assert(gsignal(SIGTERM) == 0);
    say("%s", bsd_signal(SIGTERM, SIG_DFL) == SIG_IGN ? "ignored" : "?");
}

NATIVELY(signals_that_are_none)
{
    say("%d ", bsd_signal(99, says) == SIG_ERR ? errno : 0);
    say("%d ", ssignal(SIGKILL, says) == SIG_ERR ? errno : 0);
    say("%d ", __sysv_signal(0, says) == SIG_ERR ? errno : 0);
    say("%s ", outcome(sigignore(0)));
    say("%s ", outcome(sighold(99)));
    say("%s ", outcome(sigrelse(-1)));
    say("%s ", outcome(gsignal(99)));
    say("%s", outcome(__xpg_sigpause(99)));
}

/* ---- masks ---- */

CASE(masks_of_old, "0 0 512 2560 2560 21")
{
    bsd_signal(SIGUSR1, says);
    bsd_signal(SIGUSR2, says);
    say("%d ", sigsetmask(0));
    say("%d ", sigblock(BIT(SIGUSR1)));
    say("%d ", sigblock(BIT(SIGUSR2)));
    say("%d ", siggetmask());
    gsignal(SIGUSR1);
    gsignal(SIGUSR2);
    say("%d ", sigsetmask(BIT(SIGUSR2) | BIT(SIGUSR1)));
    sigsetmask(BIT(SIGUSR1));
    sigsetmask(0);
}

CASE(a_signal_is_held, "held 1 again")
{
    bsd_signal(SIGUSR1, says);
    assert(sighold(SIGUSR1) == 0);
    gsignal(SIGUSR1);
    say("held ");
    assert(sigrelse(SIGUSR1) == 0);
    say(" again");
}

/* ---- waiting ---- */

static void *sends(void *arg)
{
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    return NULL;
}

/* Whether the signal comes before the wait or while it lasts, the wait sees it. */
CASE(a_pause_with_a_mask, "1 EINTR 512")
{
    bsd_signal(SIGUSR1, says);
    sigblock(BIT(SIGUSR1));
    pthread_t self = pthread_self(), t = start(sends, &self);
    const char *result = outcome(sigpause(0));
    say(" %s %d", errno == EINTR ? "EINTR" : result, siggetmask());
    join(t);
}

CASE(a_pause_for_a_signal, "1 EINTR 2560")
{
    bsd_signal(SIGUSR1, says);
    sigblock(BIT(SIGUSR1) | BIT(SIGUSR2));
    pthread_t self = pthread_self(), t = start(sends, &self);
    const char *result = outcome(__xpg_sigpause(SIGUSR1));
    say(" %s %d", errno == EINTR ? "EINTR" : result, siggetmask());
    join(t);
}

/* ---- jumps ---- */

static sigjmp_buf back;

static void jumps(int signal) { siglongjmp(back, signal); }
static void jumps_by_longjmp(int signal) { longjmp(back, signal); }
static void jumps_by_old_longjmp(int signal) { _longjmp(back, signal); }
static void jumps_checked(int signal) { __longjmp_chk(back, signal); }

static void jump_by(void (*handler)(int), int save)
{
    bsd_signal(SIGUSR1, handler);
    volatile int tried = 0;
    int came = __sigsetjmp(back, save);
    if (came == 0) {
        tried = 1;
        gsignal(SIGUSR1);
        say("no jump");
    }
    assert(tried == 1 && came == SIGUSR1);
    say("%d ", siggetmask());
    sigsetmask(0);
}

/* The mask is as it was if it was saved, else as it is in the handler. */
CASE(jumps_out_of_handlers, "0 512 0 512 0 512 0 512 ")
{
    void (*handlers[])(int) = {jumps, jumps_by_longjmp, jumps_by_old_longjmp, jumps_checked};
    for (int i = 0; i < 8; i++)
        jump_by(handlers[i / 2], i % 2 == 0);
}

CASE(a_jump_unblocks, "2 blocked 1 2048")
{
    bsd_signal(SIGUSR1, says);
    sigsetmask(BIT(SIGUSR2));
    volatile int times = 0;
    int came = __sigsetjmp(back, 1);
    if (times++ == 0) {
        sigsetmask(BIT(SIGUSR1));
        bsd_signal(SIGUSR2, says);
        gsignal(SIGUSR2);
        gsignal(SIGUSR1);
        say(" blocked ");
        longjmp(back, 3);
    }
    assert(came == 3);
    say(" %d", siggetmask());
}

CONFORMANCE_MAIN
