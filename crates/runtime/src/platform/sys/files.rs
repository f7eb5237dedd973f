//! System calls on descriptors: files, pipes and sockets.

use super::call;
use super::numbers::{
    SYS_CHDIR, SYS_CLOSE, SYS_CLOSE_RANGE, SYS_DUP3, SYS_FCNTL, SYS_FSTAT, SYS_FTRUNCATE, SYS_GETSOCKOPT,
    SYS_LSEEK, SYS_MEMFD_CREATE, SYS_OPEN, SYS_POLL, SYS_PPOLL, SYS_PREAD, SYS_PREADV2, SYS_PWRITE,
    SYS_PWRITEV2, SYS_READ, SYS_READLINK, SYS_SENDFILE, SYS_WRITE,
};

/// `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub base: usize,
    pub length: usize,
}

pub fn write(fd: i32, bytes: &[u8]) {
    call(SYS_WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]);
}

pub fn close(fd: i32) {
    call(SYS_CLOSE, [fd as usize, 0, 0, 0, 0, 0]);
}

/// Reads the beginning of a file; its path ends in a zero byte.
pub fn read_file(path: &[u8], buffer: &mut [u8]) -> usize {
    let fd = call(SYS_OPEN, [path.as_ptr() as usize, 0, 0, 0, 0, 0]);
    if fd < 0 {
        return 0;
    }
    let got = call(SYS_READ, [fd as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]);
    close(fd as i32);
    got.max(0) as usize
}

/// Closes every descriptor.
pub fn close_all() {
    call(SYS_CLOSE_RANGE, [0, u32::MAX as usize, 0, 0, 0, 0]);
}

/// Creates a file in memory of that size; returns a negative error if that fails.
pub fn memory_file(name: &core::ffi::CStr, close_on_exec: bool, size: usize) -> i32 {
    let fd = call(SYS_MEMFD_CREATE, [name.as_ptr() as usize, close_on_exec as usize, 0, 0, 0, 0]);
    if fd >= 0 {
        call(SYS_FTRUNCATE, [fd as usize, size, 0, 0, 0, 0]);
    }
    fd as i32
}

/// Changes the current directory; the path ends in a zero byte. Returns whether it succeeded.
pub fn change_directory(path: *const u8) -> bool {
    call(SYS_CHDIR, [path as usize, 0, 0, 0, 0, 0]) == 0
}

/// When a file was last written, in nanoseconds of the real-time clock; `None` if it is not a regular file.
pub fn last_written(fd: i32) -> Option<u64> {
    const MODE: usize = 3;
    const MODIFIED: usize = 11;
    const KIND: u64 = 0o170_000;
    const REGULAR: u64 = 0o100_000;
    let mut stat = [0u64; 18];
    let result = call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
    (result == 0 && stat[MODE] & KIND == REGULAR).then(|| stat[MODIFIED] * 1_000_000_000 + stat[MODIFIED + 1])
}

/// The inode number of a pipe; `None` if the descriptor is not a pipe.
pub fn pipe_number(fd: i32) -> Option<u64> {
    const NUMBER: usize = 1;
    const MODE: usize = 3;
    const KIND: u64 = 0o170_000;
    const PIPE: u64 = 0o010_000;
    let mut stat = [0u64; 18];
    let result = call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
    (result == 0 && stat[MODE] & KIND == PIPE).then_some(stat[NUMBER])
}

/// The inode number of a descriptor's file; `None` if there is no such descriptor.
pub fn file_number(fd: i32) -> Option<u64> {
    const NUMBER: usize = 1;
    let mut stat = [0u64; 18];
    (call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) == 0).then(|| stat[NUMBER])
}

/// The type and permissions of a descriptor's file; `None` if there is no such descriptor.
pub fn file_mode(fd: i32) -> Option<u32> {
    const MODE: usize = 6;
    let mut stat = [0u32; 36];
    (call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) == 0).then(|| stat[MODE])
}

/// Opens a descriptor's file again for reading, by its path, at the same position and under the same number.
/// Returns whether it succeeded.
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

/// Opens a file for reading. Returns a negative error if that fails.
pub fn open_to_read(path: &core::ffi::CStr) -> i32 {
    const O_CLOEXEC: usize = 0o2_000_000;
    call(SYS_OPEN, [path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0, 0]) as i32
}

/// Reads bytes of a file from a position on. Returns how many.
pub fn read_at(fd: i32, at: usize, bytes: usize, position: usize) -> usize {
    call(SYS_PREAD, [fd as usize, at, bytes, position, 0, 0]).max(0) as usize
}

/// Writes bytes of a file from a position on.
pub fn write_at(fd: i32, at: usize, bytes: usize, position: usize) {
    call(SYS_PWRITE, [fd as usize, at, bytes, position, 0, 0]);
}

/// The position of a descriptor in its file; 0 if it has none.
pub fn position(fd: i32) -> usize {
    const SEEK_CUR: usize = 1;
    call(SYS_LSEEK, [fd as usize, 0, SEEK_CUR, 0, 0, 0]).max(0) as usize
}

/// Moves a descriptor to the beginning of its file.
pub fn rewind(fd: i32) {
    call(SYS_LSEEK, [fd as usize, 0, 0, 0, 0, 0]);
}

/// The device and the number of a descriptor's file; `None` if there is no such descriptor.
pub fn file_identity(fd: i32) -> Option<[u64; 2]> {
    let mut stat = [0u64; 18];
    let result = call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
    (result == 0).then(|| [stat[0], stat[1]])
}

/// The size of a descriptor's file; 0 if there is no such descriptor.
pub fn file_size(fd: i32) -> usize {
    const SIZE: usize = 6;
    let mut stat = [0u64; 18];
    call(SYS_FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
    stat[SIZE] as usize
}

/// Whether a descriptor is open for reading only.
pub fn is_read_only(fd: i32) -> bool {
    const F_GETFL: usize = 3;
    const O_ACCMODE: isize = 3;
    call(SYS_FCNTL, [fd as usize, F_GETFL, 0, 0, 0, 0]) & O_ACCMODE == 0
}

/// Appends all bytes of a file to another one.
pub fn send_whole_file(to: i32, from: i32) {
    const MOST: usize = 1 << 30;
    let mut position = 0usize;
    while call(SYS_SENDFILE, [to as usize, from as usize, &raw mut position as usize, MOST, 0, 0]) > 0 {}
}

/// Puts the descriptor `new` in the place of `old`, with the same flag of `exec`.
pub fn replace(old: i32, new: i32) {
    const F_GETFD: usize = 1;
    const FD_CLOEXEC: isize = 1;
    const O_CLOEXEC: usize = 0o2_000_000;
    let closes = call(SYS_FCNTL, [old as usize, F_GETFD, 0, 0, 0, 0]) == FD_CLOEXEC;
    call(SYS_DUP3, [new as usize, old as usize, if closes { O_CLOEXEC } else { 0 }, 0, 0, 0]);
    close(new);
}

/// What the kernel calls the file of a descriptor. Returns the length, at most that of the buffer.
pub fn link_of_descriptor(fd: i32, buffer: &mut [u8]) -> usize {
    const DIRECTORY: &[u8] = b"/proc/self/fd/";
    let mut path = [0u8; DIRECTORY.len() + 12];
    path[..DIRECTORY.len()].copy_from_slice(DIRECTORY);
    let mut digits = [0; 10];
    let digits = super::decimal(fd, &mut digits);
    path[DIRECTORY.len()..][..digits.len()].copy_from_slice(digits);
    let got =
        call(SYS_READLINK, [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]);
    got.max(0) as usize
}

/// `poll`, on an array of `count` entries at an address.
pub fn poll(fds: usize, count: usize, millis: i32) -> isize {
    call(SYS_POLL, [fds, count, millis as usize, 0, 0, 0])
}

/// As [`poll`], with a time-out in microseconds.
pub fn ppoll_micros(fds: usize, count: usize, micros: u64) -> isize {
    let time = [micros / 1_000_000, micros % 1_000_000 * 1_000];
    call(SYS_PPOLL, [fds, count, time.as_ptr() as usize, 0, 0, 0])
}

const F_GETFL: usize = 3;
const F_SETFL: usize = 4;
const O_NONBLOCK: usize = 0o4000;

/// Whether the program has made a descriptor non-blocking. An invalid descriptor counts as non-blocking.
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
/// For calls that take an offset: the descriptor's own position.
const HERE: usize = usize::MAX;

/// Reads into pieces without blocking. Returns EAGAIN if it would block, EOPNOTSUPP if the kernel cannot tell.
pub fn read_now(fd: i32, pieces: usize, count: usize) -> isize {
    call(SYS_PREADV2, [fd as usize, pieces, count, HERE, HERE, RWF_NOWAIT])
}

/// Writes pieces, or some of them, without blocking; errors as of [`read_now`].
pub fn write_now(fd: i32, pieces: usize, count: usize) -> isize {
    call(SYS_PWRITEV2, [fd as usize, pieces, count, HERE, HERE, RWF_NOWAIT])
}

const SOL_SOCKET: usize = 1;

/// Reads an option of a socket; `value` does not change if that fails.
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

/// Opens the file that another process has open under this descriptor number.
pub fn open_of_process(pid: u32, fd: u32) -> Option<i32> {
    const O_RDWR_CLOEXEC: usize = 0o2000002;
    let mut path = [0u8; 40];
    let mut length = 0;
    let mut push = |bytes: &[u8]| {
        path[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    let digits = |number: u32| {
        let mut digits = [b'0'; 10];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(9);
        (digits, first)
    };
    let (pid, fd) = (digits(pid), digits(fd));
    push(b"/proc/");
    push(&pid.0[pid.1..]);
    push(b"/fd/");
    push(&fd.0[fd.1..]);
    let got = call(SYS_OPEN, [path.as_ptr() as usize, O_RDWR_CLOEXEC, 0, 0, 0, 0]);
    (got >= 0).then_some(got as i32)
}
