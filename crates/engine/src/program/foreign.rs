//! Functions without instrumentation whose results may depend on other threads.
//!
//! The solver-driven search takes what a thread does for a function of its reads and inputs. A function such as `rand` has a
//! state of its own, which all threads share and no trace shows: each call may change what the others return. So does the
//! allocator, unless each thread has an arena: which block a thread gets depends on who asked before.

use crate::program::libraries::Elf;
use object::{Object, ObjectSymbol};

/// Beginnings of the names of functions whose effects on other threads a trace shows, or that have none: their results
/// depend on their arguments only, or they return nothing that a program decides by.
const KNOWN: &[&str] = &[
    "pthread_",
    "sem_",
    "heisen_",
    "__heisen",
    "__VERIFIER_",
    "reach_error",
    "__tsan_",
    "__assert_fail",
    "abort",
    "exit",
    "_exit",
    "quick_exit",
    "atexit",
    "sched_yield",
    "sleep",
    "usleep",
    "nanosleep",
    "__errno_location",
    "__stack_chk_fail",
    "__libc_",
    "__cxa_",
    "__gxx_personality",
    "__gcc_personality",
    "_Unwind_",
    "__gmon_start__",
    "_ITM_",
    "__register_frame",
    "__deregister_frame",
    "__dso_handle",
    "mem",
    "str",
    "bcmp",
    "bcopy",
    "bzero",
    "explicit_bzero",
    "__mem",
    "__str",
    "printf",
    "vprintf",
    "fprintf",
    "vfprintf",
    "sprintf",
    "vsprintf",
    "snprintf",
    "vsnprintf",
    "__printf_chk",
    "__fprintf_chk",
    "__sprintf_chk",
    "__snprintf_chk",
    "puts",
    "putchar",
    "putc",
    "fputs",
    "fputc",
    "fwrite",
    "fflush",
    "perror",
    "stdout",
    "stderr",
    "abs",
    "labs",
    "llabs",
    "div",
    "ldiv",
    "atoi",
    "atol",
    "atoll",
    "isal",
    "isdigit",
    "isspace",
    "isupper",
    "islower",
    "isprint",
    "ispunct",
    "isxdigit",
    "tolower",
    "toupper",
    "__ctype_",
    "setjmp",
    "_setjmp",
    "__sigsetjmp",
    "longjmp",
    "_longjmp",
    "__longjmp_chk",
    // C++: exceptions, and virtual tables of the language's own types.
    "_ZTV",
    "_ZTI",
    "_ZTS",
    "_ZSt9terminatev",
    "_ZSt17__throw",
    "_ZSt20__throw",
    "_ZSt24__throw",
];

/// Names that begin like known ones, and have a state.
const STATEFUL: &[&str] = &["strtok", "strerror", "strsignal"];

/// Functions that allocate. In the checked heap of a symbolic build each thread has blocks of its own.
const ALLOCATING: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "strdup",
    "strndup",
    "__strdup",
    "malloc_usable_size",
];

/// Beginnings of the names of C++'s `operator new` and `operator delete`.
const OPERATORS: &[&str] = &["_Zna", "_Znw", "_Zda", "_Zdl"];

/// The functions of this executable that are not known to be independent of other threads. `divided`: each thread
/// allocates from an arena of its own.
pub(crate) fn dependent(bytes: &[u8], divided: bool) -> Vec<String> {
    let Ok(elf) = Elf::parse(bytes) else { return Vec::new() };
    let mut names: Vec<String> = elf
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .filter(|name| if allocates(name) { !divided } else { !is_known(name) })
        .collect();
    names.sort();
    names.dedup();
    names
}

fn allocates(name: &str) -> bool {
    ALLOCATING.contains(&name) || OPERATORS.iter().any(|known| name.starts_with(known))
}

fn is_known(name: &str) -> bool {
    let begins = |list: &[&str]| list.iter().any(|known| name.starts_with(known));
    name.is_empty() || begins(KNOWN) && !STATEFUL.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_a_state_are_not_known() {
        for name in [
            "rand",
            "random",
            "drand48",
            "clock_gettime",
            "time",
            "strtok",
            "getenv",
            "read",
            "poll",
            "gettid",
        ] {
            assert!(!is_known(name), "{name}");
        }
        for name in ["pthread_mutex_lock", "memcpy", "strlen", "printf", "__assert_fail", "heisen_input"] {
            assert!(is_known(name), "{name}");
        }
    }
}
