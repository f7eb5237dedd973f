//! Tests `--with-std`, which instruments Rust's standard library together with the program.

use heisen_testkit::{Ran, Sandbox, root};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;

/// Whether the compiler has its LLVM as a library. Without it these tests are skipped.
fn has_llvm() -> bool {
    match heisen_llvm::library::find(OsStr::new("rustc")) {
        Ok(_) => true,
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// Programs that pass data between threads through code inside the standard library; the last one has a race,
/// half of which is inside.
const HANDED: &str = r#"
use std::cell::UnsafeCell;
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

struct Shared(UnsafeCell<u8>);
// SAFETY: what uses it is ordered by what is tested; but for `text`, whose race is wanted.
unsafe impl Sync for Shared {}
static DATA: Shared = Shared(UnsafeCell::new(b'a'));

fn set() {
    // SAFETY: as above.
    unsafe { *DATA.0.get() = b'b' }
}

fn get() -> u8 {
    // SAFETY: as above.
    unsafe { *DATA.0.get() }
}

#[test]
fn barrier() {
    let barrier = Arc::new(Barrier::new(2));
    let other = barrier.clone();
    let thread = thread::spawn(move || {
        set();
        other.wait();
    });
    barrier.wait();
    assert_eq!(get(), b'b');
    thread.join().unwrap();
}

#[test]
fn channel() {
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || {
        send.send(Box::new(1)).unwrap();
        send.send(Box::new(2)).unwrap();
    });
    assert_eq!(receive.iter().map(|number| *number).sum::<u32>(), 3);
    thread.join().unwrap();
}

#[test]
fn condvar() {
    let ready = Arc::new((Mutex::new(false), Condvar::new()));
    let other = ready.clone();
    let thread = thread::spawn(move || {
        set();
        *other.0.lock().unwrap() = true;
        other.1.notify_one();
    });
    let mut is_ready = ready.0.lock().unwrap();
    while !*is_ready {
        is_ready = ready.1.wait(is_ready).unwrap();
    }
    drop(is_ready);
    assert_eq!(get(), b'b');
    thread.join().unwrap();
}

#[test]
fn mutex() {
    let count = Arc::new(Mutex::new(0));
    let add = |count: Arc<Mutex<u32>>| thread::spawn(move || *count.lock().unwrap() += 1);
    let threads = [add(count.clone()), add(count.clone())];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*count.lock().unwrap(), 2);
}

#[test]
fn once() {
    static CELL: OnceLock<Box<u32>> = OnceLock::new();
    let get = || **CELL.get_or_init(|| Box::new(1));
    let thread = thread::spawn(get);
    assert_eq!(get(), thread.join().unwrap());
}

/// The token is already there: no thread waits, so no system call shows the order.
#[test]
fn park() {
    let me = thread::current();
    let thread = thread::spawn(move || {
        set();
        me.unpark();
    });
    thread::sleep(Duration::from_millis(1));
    thread::park();
    assert_eq!(get(), b'b');
    thread.join().unwrap();
}

/// Precompiled code reads the validated bytes.
#[test]
fn text() {
    let thread = thread::spawn(set);
    // SAFETY: there is one byte. It is written meanwhile, which is the race.
    let bytes = unsafe { std::slice::from_raw_parts(DATA.0.get(), 1) };
    assert!(std::str::from_utf8(bytes).is_ok());
    thread.join().unwrap();
}
"#;

/// The lines about tests, without the time.
fn lines(ran: &Ran) -> Vec<&str> {
    let lines = ran.out.lines().filter(|line| line.starts_with("test ") && !line.starts_with("test result"));
    lines.map(|line| line.rsplit_once(", ").map_or(line, |(line, _)| line)).collect()
}

/// Names and verdicts of tests.
fn verdicts(ran: &Ran) -> Vec<&str> {
    lines(ran).iter().map(|line| line.split(" (").next().unwrap_or(line)).collect()
}

fn package() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("Cargo.toml", "[package]\nname = \"handed\"\nedition = \"2021\"\n[workspace]\n");
    sandbox.write("src/lib.rs", HANDED);
    sandbox
}

/// Without patches, Heisen does not see inside the prebuilt library: it misses orders and races.
#[test]
fn without_it_order_and_races_are_missed() {
    let ran = package().cargo_heisen(&["test", "--races=stop", "--patch", "none", "park", "text"]).expect(1);
    assert_eq!(verdicts(&ran), ["test park ... FAILED", "test text ... ok"], "{}", ran.out);
    assert!(
        ran.out.contains(
            "not instrumented, so accesses there were not explored: Rust's own libraries of handed-"
        ),
        "{}",
        ran.out
    );
}

#[test]
fn order_and_races_inside_the_standard_library_are_seen() {
    if !has_llvm() {
        return;
    }
    let sandbox = package();
    let args = ["test", "--with-std", "--races=stop", "--patch", "none", "--bound", "1"];
    let ran = sandbox.cargo_heisen(&args).expect(1);
    assert_eq!(
        verdicts(&ran),
        [
            "test barrier ... ok",
            "test channel ... ok",
            "test condvar ... ok",
            "test mutex ... ok",
            "test once ... ok",
            "test park ... ok",
            "test text ... FAILED",
        ],
        "{}",
        ran.out
    );
    for words in [
        "data race: ",
        "T2 writes 1 byte",
        "at src/lib.rs:14",
        "T1 reads 1 byte",
        "core::str::converts::from_utf8",
    ] {
        assert!(ran.out.contains(words), "{words:?} is not in\n{}", ran.out);
    }
    assert!(!ran.out.contains("Rust's own libraries"), "{}", ran.out);
    // The bitcode of the program, which is larger than the program, is deleted.
    let in_deps = |name: &&String| name.contains("/deps/handed-") && !name.contains('.');
    let program = ran.made.iter().find(in_deps).expect("the program");
    assert!(!ran.made.contains(&format!("{program}.bc")), "{:?}", ran.made);

    // The result is the same if the learnt access points are deleted, and when replayed. The schedule records
    // the build with the standard library.
    std::fs::remove_dir_all(sandbox.path("target/heisen/schedules/points")).expect("points");
    let again = sandbox.cargo_heisen(&args).expect(1);
    assert_eq!(lines(&again), lines(&ran));
    assert!(!again.err.contains("Compiling"), "{}", again.err);
    let line = ran.out.lines().find(|line| line.starts_with("test text")).expect("a line");
    let (_, schedule) = line.split_once(" schedule: ").expect("a schedule");
    let replayed = sandbox.cargo_heisen(&["replay", schedule]).expect(1);
    assert!(replayed.messages().is_empty() && !replayed.err.contains("Compiling"), "{}", replayed.err);
}

/// Build scripts and procedural macros are not instrumented; everything else is one program, which may abort
/// on panic.
#[test]
fn workspaces_build() {
    if !has_llvm() {
        return;
    }
    let sandbox = Sandbox::new();
    let manifest = |name: &str, more: &str| format!("[package]\nname = {name:?}\nedition = \"2021\"\n{more}");
    sandbox.write(
        "Cargo.toml",
        "[workspace]\nmembers = ['app', 'count', 'two']\nresolver = '2'\n[profile.release]\npanic = 'abort'\nlto = 'off'\n",
    );
    let count = "count = { path = '../count' }\n";
    let more = format!("[dependencies]\n{count}two = {{ path = '../two' }}\n[build-dependencies]\n{count}");
    sandbox.write("app/Cargo.toml", manifest("app", &more));
    sandbox.write("app/build.rs", "fn main() { println!(\"cargo::rustc-env=BUILT={}\", count::count(3)) }");
    sandbox.write(
        "app/src/main.rs",
        "fn main() {\n    assert_eq!(env!(\"BUILT\"), \"3\");\n    let n = count::count(two::two!());\n    \
         assert!(std::env::args().len() == 1 || n == 1, \"it is {n}\");\n}\n",
    );
    sandbox.write("count/Cargo.toml", manifest("count", ""));
    sandbox.write(
        "count/src/lib.rs",
        "use std::sync::{Arc, Mutex};\npub fn count(n: u32) -> u32 {\n    let sum = Arc::new(Mutex::new(0));\n    \
         let add = |sum: Arc<Mutex<u32>>| std::thread::spawn(move || *sum.lock().unwrap() += 1);\n    \
         let all: Vec<_> = (0..n).map(|_| add(sum.clone())).collect();\n    \
         all.into_iter().for_each(|thread| thread.join().unwrap());\n    let n = *sum.lock().unwrap();\n    n\n}\n",
    );
    sandbox.write("two/Cargo.toml", manifest("two", "[lib]\nproc-macro = true\n"));
    sandbox.write(
        "two/src/lib.rs",
        "#[proc_macro]\npub fn two(_: proc_macro::TokenStream) -> proc_macro::TokenStream { \"2\".parse().unwrap() }\n",
    );
    let run = ["run", "--with-std", "--release", "--bound", "1"];
    let ran = sandbox.cargo_heisen(&run).expect(0);
    assert!(
        ran.out.starts_with("ok: no bug in any sequentially consistent schedule with at most 1 preemption"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("not instrumented"), "{}", ran.out);
    // Line numbers are correct.
    let ran = sandbox.cargo_heisen(&[&run[..], &["--", "wrong"]].concat()).expect(1);
    for words in ["\n    it is 2\n", "in T0 (main), app::main at app/src/main.rs:4\n"] {
        assert!(ran.out.contains(words), "{words:?} is not in\n{}", ran.out);
    }
    // The program also runs without Heisen.
    let built = sandbox.cargo_heisen(&["build", "--with-std", "--release"]).expect(0);
    let program = sandbox.path(built.out.trim_end());
    assert!(
        std::process::Command::new(&program).status().is_ok_and(|status| status.success()),
        "{program:?}"
    );
}

#[test]
#[ignore = "half a minute: part of the nightly tests"]
fn single_files_are_checked_and_built_again() {
    if !has_llvm() {
        return;
    }
    let sandbox = Sandbox::new();
    for name in ["order", "order_fixed"] {
        let text = std::fs::read(root().join(format!("examples/rust/{name}.rs"))).expect("the example");
        sandbox.write(&format!("{name}.rs"), text);
    }
    let found = sandbox.heisen(&["check", "--with-std", "order.rs"]).expect(1);
    let schedule = found.made.iter().find(|name| name.ends_with(".schedule")).expect("a schedule").clone();
    assert!(!found.out.contains("not instrumented"), "{}", found.out);
    std::fs::remove_dir_all(sandbox.path(".heisen/build")).expect("the program");
    let again = sandbox.heisen(&["replay", &schedule]).expect(1);
    assert!(again.messages().is_empty(), "{}", again.err);
    sandbox.heisen(&["check", "--with-std", "--races=stop", "--bound", "1", "order_fixed.rs"]).expect(0);
}

#[test]
fn what_cannot_be_done_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "int main(void) { return 0; }");
    sandbox.write("a.rs", "fn main() {}");
    sandbox.heisen(&["check", "--with-std", "a.c"]).fails(2, &["a.c is not a .rs file", "--with-std"]);
    sandbox.heisen(&["check", "--with-std", "--", "true"]).fails(2, &["required", "<FILE>"]);
    sandbox.heisen(&["check", "--with-std", "--no-instrument", "a.rs"]).fails(2, &["--no-instrument"]);
    // A compiler without LLVM, one that prints nothing, and a missing one.
    let sysroot = sandbox.path("rust");
    let script = |name: &str, text: &str| {
        let path = sandbox.write(name, format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("executable");
        path
    };
    let bare = script("bare", &format!("echo {}", sysroot.display()));
    let silent = script("silent", "exit 1");
    for (rustc, words) in [
        (bare.as_path(), "lib has no libLLVM.so"),
        (silent.as_path(), "does not say where it is installed"),
        (std::path::Path::new("/nowhere/rustc"), "install Rust, or set RUSTC"),
    ] {
        let ran = sandbox.run(sandbox.command(&["check", "--with-std", "a.rs"]).env("RUSTC", rustc));
        ran.fails(2, &["the standard library cannot be instrumented: ", words]);
    }
    // A file that is not an LLVM library.
    let library = sandbox.write("rust/lib/libLLVM.so.99", "not a library");
    let ran = sandbox.run(sandbox.command(&["check", "--with-std", "a.rs"]).env("RUSTC", &bare));
    ran.fails(2, &["LLVM cannot be loaded", library.to_str().expect("text")]);
}
