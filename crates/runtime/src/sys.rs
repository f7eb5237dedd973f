//! System calls, made directly: the runtime must not go through the functions it intercepts.

use core::arch::asm;

pub const EPERM: i32 = 1;
pub const ESRCH: i32 = 3;
pub const EINTR: i32 = 4;
pub const EAGAIN: i32 = 11;
pub const ENOMEM: i32 = 12;
pub const EACCES: i32 = 13;
pub const EBUSY: i32 = 16;
pub const EINVAL: i32 = 22;
pub const EDEADLK: i32 = 35;
pub const ENOSYS: i32 = 38;
pub const EOVERFLOW: i32 = 75;
pub const EOPNOTSUPP: i32 = 95;
pub const ETIMEDOUT: i32 = 110;
pub const EOWNERDEAD: i32 = 130;
pub const ENOTRECOVERABLE: i32 = 131;

pub const SIGILL: i32 = 4;
pub const SIGTRAP: i32 = 5;
pub const SIGBUS: i32 = 7;
pub const SIGFPE: i32 = 8;
pub const SIGKILL: i32 = 9;
pub const SIGSEGV: i32 = 11;
pub const SIGABRT: i32 = 6;
pub const SIGSYS: i32 = 31;
/// The signal by which the engine asks where a program is; ordinary programs never use it.
pub const SIGSTKFLT: i32 = 16;

pub const SYS_WRITE: usize = 1;
const SYS_MMAP: usize = 9;
const SYS_MPROTECT: usize = 10;
const SYS_MUNMAP: usize = 11;
const SYS_BRK: usize = 12;
const SYS_PREAD: usize = 17;
const SYS_RT_SIGACTION: usize = 13;
const SYS_RT_SIGPROCMASK: usize = 14;
const SYS_CLONE: usize = 56;
const SYS_GETUID: usize = 102;
const SYS_RT_SIGPENDING: usize = 127;
const SYS_RT_SIGTIMEDWAIT: usize = 128;
const SYS_NANOSLEEP: usize = 35;
const SYS_CLOSE: usize = 3;
const SYS_OPEN: usize = 2;
pub const SYS_READ: usize = 0;
const SYS_FSTAT: usize = 5;
const SYS_LSEEK: usize = 8;
pub const SYS_DUP3: usize = 292;
pub const SYS_SOCKET: usize = 41;
pub const SYS_SHUTDOWN: usize = 48;
pub const SYS_BIND: usize = 49;
pub const SYS_LISTEN: usize = 50;
pub const SYS_SETSOCKOPT: usize = 54;
const SYS_FTRUNCATE: usize = 77;
const SYS_CHDIR: usize = 80;
const SYS_CLOCK_GETTIME: usize = 228;
const SYS_CLOCK_NANOSLEEP: usize = 230;
const SYS_MEMFD_CREATE: usize = 319;
pub const SYS_GETPID: usize = 39;
const SYS_FORK: usize = 57;
pub const SYS_WAIT4: usize = 61;
pub const SYS_KILL: usize = 62;
pub const SYS_SETPGID: usize = 109;
pub const SYS_GETPPID: usize = 110;
pub const SYS_GETPGRP: usize = 111;
pub const SYS_SETSID: usize = 112;
pub const SYS_GETPGID: usize = 121;
pub const SYS_GETSID: usize = 124;
pub const SYS_RT_SIGQUEUEINFO: usize = 129;
const SYS_SIGALTSTACK: usize = 131;
const SYS_PRCTL: usize = 157;
pub const SYS_GETTID: usize = 186;
pub const SYS_GETPRIORITY: usize = 140;
pub const SYS_SETPRIORITY: usize = 141;
pub const SYS_SCHED_SETPARAM: usize = 142;
pub const SYS_SCHED_GETSCHEDULER: usize = 145;
pub const SYS_SCHED_RR_GET_INTERVAL: usize = 148;
pub const SYS_TKILL: usize = 200;
pub const SYS_SCHED_SETAFFINITY: usize = 203;
pub const SYS_SCHED_GETAFFINITY: usize = 204;
pub const SYS_TGKILL: usize = 234;
pub const SYS_FUTEX: usize = 202;
pub const SYS_WAITID: usize = 247;
pub const SYS_RT_TGSIGQUEUEINFO: usize = 297;
pub const SYS_PRLIMIT64: usize = 302;
pub const SYS_GETCPU: usize = 309;
pub const SYS_PROCESS_VM_READV: usize = 310;
pub const SYS_PROCESS_VM_WRITEV: usize = 311;
pub const SYS_GETRANDOM: usize = 318;
pub const SYS_PIDFD_OPEN: usize = 434;
const SYS_EXIT_GROUP: usize = 231;
const SYS_EXIT: usize = 60;
const SYS_POLL: usize = 7;
pub const SYS_GETSOCKOPT: usize = 55;
const SYS_PPOLL: usize = 271;
const SYS_PREADV2: usize = 327;
const SYS_PWRITEV2: usize = 328;
pub const SYS_READV: usize = 19;
pub const SYS_SENDFILE: usize = 40;
pub const SYS_CONNECT: usize = 42;
pub const SYS_SENDTO: usize = 44;
pub const SYS_RECVFROM: usize = 45;
pub const SYS_SENDMSG: usize = 46;
pub const SYS_RECVMSG: usize = 47;
pub const SYS_GETSOCKNAME: usize = 51;
pub const SYS_GETPEERNAME: usize = 52;
pub const SYS_MSGSND: usize = 69;
pub const SYS_MSGRCV: usize = 70;
pub const SYS_FCNTL: usize = 72;
pub const SYS_SEMTIMEDOP: usize = 220;
pub const SYS_FLOCK: usize = 73;
pub const SYS_PSELECT6: usize = 270;
pub const SYS_SPLICE: usize = 275;
pub const SYS_EPOLL_PWAIT: usize = 281;
pub const SYS_ACCEPT4: usize = 288;
pub const SYS_RECVMMSG: usize = 299;
pub const SYS_SENDMMSG: usize = 307;
pub const SYS_FUTEX_WAITV: usize = 449;

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

pub fn write(fd: i32, bytes: &[u8]) {
    call(SYS_WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]);
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

/// Waits for a child; -1 for any. The process id (or a negative error) and the wait status.
pub fn wait(pid: i32) -> (i32, u32) {
    let mut status = 0u32;
    let got = call(SYS_WAIT4, [pid as isize as usize, &raw mut status as usize, 0, 0, 0, 0]);
    (got as i32, status)
}

pub fn close(fd: i32) {
    call(SYS_CLOSE, [fd as usize, 0, 0, 0, 0, 0]);
}

/// Reads the beginning of a file, given by a path that ends in a zero byte.
pub fn read_file(path: &[u8], buffer: &mut [u8]) -> usize {
    let fd = call(SYS_OPEN, [path.as_ptr() as usize, 0, 0, 0, 0, 0]);
    if fd < 0 {
        return 0;
    }
    let got = call(SYS_READ, [fd as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]);
    close(fd as i32);
    got.max(0) as usize
}

const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE_ANON: usize = 0x22;
const MAP_STACK_NORESERVE: usize = 0x2_0000 | 0x4000;

/// Maps a shared file; none on error.
pub fn map_shared(fd: i32, size: usize) -> Option<usize> {
    let at = call(SYS_MMAP, [0, size, PROT_READ_WRITE, MAP_SHARED, fd as usize, 0]);
    (at > 0).then_some(at as usize)
}

/// Maps fresh memory for a stack; none on error.
pub fn map_stack(size: usize) -> Option<usize> {
    let flags = MAP_PRIVATE_ANON | MAP_STACK_NORESERVE;
    let at = call(SYS_MMAP, [0, size, PROT_READ_WRITE, flags, usize::MAX, 0]);
    (at > 0).then_some(at as usize)
}

const PROT_NONE: usize = 0;
const PROT_READ: usize = 1;
const MAP_NORESERVE: usize = 0x4000;
const MAP_FIXED: usize = 0x10;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;

/// Takes a range of addresses that nothing else is at, without any memory. Whether that was possible.
pub fn reserve(at: usize, size: usize) -> bool {
    map_fixed(at, size, PROT_NONE, MAP_FIXED_NOREPLACE)
}

/// The same, with zeros to be read there.
pub fn reserve_readable(at: usize, size: usize) -> bool {
    map_fixed(at, size, PROT_READ, MAP_FIXED_NOREPLACE)
}

fn map_fixed(at: usize, size: usize, protection: usize, how: usize) -> bool {
    let flags = MAP_PRIVATE_ANON | MAP_NORESERVE | how;
    let got = call(SYS_MMAP, [at, size, protection, flags, usize::MAX, 0]);
    if got > 0 && got as usize != at {
        // A kernel before 4.17 takes the address for a hint.
        unmap(got as usize, size);
    }
    got == at as isize
}

/// Makes a part of such a range memory, or memory again. Whether there is any.
pub fn make_usable(at: usize, size: usize) -> bool {
    call(SYS_MPROTECT, [at, size, PROT_READ_WRITE, 0, 0, 0]) == 0
}

/// Gives the memory of a part back.
pub fn make_unusable(at: usize, size: usize) {
    if size > 0 {
        map_fixed(at, size, PROT_NONE, MAP_FIXED);
    }
}

/// The program break.
pub fn program_break() -> usize {
    call(SYS_BRK, [0; 6]) as usize
}

/// Calls `with` for each private mapping of the process that can be read: where it begins and ends, whether it can be
/// written, and its name.
pub fn each_mapping(mut with: impl FnMut(usize, usize, bool, &[u8])) {
    let fd = call(SYS_OPEN, [c"/proc/self/maps".as_ptr() as usize, 0, 0, 0, 0, 0]);
    if fd < 0 {
        return;
    }
    let mut buffer = [0u8; 8192];
    let mut kept = 0;
    loop {
        let room = &mut buffer[kept..];
        let got = call(SYS_READ, [fd as usize, room.as_mut_ptr() as usize, room.len(), 0, 0, 0]);
        if got <= 0 {
            break;
        }
        let filled = kept + got as usize;
        let mut begin = 0;
        while let Some(length) = buffer[begin..filled].iter().position(|&b| b == b'\n') {
            mapping(&buffer[begin..begin + length], &mut with);
            begin += length + 1;
        }
        kept = filled - begin;
        buffer.copy_within(begin..filled, 0);
        if kept == buffer.len() {
            break;
        }
    }
    close(fd as i32);
}

/// Takes one line of that list apart.
fn mapping(line: &[u8], with: &mut impl FnMut(usize, usize, bool, &[u8])) {
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let (Some(range), Some(rights)) = (words.next(), words.next()) else { return };
    let mut ends = range.split(|&b| b == b'-').map(hexadecimal);
    let (Some(from), Some(to)) = (ends.next(), ends.next()) else { return };
    if rights.first() == Some(&b'r') && rights.get(3) == Some(&b'p') {
        with(from, to, rights.get(1) == Some(&b'w'), words.nth(3).unwrap_or_default());
    }
}

/// Calls `with` for each page of a range that holds anything: where it begins and ends. All of them, if that cannot be told.
pub fn each_touched_page(from: usize, to: usize, mut with: impl FnMut(usize, usize)) {
    const PAGE: usize = 4096;
    const PRESENT_OR_SWAPPED: u64 = 3 << 62;
    let fd = call(SYS_OPEN, [c"/proc/self/pagemap".as_ptr() as usize, 0, 0, 0, 0, 0]);
    let mut pages = [0u64; 512];
    let mut at = from;
    while at < to {
        let wanted = pages.len().min((to - at) / PAGE);
        let place = at / PAGE * size_of::<u64>();
        let got = call(
            SYS_PREAD,
            [fd as usize, pages.as_mut_ptr() as usize, wanted * size_of::<u64>(), place, 0, 0],
        );
        if got != (wanted * size_of::<u64>()) as isize {
            pages = [PRESENT_OR_SWAPPED; 512];
        }
        for page in &pages[..wanted] {
            if page & PRESENT_OR_SWAPPED != 0 {
                with(at, at + PAGE);
            }
            at += PAGE;
        }
    }
    if fd >= 0 {
        close(fd as i32);
    }
}

fn hexadecimal(digits: &[u8]) -> usize {
    digits.iter().fold(0, |sum, &d| sum << 4 | (d as char).to_digit(16).unwrap_or(0) as usize)
}

/// Maps fresh memory at an address where nothing is; the process ends if that is not possible.
pub fn map_at(at: usize, size: usize) {
    const FIXED_NOREPLACE: usize = 0x10_0000;
    const NORESERVE: usize = 0x4000;
    // The memory is not the program's, and does not count for its limit.
    raise_data_limit(size as isize);
    let flags = MAP_PRIVATE_ANON | FIXED_NOREPLACE | NORESERVE;
    let got = call(SYS_MMAP, [at, size, PROT_READ_WRITE, flags, usize::MAX, 0]);
    if got as usize != at {
        write(2, b"heisen: no memory is left for what is remembered of the program's accesses\n");
        exit_group(3);
    }
}

/// Forgets the content of whole pages: they are zeros when next touched.
pub fn drop_pages(at: usize, size: usize) {
    const SYS_MADVISE: usize = 28;
    const DONTNEED: usize = 4;
    call(SYS_MADVISE, [at, size, DONTNEED, 0, 0, 0]);
}

/// Raises the limit on the program's data by so many bytes, or lowers it again; as far as that is allowed.
pub fn raise_data_limit(bytes: isize) {
    const RLIMIT_DATA: usize = 2;
    let mut limit = [0u64; 2];
    let asked = call(SYS_PRLIMIT64, [0, RLIMIT_DATA, 0, &raw mut limit as usize, 0, 0]);
    let [soft, hard] = limit;
    if asked == 0 && soft != u64::MAX {
        let raised = [soft.saturating_add_signed(bytes as i64).min(hard), hard];
        call(SYS_PRLIMIT64, [0, RLIMIT_DATA, &raw const raised as usize, 0, 0, 0]);
    }
}

pub fn unmap(at: usize, size: usize) {
    call(SYS_MUNMAP, [at, size, 0, 0, 0, 0]);
}

/// Maps fresh memory for code at exactly this place; whether that was possible.
pub fn map_code(at: usize, size: usize) -> bool {
    const MAP_FIXED_NOREPLACE: usize = 0x10_0000;
    let flags = MAP_PRIVATE_ANON | MAP_FIXED_NOREPLACE;
    let got = call(SYS_MMAP, [at, size, PROT_READ_EXEC, flags, usize::MAX, 0]);
    if got > 0 && got as usize != at {
        // An old kernel, which takes the address for a wish.
        unmap(got as usize, size);
    }
    got as usize == at
}

const PROT_READ_EXEC: usize = 5;

/// Makes memory with code in it writable, or takes that back; whether that was possible.
pub fn let_write_code(at: usize, size: usize, writable: bool) -> bool {
    let protection = if writable { PROT_READ_EXEC | PROT_READ_WRITE } else { PROT_READ_EXEC };
    call(SYS_MPROTECT, [at, size, protection, 0, 0, 0]) == 0
}

pub fn protect_none(at: usize, size: usize) {
    call(SYS_MPROTECT, [at, size, 0, 0, 0, 0]);
}

/// A file in memory, of that size; a negative error if there is none.
pub fn memory_file(name: &core::ffi::CStr, close_on_exec: bool, size: usize) -> i32 {
    let fd = call(SYS_MEMFD_CREATE, [name.as_ptr() as usize, close_on_exec as usize, 0, 0, 0, 0]);
    if fd >= 0 {
        call(SYS_FTRUNCATE, [fd as usize, size, 0, 0, 0, 0]);
    }
    fd as i32
}

/// Changes the current directory; the path ends in a zero byte. Whether that was possible.
pub fn change_directory(path: *const u8) -> bool {
    call(SYS_CHDIR, [path as usize, 0, 0, 0, 0, 0]) == 0
}

/// When a file was last written, in nanoseconds of the real-time clock; none if it is not a regular file.
pub fn last_written(fd: i32) -> Option<u64> {
    const MODE: usize = 3;
    const MODIFIED: usize = 11;
    const KIND: u64 = 0o170_000;
    const REGULAR: u64 = 0o100_000;
    let mut stat = [0u64; 18];
    let result = call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
    (result == 0 && stat[MODE] & KIND == REGULAR).then(|| stat[MODIFIED] * 1_000_000_000 + stat[MODIFIED + 1])
}

/// The number of the pipe that a descriptor stands for; none if it is no pipe.
pub fn pipe_number(fd: i32) -> Option<u64> {
    const NUMBER: usize = 1;
    const MODE: usize = 3;
    const KIND: u64 = 0o170_000;
    const PIPE: u64 = 0o010_000;
    let mut stat = [0u64; 18];
    let result = call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
    (result == 0 && stat[MODE] & KIND == PIPE).then_some(stat[NUMBER])
}

/// The number of the file that a descriptor stands for, on its device; none if there is no such descriptor.
pub fn file_number(fd: i32) -> Option<u64> {
    const NUMBER: usize = 1;
    let mut stat = [0u64; 18];
    (call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) == 0).then(|| stat[NUMBER])
}

/// Opens for reading, by its path, the file that a descriptor stands for, at the place where that is, and puts it there.
/// Whether that was possible.
pub fn open_anew(fd: i32, path: &core::ffi::CStr) -> bool {
    const SEEK_SET: usize = 0;
    const SEEK_CUR: usize = 1;
    let place = call(SYS_LSEEK, [fd as usize, 0, SEEK_CUR, 0, 0, 0]);
    let new = call(SYS_OPEN, [path.as_ptr() as usize, 0, 0, 0, 0, 0]);
    if place < 0 || new < 0 {
        return false;
    }
    call(SYS_LSEEK, [new as usize, place as usize, SEEK_SET, 0, 0, 0]);
    let put = call(SYS_DUP3, [new as usize, fd as usize, 0, 0, 0, 0]);
    close(new as i32);
    put == fd as isize
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

const FUTEX_PRIVATE: usize = 128;

/// Waits on a word that only this process uses.
pub fn private_futex_wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAIT | FUTEX_PRIVATE, value as usize, 0, 0, 0]);
}

/// Wakes the one that waits on a word that only this process uses.
pub fn private_futex_wake(word: &core::sync::atomic::AtomicU32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAKE | FUTEX_PRIVATE, 1, 0, 0, 0]);
}

const FUTEX_WAIT: usize = 0;
const FUTEX_WAKE: usize = 1;

pub fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAIT, value as usize, 0, 0, 0]);
}

pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    call(SYS_FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, i32::MAX as usize, 0, 0, 0]);
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SignalStack {
    pub base: usize,
    pub flags: i32,
    pub size: usize,
}

pub fn sigaltstack(stack: &SignalStack) {
    call(SYS_SIGALTSTACK, [core::ptr::from_ref(stack) as usize, 0, 0, 0, 0, 0]);
}

#[repr(C)]
struct KernelSigaction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

core::arch::global_asm!(
    ".globl heisen_sigreturn",
    ".hidden heisen_sigreturn",
    "heisen_sigreturn:",
    "mov eax, 15",
    "syscall",
);

unsafe extern "C" {
    fn heisen_sigreturn();
}

pub const SA_SIGINFO: i32 = 4;
pub const SA_ONSTACK: i32 = 0x0800_0000;
const SA_RESTORER: i32 = 0x0400_0000;

/// Installs a signal handler that runs on the alternate stack; 0 restores the default.
pub fn sigaction(signal: i32, handler: usize) {
    let flags = if handler == 0 { 0 } else { SA_SIGINFO | SA_ONSTACK };
    set_action(signal, handler, flags, 0);
}

/// Installs a signal handler with these flags, and signals blocked while it runs.
pub fn set_action(signal: i32, handler: usize, flags: i32, mask: u64) {
    let restorer = heisen_sigreturn as *const () as usize;
    let action = KernelSigaction { handler, flags: (flags | SA_RESTORER) as usize, restorer, mask };
    call(SYS_RT_SIGACTION, [signal as usize, &raw const action as usize, 0, 8, 0, 0]);
}

/// The handler of a signal that the kernel has, its flags and mask.
pub fn action(signal: i32) -> (usize, i32, u64) {
    let mut action = KernelSigaction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    call(SYS_RT_SIGACTION, [signal as usize, 0, &raw mut action as usize, 8, 0, 0]);
    (action.handler, action.flags as i32 & !SA_RESTORER, action.mask)
}

/// Sets the kernel's mask of blocked signals; the one before. None asks only.
pub fn signal_mask(new: Option<u64>) -> u64 {
    const SIG_SETMASK: usize = 2;
    let mut old = 0u64;
    let at = new.as_ref().map_or(0, |new| core::ptr::from_ref(new) as usize);
    call(SYS_RT_SIGPROCMASK, [SIG_SETMASK, at, &raw mut old as usize, 8, 0, 0]);
    old
}

/// Signals that are pending in the kernel, as they are blocked there.
pub fn signals_pending() -> u64 {
    let mut set = 0u64;
    call(SYS_RT_SIGPENDING, [&raw mut set as usize, 8, 0, 0, 0, 0]);
    set
}

/// Takes a signal of the set that is pending in the kernel, with what is told of it; if there is none, at once or, with
/// `wait`, when a handler has run, none.
pub fn take_signal(set: u64, info: usize, wait: bool) -> Option<i32> {
    let now = [0u64; 2];
    let timeout = if wait { 0 } else { now.as_ptr() as usize };
    let got = call(SYS_RT_SIGTIMEDWAIT, [&raw const set as usize, info, timeout, 8, 0, 0]);
    (got > 0).then_some(got as i32)
}

pub fn getuid() -> u32 {
    call(SYS_GETUID, [0; 6]) as u32
}

/// Forks, and goes on in the parent only when the child has ended or runs another program.
pub fn fork_and_wait_for_exec() -> i32 {
    const CLONE_VFORK: usize = 0x4000;
    const SIGCHLD: usize = 17;
    call(SYS_CLONE, [CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0]) as i32
}

/// `poll`, on an array of `count` at an address.
pub fn poll(fds: usize, count: usize, millis: i32) -> isize {
    call(SYS_POLL, [fds, count, millis as usize, 0, 0, 0])
}

/// As [`poll`], with a timeout in microseconds.
pub fn ppoll_micros(fds: usize, count: usize, micros: u64) -> isize {
    let time = [micros / 1_000_000, micros % 1_000_000 * 1_000];
    call(SYS_PPOLL, [fds, count, time.as_ptr() as usize, 0, 0, 0])
}

/// Type and permissions of what a descriptor stands for; none if there is no such descriptor.
pub fn file_mode(fd: i32) -> Option<u32> {
    const MODE: usize = 6;
    let mut stat = [0u32; 36];
    (call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) == 0).then(|| stat[MODE])
}

const F_GETFL: usize = 3;
const F_SETFL: usize = 4;
const O_NONBLOCK: usize = 0o4000;

/// Whether calls on a descriptor do not block, by the program's own wish; an error counts as such, too.
pub fn is_nonblocking(fd: i32) -> bool {
    let flags = call(SYS_FCNTL, [fd as usize, F_GETFL, 0, 0, 0, 0]);
    flags < 0 || flags as usize & O_NONBLOCK != 0
}

pub fn set_nonblocking(fd: i32, wanted: bool) {
    let flags = call(SYS_FCNTL, [fd as usize, F_GETFL, 0, 0, 0, 0]);
    if flags >= 0 {
        let others = flags as usize & !O_NONBLOCK;
        let flags = if wanted { others | O_NONBLOCK } else { others };
        call(SYS_FCNTL, [fd as usize, F_SETFL, flags, 0, 0, 0]);
    }
}

const RWF_NOWAIT: usize = 8;
/// "Where the descriptor stands", for calls that take an offset.
const HERE: usize = usize::MAX;

/// Reads into pieces if that does not block: EAGAIN if it would, EOPNOTSUPP if the kernel cannot tell.
pub fn read_now(fd: i32, pieces: usize, count: usize) -> isize {
    call(SYS_PREADV2, [fd as usize, pieces, count, HERE, HERE, RWF_NOWAIT])
}

/// Writes pieces, or some of them, if that does not block; errors as of [`read_now`].
pub fn write_now(fd: i32, pieces: usize, count: usize) -> isize {
    call(SYS_PWRITEV2, [fd as usize, pieces, count, HERE, HERE, RWF_NOWAIT])
}

const SOL_SOCKET: usize = 1;

/// Reads an option of a socket; it stays as it is if there is none.
pub fn socket_option(fd: i32, option: i32, value: &mut [i64; 2]) {
    let mut length = size_of_val(value) as u32;
    let at = value.as_mut_ptr() as usize;
    call(SYS_GETSOCKOPT, [fd as usize, SOL_SOCKET, option as usize, at, &raw mut length as usize, 0]);
}

/// The process at the other end of a Unix socket, as far as the kernel knows; 0 if it does not.
pub fn peer_process(fd: i32) -> i32 {
    const SO_PEERCRED: i32 = 17;
    let mut credentials = [0; 2];
    socket_option(fd, SO_PEERCRED, &mut credentials);
    credentials[0] as i32
}
