//! Tests that the exit work of a program runs in every execution, although the runtime skips the exit where
//! no such work is left. In each program here one order of the threads makes the exit work fail.

use heisen_testkit::{check_json, scratch, timeless};
use std::process::Command;

/// A program in which the second thread may come first. Then `late()` fails. `at_file` is code at file level,
/// and `in_main` is code at the end of `main`.
fn program(at_file: &str, in_main: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n\
         #include <stdlib.h>\n#include <sys/types.h>\n#include <unistd.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nint first;\n\
         static void late(void) {{ assert(first == 1); }}\n\
         {at_file}\n\
         static void *comes(void *who) {{\n\
             pthread_mutex_lock(&m); if (!first) first = (int)(long)who; pthread_mutex_unlock(&m);\n\
             return 0;\n\
         }}\n\
         int main(void) {{\n\
             pthread_t threads[2]; (void)late;\n\
             for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, comes, (void *)(i + 1));\n\
             for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);\n\
             {in_main}\n\
             return 0;\n\
         }}\n"
    )
}

/// Checks a program in one process and with a process for each execution. Both must find the assertion, in
/// the same execution.
#[track_caller]
fn assertion_is_found(directory: &std::path::Path, name: &str, at_file: &str, in_main: &str) {
    std::fs::write(directory.join(name), program(at_file, in_main)).expect("the program is written");
    // Both searches run enough executions before the first failure for the runner to have settled.
    for strategy in [&["--bound", "2"][..], &["--strategy", "burst", "--seed", "3", "--executions", "500"]] {
        let args = [&["--no-instrument"], strategy, &[name]].concat();
        let one = check_json(directory, &args);
        let each = check_json(directory, &[&["--fork"], &args[..]].concat());
        for json in [&one, &each] {
            assert_eq!(json["findings"][0]["kind"], "assertion", "{at_file} {in_main}: {json:#}");
        }
        let key = |json: &serde_json::Value| {
            let json = timeless(json.clone());
            (json["executions"].clone(), json["findings"][0]["message"].clone())
        };
        assert_eq!(key(&one), key(&each), "{at_file} {in_main}");
    }
}

#[test]
fn functions_that_are_registered() {
    let directory = scratch();
    let directory = directory.path();
    assertion_is_found(directory, "at.c", "", "atexit(late);");
    assertion_is_found(
        directory,
        "on.c",
        "static void on(int s, void *a) { (void)s; (void)a; late(); }",
        "on_exit(on, 0);",
    );
    assertion_is_found(
        directory,
        "cxa.c",
        "int __cxa_atexit(void (*)(void *), void *, void *);\nstatic void end(void *unused) { (void)unused; late(); }",
        "__cxa_atexit(end, 0, 0);",
    );
    assertion_is_found(directory, "called.c", "", "atexit(late); exit(0);");
    assertion_is_found(directory, "sometimes.c", "", "if (first == 2) atexit(late);");
}

#[test]
fn destructors_of_modules() {
    let directory = scratch();
    let directory = directory.path();
    assertion_is_found(
        directory,
        "own.c",
        "__attribute__((destructor)) static void end(void) { late(); }",
        "",
    );
    let library = "#include <assert.h>\nextern int first;\n\
                   __attribute__((destructor)) static void end(void) { assert(first == 1); }\n";
    std::fs::write(directory.join("lib.c"), library).expect("the library is written");
    let compile = ["-shared", "-fPIC", "-o", "lib.so", "lib.c"];
    assert!(Command::new("cc").args(compile).current_dir(directory).status().expect("a compiler").success());
    // The library uses a variable of the program, so the program must export it.
    let build = ["-x", "c", "loads.c", "-rdynamic", "-pthread", "-ldl", "-o", "loads"];
    std::fs::write(directory.join("loads.c"), program("", "assert(dlopen(\"./lib.so\", RTLD_NOW));"))
        .expect("the program is written");
    assert!(Command::new("cc").args(build).current_dir(directory).status().expect("a compiler").success());
    for fork in [&["--fork"][..], &[]] {
        let json = check_json(directory, &[fork, &["--bound", "2", "--", "./loads"]].concat());
        assert_eq!(json["findings"][0]["kind"], "assertion", "{json:#}");
    }
}

#[test]
fn destructors_of_objects() {
    let directory = scratch();
    let directory = directory.path();
    assertion_is_found(directory, "object.cpp", "static struct S { ~S() { late(); } } s;", "(void)&s;");
    assertion_is_found(
        directory,
        "local.cpp",
        "struct S { int i = 0; ~S() { late(); } }; thread_local S s;",
        "s.i++;",
    );
}

#[test]
fn output_that_waits() {
    let directory = scratch();
    assertion_is_found(
        directory.path(),
        "buffer.c",
        "static ssize_t put(void *c, const char *b, size_t n) { (void)c; (void)b; late(); return n; }",
        "FILE *f = fopencookie(0, \"w\", (cookie_io_functions_t){ .write = put }); fputs(\"left\", f);",
    );
}
