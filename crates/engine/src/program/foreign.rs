//! Functions without instrumentation whose results may depend on other threads, or on inputs, without a trace that says so.
//!
//! The solver-driven search takes what a thread does for a function of its reads and inputs. A function such as `rand` has a
//! state of its own, which all threads share and no trace shows: each call may change what the others return. So does the
//! allocator, unless each thread has an arena: which block a thread gets depends on who asked before. And a function such as
//! `strtod` or `snprintf` reads or writes memory of the program, which may be shared, or hold expressions.

use crate::program::libraries::Elf;
use heisen_abi::symbolic::ADDRESS_TAKEN;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeSet;

/// Beginnings of the names of functions whose effects on other threads a trace shows, or that have none: their results
/// depend on their arguments only, or they return nothing that a program decides by.
const BEGINNINGS: &[&str] = &[
    "pthread_",
    "__pthread_",
    // They set up, or ask for, another process.
    "posix_spawnattr_",
    "posix_spawn_file_actions_",
    "pidfd_",
    "gnu_get_libc_version",
    "sem_",
    "heisen_",
    "__heisen",
    "__VERIFIER_",
    "__tsan_",
    "__libc_",
    "__ctype_",
    "__cxa_",
    "__gxx_personality",
    "__gcc_personality",
    "_Unwind_",
    "_ITM_",
    "__register_frame",
    "__deregister_frame",
    // C++: exceptions, and virtual tables of the language's own types.
    "_ZTV",
    "_ZTI",
    "_ZTS",
    "_ZSt9terminatev",
];

/// Names that begin like known ones, and have a state.
const STATEFUL: &[&str] = &["sem_open", "sem_close", "sem_unlink"];

/// Other such functions.
const NAMES: &[&str] = &[
    "reach_error",
    "__assert_fail",
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "atexit",
    "sched_yield",
    "sleep",
    "usleep",
    "nanosleep",
    "__errno_location",
    "__stack_chk_fail",
    "__gmon_start__",
    "__dso_handle",
    "environ",
    "__tls_get_addr",
    "stdout",
    "stderr",
    // What they read is only printed.
    "printf",
    "vprintf",
    "fprintf",
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
    "fflush",
    "perror",
    "abs",
    "labs",
    "llabs",
    "div",
    "ldiv",
    "isalnum",
    "isalpha",
    "isblank",
    "iscntrl",
    "isdigit",
    "isgraph",
    "islower",
    "isprint",
    "ispunct",
    "isspace",
    "isupper",
    "isxdigit",
    "ceil",
    "ceilf",
    "fabs",
    "floor",
    "floorf",
    "fmod",
    "pow",
    "round",
    "sqrt",
    "sqrtf",
    "trunc",
    "setjmp",
    "_setjmp",
    "__sigsetjmp",
    "longjmp",
    "_longjmp",
    "__longjmp_chk",
    // C++: what a thread passes to itself by `std::call_once`, and a property of the machine.
    "_ZSt11__once_call",
    "_ZSt15__once_callable",
    "_ZNSt6thread20hardware_concurrencyEv",
    // A table of constants.
    "_ZNSt8__detail12__prime_listE",
];

/// Functions whose accesses and results the runtime follows.
const FOLLOWED: &[&str] = &[
    "memcpy",
    "memmove",
    "mempcpy",
    "memset",
    "bzero",
    "memcmp",
    "bcmp",
    "memchr",
    "memrchr",
    "strlen",
    "strnlen",
    "strchr",
    "strrchr",
    "strchrnul",
    "strcmp",
    "strncmp",
    "strcasecmp",
    "strncasecmp",
    "strstr",
    "strspn",
    "strcspn",
    "strpbrk",
    "strcpy",
    "stpcpy",
    "strncpy",
    "strcat",
    "strncat",
    "__memcpy_chk",
    "__memmove_chk",
    "__memset_chk",
    "__strcpy_chk",
    "__strncpy_chk",
    "__strcat_chk",
    "__strncat_chk",
    "atoi",
    "atol",
    "atoll",
    "strtol",
    "strtoll",
    "strtoul",
    "strtoull",
    "tolower",
    "toupper",
];

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
    "malloc_usable_size",
];

/// Functions that use descriptors. Where bytes from outside are inputs, the runtime counts how threads use them.
const DESCRIPTORS: &[&str] = &[
    "read",
    "__read_chk",
    "readv",
    "pread",
    "pread64",
    "open",
    "open64",
    "openat",
    "openat64",
    "__open_2",
    "__open64_2",
    "close",
    "fopen",
    "fopen64",
    "fclose",
    "fread",
    "__fread_chk",
    "fgets",
    "__fgets_chk",
    "getc",
    "_IO_getc",
    "fgetc",
    "getchar",
    "getline",
    "getdelim",
    "__getdelim",
    "feof",
    "ferror",
    "fileno",
    "stdin",
];

/// Beginnings of the names of C++'s `operator new` and `operator delete`.
const OPERATORS: &[&str] = &["_Zna", "_Znw", "_Zda", "_Zdl"];

/// Functions that take no input from memory of the program. While there is only one thread, their results are the same in all
/// executions.
const WITHOUT_INPUTS: &[&str] = &[
    "dlsym",
    "getauxval",
    "getenv",
    "mmap",
    "mmap64",
    "mprotect",
    "munmap",
    "poll",
    "sigaction",
    "sigaltstack",
    "signal",
    "sysconf",
];

/// Whether the result of a function, which the only thread of a program calls, may depend on inputs.
pub(crate) fn may_depend_on_inputs(name: &str) -> bool {
    !WITHOUT_INPUTS.contains(&name)
}

/// The functions of this executable that are not known to be independent of other threads. `divided`: each thread
/// allocates from an arena of its own. `called`: those that executions have called while there were other threads.
/// `all_code`: all code of the program is instrumented. `reads`: bytes from outside are inputs.
pub(crate) fn dependent(
    bytes: &[u8],
    divided: bool,
    called: &BTreeSet<String>,
    (all_code, reads): (bool, bool),
) -> Vec<String> {
    let Ok(elf) = Elf::parse(bytes) else { return Vec::new() };
    let imported = elf.dynamic_symbols().filter(|symbol| symbol.is_undefined());
    let imported = imported.filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    let mut names: BTreeSet<String> = imported.collect();
    if let Some(taken) = address_taken(&elf).filter(|_| all_code) {
        // All calls are logged, except those by address, and those of functions that allocate.
        names.retain(|name| allocates(name));
        names.extend(taken);
    }
    // The runtime logs it if it is not called for a futex.
    names.remove("syscall");
    names.extend(called.iter().cloned());
    names.retain(|name| match name.as_str() {
        name if allocates(name) => !divided,
        name if DESCRIPTORS.contains(&name) => !reads,
        name => !is_known(name),
    });
    names.into_iter().collect()
}

/// The functions whose addresses the program takes, if it is built of one module that logs its calls.
fn address_taken(elf: &Elf<'_>) -> Option<Vec<String>> {
    let section = elf.section_by_name(ADDRESS_TAKEN)?;
    let names = section.data().ok()?.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

fn allocates(name: &str) -> bool {
    ALLOCATING.contains(&name) || OPERATORS.iter().any(|known| name.starts_with(known))
}

fn is_known(name: &str) -> bool {
    let begins = BEGINNINGS.iter().any(|known| name.starts_with(known)) && !STATEFUL.contains(&name);
    name.is_empty() || begins || throws(name) || NAMES.contains(&name) || FOLLOWED.contains(&name)
}

/// Whether it is a function of libstdc++ that only throws an exception, such as `std::__throw_length_error`: the length
/// of the name comes before it.
fn throws(name: &str) -> bool {
    let after = name.strip_prefix("_ZSt").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    after.is_some_and(|rest| rest.starts_with("__throw_"))
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
            "sem_open",
            "getenv",
            "read",
            "poll",
            "gettid",
            "qsort",
            "strtod",
            "snprintf",
            "memmem",
        ] {
            assert!(!is_known(name), "{name}");
        }
        for name in ["pthread_mutex_lock", "memcpy", "strlen", "printf", "__assert_fail", "heisen_input"] {
            assert!(is_known(name), "{name}");
        }
    }
    #[test]
    fn the_runtime_has_what_it_follows() {
        let runtime = std::fs::read(crate::program::embedded::runtime().expect("it is written"));
        let runtime = runtime.expect("it is read");
        let elf = Elf::parse(&*runtime).expect("a library");
        let has: Vec<&str> = elf
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition())
            .filter_map(|symbol| symbol.name().ok())
            .collect();
        for name in FOLLOWED {
            assert!(has.contains(name), "{name}");
        }
    }
}
