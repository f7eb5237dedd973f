//! Tests `heisen replay --gdb` in gdb's batch mode: it stops at the failing event, and each command goes to
//! the right step. The tests are skipped, with a message, if there is no gdb or if gdb may not attach to
//! processes.
//!
//! On every processor gdb runs as on one with AMX, whose extended registers gdb 13 cannot write. It may not
//! call functions of the program.

use heisen_testkit::{Ran, Sandbox, root, usual_or_nightly};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A `ptrace` for gdb that does not write extended registers. If `ATTACHES` is set, it attaches at most that
/// often.
const PTRACE: &str = "
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
long ptrace(enum __ptrace_request request, ...) {
    static int attached;
    va_list rest;
    va_start(rest, request);
    pid_t pid = va_arg(rest, pid_t);
    void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
    va_end(rest);
    if (request == PTRACE_SETREGSET || request == PTRACE_SETFPREGS) {
        errno = EFAULT;
        return -1;
    }
    const char *most = getenv(\"ATTACHES\");
    if (request == PTRACE_ATTACH && most && attached++ >= atoi(most)) {
        errno = EPERM;
        return -1;
    }
    long (*real)(enum __ptrace_request, ...) = dlsym(RTLD_NEXT, \"ptrace\");
    return real(request, pid, address, data);
}
";

/// A search path on which gdb uses [`PTRACE`].
fn path_with_limited_gdb(sandbox: &Sandbox) -> std::ffi::OsString {
    let bin = sandbox.path("limited");
    if !bin.exists() {
        let library = sandbox.compile("ptrace.c", PTRACE, &["-shared", "-fPIC"]);
        let path = std::env::var_os("PATH").expect("a search path");
        let real = std::env::split_paths(&path).map(|dir| dir.join("gdb")).find(|gdb| gdb.exists());
        let script = format!(
            "#!/bin/sh\nLD_PRELOAD={} exec {} \"$@\"\n",
            library.display(),
            real.expect("gdb").display()
        );
        executable(&sandbox.write("limited/gdb", script));
    }
    let path = std::env::var_os("PATH").expect("a search path");
    std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).expect("a search path")
}

fn executable(file: &PathBuf) {
    let mut mode = std::fs::metadata(file).expect("the file").permissions();
    mode.set_mode(0o755);
    std::fs::set_permissions(file, mode).expect("the mode");
}

/// The reason why gdb cannot be used here, if there is one.
fn missing() -> Option<String> {
    let mut sleep = Command::new("sleep").arg("60").spawn().expect("sleep");
    let tried = Command::new("gdb")
        .args(["-nx", "-batch", "-ex", "python print('scripted')", "-p", &sleep.id().to_string()])
        .stdin(Stdio::null())
        .output();
    let _ = sleep.kill();
    let _ = sleep.wait();
    match tried {
        Err(error) => Some(format!("gdb: {error}")),
        Ok(output) => {
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let usable =
                out.contains("scripted") && !err.contains("not permitted") && !err.contains("ptrace: ");
            (!usable).then(|| err.into_owned())
        }
    }
}

/// Checks a program with this text. Returns the schedule of the finding.
#[track_caller]
fn find(sandbox: &Sandbox, kind: &str, name: &str, text: &str) -> String {
    sandbox.write(name, text);
    let json = sandbox.heisen(&["check", "--json", "-", name]).expect(1).json();
    assert_eq!(json["findings"][0]["kind"], kind, "{json:#}");
    json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned()
}

/// A schedule that a check of an example or of a program's text has found, for gdb to replay.
struct Session {
    sandbox: Sandbox,
    schedule: String,
}

impl Session {
    /// Checks an example. Returns `None`, after a message with the reason, if gdb cannot be used.
    fn example(kind: &str, name: &str) -> Option<Session> {
        let text = std::fs::read_to_string(root().join("examples").join(name)).expect("the example");
        Session::of(kind, name.rsplit('/').next().expect("a name"), &text)
    }

    fn of(kind: &str, name: &str, text: &str) -> Option<Session> {
        if let Some(why) = missing() {
            eprintln!("skipped, as gdb cannot be used here: {why}");
            return None;
        }
        let sandbox = Sandbox::new();
        let schedule = find(&sandbox, kind, name, text);
        Some(Session { sandbox, schedule })
    }

    /// The output of gdb for these commands.
    #[track_caller]
    fn gdb(&self, commands: &[&str]) -> Ran {
        self.run(commands, &[]).expect(0)
    }

    /// Like [`gdb`](Session::gdb) with environment variables and with any exit code.
    #[track_caller]
    fn run(&self, commands: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut args = vec!["replay", "--gdb", &self.schedule, "--", "-nx", "-batch"];
        args.extend(["-iex", "set may-call-functions off"]);
        for command in commands {
            args.extend(["-ex", command]);
        }
        let mut command = self.sandbox.command(&args);
        command.env("PATH", path_with_limited_gdb(&self.sandbox)).envs(variables.iter().copied());
        self.sandbox.run(&mut command)
    }
}

/// Checks that the text contains these words in this order.
#[track_caller]
fn has_in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        match rest.find(word) {
            Some(at) => rest = &rest[at + word.len()..],
            None => panic!("{word:?} does not come, or not in this order:\n{text}"),
        }
    }
}

#[test]
fn stops_at_a_failed_assertion() {
    let Some(session) = Session::example("assertion", "c/account.c") else { return };
    let out = session.gdb(&["heisen threads", "bt", "print balance"]).out;
    has_in_order(
        &out,
        &[
            "step 14: T0 (main) after join(T2)  at account.c:44  [the failing event, assertion: assertion `balance == 150` failed]",
            "in main () at account.c:45",
            "* T0 (main)            LWP ",
            "runs, after join(T2)",
            "  T1 (depositor)       ended",
            "  T2 (depositor)       ended",
            "in main () at account.c:45",
            "$1 = 100",
        ],
    );
    assert!(!out.contains("heisen_gdb_stop"), "{out}");
}

#[test]
fn goes_forward_and_back() {
    let Some(session) = Session::example("assertion", "c/account.c") else { return };
    let ran = session.gdb(&[
        "heisen step 6",
        "heisen threads",
        "info threads",
        "heisen preempt",
        "heisen switch",
        "heisen next",
        "heisen step 3",
        "heisen finish",
        "heisen where",
    ]);
    has_in_order(
        &ran.out,
        &[
            "step 14: ",
            // Back to an earlier step, by a new execution.
            "step 6: T1 (depositor) about to lock(lock)  at account.c:28\n",
            "in deposit (amount=100) at account.c:28",
            "  T0 (main)            LWP ",
            " blocked, about to join(T1)  at account.c:44",
            "* T1 (depositor)       LWP ",
            " runs, about to lock(lock)  at account.c:28",
            "  T2 (depositor)       LWP ",
            " new, about to start  at account.c:33",
            // gdb sees real threads.
            "* 2    Thread 0x",
            "step 6: T2 (depositor) about to start  at account.c:33  [T1 (depositor) was preempted]",
            "step 11: T1 (depositor) about to lock(lock)  at account.c:28  [switched from T2 (depositor)]",
            "step 12: T1 (depositor) about to unlock(lock)  at account.c:30\n",
            "step 3: T0 (main) about to join(T1)  at account.c:44\n",
            "step 14: T0 (main) after join(T2)",
            "[the failing event, assertion",
            "step 14: T0 (main) after join(T2)",
        ],
    );
}

/// gdb's own commands follow the thread in which they begin, across switches, and never show lines of the
/// runtime.
#[test]
fn single_steps_are_predictable() {
    let Some(session) = Session::example("assertion", "c/account.c") else { return };
    let commands = [
        "heisen step 6",
        "next",
        "heisen where",
        "next",
        "step",
        "next",
        "heisen where",
        "heisen step 1",
        "step",
        "heisen preempt",
        "next",
        "step",
        "step",
        "step",
        "heisen where",
    ];
    let first = session.gdb(&commands).out;
    has_in_order(
        &first,
        &[
            "step 6: T1 (depositor) about to lock(lock)  at account.c:28",
            // The other thread runs from start to end while this one is preempted.
            "\ndeposit (amount=100) at account.c:29\n29\t    balance = sum;",
            "step 11: T1 (depositor) after lock(lock)",
            "\n30\t    pthread_mutex_unlock(&lock);",
            "\n31\t}",
            "\ndepositor (amount=",
            "step 12: T1 (depositor) after unlock(lock)",
            "step 1: T0 (main) about to create(depositor)",
            "\n41\t    for (int i = 0; i < 2; i++)",
            // A new thread arrives at the first line of its function.
            "step 6: T2 (depositor) about to start",
            "\n34\t    deposit(*(int *)amount);",
            // In an instrumented program this line has an event of its own, because it reports the entry of
            // the function.
            "\ndeposit (amount=50) at account.c:21",
            "\n22\t",
            "\n23\t",
            "step 7: T2 (depositor) after lock(lock)",
        ],
    );
    assert!(!first.contains(".rs:"), "{first}");
    let plain = |text: &str| -> String {
        // Process ids differ.
        text.lines().filter(|line| !line.contains("LWP") && !line.contains("process")).collect()
    };
    for _ in 0..usual_or_nightly(1, 3) {
        assert_eq!(plain(&session.gdb(&commands).out), plain(&first));
    }
}

#[test]
fn stops_at_a_deadlock() {
    let Some(session) = Session::example("deadlock", "c/philosophers.c") else { return };
    let out = session.gdb(&["heisen threads", "thread apply all bt"]).out;
    has_in_order(
        &out,
        &[
            "[the failing event, deadlock: T1 waits for forks[1], held by T2;",
            "  T0 (main) ",
            "blocked, about to join(T1)",
            "  T1 (philosopher) ",
            "blocked, about to lock(forks[1])",
            "blocked, about to lock(forks[2])",
            "* T3 (philosopher) ",
            "blocked, about to lock(forks[0])",
            "in philosopher (arg=",
            "in philosopher (arg=",
            "in philosopher (arg=",
            "in main () at philosophers.c:48",
        ],
    );
}

const CRASH: &str = "
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int *volatile pointer, value;
static void *sets(void *arg) {
    pthread_mutex_lock(&m);
    pointer = &value;
    pthread_mutex_unlock(&m);
    return arg;
}
static void *uses(void *arg) {
    pthread_mutex_lock(&m);
    *pointer = 1; /* crash here */
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, sets, 0);
    pthread_create(&two, 0, uses, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
}
";

#[test]
fn stops_at_a_crash() {
    let Some(session) = Session::of("crash", "crash.c", CRASH) else { return };
    let out = session.gdb(&["bt", "heisen finish", "heisen begin", "heisen step 99", "heisen step 1"]).out;
    has_in_order(
        &out,
        &[
            "T2 (uses) after lock(m)",
            "[the failing event, crash: the program was killed by SIGSEGV]",
            " in uses (arg=",
            "the execution has ended; heisen step N restarts it",
            "[the failing event, crash",
            "the execution has ended",
            "step 1: T0 (main) about to create(sets)",
        ],
    );
}

#[test]
fn stops_at_a_panic() {
    let Some(session) = Session::example("panic", "rust/order.rs") else { return };
    let out = session.gdb(&["bt", "heisen step 2", "bt"]).out;
    has_in_order(
        &out,
        &[
            "T0 (main) after ",
            "[the failing event, panic: panicked at order.rs:",
            "order::main () at order.rs:",
            "order::main () at order.rs:",
            "step 2: T0 (main) about to ",
            "order::main",
        ],
    );
}

const EXIT: &str = "
#include <pthread.h>
#include <sched.h>
static int done;
static void *works(void *arg) {
    sched_yield();
    done = 1;
    return arg;
}
int main(void) {
    pthread_t one;
    pthread_create(&one, 0, works, 0);
    sched_yield();
    int seen = done;
    pthread_join(one, 0);
    return seen ? 0 : 3;
}
";

#[test]
fn stops_at_a_wrong_exit_status() {
    let Some(session) = Session::of("exit-status", "exits.c", EXIT) else { return };
    let ran = session.gdb(&["heisen threads", "continue"]);
    has_in_order(
        &ran.out,
        &[
            "[the failing event, exit-status: the program ended with exit status 3, not 0]",
            "  T1 (works) ",
            "ended",
        ],
    );
    // A schedule that cannot be followed is reported, and its end is not called the failing event.
    let text = std::fs::read_to_string(session.sandbox.path(&session.schedule)).expect("the schedule");
    let outcome = text.lines().find(|line| line.starts_with("outcome ")).expect("an outcome");
    let text = text.replace(outcome, "outcome assertion \"other\"").replace("\nend 0", "");
    let text = text.split("\nat ").next().expect("the head").to_owned();
    let edited = format!("{}\nat 2 T1 -> T0 preempt lock 2 \"\" \"\"\nend 1\n", text.replace("\nend 1", ""));
    session.sandbox.write("edited.schedule", edited);
    let edited = Session { schedule: "edited.schedule".into(), ..session };
    has_in_order(
        &edited.gdb(&[]).out,
        &["the execution diverged from the schedule at step 2", "[the end, exit status 3]"],
    );
}

#[test]
fn mistakes_are_reported() {
    let Some(session) = Session::example("assertion", "c/account.c") else { return };
    for (command, words) in [
        ("heisen step x", "name a step, such as: heisen step 12"),
        ("heisen step 0", "name a step"),
        ("heisen dance", "heisen has no command 'dance'"),
        ("heisen finish 3", "takes no argument"),
        ("run", "Heisen starts the program"),
    ] {
        let ran = session.run(&[command], &[]);
        assert!(ran.err.contains(words), "{command}: {}\n{}", ran.out, ran.err);
    }
    let out = session.gdb(&["heisen", "kill", "heisen threads", "heisen finish"]);
    assert!(out.out.contains("heisen step N "), "{}", out.out);
    assert!(out.err.contains("no execution runs"), "{}", out.err);
    assert!(out.out.matches("the failing event").count() >= 2, "{}", out.out);
}

/// Checks that the emulation of a processor with AMX works: gdb cannot call a function of the program.
#[test]
fn no_function_can_be_called() {
    let Some(session) = Session::example("assertion", "c/account.c") else { return };
    let commands = ["print 40 + 2", "print deposit(1)", "set may-call-functions on", "print deposit(1)"];
    let ran = session.run(&commands, &[]);
    assert!(ran.out.contains("= 42"), "{}", ran.out);
    assert!(ran.err.contains("may-call-functions is off"), "{}", ran.err);
    assert!(ran.err.contains("Bad address"), "{}", ran.err);
}

/// If gdb cannot do something, there is one message and an exit status, also for a later command.
#[test]
fn what_gdb_cannot_do_is_reported() {
    let Some(session) = Session::example("assertion", "c/account.c") else { return };
    let ran = session.run(&["print 40 + 2"], &[("ATTACHES", "0")]);
    let ran =
        ran.fails(3, &["gdb cannot attach to the program: ", "Operation not permitted", "without --gdb"]);
    assert!(!ran.err.contains("Traceback") && !ran.out.contains("42"), "{}\n{}", ran.out, ran.err);
    assert_eq!(ran.err.matches("cannot attach").count(), 1, "{}", ran.err);
    let ran = session.run(&["heisen step 3", "print 40 + 2"], &[("ATTACHES", "1")]);
    assert!(ran.out.contains("the failing event") && ran.out.contains("42"), "{}", ran.out);
    let ran = ran.fails(3, &["gdb cannot attach to the program: "]);
    assert!(!ran.err.contains("Traceback"), "{}", ran.err);
}

#[test]
fn without_gdb_there_is_one_message() {
    let sandbox = Sandbox::new();
    let text = std::fs::read_to_string(root().join("examples/c/account.c")).expect("the example");
    let schedule = find(&sandbox, "assertion", "account.c", &text);
    let replay = ["replay", "--gdb", &schedule];
    let ran = sandbox.run(sandbox.plain_command(&replay).env("PATH", sandbox.path("")));
    ran.fails(2, &["gdb cannot be started", "install it"]);
    // A gdb without Python.
    let fake = sandbox.write("gdb", "#!/bin/sh\nexit 1\n");
    executable(&fake);
    let ran = sandbox.run(sandbox.plain_command(&replay).env("PATH", sandbox.path("")));
    ran.fails(2, &["no Python"]);
    sandbox.heisen(&["replay", &schedule, "--", "-batch"]).fails(2, &["--gdb"]);
}

/// In patched code, the frames are those of the program: at a crash in a moved instruction, and at a
/// scheduling point before one.
#[test]
fn patched_code_is_where_the_program_has_it() {
    if let Some(why) = missing() {
        eprintln!("skipped, as gdb cannot be used here: {why}");
        return;
    }
    let text = "#include <pthread.h>
static int *p, z;
static __attribute__((noinline)) int take(int *q, int n) {
    __atomic_fetch_add(q, n, __ATOMIC_SEQ_CST);
    return n + 1;
}
static void *clear(void *a) {
    __atomic_exchange_n(&p, (int *)0, __ATOMIC_SEQ_CST);
    return a;
}
static __attribute__((noinline)) int outer(void) {
    int *q = __sync_val_compare_and_swap(&p, 0, 0);
    int r = take(q, 3);
    return r - 4;
}
int main(void) {
    pthread_t t;
    __atomic_exchange_n(&p, &z, __ATOMIC_SEQ_CST);
    pthread_create(&t, 0, clear, 0);
    int r = outer();
    pthread_join(t, 0);
    return r;
}
";
    let sandbox = Sandbox::new();
    let path = sandbox.compile("crash.c", text, &["-O1"]);
    let finding = sandbox.finds("crash", &["--patch", "default", "--", path.to_str().expect("a path")]);
    let schedule = finding["schedule"].as_str().expect("a schedule").to_owned();
    let ran = Session { sandbox, schedule }.gdb(&["bt", "heisen step 3", "bt"]).expect(0);
    let (crash, point) = ran.out.split_once("step 3:").unwrap_or_else(|| panic!("{}", ran.out));
    for (part, inner, line) in [(crash, "in take (", "crash.c:4"), (point, "in outer (", "crash.c:12")] {
        let frame = part.lines().find(|text| text.contains(inner));
        assert!(frame.is_some_and(|text| text.contains(line)), "{inner} {line}:\n{}", ran.out);
        assert!(part.contains("in main ("), "{}", ran.out);
    }
}
