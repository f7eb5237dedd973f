//! Symbolic builds of libraries that others wrote, each with a driver of ours: their output is that of native builds, without
//! Heisen and with it, with and without inputs, and no expression is wrong. Where a library has tests of its own that need
//! no other tool, they pass.
//!
//! `scripts/install-programs` downloads the sources. A library whose source is not there is skipped. The numbers that this
//! prints are a table of `docs/evidence/symbolic.md`. `LIBRARY=name` in the environment chooses one.

use super::*;
use heisen_engine::program::symbolic::{C, Output as Said, clang, run};
use heisen_testkit::Sandbox;
use heisen_trace::symbolic::PinReason;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A library.
struct Library {
    name: &'static str,
    /// Its sources, below a directory of its name.
    sources: &'static str,
    flags: &'static [&'static str],
    /// Its own tests: their sources, each a program.
    tests: &'static str,
    /// What each of them is compiled with.
    test_sources: &'static str,
}

const NO_TESTS: Library = Library { name: "", sources: "", flags: &[], tests: "", test_sources: "" };

const LIBRARIES: &[Library] = &[
    Library {
        name: "zlib",
        sources: "adler32.c compress.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c uncompr.c zutil.c",
        flags: &["-DHAVE_UNISTD_H", "-DHAVE_STDARG_H"],
        ..NO_TESTS
    },
    Library {
        name: "bzip2",
        sources: "blocksort.c bzlib.c compress.c crctable.c decompress.c huffman.c randtable.c",
        flags: &["-DBZ_NO_STDIO"],
        ..NO_TESTS
    },
    Library { name: "lz4", sources: "lz4.c lz4frame.c lz4hc.c xxhash.c", ..NO_TESTS },
    Library {
        name: "cjson",
        sources: "cJSON.c",
        flags: &["-lm", "-Itests/unity/src", "-Itests/unity/examples"],
        tests: "cjson_add compare_tests misc_tests parse_array parse_hex4 parse_number parse_object parse_string \
                parse_value print_array print_number print_object print_string print_value",
        test_sources: "tests/unity/src/unity.c",
    },
    Library {
        name: "libuv",
        sources: "test/test-threadpool.c src/fs-poll.c src/idna.c src/inet.c src/random.c src/strscpy.c src/strtok.c \
                  src/thread-common.c src/threadpool.c src/timer.c src/uv-common.c src/uv-data-getter-setters.c src/version.c \
                  src/unix/async.c src/unix/core.c src/unix/dl.c src/unix/fs.c src/unix/getaddrinfo.c src/unix/getnameinfo.c \
                  src/unix/loop-watcher.c src/unix/loop.c src/unix/pipe.c src/unix/poll.c src/unix/process.c \
                  src/unix/random-devurandom.c src/unix/random-getrandom.c src/unix/random-sysctl-linux.c src/unix/signal.c \
                  src/unix/stream.c src/unix/tcp.c src/unix/thread.c src/unix/tty.c src/unix/udp.c src/unix/proctitle.c \
                  src/unix/linux.c src/unix/procfs-exepath.c",
        flags: &["-D_GNU_SOURCE", "-Iinclude", "-Isrc", "-Itest", "-pthread", "-ldl", "-lrt"],
        ..NO_TESTS
    },
    Library {
        name: "sqlite",
        sources: "sqlite3.c",
        flags: &["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-lm"],
        ..NO_TESTS
    },
];

/// How many bytes are inputs.
const MARKED: [&str; 2] = ["0", "64"];

/// The directory of a library's source.
fn directory(library: &Library) -> PathBuf {
    let programs =
        std::env::var_os("HEISEN_PROGRAMS").map_or_else(|| root().join("target/programs"), PathBuf::from);
    programs.join("sources").join(library.name)
}

/// The arguments of a compiler in the directory of the library.
fn arguments(library: &Library, sources: &[String], program: &Path) -> Vec<OsString> {
    let directory = directory(library).display().to_string();
    let here = |flag: &&str| match flag.strip_prefix("-I") {
        Some(include) => format!("-I{directory}/{include}"),
        None => (*flag).to_owned(),
    };
    let mut all: Vec<String> = vec!["-w".into(), "-g".into(), format!("-I{directory}")];
    all.push(format!("-I{}", root().join("include").display()));
    all.extend(sources.iter().cloned());
    all.extend(library.flags.iter().map(here));
    all.extend(["-o".into(), program.display().to_string()]);
    all.into_iter().map(OsString::from).collect()
}

/// Builds natively or symbolically. Returns the processor time in seconds.
fn build(arguments: Vec<OsString>, symbolic: bool) -> f64 {
    let start = Instant::now();
    if symbolic {
        let clang = clang(C, &[]).expect("a clang");
        let ran = run(&clang, &arguments, Said::Captured).expect("it is built");
        assert!(ran.success, "{}", String::from_utf8_lossy(&ran.said));
    } else {
        let ran = Command::new("clang").arg("-O1").args(arguments).status();
        assert!(ran.is_ok_and(|status| status.success()));
    }
    start.elapsed().as_secs_f64()
}

/// The bytes of a program's code.
fn text(program: &Path) -> u64 {
    use object::{Object, ObjectSection};
    let bytes = std::fs::read(program).expect("a program");
    let file = object::File::parse(&*bytes).expect("an executable");
    file.section_by_name(".text").expect("code").size()
}

/// What a trace says, as cells of a table.
fn row(trace: &SymbolicTrace) -> String {
    let mut pins: BTreeMap<PinReason, u64> = BTreeMap::new();
    for event in &trace.events {
        if let EventKind::Pin { reason, .. } = event.kind {
            *pins.entry(reason).or_default() += 1;
        }
    }
    let list = |all: Vec<String>| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    let pins = list(pins.iter().map(|(reason, count)| format!("{count} {reason:?}")).collect());
    let losses = &trace.losses;
    let mut lost: Vec<String> =
        losses.functions.iter().map(|(name, count)| format!("`{name}` {count}")).collect();
    lost.extend((losses.overwritten > 0).then(|| format!("{} overwritten", losses.overwritten)));
    format!(
        "{} | {} | {pins} | {}{}",
        trace.nodes.len(),
        branches(trace).len(),
        list(lost),
        if losses.full { ", trace full" } else { "" }
    )
}

/// Runs the driver of a library in a symbolic build with a trace. Returns the rows of the table.
fn traced(name: &str, program: &Path, marked: &str, out: &Path, expected: &[u8]) -> String {
    let symbolic = Symbolic { memory: 512 << 20, ..Symbolic::default() };
    let config = RunConfig { symbolic: Some(symbolic), ..RunConfig::default() };
    let runtime = embedded::runtime().expect("the runtime is written");
    let arguments = vec![marked.into(), out.as_os_str().to_owned()];
    let found = Program::find(program.as_os_str(), arguments).expect("a program");
    let mut parked =
        Parked(Zygote::start(&runtime, &found, &config, Output::Dropped).expect("the program is parked"));
    // Where memory turns out to be shared, the same plan runs again.
    let mut start = Instant::now();
    let mut runs = (0..50).map(|_| {
        start = Instant::now();
        parked.run(&Plan::new(Policy::Default)).execution
    });
    let complete =
        |execution: &Execution| execution.symbolic.as_ref().is_some_and(|trace| !trace.losses.incomplete);
    let Execution { end, symbolic, .. } = runs.find(complete).expect("a complete trace");
    assert_eq!(end, End::Exit(0), "{name} with {marked} bytes");
    assert_eq!(std::fs::read(out).expect("its output"), expected, "{name} with {marked} bytes");
    let trace = symbolic.expect("a trace");
    drop(runs);
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}, {marked} bytes: {:.3} million nodes in {seconds:.3} s", trace.nodes.len() as f64 / 1e6);
    let wrong: Vec<_> = trace.wrong_events().into_iter().map(|at| &trace.events[at]).collect();
    assert!(wrong.is_empty(), "{name}: {} of {}: {:#?}", wrong.len(), trace.events.len(), wrong[0]);
    format!("| {name} | {marked} | {} |", row(&trace))
}

/// The library's own tests, without Heisen.
fn own_tests(library: &Library, sandbox: &Sandbox) {
    let directory = directory(library);
    for test in library.tests.split_whitespace() {
        let files = [format!("tests/{test}.c")];
        let more = library.test_sources.split_whitespace().map(str::to_owned);
        let sources: Vec<String> =
            files.into_iter().chain(more).map(|file| directory.join(file).display().to_string()).collect();
        let program = sandbox.path(test);
        build(arguments(library, &sources, &program), true);
        let ran = Command::new(&program).current_dir(directory.join("tests")).output().expect("it starts");
        assert!(ran.status.success(), "{test}: {}", String::from_utf8_lossy(&ran.stdout));
    }
}

/// Checks one library. `None` if its source is not there.
fn check(library: &Library) -> Option<Vec<String>> {
    let name = library.name;
    if !directory(library).is_dir() {
        println!("skipped: no source of {name}; run scripts/install-programs");
        return None;
    }
    let sandbox = Sandbox::new();
    let driver = root().join("crates/runtime/tests/it/symbolic/programs").join(format!("{name}.c"));
    let mut sources = vec![driver.display().to_string()];
    let files = library.sources.split_whitespace();
    sources.extend(files.map(|file| directory(library).join(file).display().to_string()));
    // cJSON's tests include its source themselves.
    let [native, symbolic] = ["native", "symbolic"].map(|program| sandbox.path(program));
    let seconds = [(&native, false), (&symbolic, true)]
        .map(|(program, symbolic)| build(arguments(library, &sources, program), symbolic));
    let mut rows = Vec::new();
    for marked in MARKED {
        let [expected, out] = [&native, &symbolic].map(|program| {
            let ran = Command::new(program).arg(marked).output().expect("it starts");
            assert!(ran.status.success(), "{name}: {}", ran.status);
            ran.stdout
        });
        let same = !expected.is_empty() && out == expected;
        assert!(same, "{name}, without Heisen");
        rows.push(traced(name, &symbolic, marked, &sandbox.path("out"), &expected));
    }
    own_tests(library, &sandbox);
    let [small, large] = [text(&native), text(&symbolic)];
    println!(
        "{name}: .text {small} to {large} bytes, {:.1} times; built in {:.1} and {:.1} s",
        large as f64 / small as f64,
        seconds[0],
        seconds[1]
    );
    Some(rows)
}

/// Checks those libraries of which the name is one of these.
fn check_all(names: &[&str]) {
    if clang(C, &[]).is_err() {
        return eprintln!("skipped: no clang (scripts/install-programs installs it)");
    }
    let only = std::env::var("LIBRARY").ok();
    let names = only.as_deref().map_or(names.to_vec(), |name| vec![name]);
    let chosen = LIBRARIES.iter().filter(|library| names.contains(&library.name));
    let rows: Vec<String> = chosen.filter_map(check).flatten().collect();
    println!("{}", rows.join("\n"));
}

#[test]
#[ignore = "needs sources from scripts/install-programs; half a minute"]
fn libraries_do_the_same_as_natively() {
    check_all(&["zlib", "bzip2", "lz4", "cjson", "libuv"]);
}

#[test]
#[ignore = "needs sources from scripts/install-programs; a minute to compile"]
fn sqlite_does_the_same_as_natively() {
    check_all(&["sqlite"]);
}
