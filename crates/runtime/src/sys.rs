//! System calls, made directly: the runtime must not go through the functions it intercepts. Here are the call itself, and
//! those of processes, time and futexes.

mod files;
mod memory;
mod numbers;
mod signals;

pub use files::*;
pub use memory::*;
pub use numbers::*;
pub use signals::*;

use core::arch::asm;

/// Any system call; the result is negative on error, as the kernel gives it.
#[inline]
pub fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the `syscall` instruction clobbers rcx and r11 only; what the call does is the caller's business.
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

pub fn setpgid_self() {
    call(SYS_SETPGID, [0; 6]);
}

/// `fork` without libc's handlers: nothing of the program may run in between.
pub fn fork() -> i32 {
    call(SYS_FORK, [0; 6]) as i32
}

/// Forks, and goes on in the parent only when the child has ended or runs another program.
pub fn fork_and_wait_for_exec() -> i32 {
    const CLONE_VFORK: usize = 0x4000;
    const SIGCHLD: usize = 17;
    call(SYS_CLONE, [CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0]) as i32
}

/// Waits for a child; -1 for any. The process id (or a negative error) and the wait status.
pub fn wait(pid: i32) -> (i32, u32) {
    let mut status = 0u32;
    let got = call(SYS_WAIT4, [pid as isize as usize, &raw mut status as usize, 0, 0, 0, 0]);
    (got as i32, status)
}

/// What a clock of the kernel shows: seconds and nanoseconds.
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

/// Dies with its parent.
pub fn die_with_parent() {
    const PR_SET_PDEATHSIG: usize = 1;
    call(SYS_PRCTL, [PR_SET_PDEATHSIG, SIGKILL as usize, 0, 0, 0, 0]);
}

/// Adopts orphaned descendants.
pub fn become_subreaper() {
    const PR_SET_CHILD_SUBREAPER: usize = 36;
    call(SYS_PRCTL, [PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0]);
}

/// Lets any process of the same user trace this one, where the kernel is strict about that.
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

/// Wakes the one that waits on a word that only this process uses.
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

/// Whether there is a process of this number.
pub fn exists(pid: i32) -> bool {
    call(SYS_KILL, [pid as usize, 0, 0, 0, 0, 0]) != -(ESRCH as isize)
}

pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, i32::MAX as usize, 0, 0, 0]);
}
