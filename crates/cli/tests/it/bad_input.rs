//! Tests bad input: programs that cannot run, sources that do not compile, options and paths that make no
//! sense. Each gets one message that says what is wrong and what to do, and an exit code from the table.
//! Nothing is left behind.

use heisen_testkit::{Ran, Sandbox};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A program that always ends with exit status 3.
const ENDS_WITH_3: &str = "int main(void) { return 3; }\n";

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions are set");
}

/// `heisen check -- ./NAME` for an executable file with this content.
fn check_file(bytes: &[u8]) -> Ran {
    let sandbox = Sandbox::new();
    set_mode(&sandbox.write("file", bytes), 0o755);
    sandbox.heisen(&["check", "--", "./file"])
}

/// The bytes of a small, valid executable.
fn executable() -> Vec<u8> {
    fs::read(Sandbox::new().compile("three.c", ENDS_WITH_3, &[])).expect("the program")
}

// Programs that cannot be run.

#[test]
fn nothing_to_check() {
    Sandbox::new().heisen(&["check"]).fails(2, &["nothing to check", "heisen check -- PROG"]);
    Sandbox::new().heisen(&["check", "--"]).fails(2, &["nothing to check", "heisen check -- PROG"]);
}

#[test]
fn the_program_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.heisen(&["check", "--", "./none"]).fails(2, &["./none: not found", "build it first"]);
    sandbox.heisen(&["check", "--", "/none/prog"]).fails(2, &["/none/prog: not found", "correct its path"]);
    sandbox
        .heisen(&["check", "--", "no-such-prog"])
        .fails(2, &["no-such-prog: not found in PATH", "write its path"]);
    sandbox.heisen(&["check", "--", ""]).fails(2, &["not found in PATH"]);
    sandbox.compile("three.c", ENDS_WITH_3, &[]);
    sandbox.heisen(&["check", "--", "three"]).fails(2, &["three: not found in PATH", "write ./three"]);
    sandbox.heisen(&["check", "three"]).fails(2, &["three is not a .c", "heisen check -- ./three"]);
    sandbox.heisen(&["check", "--", "./three/x"]).fails(2, &["./three/x", "Not a directory"]);
}

#[test]
fn the_program_is_not_executable() {
    let sandbox = Sandbox::new();
    set_mode(&sandbox.compile("three.c", ENDS_WITH_3, &[]), 0o644);
    sandbox.heisen(&["check", "--", "./three"]).fails(2, &["three is not executable", "chmod +x"]);
}

#[test]
fn the_program_is_no_regular_file() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("dir")).expect("a directory");
    sandbox
        .heisen(&["check", "--", "./dir"])
        .fails(2, &["dir is a directory, not a program", "name the executable"]);
    sandbox
        .heisen(&["check", "--", "/dev/null"])
        .fails(2, &["/dev/null is not a regular file", "name the executable"]);
    std::os::unix::fs::symlink("loop", sandbox.path("loop")).expect("a link");
    sandbox.heisen(&["check", "--", "./loop"]).fails(2, &["./loop", "symbolic links"]);
}

#[test]
fn the_program_is_a_script() {
    check_file(b"#!/bin/sh -e\nexit 0\n").fails(2, &["file is a script", "heisen check -- /bin/sh -e /"]);
    // Heisen would not control the program that `env` starts.
    check_file(b"#!/usr/bin/env python3\n").fails(2, &["file is a script", "heisen check -- python3 /"]);
}

#[test]
fn the_program_is_not_elf() {
    check_file(b"").fails(2, &["file is not an ELF executable but empty", "compiled programs"]);
    check_file(b"\x7fELF").fails(2, &["damaged ELF file", "build it again"]);
    let garbage: Vec<u8> = (0..5000u32).map(|n| (n * n / 7) as u8).collect();
    check_file(&garbage).fails(2, &["file is not an ELF executable", "compiled programs"]);
}

#[test]
fn the_program_is_truncated() {
    let whole = executable();
    // Truncated within the header, the segment table and the code.
    for length in [5, 20, 63, 100, 700, whole.len() / 3] {
        check_file(&whole[..length]).fails(2, &["file is a damaged ELF file", "build it again"]);
    }
}

#[test]
fn the_program_is_an_object_file_or_a_library() {
    let sandbox = Sandbox::new();
    let object = sandbox.compile("three.c", ENDS_WITH_3, &["-c"]);
    set_mode(&object, 0o755);
    sandbox.heisen(&["check", "--", "./three"]).fails(2, &["three is an object file", "link it first"]);
    sandbox.compile("lib.c", "int f(void) { return 0; }\n", &["-shared", "-fPIC"]);
    sandbox.heisen(&["check", "--", "./lib"]).fails(3, &["or a library"]);
}

#[test]
fn the_program_is_for_another_machine() {
    let mut wide = executable();
    wide[4] = 1;
    check_file(&wide).fails(3, &["file is a 32-bit program", "-m64"]);
    const AARCH64: u8 = 183;
    let mut other = executable();
    other[18] = AARCH64;
    check_file(&other)
        .fails(3, &["file is built for another processor", "x86-64", "build it for this machine"]);
    let mut big_endian = executable();
    big_endian[5] = 2;
    check_file(&big_endian).fails(3, &["file is built for another processor", "x86-64"]);
}

#[test]
fn the_program_is_linked_for_another_c_library() {
    let text = String::from_utf8_lossy(&executable()).into_owned();
    assert!(text.contains("/lib64/ld-linux-x86-64.so.2"));
    let mut bytes = executable();
    let at = bytes.windows(12).position(|w| w == b"ld-linux-x86").expect("the interpreter");
    bytes[at..at + 12].copy_from_slice(b"ld-musl-x86-");
    check_file(&bytes).fails(3, &["another C library", "ld-musl", "glibc"]);
}

#[test]
fn the_program_is_static() {
    let sandbox = Sandbox::new();
    sandbox.compile("three.c", ENDS_WITH_3, &["-static"]);
    sandbox.heisen(&["check", "--", "./three"]).fails(3, &["three is statically linked", "without -static"]);
}

#[test]
fn the_program_is_setuid() {
    let sandbox = Sandbox::new();
    let program = sandbox.compile("three.c", ENDS_WITH_3, &[]);
    for mode in [0o4755, 0o2755] {
        set_mode(&program, mode);
        sandbox
            .heisen(&["check", "--", "./three"])
            .fails(3, &["three is setuid or setgid", "check a copy without"]);
    }
}

// Sources.

#[test]
fn the_source_does_not_compile() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.c", "int main(void) { retrun 0; }\n");
    sandbox.write("bad.cpp", "int main() { std::nothing x; }\n");
    sandbox.write("bad.rs", "fn main() { let x: u32 = \"text\"; }\n");
    sandbox.write("none.c", "int f(void) { return 0; }\n");
    // The message includes the compiler's own, and no empty directory is left.
    sandbox.heisen(&["check", "bad.c"]).fails(2, &["bad.c does not compile", "error", "retrun"]);
    sandbox.heisen(&["check", "bad.cpp"]).fails(2, &["bad.cpp does not compile", "error", "nothing"]);
    sandbox.heisen(&["check", "bad.rs"]).fails(2, &["bad.rs does not compile", "mismatched types"]);
    sandbox.heisen(&["check", "none.c"]).fails(2, &["none.c does not compile", "main"]);
    fs::create_dir(sandbox.path("out")).expect("a directory");
    sandbox.heisen(&["check", "-o", "out", "bad.c"]).fails(2, &["bad.c does not compile"]);
    assert!(sandbox.path("out").is_dir(), "what was there before stays");
}

#[test]
fn the_compiler_is_missing_or_strange() {
    let sandbox = Sandbox::new();
    for (file, variable, need) in
        [("a.c", "CC", "a C compiler"), ("a.cpp", "CXX", "a C++ compiler"), ("a.rs", "RUSTC", "Rust")]
    {
        sandbox.write(file, "");
        let mut command = sandbox.command(&["check", file]);
        let missing = sandbox.run(command.env(variable, "/nonexistent"));
        missing.fails(2, &["/nonexistent: No such file", need, &format!("set {variable}")]);
    }
    let with = |compiler: &str| sandbox.run(sandbox.command(&["check", "a.c"]).env("CC", compiler));
    with("/bin/false").fails(2, &["a.c does not compile (/bin/false: exit status: 1)"]);
    with("/bin/true").fails(2, &["/bin/true made no executable of a.c", "set CC"]);
    sandbox.write("a.c", "int main(void) { return STATUS; }\n");
    with("cc -DSTATUS=0").expect(0);
}

#[test]
fn the_source_is_no_source() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("dir.c")).expect("a directory");
    sandbox.write("text.txt", "");
    sandbox.heisen(&["check", "none.c"]).fails(2, &["none.c: not found", "correct its path"]);
    sandbox.heisen(&["check", "dir.c"]).fails(2, &["dir.c is not a regular file", "name a source file"]);
    sandbox
        .heisen(&["check", "text.txt"])
        .fails(2, &["text.txt is not a .c, .cc, .cpp or .rs file", "write: heisen"]);
    sandbox
        .heisen(&["check", "none"])
        .fails(2, &["none is not a .c, .cc, .cpp or .rs file", "write: heisen"]);
}

// Options and paths.

#[test]
fn options_that_make_no_sense() {
    let sandbox = Sandbox::new();
    sandbox.compile("three.c", ENDS_WITH_3, &[]);
    for (options, words) in [
        (
            &["--strategy", "foo"][..],
            &[
                "'foo'",
                "--strategy",
                "icb, dfs, best, dpor, causal, random, burst, pct, fair-pct, pos, surw, delay, guided, directed, portfolio",
            ][..],
        ),
        (&["--time", "3x"], &["'3x'", "--time", "use ms, s, m or h"]),
        (&["--time", "-1s"], &["'-1s'", "--time", "such as 30s"]),
        (&["--hang", "0"], &["'0'", "--hang", "more than 0"]),
        (&["--jobs", "0"], &["'0'", "--jobs", "1..=1024"]),
        (&["--jobs", "many"], &["'many'", "--jobs"]),
        (&["--bound", "-1"], &["'-1'", "--bound", "0.."]),
        (&["--depth", "0"], &["'0'", "--depth", "1..=32"]),
        (&["--burst", "0"], &["'0'", "--burst", "1..=1000000"]),
        (&["--burst", "long"], &["'long'", "--burst"]),
        (&["--delays", "0"], &["'0'", "--delays", "1..=64"]),
        (&["--delays", "65"], &["'65'", "--delays", "1..=64"]),
        (&["--spurious", "-1"], &["'-1'", "--spurious", "0.."]),
        (&["--faults", "-1"], &["'-1'", "--faults", "is not a number of faults"]),
        (&["--faults", "1:fire"], &["'1:fire'", "no fault is called", "there are malloc"]),
        (&["--executions", "0"], &["'0'", "--executions", "1.."]),
        (&["--steps", "1"], &["'1'", "--steps", "10..="]),
        (&["--expect-exit", "256"], &["'256'", "--expect-exit", "0..=255"]),
        (&["--seed", "x"], &["'x'", "--seed"]),
        (&["--unknown"], &["'--unknown'", "Usage: heisen check"]),
    ] {
        let all = [&["check"], options, &["--", "./three"]].concat();
        sandbox.heisen(&all).fails(2, words).fails(2, &["--help"]);
    }
    for (arguments, words) in [
        (&["bogus"][..], &["'bogus'", "Usage: heisen"][..]),
        (&["replay"], &["<SCHEDULE>", "Usage: heisen replay"]),
        (&["show"], &["<SCHEDULE>", "Usage: heisen show"]),
        (&["check", "a.c", "b.c"], &["'b.c'", "Usage: heisen check"]),
    ] {
        sandbox.heisen(arguments).fails(2, words);
    }
    sandbox.heisen(&["--help"]).expect(0);
    assert!(sandbox.heisen(&[]).expect(2).err.contains("Usage: heisen"));
}

#[test]
fn results_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    sandbox.compile("three.c", ENDS_WITH_3, &[]);
    sandbox.write("file", "mine");
    fs::create_dir(sandbox.path("dir")).expect("a directory");
    let check = |options: &[&str]| sandbox.heisen(&[&["check"], options, &["--", "./three"]].concat());
    // These errors are found before the search, not after it.
    check(&["-o", "file"]).fails(2, &["file is not a directory", "another with -o"]);
    check(&["-o", "file/sub"]).fails(2, &["file is not a directory", "another with -o"]);
    check(&["--json", "/nonexistent/x.json"])
        .fails(2, &["x.json cannot be written", "/nonexistent", "create it"]);
    check(&["--json", "file/x.json"]).fails(2, &["file/x.json cannot be written", "not a directory"]);
    check(&["--json", "dir"]).fails(2, &["dir is a directory", "name a file for --json"]);
    assert_eq!(fs::read_to_string(sandbox.path("file")).expect("the file"), "mine");
}

#[test]
fn a_finding_that_cannot_be_written_is_still_shown() {
    let sandbox = Sandbox::new();
    sandbox.compile("three.c", ENDS_WITH_3, &[]);
    let finding = sandbox.finds("exit-status", &["--", "./three"]);
    let schedule = sandbox.path(finding["schedule"].as_str().expect("a schedule"));
    fs::remove_file(&schedule).expect("the schedule is removed");
    fs::create_dir(&schedule).expect("a directory in its place");
    let ran = sandbox.heisen(&["check", "--", "./three"]).fails(2, &["schedule cannot be written"]);
    assert!(ran.out.contains("exit status 3, not 0"), "{}", ran.out);
    assert!(!ran.out.contains("replay it"), "{}", ran.out);
}

#[test]
fn devices_and_links_are_written_through() {
    let sandbox = Sandbox::new();
    sandbox.compile("three.c", ENDS_WITH_3, &[]);
    sandbox.write("target", "");
    std::os::unix::fs::symlink("target", sandbox.path("link")).expect("a link");
    std::os::unix::fs::symlink("/dev/null", sandbox.path("null")).expect("a link");
    for name in ["link", "null"] {
        sandbox.heisen(&["check", "--expect-exit", "3", "--json", name, "--", "./three"]).expect(0);
        assert!(sandbox.path(name).is_symlink(), "{name} was replaced");
    }
    assert!(
        fs::read_to_string(sandbox.path("target")).expect("the result").contains("\"verdict\": \"clean\"")
    );
}

#[test]
fn no_room_for_the_runtime() {
    let sandbox = Sandbox::new();
    sandbox.compile("three.c", ENDS_WITH_3, &[]);
    let file = sandbox.write("file", "");
    let mut command = sandbox.command(&["check", "--", "./three"]);
    let ran = sandbox.run(command.env("XDG_CACHE_HOME", &file).env("TMPDIR", &file));
    ran.fails(5, &["the runtime cannot be unpacked", "set XDG_CACHE_HOME to a writable directory"]);
}

#[test]
fn resources_of_heisen_itself_are_short() {
    let sandbox = Sandbox::new();
    sandbox.compile("three.c", ENDS_WITH_3, &[]);
    let limited = |limit: &str| {
        sandbox.run(&mut sandbox.shell(&format!("ulimit {limit}; exec \"$0\" check -- ./three")))
    };
    // Too little memory for the stack of one thread, too little for the shared memory, too few descriptors
    // for the pipes.
    limited("-d 1900").fails(5, &["no thread can be started", "ulimit"]);
    limited("-v 60000").fails(5, &["no shared memory", "ulimit"]);
    limited("-n 6").fails(2, &["three cannot be started", "Too many open files"]);
}
