//! Tests of many executions in one process: the changes of one execution do not reach the next, and the
//! results are the same as with a process for each.

use heisen_testkit::stated::{Stated, built, each, examples, stated};
use heisen_testkit::traces::{Traces, Ways, tell_all, traces};
use heisen_testkit::{check_json, compile, heisen, run, scratch, timeless, usual_or_nightly};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A result without the fields that differ between the two ways.
fn comparable(json: Value) -> Value {
    let mut json = timeless(json);
    json.as_object_mut().expect("an object").remove("program");
    json
}

/// Checks a C program in which `body` asserts an unchanged environment while two threads take some steps. No
/// execution may find a bug, and a process for each execution must give the same result. Returns the
/// executions, how many of them were undone, and why the others were not.
fn check(body: &str) -> (u64, u64, Value) {
    let directory = scratch();
    let text = format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <errno.h>\n#include <fcntl.h>\n#include <pthread.h>\n\
         #include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n\
         #include <sys/resource.h>\n#include <sys/socket.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static int zero, one = 1;\nstatic char large[1 << 20];\n\
         static void *steps(void *unused) {{\n\
             for (int i = 0; i < 2; i++) {{ pthread_mutex_lock(&m); zero++; pthread_mutex_unlock(&m); }}\n\
             return unused;\n\
         }}\n\
         static void on_signal(int number) {{ (void)number; }}\n\
         int main(void) {{\n\
             assert(zero == 0 && one == 1);\n\
             pthread_t threads[2];\n\
             for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, steps, 0);\n\
             {{ {body} }}\n\
             for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);\n\
             one = 2; on_signal(large[0]);\n\
             return 0;\n\
         }}\n"
    );
    std::fs::write(directory.path().join("p.c"), text).expect("the program is written");
    let args = ["--no-instrument", "--bound", "1", "p.c"];
    let undone = check_json(directory.path(), &args);
    assert_eq!(undone["verdict"], "clean", "{body}: {undone:#}");
    let forked = check_json(directory.path(), &[&["--fork"], &args[..]].concat());
    assert_eq!((&forked["undone"], &forked["forked"]), (&0.into(), &Value::Null), "{body}: {forked:#}");
    let numbers = (undone["executions"].as_u64(), undone["undone"].as_u64());
    let why = undone["forked"].clone();
    assert_eq!(comparable(undone), comparable(forked), "{body}");
    (numbers.0.expect("a number"), numbers.1.expect("a number"), why)
}

/// Checks that all executions are undone.
#[track_caller]
fn is_undone(body: &str) {
    let (executions, undone, why) = check(body);
    assert!(executions >= 20, "{body}: only {executions}");
    assert_eq!((undone, &why), (executions, &Value::Null), "{body}");
}

/// Checks that the effects of `body` cannot be undone, for this reason.
#[track_caller]
fn is_not_undone(body: &str, reason: &str) {
    let (_, undone, why) = check(body);
    assert_eq!((undone, why.as_str()), (0, Some(reason)), "{body}");
}

#[test]
fn memory() {
    is_undone("");
    // Memory of the program, of its stack, of the heap, and beyond their former ends.
    is_undone("for (int i = 0; i < 1 << 20; i += 4096) { assert(large[i] == 0); large[i] = 1; }");
    is_undone("static int *kept; assert(!kept); kept = malloc(100); assert(kept); *kept = 7;");
    is_undone(
        "char *all = calloc(1, 1 << 20); for (int i = 0; i < 1 << 20; i++) assert(!all[i]); memset(all, 1, 1 << 20);",
    );
    is_undone(
        "for (int i = 0; i < 300; i++) { char *p = malloc(5000); memset(p, 1, 5000); if (i % 3) free(p); }",
    );
    is_undone("char deep[1 << 18]; memset(deep, 3, sizeof deep); assert(deep[zero] == 3);");
}

#[test]
fn mappings() {
    is_undone(
        "char *p = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); assert(!p[0]); \
         p[0] = 1; mprotect(p, 4096, PROT_READ); munmap(p + 4096, 4096);",
    );
    is_undone("char *end = sbrk(0); sbrk(1 << 16); assert((char *)sbrk(0) == end + (1 << 16));");
}

#[test]
fn descriptors() {
    is_undone(
        "int fd = open(\"/proc/self/status\", O_RDONLY); char c; assert(fd == 3 && read(fd, &c, 1) == 1 && c == 'N');",
    );
    is_undone(
        "int fds[2]; assert(!pipe(fds) && fds[0] == 3); assert(write(fds[1], \"x\", 1) == 1); char c; assert(read(fds[0], &c, 1) == 1);",
    );
    is_undone("FILE *f = fopen(\"/proc/self/cmdline\", \"r\"); assert(f && fgetc(f) != EOF); fclose(f);");
    is_undone("printf(\"to be thrown away\\n\"); fflush(stdout);");
}

#[test]
fn signals() {
    is_undone(
        "struct sigaction a, old; memset(&a, 0, sizeof a); a.sa_handler = on_signal; \
         assert(!sigaction(SIGUSR1, &a, &old) && old.sa_handler == SIG_DFL);",
    );
    // The runner uses these signals itself to learn what happens.
    is_undone(
        "struct sigaction a, old; memset(&a, 0, sizeof a); a.sa_handler = on_signal; \
         assert(!sigaction(SIGSYS, &a, &old) && old.sa_handler == SIG_DFL); \
         assert(!sigaction(SIGSEGV, &a, &old) && old.sa_handler == SIG_DFL);",
    );
    is_undone(
        "sigset_t set, old; sigfillset(&set); assert(!pthread_sigmask(SIG_SETMASK, &set, &old)); \
         assert(!sigismember(&old, SIGUSR2)); assert(!pthread_sigmask(SIG_SETMASK, 0, &old) && sigismember(&old, SIGUSR2));",
    );
    is_undone(
        "stack_t s, old; memset(&s, 0, sizeof s); s.ss_sp = malloc(SIGSTKSZ); s.ss_size = SIGSTKSZ; \
         assert(!sigaltstack(&s, &old) && old.ss_flags == SS_DISABLE);",
    );
}

#[test]
fn what_cannot_be_undone() {
    is_not_undone(
        "int fd = open(\"left\", O_CREAT | O_WRONLY, 0600); assert(fd == 3); close(fd); unlink(\"left\");",
        "the program calls openat, which cannot be undone",
    );
    is_not_undone(
        "int fds[2]; assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds) && fds[0] == 3);",
        "the program calls socketpair, which cannot be undone",
    );
    is_not_undone(
        "close(0); assert(open(\"/dev/null\", O_RDONLY) == 0);",
        "the program calls close, which cannot be undone",
    );
}

#[test]
fn why_it_cannot_is_said() {
    is_not_undone(
        "if (!fork()) _exit(0); wait(0);",
        "the program starts another process, or leaves its process group",
    );
    let directory = scratch();
    for (body, words) in [
        ("int fd = open(\"left\", 66, 0600); close(fd); unlink(\"left\");", Some("the program calls openat")),
        ("", None),
    ] {
        let text =
            format!("#include <fcntl.h>\n#include <unistd.h>\nint main(void) {{ {body} return 0; }}\n");
        std::fs::write(directory.path().join("p.c"), text).expect("the program is written");
        let ran = run(heisen(directory.path()).args(["check", "--no-instrument", "p.c"])).expect(0);
        let line =
            words.map(|why| format!("\neach execution ran in a process of its own, which is slower: {why}"));
        match line {
            Some(line) => assert!(ran.out.contains(&line), "{}", ran.out),
            None => assert!(!ran.out.contains("of its own"), "{}", ran.out),
        }
    }
}

/// An execution that writes to the runtime's own memory may damage the state from which others begin.
#[test]
fn what_damages_the_runtime_is_run_by_forks() {
    let directory = scratch();
    let text = "#include <pthread.h>\n#include <stdio.h>\n#include <string.h>\n\
                static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
                static void *f(void *p) { for (int i = 0; i < 3; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); } return p; }\n\
                int main(void) {\n\
                    pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, f, 0);\n\
                    FILE *maps = fopen(\"/proc/self/maps\", \"r\"); char line[500], how[8]; unsigned long a, b, from = 0, to = 0;\n\
                    while (!from && fgets(line, sizeof line, maps))\n\
                        if (strstr(line, \"heisen\") && sscanf(line, \"%lx-%lx %4s\", &a, &b, how) == 3 && how[1] == 'w') from = a, to = b;\n\
                    fclose(maps);\n\
                    for (unsigned long at = from + 8; at < to; at += 4096) *(volatile unsigned char *)at ^= 1;\n\
                    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
                    return 0;\n\
                }\n";
    std::fs::write(directory.path().join("p.c"), text).expect("the program is written");
    let args = ["--no-instrument", "--strategy", "random", "--executions", "500", "p.c"];
    let [undone, forked] = [
        check_json(directory.path(), &args),
        check_json(directory.path(), &[&["--fork"], &args[..]].concat()),
    ];
    assert_eq!(forked["verdict"], "clean", "{forked:#}");
    // An execution that crashed for this reason does not crash again, so it is not a finding.
    for name in ["executions", "findings"] {
        assert_eq!(undone[name], forked[name], "{undone:#}");
    }
}

#[test]
fn a_crash_is_the_end_of_its_process_only() {
    let directory = scratch();
    let text = "#include <pthread.h>\n#include <stdlib.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
                static int first, *none;\n\
                static void *f(void *mine) { pthread_mutex_lock(&m); if (!first) first = *(int *)mine; \
                pthread_mutex_unlock(&m); return 0; }\n\
                int main(void) { pthread_t t[2]; int id[2] = {1, 2}; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, f, &id[i]);\n\
                for (int i = 0; i < 2; i++) pthread_join(t[i], 0); if (first == 2) *none = 1; return 0; }\n";
    std::fs::write(directory.path().join("p.c"), text).expect("the program is written");
    let all = ["--no-instrument", "--keep-going", "--strategy", "dfs", "p.c"];
    let undone = check_json(directory.path(), &all);
    assert_eq!(undone["findings"][0]["kind"], "crash", "{undone:#}");
    assert_eq!(undone["forked"], "an execution crashed", "{undone:#}");
    let (executions, count) = (undone["executions"].as_u64().unwrap(), undone["undone"].as_u64().unwrap());
    assert!(0 < count && count < executions, "{undone:#}");
    let forked = check_json(directory.path(), &[&["--fork"], &all[..]].concat());
    assert_eq!(comparable(undone), comparable(forked));
}

/// All traces of a few searches of an example, with or without a process for each execution, and the ways in
/// which the executions were run.
fn searched(path: &Path, program: &Path, how: &[&str]) -> (Vec<Traces>, Vec<Ways>) {
    const SEARCHES: [&[&str]; 3] = [&["--bound", "1"], &["--strategy", "random"], &["--strategy", "dpor"]];
    let (stated, mut options) = stated(path);
    if let Some(at) = options.iter().position(|option| option == "--bound") {
        options.drain(at..at + 2);
    }
    // Enough executions that some begin at a choice. Examples with slow failures, which need a close-up each,
    // run fewer.
    let slow =
        matches!(stated, Stated::Bug { kind, .. } if ["panic", "good-samaritan"].contains(&kind.as_str()));
    let executions = if slow { "25" } else { "100" };
    let limits = ["check", "--quiet", "--keep-going", "--jobs", "1", "--executions", executions];
    // How many schedules they try depends on the time that these take.
    let without = ["--no-minimise", "--no-explain"];
    let directory = program.parent().expect("a directory");
    // Each of the two ways finds the access points anew, but its later searches reuse them.
    let output = directory.join("output");
    drop(std::fs::remove_dir_all(&output));
    let search = |search: &&[&str]| {
        let mut command = heisen(directory);
        command.args(limits).args(without).args(tell_all(directory)).args(*search).args(how).args(&options);
        traces(directory, command.arg("-o").arg(&output).arg("--").arg(program))
    };
    SEARCHES.iter().map(search).unzip()
}

#[test]
fn examples_are_as_with_a_process_for_each() {
    let all = ["rust", "published", "cpp", "c"].into_iter().flat_map(examples);
    let all: Vec<PathBuf> = all.step_by(usual_or_nightly(17, 1)).collect();
    let sums = std::sync::Mutex::new([0; 3]);
    let differences = std::sync::Mutex::new(Vec::new());
    each(&all, |path| {
        let directory = scratch();
        let file = path.display();
        let built = PathBuf::from(built(directory.path(), path));
        let ((undone, ways), (forked, _)) =
            (searched(path, &built, &[]), searched(path, &built, &["--fork"]));
        for (undone, forked) in undone.iter().zip(&forked).filter(|(undone, forked)| undone != forked) {
            let mut found = differences.lock().expect("the differences");
            found.push(format!("{file} {}: {}", undone.result["strategy"], undone.difference(forked)));
        }
        let mut sums = sums.lock().expect("the sums");
        for ways in ways {
            let numbers = [ways.executions, ways.undone, ways.ahead];
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
    });
    let differences = differences.into_inner().expect("the differences");
    assert!(differences.is_empty(), "{differences:#?}");
    // Otherwise nothing was compared.
    let [executions, undone, ahead] = sums.into_inner().expect("the sums");
    assert!(10 * undone > 8 * executions && 10 * ahead > executions, "{executions} {undone} {ahead}");
}

/// The runner learns from some executions which memory changes. Here other executions change more: each order
/// of two threads writes its own element, in a page that all of them write. An execution that saw an element
/// of another would fail, crash, hang or compute for ever.
#[test]
fn places_that_few_executions_change() {
    let computes = "for (volatile unsigned long random = 1;; random = random * 6364136223846793005 + 1);";
    let all = ["return 1;", computes, "*(volatile int *)0 = 1;", "for (;;) pause();"];
    for noticed in &all[..usual_or_nightly(2, 4)] {
        let directory = scratch();
        let text = format!(
            "#include <pthread.h>\n#include <unistd.h>\n\
             static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
             static struct {{ long count, order, places[256][8]; }} __attribute__((aligned(4096))) all;\n\
             static void *steps(void *bit) {{\n\
                 for (int i = 0; i < 4; i++) {{\n\
                     pthread_mutex_lock(&m); all.count++; all.order = 2 * all.order + !!bit; pthread_mutex_unlock(&m);\n\
                 }}\n\
                 return 0;\n\
             }}\n\
             int main(void) {{\n\
                 pthread_t threads[2];\n\
                 for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, steps, (void *)i);\n\
                 for (int i = 0; i < 256; i++) if (all.places[i][0]) {noticed}\n\
                 for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);\n\
                 all.places[all.order][0] = 1;\n\
                 return all.count != 8;\n\
             }}\n"
        );
        std::fs::write(directory.path().join("p.c"), text).expect("the program is written");
        let (executions, least) = usual_or_nightly(("300", 250), ("3000", 2900));
        let random = ["--no-instrument", "--strategy", "random", "--executions", executions];
        let args = [&random[..], &["--hang", "300ms", "p.c"]].concat();
        let undone = check_json(directory.path(), &args);
        assert_eq!(undone["verdict"], "clean", "{noticed}: {undone:#}");
        assert!(undone["undone"].as_u64() > Some(least), "{noticed}: {undone:#}");
        let forked = check_json(directory.path(), &[&["--fork"], &args[..]].concat());
        assert_eq!(comparable(undone), comparable(forked), "{noticed}");
    }
}

/// The same, but the next execution changes the element back. At its end the memory is correct, although it
/// has read stale data. With samplers, which predict the memory to restore, the error would go unnoticed.
#[test]
fn places_that_an_execution_changes_and_the_next_changes_back() {
    let directory = scratch();
    let text = "#include <pthread.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static struct { long count, order, places[64][8]; } __attribute__((aligned(4096))) all;\n\
         static void *steps(void *bit) {\n\
             for (int i = 0; i < 4; i++) {\n\
                 pthread_mutex_lock(&m); all.count++; all.order = 2 * all.order + !!bit; pthread_mutex_unlock(&m);\n\
             }\n\
             return 0;\n\
         }\n\
         int main(void) {\n\
             pthread_t threads[2];\n\
             for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, steps, (void *)i);\n\
             for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);\n\
             int seen = 0;\n\
             for (int i = 0; i < 62; i++) if (all.places[i][0]) { seen = 1; all.places[i][0] = 0; }\n\
             if (all.order < 62) all.places[all.order][0] = 1;\n\
             return seen;\n\
         }\n";
    let program = compile(directory.path(), "p.c", text, &[]);
    let check = |how: &[&str]| {
        let mut command = heisen(directory.path());
        command.args(["check", "--quiet", "--keep-going", "--strategy", "dfs", "--jobs", "1"]);
        command.args(["--executions", "1000"]).args(tell_all(directory.path())).args(how);
        traces(directory.path(), command.arg("--").arg(&program)).0
    };
    let (undone, forked) = (check(&[]), check(&["--fork"]));
    assert!(undone == forked, "{}", undone.difference(&forked));
}

/// Checks a C program in one process, and with a process for each execution. Its `main` does `before`,
/// creates two threads that lock four times each, and does `after`. Returns the result of the first check.
fn check_ahead(before: &str, after: &str, how: &[&str]) -> Value {
    let directory = scratch();
    let text = format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <signal.h>\n\
         #include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;\n\
         static int count, order;\nstatic char *mapped;\nstatic int times;\n\
         static void on_signal(int number) {{ (void)number; times++; }}\n\
         static void *steps(void *bit) {{\n\
             for (int i = 0; i < 4; i++) {{\n\
                 pthread_mutex_lock(&m); count++; order = 2 * order + !!bit; pthread_mutex_unlock(&m);\n\
             }}\n\
             return 0;\n\
         }}\n\
         int main(void) {{\n\
             {{ {before} }}\n\
             pthread_t threads[2];\n\
             for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, steps, (void *)i);\n\
             for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);\n\
             {{ {after} }}\n\
             on_signal(mapped != 0);\n\
             return 0;\n\
         }}\n"
    );
    std::fs::write(directory.path().join("p.c"), text).expect("the program is written");
    let args =
        [how, &["--no-instrument", "--no-minimise", "--jobs", "1", "--executions", "600", "p.c"]].concat();
    let undone = check_json(directory.path(), &args);
    let forked = check_json(directory.path(), &[&["--fork"], &args[..]].concat());
    assert_eq!((&forked["undone"], &forked["ahead"]), (&0.into(), &0.into()), "{before}: {forked:#}");
    assert_eq!(comparable(undone.clone()), comparable(forked), "{before} {how:?}");
    undone
}

const RANDOM: [&str; 2] = ["--strategy", "random"];

#[test]
fn what_comes_before_the_first_choice_is_done_once() {
    let strategies: [&[&str]; 9] = [
        &RANDOM,
        &["--strategy", "surw"],
        &["--strategy", "pct"],
        &["--strategy", "fair-pct"],
        &["--strategy", "pos"],
        &["--strategy", "delay"],
        &["--strategy", "dfs"],
        &["--strategy", "icb", "--bound", "3"],
        &["--strategy", "icb", "--bound", "3", "--reduce"],
    ];
    let locks = "for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }";
    for how in strategies.into_iter().step_by(usual_or_nightly(3, 1)) {
        let result = check_ahead(locks, "assert(count == 8);", how);
        assert_eq!(result["findings"], serde_json::json!([]), "{how:?}: {result:#}");
        let (ahead, executions) = (result["ahead"].as_u64(), result["executions"].as_u64());
        assert!(ahead.expect("a number") + 140 > executions.expect("a number"), "{how:?}: {result:#}");
        assert!(ahead < executions, "{how:?}: {result:#}");
    }
}

/// Policies that see every step also know the steps before the first choice. That includes steps of a thread
/// that locks alone while the main thread waits for it.
#[test]
fn policies_that_see_every_step_begin_at_the_first_choice() {
    let before = "pthread_t alone; pthread_create(&alone, 0, steps, 0); pthread_join(alone, 0); \
                  for (int i = 0; i < 30; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }";
    for strategy in ["surw", "directed", "portfolio"] {
        for (before, after) in [(before, ""), ("", "assert(order != 0x5a);")] {
            let result = check_ahead(before, after, &["--strategy", strategy, "--keep-going"]);
            let (ahead, executions) = (result["ahead"].as_u64(), result["executions"].as_u64());
            // A failed execution is the last one of its process. `directed` also records all touches of many
            // executions.
            let least = if after.is_empty() && strategy != "directed" { 3 } else { 20 };
            assert!(
                ahead.expect("a number") > executions.expect("a number") / least,
                "{strategy}: {result:#}"
            );
        }
    }
}

/// Mappings, files, handlers and masks from before the first choice exist at the start of each execution.
/// Later changes to them are undone.
#[test]
fn what_was_done_before_the_first_choice_stays() {
    let map = "mapped = mmap(0, 1 << 14, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); \
               mprotect(mapped, 4096, PROT_NONE); mapped[4096] = 7; sbrk(1 << 14);";
    let unmap = "assert(mapped[4096] == 7 && !mapped[8192]); mapped[4096] = mapped[8192] = 8; munmap(mapped, 1 << 14);";
    let part = "assert(mapped[4096] == 7); munmap(mapped + 4096, 4096); mapped[8192] = 1;";
    let handle = "signal(SIGUSR1, on_signal);";
    let raise = "raise(SIGUSR1); assert(times == 1); signal(SIGUSR1, SIG_DFL);";
    let closed = "int fd = open(\"/dev/null\", O_RDONLY); close(fd);";
    for (before, after) in [(map, unmap), (map, part), (handle, raise), (closed, "")] {
        let result = check_ahead(before, after, &RANDOM);
        assert_eq!(result["verdict"], "clean", "{before} {after}: {result:#}");
        assert!(result["ahead"].as_u64() > Some(400), "{before} {after}: {result:#}");
    }
    let open = "int fd = open(\"/dev/null\", O_RDONLY); assert(fd == 3);";
    let result = check_ahead(open, "", &RANDOM);
    assert_eq!((&result["verdict"], &result["ahead"]), (&"clean".into(), &0.into()), "{result:#}");
}

/// In an execution that began at its first choice, unmapped memory cannot be accessed.
#[test]
fn memory_that_is_unmapped_cannot_be_used() {
    let map = "mapped = mmap(0, 1 << 14, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);";
    // The order is rare, so the crash does not come before executions begin at the choice.
    let use_it = "munmap(mapped, 1 << 14); if (order == 0x5a) mapped[4096] = 1;";
    let result = check_ahead(map, use_it, &["--strategy", "random", "--seed", "1"]);
    assert_eq!(result["verdict"], "bug", "{result:#}");
    assert!(result["executions"].as_u64() > Some(100), "too early: {result:#}");
    assert_eq!(result["findings"][0]["kind"], "crash", "{result:#}");
    assert!(result["ahead"].as_u64() > Some(0), "{result:#}");
}

/// In a systematic search of a program with thousands of choices, a common prefix of executions runs only
/// once, however long it is. The results are the same.
#[test]
fn what_executions_have_in_common_is_done_once() {
    // The main thread and another one lock at the same time. Afterwards there are two more threads.
    let beside = "pthread_t beside; pthread_create(&beside, 0, steps, 0);\
                  for (int i = 0; i < 3000; i++) { pthread_mutex_lock(&other); pthread_mutex_unlock(&other); }\
                  pthread_join(beside, 0);";
    let strategies: [&[&str]; 5] = [
        &["--strategy", "dfs"],
        &["--strategy", "dfs", "--reduce"],
        &["--strategy", "icb", "--bound", "1"],
        &["--strategy", "icb", "--bound", "2", "--reduce"],
        &["--strategy", "best"],
    ];
    for how in strategies.into_iter().step_by(usual_or_nightly(3, 1)) {
        let result = check_ahead(beside, "assert(count == 12);", how);
        assert_eq!(result["findings"], serde_json::json!([]), "{how:?}: {result:#}");
        let number = |field: &str| result[field].as_f64().expect("a number");
        let part = number("skipped") / number("steps");
        assert!((0.2..1.0).contains(&part), "{how:?}: {part} of the steps: {result:#}");
    }
}
