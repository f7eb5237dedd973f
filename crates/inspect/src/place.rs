//! Decides whether a frame belongs to the program or to a library, and how its file path is shown.

use std::path::{Component, Path, PathBuf};

/// Directories of the system's libraries and headers.
const SYSTEM: [&str; 11] = [
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/include/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/usr/local/include/",
    "/usr/local/lib/",
    "/usr/src/",
];

/// Parts of the paths of files that come with Rust's compiler and cargo: the standard library (as its
/// builders recorded it, and where its source is installed), its dependencies, and downloaded crates.
const RUST: [&str; 5] =
    ["/rustlib/", "/rust/deps/", "/registry/src/", "/git/checkouts/", "/.rustup/toolchains/"];

/// Parts of the paths of crates that cargo has downloaded.
const DEPENDENCIES: [&str; 2] = ["/registry/src/", "/git/checkouts/"];

/// Crates that a reader knows as well as the standard library: their inside says nothing about the program.
const KNOWN_CRATES: [&str; 7] =
    ["parking_lot", "parking_lot_core", "lock_api", "once_cell", "lazy_static", "spin", "libc"];

/// Prefixes of names in Rust's standard library, after any `<`, `&` and similar.
const RUST_LIBRARY: [&str; 7] =
    ["std::", "core::", "alloc::", "__rust", "rust_begin_unwind", "rust_panic", "rust_eh_personality"];

/// Prefixes of names in C++'s standard library that are not in `std`.
const CPP_LIBRARY: [&str; 2] = ["__gthread", "__gnu_cxx::"];

/// Functions that the compiler's start-up files add to every program.
const STARTUP: [&str; 8] = [
    "_start",
    "_init",
    "_fini",
    "__libc_csu_init",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
];

/// Whether a source or object file belongs to the system or to a language's library rather than to a program.
pub fn is_system(path: &str) -> bool {
    path.starts_with("/rustc/")
        || SYSTEM.iter().any(|directory| path.starts_with(directory))
        || RUST.iter().any(|part| path.contains(part))
}

/// Whether code belongs to the program. The source file decides where it is known. Otherwise the code must be
/// in the main executable and not in a language's standard library. `system` says that the code lies in a
/// library of the system, `main` that it lies in the main executable.
pub fn is_own(file: Option<&str>, function: &str, system: bool, main: bool) -> bool {
    // Heisen's own crate does not belong to the program that calls it, just as the standard library does not.
    if system || function.starts_with("heisen::") || function.contains(" as heisen::") {
        return false;
    }
    match file {
        Some(file) => !is_system(file),
        None => {
            let name = function.trim_start_matches(['<', '&', '*', '[', '(']).trim_start_matches("dyn ");
            let mut library = RUST_LIBRARY.iter().chain(&CPP_LIBRARY);
            main && !library.any(|prefix| name.starts_with(prefix)) && !STARTUP.contains(&name)
        }
    }
}

/// Whether code belongs to a dependency of the program: a crate that cargo has downloaded.
pub fn is_dependency(file: Option<&str>, system: bool) -> bool {
    let in_crate = |file: &str| {
        let after = DEPENDENCIES.iter().find_map(|part| file.split_once(part))?.1;
        // The directory of a registry, then `name-version`.
        let name = after.split('/').nth(1).unwrap_or_default();
        let name = name.rsplit_once('-').map_or(name, |(name, _)| name);
        Some(!KNOWN_CRATES.contains(&name))
    };
    !system && file.and_then(in_crate).unwrap_or(false)
}

/// The directories relative to which paths are shown: the current one, with and without symbolic links,
/// because compilers record either.
pub fn here() -> Vec<PathBuf> {
    let mut out = Vec::new();
    if let Ok(real) = std::env::current_dir() {
        let shell = std::env::var_os("PWD").map(PathBuf::from);
        out.extend(
            shell.filter(|shell| *shell != real && shell.canonicalize().is_ok_and(|path| path == real)),
        );
        out.push(real);
    }
    // Everything lies below the root, and leaving out the slash makes no path clearer.
    out.retain(|directory| directory != Path::new("/"));
    out
}

/// A path as it is shown: without `.` and `..`, and relative to the current directory if it lies below.
pub fn shown(file: &str, here: &[PathBuf]) -> String {
    let mut path = PathBuf::new();
    for part in Path::new(file).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(path.components().next_back(), Some(Component::Normal(_))) => {
                path.pop();
            }
            // The root has no parent.
            Component::ParentDir if path == Path::new("/") => {}
            part => path.push(part),
        }
    }
    let short = here.iter().find_map(|directory| path.strip_prefix(directory).ok());
    short.unwrap_or(&path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_by_file() {
        let own = |file| is_own(Some(file), "f", false, true);
        assert!(own("/home/me/bank/src/account.c"));
        assert!(own("src/main.rs"));
        assert!(own("/home/me/usr/lib/mine.c"));
        assert!(!own("/rustc/59807616e/library/std/src/sync/mutex.rs"));
        assert!(!own("/home/me/.rustup/toolchains/x/lib/rustlib/src/rust/library/core/src/ops/function.rs"));
        assert!(!own("/rust/deps/hashbrown-0.16.1/src/raw.rs"));
        assert!(!own("/home/me/.cargo/registry/src/index-1/parking_lot-0.12.1/src/mutex.rs"));
        assert!(!own("/home/me/.cargo/git/checkouts/dep-12/34/src/lib.rs"));
        assert!(!own("/usr/include/c++/12/bits/std_mutex.h"));
        assert!(!own("/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h"));
        assert!(!own("/usr/src/glibc/nptl/pthread_mutex_lock.c"));
        // A system library that was built elsewhere, and a library of the program.
        assert!(!is_own(Some("/build/glibc-2.36/nptl/x.c"), "f", true, false));
        assert!(is_own(Some("/home/me/lib.c"), "f", false, false));
    }

    #[test]
    fn dependencies_are_crates_from_elsewhere() {
        let of = |file| is_dependency(Some(file), false);
        assert!(of("/home/me/.cargo/registry/src/index-1/crossbeam-queue-0.3.1/src/array_queue.rs"));
        assert!(of("/home/me/.cargo/git/checkouts/dep-12/34/src/lib.rs"));
        assert!(!of("/home/me/.cargo/registry/src/index-1/parking_lot-0.12.1/src/mutex.rs"));
        assert!(!of("/rustc/59807616e/library/std/src/sync/mutex.rs"));
        assert!(!of("src/main.rs"));
        assert!(!is_dependency(None, false));
    }

    #[test]
    fn own_without_file() {
        let own = |function| is_own(None, function, false, true);
        assert!(own("main"));
        assert!(own("bank::account::transfer"));
        assert!(own("<bank::Account as core::fmt::Display>::fmt"));
        assert!(!own("std::sys::sync::mutex::futex::Mutex::lock_contended"));
        assert!(!own("<std::thread::Builder>::spawn"));
        assert!(!own("<alloc::sync::Arc<T> as core::ops::Drop>::drop"));
        assert!(!own("__rust_try"));
        assert!(!own("_start"));
        assert!(!own("__gthread_mutex_lock"));
        assert!(!own("heisen::point"));
        assert!(!own("<core::result::Result<T,E> as heisen::testing::Outcome>::check"));
        assert!(!is_own(None, "helper", false, false));
        assert!(!is_own(None, "raise", true, false));
    }

    #[test]
    fn paths() {
        let here = [PathBuf::from("/home/me/heisen")];
        assert_eq!(shown("/home/me/heisen/examples/c/account.c", &here), "examples/c/account.c");
        assert_eq!(shown("/home/me/heisen/build/../examples/./c.c", &here), "examples/c.c");
        assert_eq!(shown("/home/me/heisenly/c.c", &here), "/home/me/heisenly/c.c");
        assert_eq!(shown("/rustc/1/library/std/src/rt.rs", &here), "/rustc/1/library/std/src/rt.rs");
        assert_eq!(shown("./nptl/x.c", &here), "nptl/x.c");
        assert_eq!(shown("../x.c", &here), "../x.c");
        assert_eq!(shown("/../x.c", &here), "/x.c");
    }
}
