//! Tests of signals in patched code. Patching uses breakpoints where no jump fits, and a handler may run in
//! the middle of a function.

use heisen_testkit::{Sandbox, run};
use std::process::Command;

/// A program that uses SIGTRAP in all ways: handlers, blocking, ignoring and child processes. Some of its
/// patched instructions are breakpoints.
const TRAPS: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((naked, noinline)) void inc(int *p) { __asm__("lock incl (%rdi); ret"); }
int counter;
volatile sig_atomic_t traps;
void on_trap(int s, siginfo_t *i, void *c) { (void)s; (void)i; (void)c; traps++; inc(&counter); }
void *work(void *a) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    inc(&counter);
    inc(&counter);
    return a;
}
int main(int argc, char **argv) {
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    inc(&counter);
    pthread_join(t, 0);
    work(0);
    assert(counter == 5);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    sigaction(SIGTRAP, &action, 0);
    __asm__ volatile("int3");
    assert(traps == 1 && counter == 6);
    raise(SIGTRAP);
    assert(traps == 2 && counter == 7);
    inc(&counter);
    assert(traps == 2 && counter == 8);
    pid_t child = fork();
    if (child == 0) {
        inc(&counter);
        if (traps != 2 || counter != 9) _exit(1);
        __asm__ volatile("int3");
        if (traps != 3 || counter != 10) _exit(2);
        signal(SIGTRAP, SIG_DFL);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, 0);
        inc(&counter);
        _exit(counter == 11 ? 7 : 3);
    }
    int status;
    waitpid(child, &status, 0);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    kill(getpid(), SIGTRAP);
    inc(&counter);
    assert(traps == 2);
    if (argc > 1) {
        signal(SIGTRAP, argv[1][0] == 'd' ? SIG_DFL : SIG_IGN);
        __asm__ volatile("int3");
        puts("survived");
    }
}
"#;

#[test]
fn the_program_keeps_the_signal_of_breakpoints() {
    let sandbox = Sandbox::new();
    let path = sandbox.compile("traps.c", TRAPS, &["-O1"]);
    run(&mut Command::new(&path)).expect(0);
    let path = path.to_str().unwrap();
    for carrier in ["fibers", "kernel"] {
        let json = sandbox.clean(&["--patch", "default", "--carrier", carrier, "--", path]);
        assert_eq!(json["complete"], true, "{json:#}");
    }
    // The program's own breakpoints end it as natively, even if it ignores the signal.
    for argument in ["default", "ignored"] {
        let sandbox = Sandbox::new();
        let path = sandbox.compile("traps.c", TRAPS, &["-O1"]);
        let path = path.to_str().unwrap();
        let finding = sandbox.finds("crash", &["--patch", "default", "--", path, argument]);
        assert_eq!(finding["message"], "the program was killed by SIGTRAP");
    }
}

/// A handler runs at a scheduling point in the middle of a function that uses vector registers, and changes
/// all of them.
const HANDLER: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
static int started, n, handled;
static void on_signal(int s) {
    (void)s;
    __atomic_fetch_add(&handled, 1, __ATOMIC_SEQ_CST);
    __asm__ volatile(
        "pxor %%xmm0, %%xmm0\n pxor %%xmm3, %%xmm3\n pxor %%xmm9, %%xmm9\n pxor %%xmm15, %%xmm15\n fninit"
        ::: "xmm0", "xmm3", "xmm9", "xmm15");
}
static void *work(void *a) {
    for (int i = 0; i < 3; i++) {
        double out[4];
        long r[4] = {11, 22, 33, 44}, s[4];
        __asm__ volatile(
            "cvtsi2sdq 0(%2), %%xmm0\n cvtsi2sdq 8(%2), %%xmm3\n cvtsi2sdq 16(%2), %%xmm9\n cvtsi2sdq 24(%2), %%xmm15\n"
            "fildq 0(%2)\n"
            "movq 0(%2), %%r8\n movq 8(%2), %%r11\n movq 16(%2), %%rcx\n movq 24(%2), %%r15\n"
            "lock incl %0\n"
            "movq %%r8, 0(%3)\n movq %%r11, 8(%3)\n movq %%rcx, 16(%3)\n movq %%r15, 24(%3)\n"
            "movsd %%xmm0, 0(%1)\n movsd %%xmm3, 8(%1)\n movsd %%xmm9, 16(%1)\n movsd %%xmm15, 24(%1)\n"
            "fistpq 0(%2)\n"
            : "+m"(n)
            : "r"(out), "r"(r), "r"(s)
            : "memory", "r8", "r11", "rcx", "r15", "xmm0", "xmm3", "xmm9", "xmm15", "cc");
        assert(out[0] == 11 && out[1] == 22 && out[2] == 33 && out[3] == 44);
        assert(s[0] == 11 && s[1] == 22 && s[2] == 33 && s[3] == 44 && r[0] == 11);
    }
    return a;
}
int main(void) {
    signal(SIGUSR1, on_signal);
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    pthread_kill(t, SIGUSR1);
    pthread_kill(pthread_self(), SIGUSR1);
    work(0);
    pthread_join(t, 0);
    assert(n == 6);
}
"#;

#[test]
fn a_handler_in_the_middle_of_a_function() {
    let sandbox = Sandbox::new();
    let path = sandbox.compile("handler.c", HANDLER, &["-O2"]);
    run(&mut Command::new(&path)).expect(0);
    let path = path.to_str().unwrap();
    for carrier in ["fibers", "kernel"] {
        let json = sandbox.clean(&["--patch", "default", "--bound", "1", "--carrier", carrier, "--", path]);
        assert_eq!((&json["complete"], &json["diverged"]), (&true.into(), &0.into()), "{json:#}");
        assert!(json["executions"].as_u64().unwrap() > 5, "{json:#}");
    }
}
