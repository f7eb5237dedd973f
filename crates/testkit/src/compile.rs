//! Compiles the programs of tests.
//!
//! [`compile`] compiles a program into a directory of the test. [`compile_once`] compiles it once for all
//! tests, below the target directory. It is for programs beside which nobody writes files and whose processes
//! no test counts.

use crate::executable::profile_directory;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// A compiler, and the flags for all programs.
struct Compiler {
    name: &'static str,
    flags: &'static [&'static str],
    /// The flag that replaces a directory by another one in the paths of debug information.
    remap: &'static str,
}

/// The compiler for a file, chosen by its extension.
fn compiler(name: &str) -> Compiler {
    match Path::new(name).extension().and_then(|ending| ending.to_str()) {
        Some("c") => Compiler { name: "cc", flags: &["-g", "-pthread"], remap: "-ffile-prefix-map=" },
        Some("cpp") => {
            Compiler { name: "c++", flags: &["-g", "-pthread", "-std=c++17"], remap: "-ffile-prefix-map=" }
        }
        Some("rs") => {
            Compiler { name: "rustc", flags: &["-g", "--edition=2021"], remap: "--remap-path-prefix=" }
        }
        other => panic!("no compiler for {other:?}"),
    }
}

/// Compiles C, C++ or Rust text, chosen by the extension of `name`, with extra flags. The program lies beside
/// its source, in `directory`.
pub fn compile(directory: &Path, name: &str, text: &str, flags: &[&str]) -> PathBuf {
    compile_with(&compiler(name), directory, name, text, flags)
}

fn compile_with(compiler: &Compiler, directory: &Path, name: &str, text: &str, flags: &[&str]) -> PathBuf {
    let source = directory.join(name);
    std::fs::write(&source, text).expect("the source is written");
    let program = source.with_extension("");
    let output = Command::new(compiler.name)
        .args(compiler.flags)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(flags)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}", compiler.name));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Like [`compile`], but compiles only once for all tests with the same text, flags, compiler and headers.
/// Tests must not change the program or its directory.
pub fn compile_once(name: &str, text: &str, flags: &[&str]) -> PathBuf {
    let compiler = compiler(name);
    let mut hasher = DefaultHasher::new();
    (name, text, flags, compiler.name, compiler.flags, version(compiler.name)).hash(&mut hasher);
    for directory in flags.iter().filter_map(|flag| flag.strip_prefix("-I")) {
        hash_headers(Path::new(directory), &mut hasher);
    }
    let all = profile_directory().join("heisen-tests");
    let place = all.join(format!("{:016x}", hasher.finish()));
    let program = place.join(name).with_extension("");
    if program.exists() {
        return program;
    }
    // Compiles elsewhere and then renames, so that other tests and processes see the complete directory or
    // none.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = place.with_extension(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&temporary).expect("a directory");
    let remap = format!("{}{}={}", compiler.remap, temporary.display(), place.display());
    compile_with(&compiler, &temporary, name, text, &[flags, &[&remap]].concat());
    if std::fs::rename(&temporary, &place).is_err() {
        // Another test was first.
        assert!(program.exists(), "{} is not there", program.display());
        std::fs::remove_dir_all(&temporary).expect("the other copy is removed");
    }
    program
}

/// The output of the compiler for `--version`.
fn version(compiler: &'static str) -> String {
    static KNOWN: Mutex<Option<HashMap<&'static str, String>>> = Mutex::new(None);
    let mut known = KNOWN.lock().expect("no panic while it was held");
    let ask = || {
        let output = Command::new(compiler).arg("--version").output();
        String::from_utf8_lossy(&output.unwrap_or_else(|e| panic!("{compiler}: {e}")).stdout).into_owned()
    };
    known.get_or_insert_default().entry(compiler).or_insert_with(ask).clone()
}

/// Adds the headers of a directory to the hash.
fn hash_headers(directory: &Path, hasher: &mut impl Hasher) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut headers: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "h")).collect();
    headers.sort();
    for header in headers {
        (&header, std::fs::read(&header).expect("a header")).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_compiled_once() {
        let text = "int main(void) { return 3; }";
        let program = compile_once("three.c", text, &[]);
        let modified = |path: &Path| path.metadata().expect("it exists").modified().expect("a time");
        let first = modified(&program);
        let again: Vec<PathBuf> = std::thread::scope(|scope| {
            let compiled = || scope.spawn(|| compile_once("three.c", text, &[]));
            let threads = [compiled(), compiled()];
            threads.into_iter().map(|thread| thread.join().expect("it compiles")).collect()
        });
        assert_eq!(again, [program.clone(), program.clone()]);
        assert_eq!(modified(&program), first);
        assert_eq!(Command::new(&program).status().expect("it runs").code(), Some(3));
        let other = compile_once("three.c", text, &["-O1"]);
        assert_ne!(other, program);
    }
}
