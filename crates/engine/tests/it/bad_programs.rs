//! Tests of programs that misbehave: they hang, die early, start other processes, exhaust resources or always
//! fail. Other tests interrupt the check. In every case `heisen` ends with an answer and leaves no process
//! running.

use heisen_testkit::{Sandbox, soon, zombies_of};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A sandbox with a compiled program of these declarations and this body of `main`.
fn program_with(declarations: &str, body: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let text = format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <errno.h>\n#include <pthread.h>\n#include <signal.h>\n\
         #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/resource.h>\n\
         #include <sys/wait.h>\n#include <unistd.h>\n{declarations}\nint main(void) {{\n{body}\nreturn 0;\n}}\n"
    );
    sandbox.compile("prog.c", &text, &["-O0"]);
    sandbox
}

fn program(body: &str) -> Sandbox {
    program_with("", body)
}

/// Checks that a caveat of the verdict contains these words.
#[track_caller]
fn assert_not_controlled(json: &Value, words: &str) {
    let all = json["not_controlled"].as_array().expect("a list");
    assert!(all.iter().any(|line| line.as_str().is_some_and(|l| l.contains(words))), "{words}: {json:#}");
}

const CHECK: &[&str] = &["--", "./prog"];
/// A check with a short hang limit, for programs that exceed it.
const HASTY: &[&str] = &["check", "--hang", "1s", "--", "./prog"];
/// A shorter one, for programs that compute. Heisen looks at each of their instructions meanwhile.
const HASTIER: &[&str] = &["check", "--hang", "200ms", "--", "./prog"];

// Programs that hang.

/// The loop counts its rounds, so Heisen does not take it for a loop that waits for memory to change.
const SPIN: &str =
    "static volatile long go, n;\nstatic void *spin(void *arg) { while (!go) { n++; } return arg; }";

#[test]
fn loops_for_ever_in_main() {
    let sandbox = program_with(SPIN, "spin(NULL);");
    let words = [
        "took 0.2 s of processor time without reaching a scheduling point, in spin (prog.c:",
        "--hang",
        "--time",
    ];
    sandbox.heisen(HASTIER).fails(3, &words);
}

#[test]
fn loops_for_ever_in_a_thread() {
    let sandbox =
        program_with(SPIN, "pthread_t t; pthread_create(&t, NULL, spin, NULL); pthread_join(t, NULL);");
    let words = [
        "took 0.2 s of processor time without reaching a scheduling point, in spin (prog.c:",
        "--hang",
        "--time",
    ];
    sandbox.heisen(HASTIER).fails(3, &words);
}

/// A long computation is not a hang. With a time limit the check continues, and the verdict names the place. The
/// computation takes ten times as long as `--hang` even on a processor that does a round in a cycle.
#[test]
fn computes_for_long() {
    let sandbox = program("for (volatile long i = 0; i < 2000000000; i++) ;");
    let json = sandbox.clean(&["--bound", "0", "--hang", "40ms", "--time", "100s", "--", "./prog"]);
    let words = "computed for more than 0.04 s without a scheduling point, in main (prog.c:";
    assert_not_controlled(&json, words);
}

#[test]
fn blocks_in_a_call_that_is_not_controlled() {
    // stdio makes system calls that Heisen cannot intercept.
    let sandbox = program("int p[2]; return pipe(p) || fgetc(fdopen(p[0], \"r\")) != 1;");
    sandbox.heisen(HASTY).fails(3, &["blocks in", "prog.c:", "main", "--hang"]);
}

#[test]
fn a_replay_that_hangs() {
    let sandbox = program_with(SPIN, "spin(NULL);");
    let program = sandbox.path("prog");
    sandbox.write(
        "s",
        format!("heisen schedule 1\nprogram {program:?}\nbinary 0\nsteps-limit 100\nexpect-exit 0\nend 0\n"),
    );
    let ran = sandbox.heisen(&["replay", "--hang", "1s", "s"]).expect(3);
    assert_eq!(ran.messages().len(), 2, "{}", ran.err);
    assert!(ran.messages()[0].contains("warning"), "{}", ran.err);
    assert!(ran.messages()[1].contains("in spin at prog.c:"), "{}", ran.err);
    assert!(ran.messages()[1].contains("raise --hang"), "{}", ran.err);
}

// Programs that do not reach `main`.

fn constructor(body: &str) -> Sandbox {
    program_with(&format!("__attribute__((constructor)) static void early(void) {{ {body} }}"), "")
}

#[test]
fn crashes_before_main() {
    let sandbox = constructor("puts(\"here\"); fflush(stdout); *(volatile int *)0 = 1;");
    let words = ["prog ended before main", "SIGSEGV", "constructor", "without Heisen", "it said:\nhere"];
    sandbox.heisen(HASTY).fails(3, &words);
}

#[test]
fn exits_before_main() {
    let words = ["prog ended before main", "exit status 0", "constructor", "without Heisen"];
    constructor("exit(0);").heisen(HASTY).fails(3, &words);
    // The processes that it started end with it.
    constructor("if (fork() == 0) sleep(3600); exit(0);").heisen(HASTY).fails(3, &words);
}

#[test]
fn loops_before_main() {
    let sandbox =
        constructor("FILE *log = fopen(\"log\", \"a\"); fputs(\"x\", log); fclose(log); for (;;) {}");
    let log = sandbox.write("log", "");
    sandbox.heisen(HASTY).fails(3, &["prog does not reach main within 1 s", "constructor", "raise --hang"]);
    // The program ran only once, so the check did not wait longer than the hang limit.
    assert_eq!(std::fs::read_to_string(log).expect("the log"), "x");
}

#[test]
fn a_library_is_missing() {
    let sandbox = Sandbox::new();
    let library = sandbox.compile("libgone.c", "int gone(void) { return 0; }\n", &["-shared", "-fPIC"]);
    let text = "int gone(void);\nint main(void) { return gone(); }\n";
    sandbox.compile("prog.c", text, &[library.to_str().expect("a plain path")]);
    std::fs::remove_file(&library).expect("the library is removed");
    sandbox
        .heisen(HASTY)
        .fails(3, &["prog could not be loaded", "it said:", "libgone", "cannot open shared object"]);
}

// Programs that start others.

#[test]
fn forks() {
    let sandbox = program(
        "pid_t child = fork();
         if (child == 0) _exit(7);
         int status;
         return waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7;",
    );
    std::fs::rename(sandbox.path("prog"), sandbox.path("heisen-forker")).expect("renamed");
    assert_not_controlled(&sandbox.clean(&["--", "./heisen-forker"]), "fork");
    assert!(zombies_of("heisen-forker").is_empty());
}

#[test]
fn forks_and_leaves_a_grandchild() {
    // One grandchild is in another session, and nobody waits for the grandchildren.
    let sandbox = program(
        "if (fork() == 0) {
           if (fork() == 0) { setsid(); sleep(3600); }
           if (fork() == 0) sleep(3600);
           _exit(0);
         }
         wait(NULL);",
    );
    assert_not_controlled(&sandbox.clean(CHECK), "fork");
}

#[test]
fn waits_for_a_child_that_never_ends() {
    let sandbox = program("if (fork() == 0) { setsid(); sleep(3600); } wait(NULL);");
    sandbox.heisen(HASTIER).fails(3, &["for a child process to end", "prog.c:", "--hang"]);
}

#[test]
fn a_forked_child_uses_threads() {
    let declarations = "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
         static int n;
         static void *count(void *arg) { pthread_mutex_lock(&lock); n++; pthread_mutex_unlock(&lock); return arg; }
         static void *forks(void *arg) {
           pid_t child = fork();
           if (child == 0) {
             pthread_t t[4];
             for (int i = 0; i < 4; i++) if (pthread_create(&t[i], NULL, count, NULL)) _exit(1);
             for (int i = 0; i < 4; i++) if (pthread_join(t[i], NULL)) _exit(2);
             _exit(n == 4 ? 7 : 3);
           }
           int status;
           assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
           return arg;
         }";
    let from_thread = "pthread_t t; pthread_create(&t, NULL, forks, NULL); pthread_join(t, NULL);";
    for body in ["forks(NULL);", from_thread] {
        assert_not_controlled(&program_with(declarations, body).clean(CHECK), "fork");
    }
}

#[test]
fn becomes_another_program() {
    let clean = program("execl(\"/bin/true\", \"true\", (char *)NULL); return 1;");
    assert_not_controlled(&clean.clean(CHECK), "exec");
    let failing = program("execl(\"/bin/false\", \"false\", (char *)NULL); return 0;");
    failing.finds("exit-status", CHECK);
}

#[test]
fn runs_commands() {
    let sandbox = program("return system(\"true\");");
    assert_not_controlled(&sandbox.clean(CHECK), "another process");
    let sandbox = program(
        "char said[32] = \"\";
         FILE *pipe = popen(\"echo hello\", \"r\");
         if (!pipe || !fgets(said, sizeof said, pipe)) return 1;
         return pclose(pipe) || strcmp(said, \"hello\\n\");",
    );
    assert_not_controlled(&sandbox.clean(CHECK), "another process");
}

#[test]
fn ends_its_process_group() {
    // The process group is that of the execution, not that of the zygote.
    let finding = program("kill(0, SIGKILL);").finds("crash", CHECK);
    assert!(finding["message"].as_str().is_some_and(|m| m.contains("killed by SIGKILL")), "{finding:#}");
}

// Programs that take away resources that Heisen might need.

#[test]
fn closes_all_descriptors() {
    let body = "for (int fd = 0; fd < 1024; fd++) close(fd);
                pthread_t t;
                if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL)) return 2;";
    let nothing = "static void *nothing(void *arg) { return arg; }";
    program_with(nothing, body).clean(CHECK);
    let finding = program_with(nothing, &format!("{body}\nreturn 3;")).finds("exit-status", CHECK);
    assert!(finding["message"].as_str().is_some_and(|m| m.contains("exit status 3")), "{finding:#}");
}

#[test]
fn prints_a_gigabyte() {
    let sandbox = program_with(
        "static char block[1 << 20];",
        "memset(block, 'x', sizeof block);
         for (int i = 0; i < 1024; i++) if (write(1, block, sizeof block) < 0) return 2;
         fputs(\"the end\\n\", stderr);
         assert(block[0] == 'y');",
    );
    // The limit is less memory than the program prints.
    let ran =
        sandbox.run(&mut sandbox.shell("ulimit -v 900000; exec \"$0\" check --jobs 1 -- ./prog")).expect(1);
    assert!(ran.out.contains("assertion `block[0] == 'y'` failed"), "{}", ran.out.len());
    assert!(ran.out.contains("bytes left out") && ran.out.contains("the end\n"), "{}", ran.out.len());
    assert!(ran.out.len() < 3000, "one screen, not {} bytes", ran.out.len());
}

#[test]
fn runs_out_of_memory() {
    let allocate = "for (;;) { void *p = malloc(1 << 20); if (!p) return 1; memset(p, 1, 1 << 20); }";
    let limit = "struct rlimit limit = {400 << 20, 400 << 20}; setrlimit(RLIMIT_AS, &limit);";
    program(&format!("{limit} {allocate}")).finds("exit-status", CHECK);
    // The program dereferences the null pointer from `malloc`.
    let crash = "for (;;) memset(malloc(1 << 20), 1, 1 << 20);";
    let finding = program(&format!("{limit} {crash}")).finds("crash", CHECK);
    assert!(finding["message"].as_str().is_some_and(|m| m.contains("SIGSEGV")), "{finding:#}");
}

const NOTHING: &str = "static void *nothing(void *arg) { return arg; }";

#[test]
fn more_threads_than_there_is_room_for() {
    let sandbox = program_with(
        NOTHING,
        "int refused = 0;
         for (int i = 0; i < 20000; i++) {
           pthread_t t;
           int error = pthread_create(&t, NULL, nothing, NULL);
           if (error == EAGAIN) refused++;
           else if (error || pthread_join(t, NULL)) return 2;
         }
         return refused == 0;",
    );
    assert_not_controlled(&sandbox.clean(CHECK), "pthread_create returned EAGAIN");
}

#[test]
fn more_stacks_than_there_is_memory_for() {
    let sandbox = program_with(
        NOTHING,
        "static pthread_t all[20000];
         int made = 0, error = 0;
         while (made < 20000 && (error = pthread_create(&all[made], NULL, nothing, NULL)) == 0) made++;
         for (int i = 0; i < made; i++) pthread_join(all[i], NULL);
         return error != 0 && error != EAGAIN;",
    );
    assert_not_controlled(
        &sandbox.clean(&["--executions", "1", "--", "./prog"]),
        "pthread_create returned EAGAIN",
    );
}

// Programs that fail in every schedule.

#[test]
fn overflows_the_stack() {
    let deep = "static int deep(volatile int n) { volatile char room[1000]; room[0] = n; return deep(n + 1) + room[0]; }
                static void *start(void *arg) { deep(0); return arg; }";
    let thread = "pthread_t t; pthread_create(&t, NULL, start, NULL); pthread_join(t, NULL);";
    for (body, who) in [(thread, "T1"), ("deep(0);", "T0")] {
        let finding = program_with(deep, body).finds("crash", CHECK);
        assert!(finding["message"].as_str().is_some_and(|m| m.contains("SIGSEGV")), "{finding:#}");
        assert_eq!(finding["thread"], who, "{finding:#}");
        assert!(finding["place"].as_str().is_some_and(|p| p.contains("prog.c:")), "{finding:#}");
    }
}

#[test]
fn kills_itself() {
    let finding = program("kill(getpid(), SIGKILL); pause();").finds("crash", CHECK);
    assert!(finding["message"].as_str().is_some_and(|m| m.contains("SIGKILL")), "{finding:#}");
}

#[test]
fn fails_always() {
    let sandbox = program("return 3;");
    let finding = sandbox.finds("exit-status", CHECK);
    assert_eq!(finding["preemptions"], 0);
    assert_eq!(finding["executions_to_find"], 1);
    let ran = sandbox.heisen(&["check", "--", "./prog"]).expect(1);
    assert!(ran.out.contains("exit status 3, not 0"), "{}", ran.out);
    assert!(ran.out.contains("default schedule"), "{}", ran.out);
    let json = sandbox.clean(&["--expect-exit", "3", "--", "./prog"]);
    assert_eq!(json["verdict"], "clean");
}

#[test]
fn fails_but_not_again_at_first() {
    let body = "FILE *log = fopen(\"log\", \"a\");
         fputs(\"x\", log);
         long runs = ftell(log);
         fclose(log);
         return runs == 1 || runs > 100 ? 3 : 0;";
    let check = ["check", "--json", "-", "--strategy", "random", "--jobs", "1", "--", "./prog"];
    // The first failure does not occur again. The later ones do, and must be found.
    let sandbox = program(body);
    sandbox.write("log", "");
    let json = sandbox.heisen(&check).expect(1).json();
    assert_eq!(json["findings"][0]["kind"], "exit-status", "{json:#}");
    assert_not_controlled(&json, "1 execution failed, but not again when replayed");
    // A failure that does not occur again is not a finding.
    let sandbox = program(&body.replace("|| runs > 100", ""));
    sandbox.write("log", "");
    let json = sandbox.clean(&["--strategy", "random", "--executions", "300", "--jobs", "1", "--", "./prog"]);
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(0));
    // The program still does not count as clean.
    assert_eq!(json["verdict"], "incomplete");
    assert_not_controlled(&json, "1 execution failed, but not again when replayed");
    sandbox.write("log", "");
    let ran = sandbox.heisen(&[
        "check",
        "--strategy",
        "random",
        "--executions",
        "300",
        "--jobs",
        "1",
        "--",
        "./prog",
    ]);
    let words =
        "nothing found: no bug that happens again in 300 executions of random (seed 0), though 1 failed";
    assert!(ran.expect(0).out.contains(words));
}

// The user interrupts a check.

const WORKERS: &str = "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *work(void *arg) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); return arg; }";
const WORK: &str = "pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);";

const LONG: &[&str] = &["check", "--strategy", "random", "--executions", "100000000", "--", "./prog"];

/// Starts a check and waits until the program runs.
fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.plain_command(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("heisen starts");
    assert!(soon(|| !sandbox.processes().is_empty()), "the program does not run");
    std::thread::sleep(Duration::from_millis(300));
    child
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -s {signal} {}", child.id())]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the signal is sent");
}

/// Sends a signal to the process. Returns its exit code and standard error.
fn signalled(signal: &str, child: Child) -> (Option<i32>, String) {
    send(signal, &child);
    let output = child.wait_with_output().expect("heisen ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_interrupted_search_is_saved_and_goes_on() {
    for signal in ["INT", "TERM"] {
        let sandbox = program_with(WORKERS, WORK);
        let began = Instant::now();
        let (code, words) = signalled(signal, start(&sandbox, LONG));
        assert_eq!(code, Some(130), "{words}");
        assert!(began.elapsed() < Duration::from_secs(20));
        sandbox.assert_tidy();
        let resume = words.trim_end().rsplit_once("continue with: ").map(|(_, command)| command);
        let resume = resume.unwrap_or_else(|| panic!("{words}"));
        assert!(resume.ends_with(" check --resume .heisen/search.json"), "{words}");
        // The command in the message works, and continues the search where it stopped.
        let ran = sandbox.run(&mut sandbox.shell(&format!("{resume} --executions 100 --json -"))).expect(0);
        let executions = ran.json()["executions"].as_u64().expect("a number");
        assert!(executions > 100, "{executions}");
    }
}

#[test]
fn an_interrupted_hang_ends_at_once() {
    let sandbox = program_with(SPIN, "spin(NULL);");
    let hang = &["check", "--hang", "1h", "--", "./prog"];
    let (code, words) = signalled("INT", start(&sandbox, hang));
    assert_eq!(code, Some(130), "{words}");
    sandbox.assert_tidy();
    let early = constructor("for (;;) {}");
    let (code, words) = signalled("INT", start(&early, hang));
    assert_eq!(code, Some(130), "{words}");
    early.assert_tidy();
}

#[test]
fn an_interrupted_replay_ends_at_once() {
    let sandbox = program_with(SPIN, "spin(NULL);");
    let program = sandbox.path("prog");
    sandbox.write(
        "s",
        format!("heisen schedule 1\nprogram {program:?}\nbinary 0\nsteps-limit 100\nexpect-exit 0\nend 0\n"),
    );
    let (code, words) = signalled("INT", start(&sandbox, &["replay", "--hang", "1h", "s"]));
    assert_eq!(code, Some(130), "{words}");
    assert!(words.ends_with("heisen: interrupted\n"), "{words}");
    sandbox.assert_tidy();
}

#[test]
fn an_interrupted_compilation_has_not_failed() {
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "");
    let mut command = sandbox.command(&["check", "a.c"]);
    // A terminal interrupts both processes. The file has the name of a known compiler, so Heisen does not
    // first run it to identify it.
    let compiler = sandbox.write("gcc", "#!/bin/sh\nkill -s INT $PPID\nkill -s INT $$\n");
    let compiler = format!("sh {}", compiler.display());
    sandbox.run(command.env("CC", compiler)).fails(130, &["heisen: interrupted"]);
}

#[test]
fn a_killed_heisen_takes_its_programs_along() {
    for (declarations, body) in [(WORKERS, WORK), (SPIN, "spin(NULL);")] {
        let sandbox = program_with(declarations, body);
        let (code, _) = signalled("KILL", start(&sandbox, LONG));
        assert_eq!(code, None);
        sandbox.assert_tidy();
    }
}

#[test]
fn nobody_reads_what_is_said() {
    let sandbox = program("return 3;");
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let mut found = sandbox.command(&["check", "--", "./prog"]);
    sandbox.run(found.stdout(closed()).stderr(closed())).expect(1);
    sandbox.run(sandbox.command(&["replay", "none"]).stderr(closed())).expect(2);
    sandbox.run(sandbox.command(&["--help"]).stdout(closed())).expect(0);
    sandbox.run(sandbox.command(&["check", "--bogus"]).stderr(closed())).expect(2);
    // The result files are still written.
    sandbox.run(sandbox.command(&["check", "--json", "result", "--", "./prog"]).stdout(closed())).expect(1);
    assert!(sandbox.path("result").is_file());
}
