//! System calls, made directly: the runtime must not call the functions that it intercepts. This file has the
//! call itself, and the calls for processes, time and futexes.

mod files;
mod numbers;
mod pages;
mod signals;

pub use files::*;
pub use numbers::*;
pub use pages::*;
pub use signals::*;

use core::arch::asm;

/// Makes any system call; returns the kernel's result, which is negative on error.
#[inline]
pub fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the `syscall` instruction clobbers rcx and r11 only; the effect of the call is the caller's
    // responsibility.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

pub fn exit_group(status: i32) -> ! {
    loop {
        call(SYS_EXIT_GROUP, [status as usize, 0, 0, 0, 0, 0]);
    }
}

/// Ends this kernel thread, and no other.
pub fn exit_thread() -> ! {
    loop {
        call(SYS_EXIT, [0; 6]);
    }
}

pub fn getpid() -> i32 {
    call(SYS_GETPID, [0; 6]) as i32
}

pub fn gettid() -> i32 {
    call(SYS_GETTID, [0; 6]) as i32
}

pub fn getppid() -> i32 {
    call(SYS_GETPPID, [0; 6]) as i32
}

pub fn getuid() -> u32 {
    call(SYS_GETUID, [0; 6]) as u32
}

pub fn kill(pid: i32, signal: i32) {
    call(SYS_KILL, [pid as usize, signal as usize, 0, 0, 0, 0]);
}

/// The process group of a process (0: this one); negative if there is none.
pub fn group_of(pid: i32) -> i32 {
    call(SYS_GETPGID, [pid as usize, 0, 0, 0, 0, 0]) as i32
}

/// The parent of a process; `None` if that cannot be found out.
pub fn parent_of(pid: i32) -> Option<i32> {
    let mut text = [0u8; 512];
    let length = read_file(&proc_path(pid, b"stat", None, b""), &mut text);
    // The name may hold any character; the state and the parent follow its last parenthesis.
    let text = &text[..length];
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let digits = text.get(name_end + 4..)?.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + i32::from(digit - b'0')))
}

/// The process of a process descriptor; `None` if it is another kind of descriptor.
pub fn process_of_descriptor(fd: i32) -> Option<i32> {
    const NAME: &[u8] = b"\nPid:\t";
    let mut text = [0u8; 512];
    let length = read_file(&proc_path(getpid(), b"fdinfo", Some(fd), b""), &mut text);
    let at = text[..length].windows(NAME.len()).position(|part| part == NAME)? + NAME.len();
    let digits = text[at..length].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + i32::from(digit - b'0')))
}

/// The size of a buffer for paths below /proc.
const PROC_PATH: usize = 64;

/// A path, ended by a zero byte, of a process's file below /proc: `/proc/PID/NAME`, or `/proc/PID/NAME/PART`
/// followed by MORE.
pub fn proc_path(pid: i32, name: &[u8], part: Option<i32>, more: &[u8]) -> [u8; PROC_PATH] {
    let mut path = [0; PROC_PATH];
    let end = append(&mut path, 0, b"/proc/");
    let end = append_number(&mut path, end, pid);
    let end = append(&mut path, end, b"/");
    let end = append(&mut path, end, name);
    if let Some(part) = part {
        let end = append(&mut path, end, b"/");
        let end = append_number(&mut path, end, part);
        append(&mut path, end, more);
    }
    path
}

/// Puts bytes into a path from `at` on; returns where they end.
fn append(path: &mut [u8; PROC_PATH], at: usize, bytes: &[u8]) -> usize {
    path[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}

fn append_number(path: &mut [u8; PROC_PATH], at: usize, number: i32) -> usize {
    let mut digits = [b'0'; 10];
    append(path, at, decimal(number, &mut digits))
}

/// A number that is not negative, in decimal digits.
pub fn decimal(number: i32, digits: &mut [u8; 10]) -> &[u8] {
    let (mut rest, mut first) = (number.unsigned_abs(), digits.len() - 1);
    loop {
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[first..];
        }
        first -= 1;
    }
}

pub fn setpgid_self() {
    call(SYS_SETPGID, [0; 6]);
}

/// `fork` without libc's handlers: no code of the program may run in between.
pub fn fork() -> i32 {
    call(SYS_FORK, [0; 6]) as i32
}

/// Forks; the parent continues only when the child has ended or runs another program.
pub fn fork_and_wait_for_exec() -> i32 {
    const CLONE_VFORK: usize = 0x4000;
    const SIGCHLD: usize = 17;
    call(SYS_CLONE, [CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0]) as i32
}

/// Waits for a child; -1 is any. Returns the process id (or a negative error) and the wait status.
pub fn wait(pid: i32) -> (i32, u32) {
    let mut status = 0u32;
    let got = call(SYS_WAIT4, [pid as isize as usize, &raw mut status as usize, 0, 0, 0, 0]);
    (got as i32, status)
}

/// A child that has ended, with its wait status; `None` if there is none at the moment.
pub fn reap() -> Option<(i32, u32)> {
    const WNOHANG: usize = 1;
    let mut status = 0u32;
    let got = call(SYS_WAIT4, [usize::MAX, &raw mut status as usize, WNOHANG, 0, 0, 0]);
    (got > 0).then_some((got as i32, status))
}

/// The time of a clock of the kernel: seconds and nanoseconds.
pub fn clock(clock: i32) -> [i64; 2] {
    let mut time = [0; 2];
    call(SYS_CLOCK_GETTIME, [clock as usize, time.as_mut_ptr() as usize, 0, 0, 0, 0]);
    time
}

/// Sleeps until the monotonic clock shows that many nanoseconds, or a signal comes.
pub fn sleep_until(nanos: u64) {
    const CLOCK_MONOTONIC: usize = 1;
    const TIMER_ABSTIME: usize = 1;
    let time = [nanos / 1_000_000_000, nanos % 1_000_000_000];
    call(SYS_CLOCK_NANOSLEEP, [CLOCK_MONOTONIC, TIMER_ABSTIME, time.as_ptr() as usize, 0, 0, 0]);
}

/// Makes the kernel kill this process when its parent dies.
pub fn die_with_parent() {
    signal_at_parents_end(SIGKILL);
}

/// Makes the kernel send this signal when the parent dies.
pub fn signal_at_parents_end(signal: i32) {
    const PR_SET_PDEATHSIG: usize = 1;
    call(SYS_PRCTL, [PR_SET_PDEATHSIG, signal as usize, 0, 0, 0, 0]);
}

/// Sets the name of the kernel thread, as tools show it.
pub fn name_thread(name: &core::ffi::CStr) {
    const PR_SET_NAME: usize = 15;
    call(SYS_PRCTL, [PR_SET_NAME, name.as_ptr() as usize, 0, 0, 0, 0]);
}

/// Begins a session of its own.
pub fn new_session() {
    call(SYS_SETSID, [0; 6]);
}

/// Makes this process adopt orphaned descendants.
pub fn become_subreaper() {
    const PR_SET_CHILD_SUBREAPER: usize = 36;
    call(SYS_PRCTL, [PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0]);
}

/// Lets any process of the same user trace this one, where the kernel restricts that.
pub fn allow_tracing() {
    const PR_SET_PTRACER: usize = 0x5961_6d61;
    call(SYS_PRCTL, [PR_SET_PTRACER, usize::MAX, 0, 0, 0, 0]);
}

/// Sleeps for some milliseconds.
pub fn sleep_ms(time: u32) {
    let time = [0u64, u64::from(time) * 1_000_000];
    call(SYS_NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]);
}

const FUTEX_WAIT: usize = 0;
const FUTEX_WAKE: usize = 1;
const FUTEX_PRIVATE: usize = 128;

/// Waits on a word that only this process uses.
pub fn private_futex_wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAIT | FUTEX_PRIVATE, value as usize, 0, 0, 0]);
}

/// Wakes the kernel thread that waits on a word that only this process uses.
pub fn private_futex_wake(word: &core::sync::atomic::AtomicU32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAKE | FUTEX_PRIVATE, 1, 0, 0, 0]);
}

pub fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAIT, value as usize, 0, 0, 0]);
}

/// As [`futex_wait`], for a second at most.
pub fn futex_wait_a_second(word: &core::sync::atomic::AtomicU32, value: u32) {
    let time = [1u64, 0];
    let time = time.as_ptr() as usize;
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAIT, value as usize, time, 0, 0]);
}

/// Whether there is a process of this id.
pub fn exists(pid: i32) -> bool {
    call(SYS_KILL, [pid as usize, 0, 0, 0, 0, 0]) != -(ESRCH as isize)
}

pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, i32::MAX as usize, 0, 0, 0]);
}
