//! How the functions of Rust's standard library are patched where the rest of the program is instrumented.
//!
//! The library comes compiled, without instrumentation. Its locks, condition variables and parking are read and written by plain
//! `mov` instructions besides the atomic ones, and each of these accesses may decide who goes on: in these functions all are
//! scheduling points where they conflict. Not so in the slow paths of its mutexes and read-write locks: what they load, in a loop
//! of a hundred rounds, is only a hint, as a compare-exchange, an exchange or the futex call after it looks again. Its own tables (guard pages of stacks, what backtraces need) decide nothing that a
//! program sees, and their locks are never held across a scheduling point: their functions are left as they are, so each is part of
//! one step, as a function of the C library is.

/// What of a function is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Its atomic instructions.
    Atomics,
    /// Besides, loads and stores of memory that other threads may use.
    Accesses,
    /// Nothing.
    Nothing,
}

/// Paths of modules, as demangled names have them.
const SYNCHRONISES: [&str; 5] = [
    "std::sys::sync::",
    "std::sync::",
    "std::thread::scoped::",
    "std::thread::park",
    "std::thread::current::",
];
/// None of these may be generic over code of the program, which would be left alone with them.
const OWN_TABLES: [&str; 4] =
    ["std::sys::pal::unix::stack_overflow::", "std::backtrace_rs::", "gimli::read::", "addr2line::"];

/// What is patched of a function with this name, demangled.
pub fn treatment(name: &str) -> Treatment {
    // The path of the function itself, or of the type whose method it is; not those of its type arguments.
    let path = name.trim_start_matches('<');
    let is_of = |paths: &[&str]| paths.iter().any(|of| path.starts_with(of));
    if is_of(&OWN_TABLES) {
        Treatment::Nothing
    } else if is_of(&SYNCHRONISES) && !name.ends_with("_contended") {
        Treatment::Accesses
    } else {
        Treatment::Atomics
    }
}

#[cfg(test)]
mod tests {
    use super::Treatment::{Accesses, Atomics, Nothing};
    use super::*;

    #[test]
    fn functions_are_known_by_their_own_path() {
        assert_eq!(treatment("<std::sys::sync::condvar::futex::Condvar>::wait"), Accesses);
        assert_eq!(treatment("std::sys::sync::once::futex::Once::call"), Accesses);
        assert_eq!(treatment("<std::sys::sync::mutex::futex::Mutex>::lock_contended"), Atomics);
        assert_eq!(treatment("std::sys::pal::unix::stack_overflow::thread_info::set_current_info"), Nothing);
        assert_eq!(treatment("queue::push::<std::sync::poison::mutex::MutexGuard<u8>>"), Atomics);
        assert_eq!(treatment("std::thread::id::ThreadId::new"), Atomics);
        // It holds the function that a thread runs, inlined.
        assert_eq!(
            treatment("std::sys::backtrace::__rust_begin_short_backtrace::<test::run_test::{closure#0}, ()>"),
            Atomics
        );
    }
}
