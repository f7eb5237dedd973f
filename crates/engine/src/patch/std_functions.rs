//! Says how functions of Rust's standard library are patched where the rest of the program is instrumented.
//!
//! The library comes compiled, without instrumentation. Its locks, condition variables and parking use plain
//! `mov` instructions besides atomic ones, and each of these accesses may decide which thread goes on. In
//! these functions, all accesses are scheduling points where they conflict.
//!
//! The slow paths of its mutexes and read-write locks are an exception. They load a value in a loop of a
//! hundred rounds, but only as a hint: the compare-exchange, exchange or futex call after the loop checks it
//! again.
//!
//! The library's own tables (guard pages of stacks, data for backtraces) decide nothing that a program sees,
//! and their locks are never held across a scheduling point. Their functions are not patched, so each call is
//! part of one step, like a call into the C library.

/// Which instructions of a function are patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Atomic instructions.
    Atomics,
    /// Atomic instructions, and loads and stores of memory that other threads may use.
    Accesses,
    /// No instruction.
    Nothing,
}

/// Path prefixes of demangled names: functions that synchronise threads.
const SYNCHRONISES: [&str; 5] = [
    "std::sys::sync::",
    "std::sync::",
    "std::thread::scoped::",
    "std::thread::park",
    "std::thread::current::",
];
/// Path prefixes of the library's own tables. No function here may be generic over code of the program,
/// because that code would not be patched either.
const OWN_TABLES: [&str; 4] =
    ["std::sys::pal::unix::stack_overflow::", "std::backtrace_rs::", "gimli::read::", "addr2line::"];

/// How a function with this demangled name is patched.
pub fn treatment(name: &str) -> Treatment {
    // The path of the function itself, or of the type whose method it is, without type arguments.
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
        // This function contains the thread's function, inlined.
        assert_eq!(
            treatment("std::sys::backtrace::__rust_begin_short_backtrace::<test::run_test::{closure#0}, ()>"),
            Atomics
        );
    }
}
