//! Tests how instrumented programs are built: `heisen cc` and `heisen c++` behave like the compiler in every
//! way that build systems use it.
//!
//! The built programs do the same as they would otherwise, and call the runtime if it is there. Verdicts name
//! uninstrumented code. Programs built for another sanitizer are refused.

use heisen_abi::{COUNT, NAMES, VERSION};
use heisen_testkit::{Ran, Sandbox, run};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The installed compilers, as pairs for C and C++.
fn compilers() -> Vec<(&'static str, &'static str)> {
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let mut all = vec![("gcc", "g++")];
    if there("clang") {
        all.push(("clang", "clang++"));
    } else {
        eprintln!("clang is not installed: tested with gcc alone");
    }
    all
}

/// A sandbox with one of the compilers.
struct Shop {
    sandbox: Sandbox,
    c: &'static str,
    cpp: &'static str,
}

impl Shop {
    /// One sandbox for each compiler.
    fn all() -> impl Iterator<Item = Shop> {
        compilers().into_iter().map(|(c, cpp)| Shop { sandbox: Sandbox::new(), c, cpp })
    }

    /// Runs `sh -c SCRIPT` with `heisen` as `"$0"`.
    #[track_caller]
    fn sh(&self, script: &str) -> Ran {
        let mut command = self.sandbox.shell(script);
        run(command.env("HEISEN_CC", self.c).env("HEISEN_CXX", self.cpp).env("PLAIN", self.c))
    }

    /// Like [`sh`](Shop::sh), but must succeed without any message. Returns the output.
    #[track_caller]
    fn does(&self, script: &str) -> String {
        let ran = self.sh(script).expect(0);
        assert_eq!(ran.err, "", "{}: {script}", self.c);
        ran.out
    }

    /// Whether the compiler can link with its own sanitizers. Debian has clang's in a package of their own.
    fn has_sanitizers(&self) -> bool {
        self.sandbox.write("empty.c", "int main(void) { return 0; }\n");
        let links =
            |name| self.sh(&format!("$PLAIN -fsanitize={name} empty.c -o empty && rm empty")).code == 0;
        let all = ["address", "undefined"].into_iter().all(links);
        if !all {
            eprintln!("skipped: sanitizers of {} (scripts/install-programs installs them)", self.c);
        }
        all
    }

    /// The code that a verdict calls uninstrumented.
    #[track_caller]
    fn blind(&self, program: &str) -> Vec<String> {
        let json = self.sandbox.clean(&["--", program]);
        blind(&json)
    }
}

fn blind(json: &Value) -> Vec<String> {
    let lines = json["not_controlled"].as_array().expect("a list").iter().filter_map(Value::as_str);
    lines
        .filter_map(|line| line.strip_prefix("not instrumented, so accesses there were not explored: "))
        .map(str::to_owned)
        .collect()
}

/// Whether an executable or object file calls callbacks, by its symbols.
fn calls_back(path: &Path) -> bool {
    let output = Command::new("nm").arg(path).output().expect("nm");
    String::from_utf8_lossy(&output.stdout).contains("__tsan_func_entry")
}

const MAIN: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include "parts.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {
    pthread_mutex_lock(&lock);
    add((long)arg);
    pthread_mutex_unlock(&lock);
    return arg;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", total(), twice(21));
    return 0;
}
"#;
const PARTS_H: &str = "void add(long n);\nlong total(void);\nlong twice(long n);\n";
const SUM: &str = "#include \"parts.h\"\nstatic long sum;\nvoid add(long n) { sum += n; }\nlong total(void) { return sum; }\n";
const TWICE: &str = "#include \"parts.h\"\nlong calls;\nlong twice(long n) { calls++; return 2 * n; }\n";
const MAKEFILE: &str = "\
CFLAGS = -g -O1 -Wall -Werror -MMD\nLDFLAGS = -pthread\n\
prog: main.o sum.o libtwice.so\n\t$(CC) $(LDFLAGS) main.o sum.o -L. -ltwice -Wl,-rpath,'$$ORIGIN' -o $@\n\
libtwice.so: twice.c parts.h\n\t$(CC) $(CFLAGS) -fPIC -shared -Wl,-z,defs twice.c -o $@\n\
clean:\n\trm -f prog *.o *.d *.so\n-include *.d\n";

fn write_project(sandbox: &Sandbox) {
    let files =
        [("main.c", MAIN), ("parts.h", PARTS_H), ("sum.c", SUM), ("twice.c", TWICE), ("Makefile", MAKEFILE)];
    for (name, text) in files {
        sandbox.write(name, text);
    }
}

#[test]
fn a_project_with_make() {
    for shop in Shop::all() {
        write_project(&shop.sandbox);
        shop.does("make -s CC=$PLAIN");
        let (prog, library) = (shop.sandbox.path("prog"), shop.sandbox.path("libtwice.so"));
        assert!(!calls_back(&prog) && !calls_back(&library));
        let plain = shop.does("./prog");
        assert_eq!(plain, "3 42\n");
        // The verdict on a program without any instrumentation does not mention it.
        assert_eq!(shop.blind("./prog"), [""; 0]);

        shop.does("make -s clean && make -s CC=\"$0 cc\"");
        assert!(calls_back(&prog) && calls_back(&library));
        assert_eq!(shop.does("./prog"), plain);
        assert_eq!(shop.blind("./prog"), [""; 0]);
        // A stripped program does the same. Only the names of its uninstrumented files are unknown.
        shop.does("strip prog libtwice.so && ./prog");
        let said = "unknown files of prog and libtwice.so, without debug information (-g)";
        assert_eq!(shop.blind("./prog"), [said]);
    }
}

#[test]
fn a_project_with_cmake() {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("cmake is not installed: not tested");
        return;
    }
    let lists = "cmake_minimum_required(VERSION 3.10)\nproject(prog C CXX)\nfind_package(Threads REQUIRED)\n\
                 add_library(twice SHARED twice.c)\nadd_library(sum STATIC sum.c)\nadd_executable(prog main.c)\n\
                 target_link_libraries(prog twice sum Threads::Threads)\n";
    let shop = Shop::all().next().expect("gcc");
    write_project(&shop.sandbox);
    shop.sandbox.write("CMakeLists.txt", lists);
    let build = "CC=\"$0 cc\" CXX=\"$0 c++\" cmake -S . -B out -DCMAKE_BUILD_TYPE=Debug && cmake --build out";
    shop.sh(build).expect(0);
    assert_eq!(shop.does("out/prog"), "3 42\n");
    assert!(calls_back(&shop.sandbox.path("out/prog")));
    assert_eq!(shop.blind("out/prog"), [""; 0]);
}

#[test]
fn uninstrumented_files_are_named() {
    for shop in Shop::all() {
        write_project(&shop.sandbox);
        // A file without memory accesses does not count as uninstrumented.
        shop.sandbox.write("pure.c", "int pure(int n) { return n + 1; }\n");
        shop.sandbox.write("no.s", ".text\n.globl no\nno: ret\n.section .note.GNU-stack,\"\",@progbits\n");
        shop.does(
            "$PLAIN -g -O1 -c sum.c pure.c && $PLAIN -g -fPIC -shared twice.c -o libtwice.so && $0 cc -g -pthread main.c \
             sum.o pure.o no.s ./libtwice.so -o prog",
        );
        assert_eq!(shop.does("./prog"), "3 42\n");
        assert_eq!(shop.blind("./prog"), ["sum.c of prog; libtwice.so"]);
        // The library is instrumented, and the program is not.
        shop.does(
            "$0 cc -g -fPIC -shared twice.c -o libtwice.so && $PLAIN -g -pthread main.c sum.c ./libtwice.so -o prog",
        );
        assert_eq!(shop.blind("./prog"), ["prog"]);
        // Many uninstrumented files.
        let many: Vec<String> = (1..=5).map(|i| format!("v{i}")).collect();
        for name in &many {
            shop.sandbox.write(
                &format!("{name}.c"),
                format!("int {name}; int f{name}(void) {{ return {name}++; }}\n"),
            );
        }
        shop.does("$PLAIN -g -c v?.c && $0 cc -g -pthread main.c sum.c twice.c v?.o -o prog");
        assert_eq!(shop.blind("./prog"), ["v1.c, v2.c and 3 more files of prog"]);
    }
}

#[test]
fn every_mode_of_the_compiler() {
    for shop in Shop::all() {
        shop.sandbox.write("a.h", "int f(void);\n");
        shop.sandbox.write("a.c", "#include \"a.h\"\nint x;\nint main(void) { x++; return f() + x; }\n");
        shop.sandbox.write("f.c", "#include \"a.h\"\nint y = 40;\nint f(void) { return ++y; }\n");
        shop.sandbox.write("args", "-g a.c\n'f.c' -o \"with space\"\n");
        let callbacks = |name: &str| calls_back(&shop.sandbox.path(name));
        // Invocations that do not need instrumentation print exactly what the compiler prints.
        for args in [
            "",
            "--version",
            "-v",
            "--help",
            "-dumpmachine",
            "-dumpversion",
            "-print-file-name=libc.so",
            "-print-prog-name=ld",
            "-print-search-dirs",
            "-MM a.c",
            "-E a.c",
            "missing.c",
            "-c missing.c -o a.o",
            "missing.o",
            "--no-such-option a.c",
        ] {
            let (ours, real) = (shop.sh(&format!("$0 cc {args}")), shop.sh(&format!("$PLAIN {args}")));
            assert_eq!((ours.code, &ours.out), (real.code, &real.out), "{}: {args}", shop.c);
            if !args.contains("missing") {
                assert_eq!(ours.err, real.err, "{}: {args}", shop.c);
            }
        }
        shop.does("$0 cc -c a.c f.c && $0 cc a.o f.o -o prog");
        assert!(callbacks("a.o") && callbacks("prog"));
        let undefined = shop.has_sanitizers().then_some("$0 cc -fsanitize=undefined a.c f.c -o prog");
        for build in undefined.into_iter().chain([
            "$0 cc a.o f.o -o prog",
            "$0 cc a.c f.c -o prog",
            "$0 cc a.c f.o -o prog",
            "$0 cc -O2 -flto a.c f.c -o prog",
            "$0 cc -flto -c a.c f.c && $0 cc -flto a.o f.o -o prog; $0 cc -c a.c f.c",
            "$0 cc -static a.c f.c -o prog",
            "$0 cc -static a.o f.o -o prog",
            "$0 cc -no-pie -fno-pie a.c f.c -o prog",
            "$0 cc -fsanitize=thread a.c f.c -o prog",
            "$0 cc -fsanitize=thread a.o f.o -o prog",
            "$0 cc @args && mv 'with space' prog",
            "$0 cc -x c - f.c -o prog < a.c",
            "cat a.c f.c | $0 cc -x c - -o prog",
            "$0 cc -r a.o f.o -o all.o && $0 cc all.o -o prog",
            "$0 cc -S a.c f.c && $0 cc a.s f.s -o prog",
            "$0 cc -E a.c > a.i && $0 cc a.i f.c -o prog",
            "ar rc libf.a f.o && $0 cc a.c -L. -lf -o prog",
            "$0 cc -shared -fPIC f.c -o libf.so && $0 cc a.c ./libf.so -o prog",
            // libtool links C++ libraries in this way.
            "$0 cc -shared -nostdlib -fPIC f.c -lc -o libf.so && $0 cc a.c ./libf.so -o prog",
            "$0 cc a.c f.c && mv a.out prog",
            "$0 cc a.h && $0 cc a.c f.c -o prog && rm -f a.h.?ch",
        ]) {
            shop.does(&format!("rm -f prog; {build}"));
            shop.sh("./prog").expect(42);
            assert!(callbacks("prog"), "{}: {build}", shop.c);
            let plain = shop.sh("ldd prog").out;
            assert!(!plain.contains("tsan"), "{}: {build}: {plain}", shop.c);
        }
        // If a project turns instrumentation off for a file, it remains off.
        shop.does("$0 cc -fno-sanitize=thread -c f.c -o plain.o");
        assert!(!callbacks("plain.o"));
        assert_eq!(shop.does("$0 cc a.c -fsyntax-only; $0 cc -c -x assembler /dev/null -o none.o"), "");
        // C++, and a file whose language only the name of the compiler determines.
        shop.sandbox.write(
            "b.cc",
            "#include <string>\nint main() { std::string s(3, 'x'); return (int)s.size(); }\n",
        );
        shop.does("$0 c++ -g b.cc -o prog");
        shop.sh("./prog").expect(3);
        shop.does("echo 'int main() { bool b = true; return b ? 4 : 1; }' > b.C && $0 c++ b.C -o prog");
        shop.sh("./prog").expect(4);
    }
}

#[test]
fn the_compiler_takes_our_place() {
    let sandbox = Sandbox::new();
    // The compiler gets every argument unchanged, and `heisen` ends with its signal.
    sandbox.write("gcc", "#!/bin/sh\nprintf '<%s>' \"$@\"\nkill -TERM $$\n");
    sandbox.run(&mut sandbox.shell("chmod +x gcc")).expect(0);
    let mut command = sandbox.plain_command(&["cc", "-v", "--", "a b", "--version", "-h", "--help", ""]);
    command.arg(OsStr::from_bytes(b"\xff")).env("HEISEN_CC", sandbox.path("gcc"));
    let output = command.output().expect("it starts");
    assert_eq!(output.status.signal(), Some(15));
    assert!(output.stdout.ends_with(b"<-v><--><a b><--version><-h><--help><><\xff>"), "{output:?}");

    let with = |compiler: &str| sandbox.run(sandbox.command(&["cc", "a.c"]).env("HEISEN_CC", compiler));
    with("/nonexistent").fails(2, &["/nonexistent: No such file", "install a compiler", "HEISEN_CC"]);
    with(" ").fails(2, &["HEISEN_CC is blank"]);
    let ourselves = format!("{} cc", heisen_testkit::heisen_path());
    with(&ourselves).fails(2, &["HEISEN_CC leads back to heisen", "gcc or clang"]);
    // `HEISEN_CC` may contain options.
    sandbox.write("a.c", "int main(void) { return STATUS; }\n");
    sandbox.run(sandbox.command(&["cc", "a.c"]).env("HEISEN_CC", "gcc -DSTATUS=5")).expect(0);
    run(&mut Command::new(sandbox.path("a.out"))).expect(5);
}

#[test]
fn other_sanitizers_are_refused() {
    for shop in Shop::all() {
        shop.sandbox.write("a.c", "int main(void) { return 0; }\n");
        for sanitizer in ["address", "leak", "memory"] {
            let ran = shop.sh(&format!("$0 cc -fsanitize={sanitizer} a.c")).expect(2);
            assert_eq!(ran.messages().len(), 1, "{}", ran.err);
            assert!(ran.err.contains(&format!("-fsanitize={sanitizer} cannot be combined")), "{}", ran.err);
            assert!(!shop.sandbox.path("a.out").exists());
        }
        if !shop.has_sanitizers() {
            continue;
        }
        for (sanitizer, instead) in
            [("address", "build it without"), ("thread", "heisen cc"), ("leak", "without")]
        {
            shop.does(&format!("$PLAIN -fsanitize={sanitizer} a.c"));
            let ran = shop.sandbox.heisen(&["check", "--", "./a.out"]);
            ran.fails(3, &["a.out is built with", &format!("-fsanitize={sanitizer} "), instead]);
        }
        // A sanitizer that replaces no functions is accepted.
        for options in ["$PLAIN -fsanitize=undefined", "$0 cc -rdynamic", "$0 cc -fsanitize=undefined"] {
            shop.does(&format!("{options} a.c"));
            shop.sandbox.clean(&["--", "./a.out"]);
        }
    }
    // A sanitizer in a library is refused, too.
    let shop = Shop::all().next().expect("gcc");
    shop.sandbox.write("f.c", "int f(void) { return 0; }\n");
    shop.sandbox.write("a.c", "int f(void);\nint main(void) { return f(); }\n");
    shop.sh("gcc -fsanitize=address -shared -fPIC f.c -o libf.so && gcc a.c ./libf.so -Wl,--allow-shlib-undefined")
        .expect(0);
    let ran = shop.sandbox.heisen(&["check", "--", "./a.out"]);
    ran.fails(3, &["-fsanitize=address", "linked with libasan.so"]);
}

/// Every atomic operation on every size. The output shows whether each was done.
const ATOMICS: &str = r#"
#include <stdio.h>
#include <string.h>
#define ALL(T, name)                                                                                                  \
    static T name##_at;                                                                                               \
    static void show_##name(const char *what, T value) {                                                              \
        T high = value >> (sizeof(T) * 4);                                                                            \
        printf(#name " %s %llx %llx ", what, (unsigned long long)value, (unsigned long long)high);                    \
        printf("%llx\n", (unsigned long long)name##_at);                                                              \
    }                                                                                                                 \
    static void do_##name(T high) {                                                                                   \
        T expected = 5, value = (T)(high | 3);                                                                        \
        __atomic_store_n(&name##_at, value, __ATOMIC_RELEASE);                                                        \
        show_##name("load", __atomic_load_n(&name##_at, __ATOMIC_ACQUIRE));                                           \
        show_##name("swap", __atomic_exchange_n(&name##_at, (T)(high + 9), __ATOMIC_ACQ_REL));                        \
        show_##name("add", __atomic_fetch_add(&name##_at, (T)250, __ATOMIC_RELAXED));                                 \
        show_##name("sub", __atomic_fetch_sub(&name##_at, (T)7, __ATOMIC_SEQ_CST));                                   \
        show_##name("and", __atomic_fetch_and(&name##_at, (T)~(T)8, __ATOMIC_SEQ_CST));                               \
        show_##name("or", __atomic_fetch_or(&name##_at, (T)17, __ATOMIC_SEQ_CST));                                    \
        show_##name("xor", __atomic_fetch_xor(&name##_at, (T)(high | 170), __ATOMIC_SEQ_CST));                        \
        show_##name("nand", __atomic_fetch_nand(&name##_at, (T)15, __ATOMIC_SEQ_CST));                                \
        show_##name("add", __atomic_add_fetch(&name##_at, (T)1, __ATOMIC_SEQ_CST));                                   \
        show_##name("cas", __atomic_compare_exchange_n(&name##_at, &expected, value, 0, 5, 5));                       \
        show_##name("expected", expected);                                                                            \
        show_##name("cas", __atomic_compare_exchange_n(&name##_at, &expected, value, 0, 4, 2));                       \
        while (!__atomic_compare_exchange_n(&name##_at, &value, (T)77, 1, 0, 0))                                      \
            ;                                                                                                         \
        show_##name("weak", value);                                                                                   \
        show_##name("high", (T)(__atomic_exchange_n(&name##_at, high, 5) + (name##_at >> (sizeof(T) * 4))));          \
    }
ALL(unsigned char, b1)
ALL(unsigned short, b2)
ALL(unsigned, b4)
ALL(unsigned long, b8)
ALL(unsigned __int128, b16)
struct big { char bytes[100]; } one, two;
volatile int v;
struct __attribute__((packed)) { char c; long l; } packed;
int main(void) {
    do_b1(0x80);
    do_b2(0x8000);
    do_b4(0x80000000u);
    do_b8(0x8000000000000000ul);
    do_b16((unsigned __int128)1 << 127);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memset(&one, 'x', sizeof one);
    two = one;
    memmove(two.bytes + 10, two.bytes, 80);
    memmove(two.bytes, two.bytes + 5, 80);
    v++;
    packed.l += v;
    printf("%.100s %ld\n", two.bytes, packed.l);
    return 0;
}
"#;

#[test]
fn atomics_are_done_whoever_answers() {
    for shop in Shop::all() {
        shop.sandbox.write("atomics.c", ATOMICS);
        for level in ["-O0", "-O2"] {
            let build = format!("{level} -w -mcx16 atomics.c -latomic");
            let plain = shop.does(&format!("$PLAIN {build} -o plain && ./plain"));
            assert_eq!(plain.lines().count(), 5 * 14 + 1);
            let ours = shop.does(&format!("$0 cc {build} -o ours && ./ours"));
            assert_eq!(plain, ours, "{} {level}", shop.c);
            shop.sandbox.clean(&["--", "./ours"]);
        }
    }
}

/// The text of a library that replaces the runtime and reports whether callbacks were called.
fn counter(version: u32) -> String {
    format!(
        "#include <stdio.h>\n#include <unistd.h>\nstatic int count;\nstatic long answer(void) {{ count++; return 0; }}\n\
         struct {{ unsigned version, length; void *callbacks[{COUNT}]; }} heisen_tsan_table = {{ {version}, {COUNT}, \
         {{ {} }} }};\n\
         __attribute__((destructor)) static void tell(void) {{ puts(count ? \"called\" : \"not called\"); }}\n",
        "answer, ".repeat(COUNT)
    )
}

#[test]
fn a_runtime_that_is_there_is_called() {
    for shop in Shop::all() {
        shop.sandbox.write("count.c", counter(VERSION));
        shop.sandbox.write("other.c", counter(VERSION + 1));
        shop.does(
            "$PLAIN -w -shared -fPIC count.c -o count.so && $PLAIN -w -shared -fPIC other.c -o other.so",
        );
        shop.sandbox.write("a.c", "int x;\nint main(void) { x++; return 0; }\n");
        shop.sandbox.write("f.c", "int y;\nint f(void) { return y++; }\n");
        shop.sandbox.write("b.c", "int f(void);\nint main(void) { return f(); }\n");
        for build in [
            "$0 cc a.c",
            "$0 cc -no-pie -fno-pie a.c",
            "$0 cc -O2 -flto a.c",
            "$0 cc -Wl,-z,now -Wl,--gc-sections -s a.c",
            "$0 cc -shared -fPIC f.c -o libf.so && $PLAIN b.c ./libf.so",
            // Linking the stub twice does no harm.
            "CC=\"$0 cc\" && $CC a.c -Xlinker \"$XDG_CACHE_HOME\"/heisen/stub-*/stub.o",
        ] {
            shop.does(build);
            assert_eq!(shop.does("LD_PRELOAD=./count.so ./a.out"), "called\n", "{}: {build}", shop.c);
            // A runtime with another version of the list is ignored.
            assert_eq!(shop.does("LD_PRELOAD=./other.so ./a.out"), "not called\n", "{}: {build}", shop.c);
            assert_eq!(shop.does("./a.out"), "");
        }
    }
}

#[test]
fn rust_programs_are_instrumented() {
    let sandbox = Sandbox::new();
    let source = "use std::sync::{Arc, Mutex, atomic::{AtomicUsize, Ordering::SeqCst}};\n\
                  fn main() {\n let m = Arc::new((Mutex::new(vec![1u64, 2]), AtomicUsize::new(0)));\n\
                  let n = m.clone();\n let t = std::thread::spawn(move || { n.0.lock().unwrap().push(3); n.1.fetch_add(1, SeqCst); });\n\
                  t.join().unwrap();\n println!(\"{:?} {}\", m.0.lock().unwrap(), m.1.load(SeqCst));\n}\n";
    sandbox.write("a.rs", source);
    let json = sandbox.heisen(&["check", "--json", "-", "a.rs"]).expect(0).json();
    assert_eq!(blind(&json), ["Rust's own libraries of a (--with-std instruments them)"]);
    let program = PathBuf::from(json["program"].as_str().expect("the program"));
    assert!(calls_back(&program));
    assert_eq!(run(&mut Command::new(&program)).expect(0).out, "[1, 2, 3] 1\n");
    let json = sandbox.heisen(&["check", "--json", "-", "--no-instrument", "a.rs"]).expect(0).json();
    assert_eq!(blind(&json), [""; 0]);
    assert!(!calls_back(&PathBuf::from(json["program"].as_str().expect("the program"))));
}

#[test]
fn a_source_file_is_built_again_as_it_was() {
    let sandbox = Sandbox::new();
    let example = heisen_testkit::root().join("examples/c/account.c");
    sandbox.write("account.c", std::fs::read(example).expect("the example"));
    let mut schedules = Vec::new();
    for (options, instrumented) in [(&["account.c"][..], true), (&["--no-instrument", "account.c"], false)] {
        let json = sandbox.heisen(&[&["check", "--json", "-"], options].concat()).expect(1).json();
        assert_eq!(calls_back(Path::new(json["program"].as_str().expect("the program"))), instrumented);
        let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
        let kept = sandbox.path(if instrumented { "with" } else { "without" });
        std::fs::copy(sandbox.path(&schedule), &kept).expect("a copy");
        schedules.push(kept);
    }
    std::fs::remove_dir_all(sandbox.path(".heisen/build")).expect("the build is removed");
    for schedule in schedules {
        let ran = sandbox.heisen(&["replay", schedule.to_str().expect("a name")]).expect(1);
        assert!(ran.messages().is_empty(), "the same program: {}", ran.err);
    }
    sandbox.heisen(&["check", "--no-instrument", "--", "true"]).expect(2);
}

/// Many compilers run at once, and none of them may find an incomplete stub.
#[test]
fn the_stub_is_unpacked_once_and_whole() {
    let shop = Shop::all().next().expect("gcc");
    shop.sandbox.write("a.c", "int main(void) { return 0; }\n");
    shop.does("for i in 1 2 3 4 5 6 7 8; do $0 cc a.c -o a$i & done; wait; for i in 1 2 3 4 5 6 7 8; do ./a$i || exit; done");
    shop.sandbox.assert_tidy();
}

/// Every callback name in gcc is in our list. (Clang and rustc contain only parts of names. The programs of
/// the tests above use their callbacks and would not link otherwise.)
#[test]
fn no_callback_of_gcc_is_missing() {
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output().expect("gcc");
    let path = String::from_utf8(output.stdout).expect("a path");
    let bytes = std::fs::read(path.trim()).expect("the compiler");
    let names = bytes.split(|&b| b == 0).filter(|name| name.starts_with(b"__tsan_"));
    let names: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        assert!(NAMES.contains(&name.as_str()), "{name}");
    }
}
