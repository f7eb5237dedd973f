//! Processors: how many the program sees, and on which one a thread runs. With `--cpus N` they are 0 to N-1;
//! otherwise those that the process may really use. All threads share one kernel thread, which the kernel moves
//! between processors. To give the same answer in every execution, the runtime derives a thread's processor
//! from the thread's number.
//!
//! Files that describe processors (/proc/cpuinfo, /sys/devices/system/cpu, cgroup limits) are not changed.

use super::shims;
use crate::platform::baton::Guarded;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::recurrence;
use crate::sched::{SCHED, me};
use crate::wire_log;
use core::cell::Cell;
use core::ffi::{c_int, c_long};
use heisen_trace::Note;
use heisen_wire::MAX_THREADS;

/// Words of a `cpu_set_t`.
const WORDS: usize = 16;

#[repr(align(4096))]
struct Cpus {
    /// The number given by `--cpus`; 0: the real processors.
    asked: Cell<u32>,
    /// The processors that the process may really use.
    real: [Cell<u64>; WORDS],
    /// With `--cpus`: the processors to which a thread has confined itself; 0 if it has not.
    confined: [Cell<u64>; MAX_THREADS],
}

static CPUS: Guarded<Cpus> = Guarded::new(Cpus {
    asked: Cell::new(0),
    real: [const { Cell::new(0) }; WORDS],
    confined: [const { Cell::new(0) }; MAX_THREADS],
});

/// Stores the number given by `--cpus`.
pub fn init(asked: u32) {
    CPUS.asked.set(asked);
    let at = CPUS.real.as_ptr() as usize;
    sys::call(sys::SYS_SCHED_GETAFFINITY, [0, 8 * WORDS, at, 0, 0, 0]);
}

/// The number given by `--cpus`, if there is one and the process is controlled.
fn asked() -> Option<u32> {
    (SCHED.active.get() && CPUS.asked.get() != 0).then(|| CPUS.asked.get())
}

/// All processors of `--cpus` as a set.
fn all(asked: u32) -> u64 {
    u64::MAX >> (64 - asked.clamp(1, 64))
}

/// A new thread inherits its creator's set.
pub fn created(number: usize) {
    CPUS.confined[number].set(CPUS.confined[me()].get());
}

/// The processor that the running thread sees.
fn current() -> u32 {
    let word = |index: usize| match asked() {
        None => CPUS.real[index].get(),
        Some(asked) if index == 0 => match CPUS.confined[me()].get() {
            0 => all(asked),
            own => own,
        },
        Some(_) => 0,
    };
    let count: u32 = (0..WORDS).map(|index| word(index).count_ones()).sum();
    let mut skip = me() as u32 % count.max(1);
    for index in 0..WORDS {
        let mut set = word(index);
        while set != 0 {
            if skip == 0 {
                return index as u32 * 64 + set.trailing_zeros();
            }
            skip -= 1;
            set &= set - 1;
        }
    }
    0
}

/// The system call `sched_getaffinity` for thread `number`, with `--cpus`: the number of bytes written, or an
/// error.
pub fn get_affinity(number: usize, size: usize, set: usize) -> Option<isize> {
    let asked = asked()?;
    if size < 8 || !size.is_multiple_of(8) {
        return Some(-(sys::EINVAL as isize));
    }
    let own = match CPUS.confined[number].get() {
        0 => all(asked),
        own => own,
    };
    // SAFETY: the program passes room for as much as it says, at least a word.
    unsafe { (set as *mut u64).write_unaligned(own) };
    Some(8)
}

/// The system call `sched_setaffinity` for thread `number`, with `--cpus`.
pub fn set_affinity(number: usize, size: usize, set: usize) -> Option<isize> {
    let asked = asked()?;
    let mut wanted = 0u64.to_le_bytes();
    // SAFETY: the program passes as much as it says.
    unsafe { core::ptr::copy_nonoverlapping(set as *const u8, wanted.as_mut_ptr(), size.min(8)) };
    let wanted = u64::from_le_bytes(wanted) & all(asked);
    if wanted == 0 {
        return Some(-(sys::EINVAL as isize));
    }
    CPUS.confined[number].set(wanted);
    Some(0)
}

/// As `get_affinity`, for glibc's function: returns an error number, and clears the rest of the set.
pub fn get_affinity_set(number: usize, size: usize, set: usize) -> Option<c_int> {
    let written = get_affinity(number, size, set)?;
    if written < 0 {
        return Some(-written as c_int);
    }
    // SAFETY: as in `get_affinity`.
    unsafe { core::ptr::write_bytes((set + 8) as *mut u8, 0, size - 8) };
    Some(0)
}

/// The system call `getcpu`.
pub fn get_cpu(cpu: *mut u32, node: *mut u32) {
    // SAFETY: the program passes room for a number, or null.
    unsafe {
        if !cpu.is_null() {
            *cpu = current();
        }
        if !node.is_null() {
            *node = 0;
        }
    }
}

shims! {
    /// Returns a processor that follows from the thread's number, the same in every execution. Not a scheduling
    /// point.
    fn sched_getcpu() -> c_int = pc { current() as c_int }

    /// As `sched_getcpu`; the node is 0.
    fn getcpu(cpu: *mut u32, node: *mut u32) -> c_int = pc {
        get_cpu(cpu, node);
        0
    }

    /// Returns processor time. It is real and differs from run to run, which is noted. Not a scheduling point.
    fn clock() -> c_long = pc {
        wire_log::note(Note::CpuClock);
        recurrence::consulted();
        real!(clock, fn() -> c_long)
    }

    /// As `clock`.
    fn times(out: usize) -> c_long = pc {
        wire_log::note(Note::CpuClock);
        recurrence::consulted();
        real!(times, fn(out => usize) -> c_long)
    }

    /// As `clock`.
    fn getrusage(who: c_int, out: usize) -> c_int = pc {
        wire_log::note(Note::CpuClock);
        recurrence::consulted();
        real!(getrusage, fn(who => c_int, out => usize) -> c_int)
    }

    /// Returns the number of processors that `--cpus` asks for; answers all other questions as glibc does. Not
    /// a scheduling point.
    fn sysconf(name: c_int) -> c_long = pc {
        const NPROCESSORS_CONF: c_int = 83;
        const NPROCESSORS_ONLN: c_int = 84;
        match asked() {
            Some(asked) if matches!(name, NPROCESSORS_CONF | NPROCESSORS_ONLN) => asked as c_long,
            _ => real!(sysconf, fn(name => c_int) -> c_long),
        }
    }

    /// Returns the number of processors that `--cpus` asks for. Not a scheduling point.
    fn get_nprocs() -> c_int = pc {
        asked().map_or_else(|| real!(get_nprocs, fn() -> c_int), |asked| asked as c_int)
    }

    /// Returns the number of processors that `--cpus` asks for. Not a scheduling point.
    fn get_nprocs_conf() -> c_int = pc {
        asked().map_or_else(|| real!(get_nprocs_conf, fn() -> c_int), |asked| asked as c_int)
    }
}
