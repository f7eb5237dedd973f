//! Tests of memory errors in instrumented programs. Each kind of error is found, with its block and with the
//! expected number of preemptions. The fixed version of each program is clean. The checked heap obeys the
//! rules of the malloc family.

use heisen_engine::program::instrument;
use heisen_testkit::{Sandbox, compile, run, usual_or_nightly};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/memory").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(source(name)).expect("the source")
}

/// Builds a program of `tests/it/memory` with instrumentation, under the given name.
fn build(here: &Sandbox, name: &str, file: &str, flags: &[&str]) -> String {
    let program = here.path(name);
    if file.ends_with(".rs") {
        let rust = instrument::rust_flags().expect("flags");
        let flags: Vec<&str> = rust.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        compile(&here.path(""), &format!("{name}.rs"), &text(file), &flags);
        return program.to_str().expect("a plain path").to_owned();
    }
    let compiler = if file.ends_with(".c") { "cc" } else { "c++" };
    let mut command = here.command(&[compiler, "-g", "-pthread"]);
    run(command.args(flags).arg(source(file)).arg("-o").arg(&program)).expect(0);
    program.to_str().expect("a plain path").to_owned()
}

/// Checks a program and its fixed version. The bug must be found with this many preemptions, at these lines
/// of the source.
fn bug_and_fixed(file: &str, kind: &str, preemptions: u32, options: &[&str], lines: [Option<u32>; 3]) {
    let here = Sandbox::new();
    let program = build(&here, "bug", file, &[]);
    let finding = here.finds(kind, &[options, &["--", &program]].concat());
    assert_eq!(finding["preemptions"], preemptions, "{finding:#}");
    let place = |value: &Value, line: Option<u32>| match line {
        None => assert!(value.is_null(), "{finding:#}"),
        Some(line) => {
            let end = format!("{file}:{line}");
            let end = end.replace("scope.rs", "bug.rs");
            assert!(value.as_str().is_some_and(|place| place.ends_with(&end)), "{line}: {finding:#}");
        }
    };
    place(&finding["place"], lines[0]);
    place(&finding["block"]["allocated"]["place"], lines[1]);
    place(&finding["block"]["freed"]["place"], lines[2]);
    let fixed = build(&here, "fixed", file, if file.ends_with(".rs") { &[] } else { &["-DFIXED"] });
    here.clean(&[options, &["--", &fixed, "fixed"]].concat());
}

/// The line of a source file that contains these words.
fn line(file: &str, words: &str) -> Option<u32> {
    let text = text(file);
    let found = text.lines().position(|line| line.contains(words)).expect("the words");
    Some(found as u32 + 1)
}

#[test]
fn use_after_free_between_critical_sections() {
    let file = "lookup.c";
    let at = ["long value = found->value", "= malloc(", "free(old)"].map(|words| line(file, words));
    bug_and_fixed(file, "use-after-free", 1, &[], at);
}

/// Only the call of `free` conflicts with the read. That conflict makes it a scheduling point.
#[test]
fn use_after_free_of_what_was_published() {
    let file = "publish.c";
    let at = ["long value = *p", "= malloc(", "free(old)"].map(|words| line(file, words));
    bug_and_fixed(file, "use-after-free", 1, &[], at);
}

#[test]
fn double_free() {
    let file = "close.c";
    let freed = text(file).lines().position(|line| line.trim() == "free(buffer);").expect("the line");
    let freed = Some(freed as u32 + 1);
    bug_and_fixed(file, "double-free", 1, &[], [freed, line(file, "= malloc("), freed]);
}

#[test]
fn overflow_by_one() {
    let file = "append.c";
    let at = [line(file, "list[used++]"), line(file, "= malloc("), None];
    bug_and_fixed(file, "heap-overflow", 1, &[], at);
}

#[test]
fn leak_of_what_was_made_twice() {
    let file = "lazy.c";
    bug_and_fixed(file, "leak", 1, &["--leaks"], [line(file, "= malloc("), None, None]);
}

/// The error goes through `new` and `delete`. The finding names source lines of the program, not of the
/// library.
#[test]
fn use_after_free_in_cpp() {
    let here = Sandbox::new();
    let program = build(&here, "bug", "owner.cpp", &["-std=c++17"]);
    let ran = here.heisen(&["check", "--bound", "2", "--json", "-", "--", &program]).expect(1);
    let finding = ran.json()["findings"][0].clone();
    let kind = finding["kind"].as_str().expect("a kind");
    assert!(["use-after-free", "double-free"].contains(&kind), "{finding:#}");
    assert_eq!(finding["preemptions"], 1, "{finding:#}");
    let place = |what: &str| finding["block"][what]["place"].as_str().unwrap_or_default().to_owned();
    assert!(
        place("allocated").ends_with(&format!("owner.cpp:{}", line("owner.cpp", "new Shared").unwrap_or(0))),
        "{finding:#}"
    );
    assert!(place("freed").contains("owner.cpp:"), "{finding:#}");
    let fixed = build(&here, "fixed", "owner.cpp", &["-std=c++17", "-DFIXED"]);
    here.clean(&["--bound", "2", "--", &fixed]);
}

#[test]
fn use_after_free_in_rust() {
    let file = "scope.rs";
    let at = ["(*job.0)[2] += 1", "Box::into_raw", "Box::from_raw"].map(|words| line(file, words));
    // Two preemptions: of the creator, so that the thread runs, and of the thread before it is done. The two
    // accesses also race, which other tests cover; so data races are only counted here.
    bug_and_fixed(file, "use-after-free", 2, &["--races=count"], at);
}

/// Every error that needs no particular schedule, with its message.
#[test]
fn each_error_in_words() {
    let here = Sandbox::new();
    let program = build(&here, "errors", "errors.c", &["-w"]);
    let errors = [
        (
            "read-after-free",
            "use-after-free",
            "T0 reads 1 byte 3 bytes into a block of 20 bytes that it has freed already",
        ),
        (
            "write-after-free",
            "use-after-free",
            "T0 writes 8 bytes 8 bytes into a block of 20 bytes that it has freed already",
        ),
        ("double-free", "double-free", "T0 frees a block of 20 bytes that it has freed already"),
        ("double-free-later", "double-free", "T0 frees a block of 20 bytes that it has freed already"),
        (
            "free-inside",
            "invalid-free",
            "T0 frees an address 16 bytes into a block of 20 bytes, which is not its start",
        ),
        (
            "free-odd",
            "invalid-free",
            "T0 frees an address 3 bytes into a block of 20 bytes, which is not its start",
        ),
        ("free-stack", "invalid-free", "which was never allocated"),
        ("free-stack-16", "invalid-free", "which was never allocated"),
        ("free-global", "invalid-free", "which was never allocated"),
        ("free-code", "invalid-free", "which was never allocated"),
        ("free-small-number", "invalid-free", "T0 frees 0x1230, which was never allocated"),
        ("free-mapping", "invalid-free", "which was never allocated"),
        ("free-nowhere", "invalid-free", "T0 frees 0x601f00000010, which was never allocated"),
        ("overflow-read", "heap-overflow", "T0 reads 1 byte, and so just behind a block of 20 bytes"),
        ("overflow-write", "heap-overflow", "T0 writes 1 byte, and so just behind a block of 20 bytes"),
        ("overflow-far", "heap-overflow", "T0 writes 1 byte, and so 51 bytes behind a block of 20 bytes"),
        ("overflow-half", "heap-overflow", "T0 writes 8 bytes, and so just behind a block of 20 bytes"),
        ("underflow", "heap-overflow", "T0 writes 1 byte, and so 1 byte before a block of 20 bytes"),
        ("empty", "heap-overflow", "T0 writes 1 byte, and so just behind a block of 0 bytes"),
        ("large", "heap-overflow", "T0 writes 1 byte, and so just behind a block of 1048576 bytes"),
        (
            "large-after-free",
            "use-after-free",
            "T0 writes 1 byte 5000 bytes into a block of 1048576 bytes that it has freed already",
        ),
        ("aligned", "heap-overflow", "T0 writes 1 byte, and so just behind a block of 100 bytes"),
        (
            "aligned-after-free",
            "use-after-free",
            "T0 writes 1 byte 99 bytes into a block of 100 bytes that it has freed already",
        ),
        ("shrunk", "heap-overflow", "T0 writes 1 byte, and so just behind a block of 10 bytes"),
        (
            "stale",
            "use-after-free",
            "T0 writes 1 byte at the start of a block of 20 bytes that it has freed already",
        ),
        (
            "realloc-freed",
            "use-after-free",
            "T0 calls realloc with a block of 20 bytes that it has freed already",
        ),
        (
            "realloc-inside",
            "invalid-free",
            "T0 frees an address 4 bytes into a block of 20 bytes, which is not its start",
        ),
        (
            "size-freed",
            "use-after-free",
            "T0 asks for the size of a block of 20 bytes that it has freed already",
        ),
        ("memset-overflow", "heap-overflow", "T0 writes 21 bytes, and so just behind a block of 20 bytes"),
        (
            "memset-large",
            "heap-overflow",
            "T0 writes 300001 bytes, and so just behind a block of 300000 bytes",
        ),
        ("memcpy-overflow", "heap-overflow", "T0 reads 11 bytes, and so just behind a block of 20 bytes"),
        (
            "memcpy-after-free",
            "use-after-free",
            "T0 reads 20 bytes at the start of a block of 20 bytes that it has freed already",
        ),
        (
            "memcpy-to-freed",
            "use-after-free",
            "T0 writes 5 bytes at the start of a block of 20 bytes that it has freed already",
        ),
        (
            "memmove-after-free",
            "use-after-free",
            "T0 reads 20 bytes at the start of a block of 20 bytes that it has freed already",
        ),
        (
            "memcmp-after-free",
            "use-after-free",
            "T0 reads 1 byte at the start of a block of 20 bytes that it has freed already",
        ),
        (
            "strlen-after-free",
            "use-after-free",
            "T0 reads 1 byte at the start of a block of 20 bytes that it has freed already",
        ),
        (
            "strlen-large",
            "use-after-free",
            "T0 reads 1 byte at the start of a block of 300000 bytes that it has freed already",
        ),
        ("strcpy-overflow", "heap-overflow", "T0 writes 21 bytes, and so just behind a block of 20 bytes"),
        ("strncpy-overflow", "heap-overflow", "T0 writes 21 bytes, and so just behind a block of 20 bytes"),
        ("strcat-overflow", "heap-overflow", "T0 writes 11 bytes, and so just behind a block of 20 bytes"),
        (
            "strdup-after-free",
            "use-after-free",
            "T0 reads 1 byte at the start of a block of 20 bytes that it has freed already",
        ),
        (
            "trampled",
            "heap-overflow",
            "T0 frees a block of 20 bytes, and memory just behind it had been overwritten",
        ),
        (
            "trampled-record",
            "heap-overflow",
            "T0 frees a block of 32 bytes, and memory just behind it had been overwritten",
        ),
    ];
    for (number, (name, kind, words)) in errors.into_iter().enumerate() {
        let ran = here.heisen(&["check", "--no-explain", "--json", "-", "--", &program, name]).expect(1);
        let finding = &ran.json()["findings"][0];
        assert_eq!(finding["kind"], kind, "{name}: {finding:#}");
        let message = finding["message"].as_str().expect("a message");
        assert!(message.ends_with(words), "{name}: {message}");
        let stated = format!("errors.c:{}", line("errors.c", &format!("\"{name}\"")).unwrap_or(0));
        if name != "double-free-later" {
            assert!(finding["place"].as_str().is_some_and(|at| at.ends_with(&stated)), "{name}: {finding:#}");
        }
        if number % usual_or_nightly(6, 1) > 0 {
            continue;
        }
        let schedule = finding["schedule"].as_str().expect("a schedule");
        let again = here.heisen(&["replay", schedule]).expect(1);
        assert!(again.out.contains(message), "{message}: {}", again.out);
        // The error is also found if standard output and error are closed. (It is the same bug and so the
        // same schedule file. But the extra argument moves addresses on the first stack.)
        let closed =
            here.heisen(&["check", "--no-explain", "--json", "-", "--", &program, name, "closed"]).expect(1);
        assert_eq!(closed.json()["findings"][0]["kind"], kind, "{name}");
    }
    // None of these is an error.
    for name in ["none", "leak", "leak-list", "reachable"] {
        here.clean(&["--", &program, name]);
    }
}

#[test]
fn leaks_at_the_end() {
    let here = Sandbox::new();
    let program = build(&here, "errors", "errors.c", &["-w"]);
    for (name, words, at) in [
        ("leak", "1 block is unreachable at the end, 20 bytes in all", "p = malloc(20)"),
        ("leak-list", "10 blocks are unreachable at the end, 80 bytes in all", "**node = malloc"),
    ] {
        let finding = here.finds("leak", &["--leaks", "--", &program, name]);
        assert_eq!(finding["message"], words);
        let stated = format!("errors.c:{}", line("errors.c", at).unwrap_or(0));
        assert!(finding["place"].as_str().is_some_and(|at| at.ends_with(&stated)), "{finding:#}");
        here.run(here.shell("rm -r .heisen").arg("")).expect(0);
    }
    for name in ["none", "reachable"] {
        here.clean(&["--leaks", "--", &program, name]);
    }
    here.heisen(&["check", "--leaks", "--heap", "off", "--", &program, "leak"]).fails(2, &["--heap off"]);
}

/// The rules of glibc, call by call, and random calls with all contents checked. The output must be the same
/// natively and under Heisen, on both carriers, with and without instrumentation.
#[test]
fn the_malloc_family_keeps_its_rules() {
    let here = Sandbox::new();
    let flags = ["-w", usual_or_nightly("-DROUNDS=60", "-DROUNDS=4000")];
    for file in ["rules.c", "stress.c"] {
        let plain = here.compile(&format!("plain-{file}"), &text(file), &flags);
        let plain = plain.to_str().expect("a plain path").to_owned();
        let instrumented = build(&here, &format!("instrumented-{}", &file[..4]), file, &flags);
        let native = run(&mut Command::new(&plain)).expect(0).out;
        assert!(!native.contains("NO"), "{native}");
        assert_eq!(run(&mut Command::new(&instrumented)).expect(0).out, native);
        for (program, options) in [
            (&plain, &["--heap", "on"][..]),
            (&plain, &["--heap", "off"]),
            (&plain, &["--heap", "on", "--carrier", "kernel"]),
            (&instrumented, &[]),
        ] {
            let out = here.path("out.txt");
            let out = out.to_str().expect("a plain path");
            let args = [
                &["check", "-q", "--no-explain", "--hang", "60s", "--executions", "1"],
                options,
                &["--", program, out],
            ]
            .concat();
            // `rules.c` also asks for impossible sizes and alignments, which the checked heap reports as
            // misuse.
            let misused = file == "rules.c" && options != ["--heap", "off"];
            here.heisen(&args).expect(i32::from(misused));
            assert_eq!(std::fs::read_to_string(out).expect("the output"), native, "{file} {options:?}");
        }
    }
}

/// Runs a check that finds one misuse, removes its files and returns the finding.
#[track_caller]
fn misuse(here: &Sandbox, args: &[&str], words: &str) -> Value {
    let finding = here.finds("misuse", args);
    let message = finding["message"].as_str().expect("a message");
    assert!(message.contains(words), "{args:?}: {message}");
    here.run(here.shell("rm -r .heisen").arg("")).expect(0);
    finding
}

/// An access to memory that is freed or unmapped becomes a scheduling point, wherever in the memory it is. Without that,
/// a search would say that there is one execution, which passes.
#[test]
fn the_end_of_memory_conflicts_with_all_of_its_accesses() {
    let here = Sandbox::new();
    let program = build(&here, "bug", "ends.c", &[]);
    let fixed = build(&here, "fixed", "ends.c", &["-DFIXED"]);
    for (way, offset, kind) in [
        ("free", "65535", "use-after-free"),
        ("realloc", "30000", "use-after-free"),
        ("smaller", "40000", "heap-overflow"),
        ("munmap", "0", "crash"),
        ("munmap", "65535", "crash"),
        ("protect", "65535", "crash"),
        ("fixed", "4096", "crash"),
        ("shrink", "4096", "crash"),
        ("move", "65535", "crash"),
    ] {
        for strategy in ["icb", "dpor"] {
            here.finds(kind, &["--strategy", strategy, "--", &program, way, offset]);
            here.run(here.shell("rm -r .heisen").arg("")).expect(0);
        }
        here.clean(&["--", &fixed, way, offset]);
    }
    here.clean(&["--", &program, "shrink", "4095"]);
    here.clean(&["--", &program, "smaller", "32767"]);
}

/// Sizes beyond `PTRDIFF_MAX` and alignments that are not a power of two are reported, and fail as they do
/// natively. Functions that are meant to check such arguments may be called with them.
#[test]
fn sizes_that_no_block_can_have() {
    let here = Sandbox::new();
    let program = build(&here, "sizes", "sizes.c", &["-w"]);
    for name in ["malloc", "new-size", "aligned-size"] {
        misuse(&here, &["--", &program, name], "more memory was asked for than PTRDIFF_MAX bytes");
    }
    misuse(&here, &["--", &program, "alignment"], "with an alignment that is not a power of two");
    for name in ["calloc", "reallocarray", "posix_memalign", "large"] {
        here.clean(&["--", &program, name]);
    }
}

/// Other threads may use a variable on a stack only until its function returns.
#[test]
fn variables_of_functions_that_have_returned() {
    let here = Sandbox::new();
    let program = build(&here, "stacks", "stacks.c", &["-O1", "-w"]);
    for (name, carrier, place) in [
        ("of-main", "fibers", "sum += *shared"),
        ("of-main", "kernel", "sum += *shared"),
        ("write", "fibers", "*shared = 1"),
        ("of-a-thread", "fibers", "sum += *shared"),
    ] {
        let words = "stack was used after its function had returned";
        let finding = misuse(&here, &["--carrier", carrier, "--", &program, name], words);
        let stated = format!("stacks.c:{}", line("stacks.c", place).unwrap_or(0));
        assert!(finding["place"].as_str().is_some_and(|at| at.ends_with(&stated)), "{name}: {finding:#}");
    }
    for name in ["in-time", "thread-in-time", "own-memory"] {
        here.clean(&["--bound", "2", "--", &program, name]);
    }
}

/// That a thread ends conflicts with the accesses of others to its stack, so that these become scheduling points.
#[test]
fn variables_of_a_thread_that_ends_at_any_time() {
    let here = Sandbox::new();
    let text = "#include <pthread.h>\n#include <semaphore.h>\nstatic sem_t s;\n\
                static void *other(void *a) { sem_post(&s); *(int *)a = 1; return 0; }\n\
                static void *owner(void *a) { int own = 0; pthread_t t; pthread_create(&t, 0, other, &own);\n\
                pthread_detach(t); sem_wait(&s); return a; }\n\
                int main(void) { pthread_t t; pthread_create(&t, 0, owner, 0); return pthread_join(t, 0); }\n";
    let build = |name: &str, text: &str| {
        here.write(&format!("{name}.c"), text);
        let source = format!("{name}.c");
        run(&mut here.command(&["cc", "-g", "-pthread", &source, "-o", name])).expect(0);
        here.path(name).to_str().expect("a plain path").to_owned()
    };
    let late = build("late", text);
    let fixed = build("fixed", &text.replace("sem_post(&s); *(int *)a = 1;", "*(int *)a = 1; sem_post(&s);"));
    for strategy in ["icb", "dpor"] {
        misuse(&here, &["--strategy", strategy, "--", &late], "or the thread had ended");
        here.clean(&["--strategy", strategy, "--", &fixed]);
    }
}

/// Addresses on the first stack are the same in each execution and each check. Neither another environment
/// nor more open files move the stack.
#[test]
fn the_first_stack_stays_where_it_is() {
    let here = Sandbox::new();
    let program = build(&here, "errors", "errors.c", &["-w"]);
    let found = here.heisen(&["check", "--json", "-", "--", &program, "free-stack"]).expect(1).json();
    let message = found["findings"][0]["message"].as_str().expect("a message").to_owned();
    let schedule = found["findings"][0]["schedule"].as_str().expect("a schedule");
    for (open, length) in [(false, 1), (false, 17), (true, 3000), (true, 0)] {
        let files = if open { "exec 3</dev/null 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3; " } else { "" };
        let script = format!("{files}exec \"$HEISEN\" replay \"$SCHEDULE\"");
        let mut command = here.shell(&script);
        command.env("HEISEN", heisen_testkit::heisen_path()).env("SCHEDULE", schedule);
        let again = here.run(command.env("LONG", "x".repeat(length))).expect(1);
        assert!(again.out.contains(&message), "{message}: {}", again.out);
    }
}

#[test]
fn addresses_are_the_same_each_time() {
    let here = Sandbox::new();
    let text = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        static void *work(void *file) { for (int i = 1; i < 40; i++) { void *p = malloc(i * 7); void *q = malloc(i);\n\
        fprintf(file, \"%p %p\\n\", p, q); free(p); } return 0; }\n\
        int main(int argc, char **argv) { FILE *file = fopen(argv[1], \"w\"); pthread_t t;\n\
        pthread_create(&t, 0, work, file); work(file); pthread_join(t, 0); fclose(file); return 0; }\n";
    let program = here.compile("addresses.c", text, &[]);
    let program = program.to_str().expect("a plain path");
    let mut all = Vec::new();
    for carrier in ["fibers", "fibers", "kernel"] {
        let args = [
            "check",
            "-q",
            "--heap",
            "on",
            "--carrier",
            carrier,
            "--executions",
            "1",
            "--",
            program,
            "a.txt",
        ];
        here.heisen(&args).expect(0);
        all.push(std::fs::read_to_string(here.path("a.txt")).expect("the addresses"));
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    let mut addresses: Vec<&str> = all[0].split_whitespace().collect();
    assert_eq!(addresses.len(), 2 * 2 * 39);
    assert!(addresses.iter().all(|address| address.starts_with("0x601")), "{addresses:?}");
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 2 * 2 * 39);
}

/// A forked child allocates by itself. Its threads really run in parallel, and it also uses blocks from
/// before the fork.
#[test]
fn a_forked_child_allocates_by_itself() {
    let here = Sandbox::new();
    let text = "#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        static char *old[200];\n\
        static void *work(void *n) { for (int i = 0; i < 20000; i++) { char *p = malloc(i % 999); memset(p, 1, i % 999);\n\
        p = realloc(p, i % 1777 + 1); free(p); } int k = (int)(long)n; for (int i = k; i < 200; i += 4) {\n\
        old[i] = realloc(old[i], 300); if (strcmp(old[i], \"before\")) _exit(9); free(old[i]); } return 0; }\n\
        int main(void) { for (int i = 0; i < 200; i++) strcpy(old[i] = malloc(50), \"before\");\n\
        pid_t child = fork(); if (!child) { pthread_t t[4]; for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);\n\
        for (int i = 0; i < 4; i++) pthread_join(t[i], 0); _exit(7); }\n\
        int status; waitpid(child, &status, 0); for (int i = 0; i < 200; i++) free(old[i]);\n\
        return !(WIFEXITED(status) && WEXITSTATUS(status) == 7); }\n";
    let program = here.compile("forks.c", text, &[]);
    here.clean(&["--heap", "on", "--", program.to_str().expect("a plain path")]);
}

/// glibc or the kernel may give a thread memory that another thread used before. That is not a data race.
#[test]
fn memory_that_is_used_again_is_new() {
    let here = Sandbox::new();
    let program = build(&here, "reuse", "reuse.c", &["-w"]);
    for way in [
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "aligned_alloc",
        "posix_memalign",
        "mmap",
        "mmap64",
        "mremap",
    ] {
        for heap in ["on", "off"] {
            here.clean(&["--races", "--heap", heap, "--", &program, way]);
        }
    }
    // Checks that the memory really is reused.
    for way in ["malloc", "calloc", "realloc", "reallocarray", "mmap", "mmap64", "mremap"] {
        here.heisen(&["check", "--heap", "off", "--executions", "1", "--", &program, way, "same"]).expect(0);
    }
    // A race in large memory is still found, also if an earlier check has found it.
    let program = build(&here, "race", "reuse.c", &["-w", "-DRACE"]);
    for _ in 0..2 {
        let args = ["check", "--races", "--heap", "off", "--json", "-", "--", &program, "mmap"];
        assert_eq!(here.heisen(&args).expect(1).json()["races"].as_array().map(Vec::len), Some(2));
    }
}

/// Programs with their own allocator run as before.
#[test]
fn allocators_of_the_program() {
    let here = Sandbox::new();
    let own = "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n\
        static char memory[1 << 20]; static size_t used; static int calls;\n\
        void *malloc(size_t n) { calls++; size_t at = used + 16; memcpy(memory + used + 8, &n, 8); used = at + (n + 15) / 16 * 16; return memory + at; }\n\
        void free(void *p) { calls++; }\n\
        void *calloc(size_t a, size_t b) { return memset(malloc(a * b), 0, a * b); }\n\
        void *realloc(void *p, size_t n) { void *q = malloc(n); if (p) { size_t old; memcpy(&old, (char *)p - 8, 8); memcpy(q, p, old < n ? old : n); } return q; }\n\
        int main(void) { char *p = malloc(10); strcpy(p, \"own\"); p = strdup(p); free(p); return !(calls >= 3 && p > memory && p < memory + sizeof memory); }\n";
    let program = here.compile("own.c", own, &["-w"]);
    here.clean(&["--heap", "on", "--", program.to_str().expect("a plain path")]);
    let rust = "use std::alloc::{GlobalAlloc, Layout, System};\n\
        struct Counting; static CALLS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);\n\
        // SAFETY: all is passed on to the allocator of the system.\n\
        unsafe impl GlobalAlloc for Counting {\n\
        unsafe fn alloc(&self, l: Layout) -> *mut u8 { CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed); System.alloc(l) }\n\
        unsafe fn dealloc(&self, p: *mut u8, l: Layout) { System.dealloc(p, l) } }\n\
        #[global_allocator] static A: Counting = Counting;\n\
        fn main() { let v = std::thread::spawn(|| vec![1u8; 100_000]).join().unwrap(); assert_eq!(v.len(), 100_000);\n\
        assert!(CALLS.load(std::sync::atomic::Ordering::Relaxed) > 0); }\n";
    let program = here.compile("counting.rs", rust, &["-Awarnings"]);
    for heap in ["on", "off"] {
        here.clean(&["--heap", heap, "--", program.to_str().expect("a plain path")]);
    }
}

/// The checked heap passes on both an injected failure of `malloc` and a real lack of memory.
#[test]
fn no_memory() {
    let here = Sandbox::new();
    let text = "#include <errno.h>\n#include <stdlib.h>\n\
        int main(int argc, char **argv) { char *p = malloc(100); if (!p) return errno == ENOMEM ? 3 : 4; free(p);\n\
        for (long n = 0; argc > 1; n++) if (!malloc(1 << 26)) return errno == ENOMEM && n > 1 ? 5 : 6; return 0; }\n";
    let program = here.compile("full.c", text, &[]);
    let program = program.to_str().expect("a plain path");
    let finding = here.finds("exit-status", &["--heap", "on", "--faults", "1:malloc", "--", program]);
    assert_eq!(finding["message"], "the program ended with exit status 3, not 0");
    here.run(here.shell("rm -r .heisen").arg("")).expect(0);
    here.clean(&["--heap", "on", "--expect-exit", "5", "--", program, "all"]);
}
