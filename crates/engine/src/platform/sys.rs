//! Wraps the few system interfaces that the standard library does not offer. Nearly all unsafe code of the
//! engine is here; the rest is in `process::spin_watch`.

use crate::error::Error;
use crate::platform::seccomp::Instruction;
use heisen_wire::symbolic::{self, Header};
use heisen_wire::system::{self, System};
use heisen_wire::{MAGIC, Wire};
use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A shared mapping: of the wire, of a symbolic trace, or of the memory that the processes of a system share.
#[derive(Debug)]
pub struct Mapping<T = Wire> {
    at: *mut libc::c_void,
    /// How much is mapped, in bytes: at least a `T`.
    size: usize,
    file: File,
    of: PhantomData<T>,
}

// SAFETY: all fields of what is mapped are atomics.
unsafe impl<T> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Mapping<T> {}

impl Mapping<Wire> {
    /// Creates a mapping backed by memory only.
    pub fn new() -> io::Result<Mapping> {
        let mapping = Mapping::map(size_of::<Wire>())?;
        mapping.wire().magic.store(MAGIC, Relaxed);
        Ok(mapping)
    }

    /// Maps the wire of a program that another process has started; `None` if the file is not a wire.
    pub fn of_another(file: File) -> io::Result<Option<Mapping>> {
        if file.metadata()?.len() != size_of::<Wire>() as u64 {
            return Ok(None);
        }
        let mapping = Mapping::map_file(file, size_of::<Wire>())?;
        Ok((mapping.wire().magic.load(Relaxed) == MAGIC).then_some(mapping))
    }

    /// The mapped wire.
    pub fn wire(&self) -> &Wire {
        // SAFETY: the mapping is of that size, lives as long as `self`, and any bits are valid for atomics.
        unsafe { &*self.at.cast::<Wire>() }
    }
}

impl Mapping<System> {
    /// Creates a mapping backed by memory only.
    pub fn for_system() -> io::Result<Mapping<System>> {
        let mapping = Mapping::map(size_of::<System>())?;
        mapping.system().magic.store(system::MAGIC, Relaxed);
        Ok(mapping)
    }

    /// The mapped memory.
    pub fn system(&self) -> &System {
        // SAFETY: the mapping is of that size, lives as long as `self`, and any bits are valid for atomics.
        unsafe { &*self.at.cast::<System>() }
    }
}

impl Mapping<Header> {
    /// Creates a mapping for a symbolic trace with room for this many nodes and events. Only what is written takes memory.
    pub fn for_trace(nodes: u64, events: u64) -> io::Result<Mapping<Header>> {
        let mapping = Mapping::map(symbolic::size(nodes, events) as usize)?;
        let header = mapping.header();
        header.nodes_room.store(nodes, Relaxed);
        header.events_room.store(events, Relaxed);
        header.magic.store(symbolic::MAGIC, Relaxed);
        Ok(mapping)
    }

    /// The start of the mapping.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping is at least of that size, lives as long as `self`, and any bits are valid for atomics.
        unsafe { &*self.at.cast::<Header>() }
    }

    /// The words behind the header.
    pub fn words(&self) -> &[AtomicU64] {
        let count = (self.size - size_of::<Header>()) / size_of::<AtomicU64>();
        // SAFETY: as above; so many words lie behind the header, whose size is a multiple of theirs.
        unsafe { std::slice::from_raw_parts(self.at.cast::<Header>().add(1).cast::<AtomicU64>(), count) }
    }
}

impl<T> Mapping<T> {
    fn map(size: usize) -> io::Result<Mapping<T>> {
        // SAFETY: a plain system call; the descriptor that comes back is ours.
        unsafe {
            let fd = libc::memfd_create(c"heisen".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let file = File::from_raw_fd(fd);
            file.set_len(size as u64)?;
            Mapping::map_file(file, size)
        }
    }

    /// Maps a file of this size.
    fn map_file(file: File, size: usize) -> io::Result<Mapping<T>> {
        let fd = file.as_raw_fd();
        // SAFETY: a plain system call; the file is as large as that.
        unsafe {
            let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            let at = libc::mmap(std::ptr::null_mut(), size, prot, flags, fd, 0);
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Mapping { at, size, file, of: PhantomData })
        }
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Passes the mapping to the program that `command` starts. Returns its descriptor there.
    pub fn pass_to(&self, command: &mut Command) -> i32 {
        let fd = self.file.as_raw_fd();
        // SAFETY: between fork and exec only `fcntl` is called, which is async-signal-safe.
        unsafe {
            command.pre_exec(move || match libc::fcntl(fd, libc::F_SETFD, 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        fd
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.at, self.size) };
    }
}

/// Creates a file in memory that can be read but not changed.
pub fn read_only_file(bytes: &[u8]) -> io::Result<File> {
    // SAFETY: a plain system call; the descriptor that comes back is ours.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"stdin".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(fd)
    };
    file.write_all(bytes)?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: a plain system call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Isolates the program that a command starts: in a session of its own, without address-space randomisation
/// and core dumps, killed when the calling thread ends, and with at most `memory` bytes of data.
pub fn set_apart(command: &mut Command, memory: u64) {
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let persona = libc::personality(0xffff_ffff);
            libc::personality(persona as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            let mut data = none;
            if libc::getrlimit(libc::RLIMIT_DATA, &mut data) == 0 && data.rlim_cur > memory {
                data.rlim_cur = memory;
                libc::setrlimit(libc::RLIMIT_DATA, &data);
            }
            Ok(())
        });
    }
}

/// Makes the kernel apply a filter to all system calls of the command's program and of the programs that it
/// starts. If the kernel cannot do so, the program runs without the filter.
pub fn set_filter(command: &mut Command, filter: Vec<Instruction>) {
    const SET_MODE_FILTER: libc::c_uint = 1;
    /// Without the mitigations for untrusted code, which cost time.
    const SPEC_ALLOW: libc::c_uint = 4;
    let filter: Vec<libc::sock_filter> =
        filter.into_iter().map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    // SAFETY: only async-signal-safe system calls between fork and exec; the kernel copies the filter, which lives
    // in the closure.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            let install =
                || libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, SPEC_ALLOW, &raw const program);
            // Only privileged users may install a filter without this promise. With it, set-user-id programs
            // run without their additional rights.
            if install() != 0 && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 {
                install();
            }
            Ok(())
        });
    }
}

/// The error when no thread can be started.
pub fn no_thread(error: io::Error) -> Error {
    Error::Internal(format!("no thread can be started: {error}; raise the limits that ulimit -a shows"))
}

/// Waits until the word is no longer `value`, a thread wakes us, or the time is over.
pub fn futex_wait(word: &AtomicU32, value: u32, limit: Duration) {
    let time = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
    // SAFETY: the word lives in the mapping for the whole call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time) };
}

/// Wakes all waiters of the word.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Sends a signal to a process or, if the number is negative, to a process group.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, signal) };
}

/// The processor time that a process has used; `None` if it is gone.
pub fn processor_time(pid: i32) -> Option<Duration> {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain calls that fill in what they are given.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
    };
    known.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Returns a range of a file to the file system, if possible. The range then reads as zeros.
pub fn free_part(file: &File, from: u64, length: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a plain system call on a descriptor that is open.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, from as i64, length as i64) };
}

/// The machine's memory in bytes.
pub fn total_memory() -> u64 {
    // SAFETY: plain library calls.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages.max(0) as u64).saturating_mul(size.max(0) as u64)
}

/// The effective user id.
pub fn user() -> u32 {
    // SAFETY: a plain system call.
    unsafe { libc::geteuid() }
}

/// Whether we may execute the file.
pub fn executable(path: &std::path::Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Takes standard input and output for this process alone. Programs that it starts from now on, and everything that it
/// prints, find an empty input and standard error in their place.
pub fn own_stdio() -> io::Result<(File, File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let empty = File::open("/dev/null")?;
    for (from, to) in [(empty.as_raw_fd(), libc::STDIN_FILENO), (libc::STDERR_FILENO, libc::STDOUT_FILENO)] {
        // SAFETY: the call only changes what two numbers of descriptors mean.
        if unsafe { libc::dup2(from, to) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((input.into(), output.into()))
}
