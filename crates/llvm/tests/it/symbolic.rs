//! Tests of symbolic builds of C and C++: they behave as natively, every expression has the value that the program has, and
//! expressions are lost only where expected.

use heisen_testkit::{Ran, Sandbox, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether clang is installed. Without it these tests are skipped.
fn has_clang() -> bool {
    let has = Command::new("clang++").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("skipped: clang++ is not installed; scripts/install-programs installs it");
    }
    has
}

/// A file of the programs that these tests compile.
fn source(name: &str) -> String {
    let path = root().join("crates/llvm/tests/programs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The runtime that checks expressions. Cargo builds it with these tests.
fn checker() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let profile = test.parent().and_then(Path::parent).expect("a directory");
    profile.join("examples/libsymbolic_check.so")
}

/// What a program prints without runtime.
fn output(program: &Path) -> String {
    let output = Command::new(program).output().expect("it starts");
    assert!(output.status.success(), "{}: {}", program.display(), output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the checking runtime has seen.
#[derive(Debug)]
struct Report {
    out: String,
    text: String,
}

impl Report {
    fn of(sandbox: &Sandbox, program: &Path) -> Report {
        let report = sandbox.path("report");
        let output = Command::new(program)
            .env("LD_PRELOAD", checker())
            .env("SYMBOLIC_REPORT", &report)
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&report).expect("the checking runtime was loaded");
        Report { out: String::from_utf8_lossy(&output.stdout).into_owned(), text }
    }

    /// A number in the report.
    fn number(&self, name: &str) -> u64 {
        let mut words = self.text.split_whitespace().skip_while(|word| *word != name).skip(1);
        words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// The lines of the program whose expressions were lost.
    fn lost(&self) -> Vec<u32> {
        let (_, list) = self.text.split_once("lost [").expect("a list");
        let (list, _) = list.split_once(']').expect("its end");
        list.split(", ").filter_map(|line| line.parse().ok()).collect()
    }
}

/// Compiles a program of these tests, natively and symbolically. Both behave alike, and no expression is wrong.
fn compiled(command: &str, compiler: &str, name: &str) -> Report {
    let sandbox = Sandbox::new();
    sandbox.write("features.h", source("features.h"));
    sandbox.write(name, source(name));
    sandbox.heisen(&[command, "--symbolic", "-g", "-w", "-pthread", name, "-o", "symbolic"]).expect(0);
    let native = Command::new(compiler)
        .current_dir(sandbox.path(""))
        .args(["-O1", "-w", "-pthread", name, "-o", "native"])
        .status();
    assert!(native.is_ok_and(|status| status.success()), "{name} does not compile natively");
    let expected = output(&sandbox.path("native"));
    assert_eq!(output(&sandbox.path("symbolic")), expected, "without a runtime");
    let report = Report::of(&sandbox, &sandbox.path("symbolic"));
    assert_eq!(report.out, expected, "with expressions");
    assert_eq!(report.number("wrong"), 0, "{}", report.text);
    report
}

#[test]
fn c_carries_expressions_through() {
    if !has_clang() {
        return;
    }
    let report = compiled("cc", "clang", "features.c");
    assert!(report.lost().is_empty(), "{}", report.text);
    assert_eq!(report.number("expected"), 138, "{}", report.text);
    // What cannot be an expression is replaced by its value, and counted.
    for reason in ["Address", "Size", "Float", "Wide", "Foreign", "Assembly", "Switch"] {
        assert!(report.number(reason) > 0, "no {reason} in {}", report.text);
    }
}

#[test]
fn cpp_carries_expressions_through() {
    if !has_clang() {
        return;
    }
    let report = compiled("c++", "clang++", "features.cc");
    assert_eq!(report.number("expected"), 25, "{}", report.text);
    // Comparing the string ends in a function of a library.
    let line =
        1 + source("features.cc").lines().position(|line| line.contains("std::string s")).expect("a line");
    assert_eq!(report.lost(), [line as u32], "{}", report.text);
}

#[test]
fn calls_of_the_compiler_work_as_ever() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write(
        "one.c",
        "#include \"two.h\"\n#include <stdio.h>\nint main(void) { printf(\"%d\\n\", two()); }\n",
    );
    sandbox.write("two.c", "#include \"two.h\"\nint count = 1;\nint two(void) { return count + three(); }\n");
    sandbox.write("two.h", "int two(void);\nint three(void);\n");
    sandbox.write("three.s", ".globl three\nthree: mov $41, %eax\nret\n.section .note.GNU-stack\n");
    let has = |file: &str, name: &str| {
        let bytes = std::fs::read(sandbox.path(file)).expect("a file");
        bytes.windows(name.len()).any(|window| window == name.as_bytes())
    };
    let cc = |args: &[&str]| -> Ran { sandbox.heisen(&[&["cc", "--symbolic"], args].concat()) };

    // All at once; and each by itself, in the ways of make.
    cc(&["one.c", "two.c", "three.s", "-o", "all", "-lm"]).expect(0);
    assert_eq!(output(&sandbox.path("all")), "42\n");
    cc(&["-O2", "-MD", "-c", "two.c"]).expect(0);
    let dependencies = std::fs::read_to_string(sandbox.path("two.d")).expect("dependencies");
    assert!(dependencies.starts_with("two.o: two.c two.h"), "{dependencies}");
    for name in ["heisen_sym_run", "heisen_sym_loaded", "__tsan_read4"] {
        assert!(has("two.o", name), "{name} is not in the object");
    }
    cc(&["-MMD", "-MF", "deps", "-MT", "goal", "-c", "one.c", "-o", "1.o"]).expect(0);
    assert!(
        std::fs::read_to_string(sandbox.path("deps")).is_ok_and(|text| text.starts_with("goal: one.c two.h"))
    );
    cc(&["-c", "three.s"]).expect(0);
    assert!(!has("three.o", "heisen_sym_run"));
    cc(&["1.o", "two.o", "three.o"]).expect(0);
    assert_eq!(output(&sandbox.path("a.out")), "42\n");
    cc(&["-shared", "-fPIC", "two.c", "three.o", "-o", "libtwo.so"]).expect(0);
    cc(&["one.c", "libtwo.so", "-Wl,-rpath,.", "-o", "dynamic"]).expect(0);
    let ran = Command::new("./dynamic").current_dir(sandbox.path("")).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "42\n");

    // What makes no object is clang's own.
    assert!(cc(&["-E", "two.c"]).expect(0).out.contains("int two(void)"));
    assert!(cc(&["--version"]).expect(0).out.contains("clang"));
    assert!(cc(&["-MM", "two.c"]).expect(0).out.starts_with("two.o: two.c two.h"));
    sandbox.write("wrong.c", "int main(void) { return x; }\n");
    assert!(cc(&["-c", "wrong.c"]).expect(1).err.contains("wrong.c:1:25: error"));
    cc(&["-fsanitize=address", "one.c"]).fails(2, &["-fsanitize=address"]);
}

#[test]
fn what_is_missing_is_named() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "int main(void) { return 0; }\n");
    let args = ["cc", "--symbolic", "-c", "a.c"];
    let ran = sandbox.run(sandbox.command(&args).env("HEISEN_CC", "gcc"));
    ran.fails(2, &["HEISEN_CC names gcc", "name a clang"]);
    let ran = sandbox.run(sandbox.command(&args).env("HEISEN_CC", "/nowhere/clang"));
    ran.fails(2, &["/nowhere/clang: ", "install clang"]);
    let ran = sandbox.run(sandbox.command(&args).env("RUSTC", "/nowhere/rustc"));
    ran.fails(2, &["needs rustc's LLVM", "/nowhere/rustc"]);
    // A clang whose bitcode is of another version.
    let newer = "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && printf 'BC\\300\\336\\0\\0' >\"$2\"; shift; done\n";
    let clang = sandbox.write("newer-clang", newer);
    let executable = Command::new("chmod").arg("+x").arg(&clang).status();
    assert!(executable.is_ok_and(|status| status.success()));
    let ran = sandbox.run(sandbox.command(&args).env("HEISEN_CC", &clang));
    ran.fails(2, &["a.c: ", "cannot read the bitcode", "install clang 22 or older"]);
}
