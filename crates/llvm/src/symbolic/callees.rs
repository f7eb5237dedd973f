//! Functions without instrumentation of which is known what they do with their arguments.

/// What becomes of the expressions of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The arguments say which object, which size or which end: each value is a way of its own.
    Decides,
    /// They are written to a stream of output. No thread goes another way for that, unless it looks at the result.
    Prints,
    /// They are printed, and the program looks at how much that was: it depends on what lies in memory, too.
    Counts,
    /// Nobody knows.
    Unknown,
}

/// Beginnings of the names of functions whose arguments decide. What they do to other threads is logged by the runtime.
const DECIDE: &[&str] = &[
    "pthread_",
    "sem_",
    "sched_yield",
    "sleep",
    "usleep",
    "nanosleep",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    // C++'s operators `new` and `delete`.
    "_Zna",
    "_Znw",
    "_Zda",
    "_Zdl",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
];

/// Other functions whose arguments decide.
const DECIDE_BY_NAME: &[&str] = &[
    "abort", "close", "fclose", "fflush", "fopen", "lseek", "open", "read", "write",
    // Classes of characters: tables are looked up.
    "isalnum", "isalpha", "isblank", "iscntrl", "isdigit", "isgraph", "islower", "isprint", "ispunct",
    "isspace", "isupper", "isxdigit",
];

/// Functions that print.
const PRINT: &[&str] = &[
    "printf",
    "fprintf",
    "vprintf",
    "vfprintf",
    "__printf_chk",
    "__fprintf_chk",
    "__vprintf_chk",
    "__vfprintf_chk",
    "puts",
    "putchar",
    "putc",
    "fputs",
    "fputc",
    "fwrite",
    "perror",
];

/// The function that makes any system call.
pub const SYSTEM_CALL: &str = "syscall";

/// Beginnings of the names of functions that are called often, and of which is known that their results do not depend on
/// other threads.
const FREQUENT: &[&str] = &["llvm.", "heisen", "__tsan_", "_Unwind_", "__cxa_", "rust_eh"];

/// Other such functions. The runtime follows those that access memory.
const FREQUENT_BY_NAME: &[&str] =
    &["memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen", "__errno_location"];

/// Functions whose arguments decide, but whose results depend on more: on files, or on names that all threads share.
const STATEFUL: &[&str] = &["fopen", "lseek", "open", "read", "sem_open", "sem_close", "sem_unlink"];

/// Whether calls of the function of this name, which is not instrumented, are logged. The runtime knows what system calls
/// do.
pub fn is_logged(name: &str) -> bool {
    let is_frequent =
        FREQUENT.iter().any(|known| name.starts_with(known)) || FREQUENT_BY_NAME.contains(&name);
    let is_known = use_of(name) == Use::Decides && !STATEFUL.contains(&name);
    !is_frequent && !is_known && name != SYSTEM_CALL
}

/// What the function of this name does with its arguments.
pub fn use_of(name: &str) -> Use {
    if DECIDE.iter().any(|known| name.starts_with(known)) || DECIDE_BY_NAME.contains(&name) {
        Use::Decides
    } else if PRINT.contains(&name) {
        Use::Prints
    } else {
        Use::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_logged_unless_their_results_depend_on_arguments_only() {
        for name in ["memmem", "memccpy", "read", "open64", "lseek", "sem_open", "clock_gettime", "getenv"] {
            assert!(is_logged(name), "{name}");
        }
        for name in ["memcpy", "malloc", "pthread_mutex_lock", "sem_wait", "syscall", "close"] {
            assert!(!is_logged(name), "{name}");
        }
    }
}
