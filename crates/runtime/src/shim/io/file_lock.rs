//! File locks. The kernel knows who holds one, and the holder may be another process. A thread that has to wait
//! therefore makes the call on a kernel thread of its own (see `crate::blocking::kernel_calls`).

use crate::blocking::kernel_calls;
use crate::platform::glibc;
use crate::platform::sys;
use crate::sched;
use crate::shim::shims;
use core::ffi::c_int;
use heisen_trace::Op;

const F_SETLK: c_int = 6;
const F_SETLKW: c_int = 7;
const F_OFD_SETLK: c_int = 37;
const F_OFD_SETLKW: c_int = 38;

/// Whether a command of `fcntl` waits for a lock.
pub fn waits(command: c_int) -> bool {
    matches!(command, F_SETLKW | F_OFD_SETLKW)
}

/// Takes a lock by the call `now`, which does not wait. If the lock is held, makes the call `later` on a kernel
/// thread of its own.
fn take(fd: c_int, now: [usize; 3], later: [usize; 3], number: usize, pc: usize) -> c_int {
    sched::point(Op::FileLock, fd as usize, pc);
    let args = |three: [usize; 3]| [three[0], three[1], three[2], 0, 0, 0];
    let mut got = sys::call(number, args(now));
    if matches!(-got as i32, sys::EAGAIN | sys::EACCES) && now != later {
        got = kernel_calls::call(Op::FileLock, fd as usize, number, args(later), pc);
    }
    glibc::kernel_result(got) as c_int
}

/// `fcntl` with a command that [`waits`].
pub fn lock_range(fd: c_int, command: c_int, range: usize, pc: usize) -> c_int {
    let at_once = if command == F_SETLKW { F_SETLK } else { F_OFD_SETLK };
    let (fd_, now, later) = (fd as usize, at_once as usize, command as usize);
    take(fd, [fd_, now, range], [fd_, later, range], sys::SYS_FCNTL, pc)
}

/// `lockf`: locks `length` bytes from the descriptor's position.
fn lock_here(fd: c_int, command: c_int, length: i64, pc: usize, real: impl Fn() -> c_int) -> c_int {
    const F_LOCK: c_int = 1;
    const F_WRLCK: u64 = 1;
    const SEEK_CUR: u64 = 1;
    if command != F_LOCK {
        return real();
    }
    // `struct flock`: type and origin, 16 bits each, then start, length and process.
    let range = [F_WRLCK | SEEK_CUR << 16, 0, length as u64, 0];
    lock_range(fd, F_SETLKW, range.as_ptr() as usize, pc)
}

shims! {
    /// Waits for the lock while other threads run. A scheduling point.
    fn lockf(fd: c_int, command: c_int, length: i64) -> c_int = pc {
        lock_here(fd, command, length, pc, || {
            glibc::real!(lockf, fn(fd => c_int, command => c_int, length => i64) -> c_int)
        })
    }

    /// As `lockf`.
    fn lockf64(fd: c_int, command: c_int, length: i64) -> c_int = pc {
        lock_here(fd, command, length, pc, || {
            glibc::real!(lockf64, fn(fd => c_int, command => c_int, length => i64) -> c_int)
        })
    }

    /// Waits for the lock while other threads run. A scheduling point.
    fn flock(fd: c_int, operation: c_int) -> c_int = pc {
        const LOCK_NB: c_int = 4;
        let now = [fd as usize, (operation | LOCK_NB) as usize, 0];
        take(fd, now, [fd as usize, operation as usize, 0], sys::SYS_FLOCK, pc)
    }
}
