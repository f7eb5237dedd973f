//! Selects the modules to be patched.

use crate::error::{Error, Result};
use crate::platform::glob::matches_end;
use crate::program::uninstrumented;
use heisen_inspect::Loaded;

/// Stands for the program itself and its own libraries.
pub const DEFAULT: &str = "default";
/// Like [`DEFAULT`], but the mutexes of Rust's standard library count as their instructions rather than as
/// locks.
pub const INSTRUCTIONS: &str = "instructions";
/// Stands for no module at all.
pub const NONE: &str = "none";
/// Stands for the instrumented modules among those of [`DEFAULT`].
pub const INSTRUMENTED: &str = "instrumented";

/// Modules that are never patched, by their name up to `.so`: the C library and the loader, whose locks the
/// scheduler does not know, and the language libraries between them and the program.
const NEVER: [&str; 17] = [
    // The rest of the loader's name looks like a version.
    "ld-linux-x86",
    "ld",
    "libanl",
    "libc",
    "libc++",
    "libc++abi",
    "libdl",
    "libgcc_s",
    "libm",
    "libmvec",
    "libnsl",
    "libpthread",
    "libresolv",
    "librt",
    "libstdc++",
    "libthread_db",
    "libutil",
];

/// Parses a comma-separated list of patterns; empty for [`NONE`].
pub fn parse(list: &str) -> std::result::Result<Vec<String>, String> {
    let patterns: Vec<String> = list.split(',').map(|pattern| pattern.trim().to_owned()).collect();
    if patterns.iter().any(String::is_empty) {
        return Err(
            "a name is missing; write file names of modules with commas between, default or none".into()
        );
    }
    match patterns.iter().position(|pattern| pattern == NONE) {
        None => Ok(patterns),
        Some(_) if patterns.len() == 1 => Ok(Vec::new()),
        Some(_) => Err("none stands alone".into()),
    }
}

/// The name of a module without version and suffix: `libc` for `libc.so.6` and `libc-2.31.so`.
fn stem(module: &Loaded) -> Option<String> {
    let name = module.path.file_name().unwrap_or(module.path.as_os_str()).to_string_lossy();
    let (stem, _) = name.split_once(".so")?;
    Some(match stem.rsplit_once('-') {
        Some((before, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => before.to_owned(),
        _ => stem.to_owned(),
    })
}

/// Whether this is the C library.
pub fn is_c_library(module: &Loaded) -> bool {
    !module.main && stem(module).is_some_and(|stem| stem == "libc")
}

/// Whether a module is one that is never patched.
fn is_never(module: &Loaded) -> bool {
    let is_kernels = module.path.as_os_str().as_encoded_bytes().starts_with(b"[");
    is_kernels || !module.main && stem(module).is_some_and(|stem| NEVER.contains(&stem.as_str()))
}

/// Whether a module contains instrumented code.
pub fn is_instrumented(module: &Loaded) -> bool {
    std::fs::read(&module.path).is_ok_and(|bytes| !uninstrumented::stubs(&bytes).is_empty())
}

/// Whether a pattern matches this module.
fn is_meant(pattern: &str, module: &Loaded) -> bool {
    match pattern {
        DEFAULT | INSTRUCTIONS => module.main || !module.system,
        INSTRUMENTED => (module.main || !module.system) && is_instrumented(module),
        pattern => matches_end(pattern, &module.path.to_string_lossy(), "/"),
    }
}

/// The modules of a process that the patterns match. A pattern that matches no module is an error.
pub fn choose(patterns: &[String], modules: &[Loaded]) -> Result<Vec<Loaded>> {
    for pattern in patterns.iter().filter(|pattern| *pattern != INSTRUMENTED) {
        let mut meant = modules.iter().filter(|module| is_meant(pattern, module)).peekable();
        if meant.peek().is_none() {
            return Err(Error::Input(format!(
                "--patch {pattern:?} matches no program or library that is loaded before main; there are {}",
                names(modules.iter().filter(|module| !is_never(module)))
            )));
        }
        if meant.clone().all(is_never) {
            return Err(Error::Input(format!(
                "--patch {pattern:?}: {} is never patched, as a thread that is preempted there may hold a lock that \
                 Heisen does not know of",
                names(meant)
            )));
        }
    }
    let wanted =
        |module: &&Loaded| !is_never(module) && patterns.iter().any(|pattern| is_meant(pattern, module));
    Ok(modules.iter().filter(wanted).cloned().collect())
}

fn names<'a>(modules: impl Iterator<Item = &'a Loaded>) -> String {
    let names = modules.map(|module| {
        module.path.file_name().unwrap_or(module.path.as_os_str()).to_string_lossy().into_owned()
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse("none"), Ok(vec![]));
        assert_eq!(parse("default"), Ok(vec!["default".into()]));
        assert_eq!(parse("queue, lib*.so"), Ok(vec!["queue".into(), "lib*.so".into()]));
        for bad in ["", "a,,b", ",", "none,a", "a,none"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_c_library_is_left_alone() {
        let module = |path: &str, system, main| Loaded::of(path, system, main);
        let all = [
            module("/home/me/libc-tool", false, true),
            module("/home/me/libqueue.so.1", false, false),
            module("/usr/lib/libz.so.1", true, false),
            module("/opt/glibc/libc.so.6", false, false),
            module("/opt/glibc/libpthread-2.31.so", false, false),
            module("/lib64/ld-linux-x86-64.so.2", true, false),
            module("[vdso]", true, false),
        ];
        let chosen = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|p| p.to_string()).collect();
            choose(&patterns, &all).map(|chosen| names(chosen.iter())).map_err(|e| e.to_string())
        };
        assert_eq!(chosen(&["default"]), Ok("libc-tool, libqueue.so.1".into()));
        assert_eq!(chosen(&["*"]), Ok("libc-tool, libqueue.so.1, libz.so.1".into()));
        assert_eq!(chosen(&["libz*", "libq*"]), Ok("libqueue.so.1, libz.so.1".into()));
        assert!(chosen(&["ld-*"]).unwrap_err().contains("ld-linux-x86-64.so.2 is never patched"));
        assert!(chosen(&["libc.so*"]).unwrap_err().contains("libc.so.6 is never patched"));
        assert!(chosen(&["default", "libx*"]).unwrap_err().contains("\"libx*\" matches no program"));
    }
}
