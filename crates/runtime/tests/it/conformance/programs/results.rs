//! The counterpart of `results.h` for Rust: all text that a case says until its process ends is its result. A
//! case that ends the process itself writes its result with [`write`].

use std::ffi::{c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};

/// How the search finds the results of all schedules.
#[allow(dead_code)]
pub enum Search {
    /// Explores every schedule.
    All,
    /// Runs this many random schedules.
    Samples(u32),
}

/// A case: its name, its search, its results and its function.
pub struct Case(pub &'static str, pub Search, pub &'static [&'static str], pub fn());

static SAID: AtomicUsize = AtomicUsize::new(0);
const ROOM: usize = 4096;
static mut WORDS: [u8; ROOM] = [0; ROOM];
static PROCESS: AtomicI64 = AtomicI64::new(0);

unsafe extern "C" {
    fn fork() -> c_int;
    fn wait(status: *mut c_int) -> c_int;
    fn atexit(handler: extern "C" fn()) -> c_int;
    fn sem_post(semaphore: *mut c_void) -> c_int;
    fn getenv(name: *const c_char) -> *const c_char;
}

/// A system call that Heisen does not intercept.
fn raw_call(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long) -> c_long {
    let result;
    // SAFETY: the calls made here read memory that lives long enough.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, lateout("rcx") _, lateout("r11") _)
    };
    result
}

fn process() -> c_long {
    const GETPID: c_long = 39;
    raw_call(GETPID, 0, 0, 0, 0)
}

/// Appends to the result. Threads may call it at the same time.
pub fn say(words: impl std::fmt::Display) {
    let words = words.to_string();
    let at = SAID.fetch_add(words.len(), SeqCst);
    assert!(at + words.len() < ROOM);
    // SAFETY: `fetch_add` reserved these bytes for this call alone.
    unsafe { (&raw mut WORDS).cast::<u8>().add(at).copy_from(words.as_ptr(), words.len()) };
}

/// A scheduling point without other effects.
pub fn point() {
    static mut NOWHERE: [u64; 4] = [0; 4];
    // SAFETY: zero bytes are a valid semaphore.
    unsafe { sem_post((&raw mut NOWHERE).cast()) };
}

/// Writes the result, at the latest when the process ends. Only the process that runs the case writes it.
pub extern "C" fn write() {
    const OPENAT: c_long = 257;
    const WRITE: c_long = 1;
    const CURRENT_DIRECTORY: c_long = -100;
    const APPEND_OR_CREATE: c_long = 0o2101;
    // SAFETY: the argument is a C string.
    let path = unsafe { getenv(c"CONFORMANCE_RESULTS".as_ptr()) };
    if path.is_null() || PROCESS.swap(0, SeqCst) != process() {
        return;
    }
    // Other threads may still run and say more.
    let length = SAID.load(SeqCst);
    // SAFETY: all bytes up to `length` are reserved. Zero bytes that a thread has not yet written end the
    // result.
    let words = unsafe { std::slice::from_raw_parts((&raw const WORDS).cast::<u8>(), length) };
    let mut line: Vec<u8> = words.iter().copied().take_while(|&byte| byte != 0).collect();
    line.push(b'\n');
    let file = raw_call(OPENAT, CURRENT_DIRECTORY, path as c_long, APPEND_OR_CREATE, 0o600);
    let length = line.len() as c_long;
    if file < 0 || raw_call(WRITE, file, line.as_ptr() as c_long, length, 0) != length {
        std::process::abort();
    }
}

fn run_case(case: &Case) -> ! {
    PROCESS.store(process(), SeqCst);
    // SAFETY: the handler may run at any time.
    unsafe { atexit(write) };
    case.3();
    std::process::exit(0)
}

/// Lists the cases, or runs one, once or as often as CONFORMANCE_RUNS says.
pub fn main(cases: &[Case]) {
    let Some(name) = std::env::args().nth(1) else {
        for Case(name, search, allowed, _) in cases {
            let (search, executions) = match search {
                Search::All => ("all", 0),
                Search::Samples(executions) => ("samples", *executions),
            };
            println!("{name}\t{search}\t{executions}\t0\t{}", allowed.join("\t"));
        }
        return;
    };
    let case = cases.iter().find(|case| case.0 == name).expect("a case");
    let Some(runs) = std::env::var("CONFORMANCE_RUNS").ok().and_then(|runs| runs.parse::<u32>().ok()) else {
        run_case(case)
    };
    let (mut started, mut ended) = (0, 0);
    while ended < runs {
        if started < runs && started - ended < 5 {
            // SAFETY: the process has one thread.
            if unsafe { fork() } == 0 {
                run_case(case);
            }
            started += 1;
            continue;
        }
        let mut status = 0;
        // SAFETY: the pointer is to a valid `c_int`.
        assert!(unsafe { wait(&mut status) } > 0);
        ended += 1;
        assert_eq!(status, 0, "{name}: the status of a run");
    }
}
