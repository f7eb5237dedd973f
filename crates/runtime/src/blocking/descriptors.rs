//! Waiting for descriptors: instead of blocking in the kernel, a thread is disabled until a descriptor that it
//! waits for is ready. Blocking would stop all threads, because they share one kernel thread.
//!
//! When one thread of the program sends data to another through a pipe or a socket, the data is in the kernel
//! before the call returns. It is therefore enough to check, by a `poll` that does not wait, after each call
//! that can have made a descriptor ready. The result depends on the schedule alone.
//!
//! Data from outside may arrive at any time. The runtime checks for it now and then; when no thread can take a
//! step, it waits for it in a blocking `poll`. Before virtual time jumps, the outside gets a moment of real
//! time, so that its data is not missed.

use crate::blocking::{input_log, kernel_calls, timer_descriptors};
use crate::memory::race::order;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::access_mode::{is_on, mode};
use crate::sched::object_key::{key, space};
use crate::sched::thread_set::Bits;
use crate::sched::{self, SCHED, Woken, thread, threads, words};
use crate::sched::{clock, hooks, recurrence};
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::SeqCst;
use heisen_trace::{Note, Op};

/// `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PollFd {
    pub fd: i32,
    pub events: i16,
    pub revents: i16,
}

pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;

/// What is known of a descriptor. A *channel* is a descriptor through which threads or processes communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Not classified yet.
    Unknown = 0,
    /// A file, a directory, a device, or a descriptor that the program was started with. It is not a channel,
    /// and calls on it take no time.
    Plain = 1,
    /// A channel with both ends in this process.
    Inside = 2,
    /// A channel whose other end may be outside.
    Outside = 3,
    /// An `epoll` set. All of them count as outside once a descriptor that leads outside was added to any of
    /// them. Sets are not distinguished, because libraries wait on one copy of a set and add to another.
    Epoll = 4,
}

impl Class {
    /// Whether it is a channel, so that calls on it are scheduling points.
    pub fn talks(self) -> bool {
        self >= Class::Inside
    }
}

/// The number of descriptors whose class is remembered.
const KNOWN: usize = 1 << 16;
/// The number of steps between two checks for data from outside while threads run.
const LOOK_EVERY: u32 = 256;
/// The first and the longest time, in microseconds of real time, that the outside gets before virtual time
/// jumps.
const FIRST_MOMENT: u64 = 100;
const LONGEST_MOMENT: u64 = 10_000;
/// The largest number of descriptors in one real `poll`; further ones are checked in turn.
const AT_ONCE: usize = 1024;

// As for `sched::Sched`.
#[repr(C, align(4096))]
struct Io {
    /// Threads that wait for descriptors.
    waiting: Bits,
    /// The number of threads that wait for descriptors.
    count: Cell<usize>,
    /// A call was made that can have changed which descriptors are ready.
    stale: Cell<bool>,
    /// The program has started another process, which may hold the other end of any channel.
    shared: Cell<bool>,
    /// A descriptor that leads outside was added to an `epoll` set.
    epolls_lead_out: Cell<bool>,
    /// How long the runtime last waited for the outside.
    moment: Cell<u64>,
    /// Whether standard input is a pipe or a socket, for which threads wait.
    input_streams: Cell<bool>,
    /// How long, in milliseconds, the runtime waits for the outside when no thread can run.
    patience: Cell<u64>,
    class: [Cell<u8>; KNOWN],
    /// Sockets that `socket` or `accept` created.
    sockets: [Cell<u64>; KNOWN / 64],
    all: [Cell<PollFd>; AT_ONCE],
}

static IO: Guarded<Io> = Guarded::new(Io {
    class: [const { Cell::new(0) }; KNOWN],
    sockets: [const { Cell::new(0) }; KNOWN / 64],
    waiting: Bits::new(),
    count: Cell::new(0),
    stale: Cell::new(false),
    shared: Cell::new(false),
    epolls_lead_out: Cell::new(false),
    moment: Cell::new(FIRST_MOMENT),
    input_streams: Cell::new(false),
    patience: Cell::new(u64::MAX),
    all: [const { Cell::new(PollFd { fd: -1, events: 0, revents: 0 }) }; AT_ONCE],
});

/// Plugs this room into the hooks of the scheduler.
pub fn plug_in() {
    hooks::HOOKS.errands.set(errands);
}

/// An execution begins: the descriptors that the program was started with are not channels. Silence from
/// outside ends the execution after `patience` milliseconds.
pub fn begin(patience: u64) {
    let patience =
        input_log::through(input_log::Kind::Patience, 0, input_log::Out::default(), || patience as isize);
    IO.patience.set(patience as u64);
    // The engine reads the program's output as it comes, so writing it never waits.
    for fd in 0..3 {
        set_class(fd, Class::Plain);
    }
    if IO.input_streams.get() {
        set_class(0, Class::Outside);
    }
}

/// Before an execution: finds out whether threads may have to wait for standard input.
pub fn look_at_input() {
    IO.input_streams.set(is_stream(0));
}

const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFSOCK: u32 = 0o140_000;

/// Whether the kernel says that it is a pipe, a socket, or an object without a name, such as an `eventfd`.
fn is_stream(fd: i32) -> bool {
    sys::file_mode(fd).is_some_and(|mode| matches!(mode & S_IFMT, S_IFIFO | S_IFSOCK | 0))
}

/// Records the class of a descriptor.
pub fn set_class(fd: i32, class: Class) {
    if let Some(slot) = usize::try_from(fd).ok().and_then(|fd| IO.class.get(fd)) {
        slot.set(class as u8);
        if class == Class::Unknown {
            set_socket(fd, false);
        }
    }
}

/// Records whether a descriptor is a socket that may lead outside; a socket of a pair does not.
pub fn set_socket(fd: i32, is: bool) {
    if let Some(word) = usize::try_from(fd).ok().and_then(|fd| IO.sockets.get(fd / 64)) {
        let bit = 1 << (fd % 64);
        word.set(if is { word.get() | bit } else { word.get() & !bit });
    }
}

/// Whether a descriptor is a socket that may lead outside.
pub fn is_socket(fd: i32) -> bool {
    let word = usize::try_from(fd).ok().and_then(|fd| IO.sockets.get(fd / 64));
    word.is_some_and(|word| word.get() >> (fd % 64) & 1 != 0)
}

/// The class of a descriptor, with [`Class::Epoll`] resolved. The kernel is asked the first time.
pub fn class(fd: i32) -> Class {
    let slot = usize::try_from(fd).ok().and_then(|fd| IO.class.get(fd));
    match slot.map(Cell::get) {
        Some(1) => Class::Plain,
        Some(2) if IO.shared.get() => Class::Outside,
        Some(4) if IO.shared.get() || IO.epolls_lead_out.get() => Class::Outside,
        Some(2 | 4) => Class::Inside,
        Some(3) => Class::Outside,
        _ => {
            let class = if is_stream(fd) { Class::Outside } else { Class::Plain };
            set_class(fd, class);
            class
        }
    }
}

/// The descriptors from `first` to `last` are closed.
pub fn forget(first: u32, last: u32) {
    for fd in first as usize..(last as usize).saturating_add(1).min(KNOWN) {
        set_class(fd as i32, Class::Unknown);
    }
}

/// `new` is a copy of `old`.
pub fn copy_class(old: i32, new: i32) {
    let epoll = usize::try_from(old).ok().and_then(|fd| IO.class.get(fd)).map(Cell::get) == Some(4);
    set_class(new, if epoll { Class::Epoll } else { class(old) });
}

/// A descriptor was added to an `epoll` set.
pub fn added_to_epoll(fd: i32) {
    if class(fd) == Class::Outside {
        IO.epolls_lead_out.set(true);
    }
    touched();
}

/// An invalid descriptor, for [`says`] and [`hears`]: the thread communicates with the kernel itself.
pub const NOBODY: i32 = -1;

/// The object by which communication through a descriptor orders threads. Both ends of a pipe have the same
/// file number. For other channels only the kernel knows which ends belong together, so they share one object.
fn channel(fd: i32) -> usize {
    match sys::pipe_number(fd) {
        Some(number) => key(space::FILE, number as usize),
        None => key(space::KERNEL, 0),
    }
}

/// The running thread sends something through a descriptor: a release, for the race check.
pub fn says(fd: i32) {
    if is_on(mode::CHECK) {
        order::release(channel(fd));
    }
}

/// The running thread receives something through a descriptor: an acquire, for the race check.
pub fn hears(fd: i32) {
    if is_on(mode::CHECK) {
        order::acquire(channel(fd));
    }
}

/// The program has started another process.
pub fn share() {
    IO.shared.set(true);
}

/// A call was made that can have made a descriptor ready, or no longer ready.
#[inline]
pub fn touched() {
    IO.stale.set(true);
}

/// Waits until one of the descriptors is ready, or the deadline passes. Without descriptors, it only waits for
/// the deadline.
pub fn wait(op: Op, fds: &[PollFd], pc: usize, deadline: u64) -> Woken {
    let number = sched::me();
    let t = thread(number);
    t.polls.set(fds.as_ptr() as usize);
    t.polls_count.set(fds.len());
    IO.waiting.add(number);
    IO.count.set(IO.count.get() + 1);
    sched::add_errand();
    let object = fds.first().map_or(0, |fd| fd.fd as usize);
    let woken = sched::wait_outside(op, object, pc, deadline);
    sched::remove_errand();
    IO.count.set(IO.count.get() - 1);
    IO.waiting.remove(number);
    t.polls_count.set(0);
    woken
}

/// The descriptors that a thread waits for.
fn awaited(number: usize) -> &'static [PollFd] {
    let t = thread(number);
    if t.polls_count.get() == 0 {
        return &[];
    }
    // SAFETY: `wait` put them there, and its caller keeps them until it returns.
    unsafe { core::slice::from_raw_parts(t.polls.get() as *const PollFd, t.polls_count.get()) }
}

fn waiting() -> impl Iterator<Item = usize> {
    threads().map(|(number, _)| number).filter(|&number| IO.waiting.has(number))
}

/// Checks which waiting threads can run. A thread that was ready before may not be so now, because another
/// thread was faster.
fn look() {
    IO.stale.set(false);
    for number in waiting() {
        let fds = awaited(number);
        if !fds.is_empty() {
            let ask = || (sys::poll(fds.as_ptr() as usize, fds.len(), 0) > 0) as isize;
            let ready =
                input_log::through(input_log::Kind::Look, number as i32, input_log::Out::default(), ask);
            sched::set_ready(number, ready > 0);
        }
    }
}

/// Runs before a choice is made, at each scheduling point while a thread waits for a descriptor or a timer is
/// armed. `able` says whether the running thread can continue in any case.
#[cold]
fn errands(able: bool) {
    let mut fired = timer_descriptors::fire_due(clock::now());
    let outside_is_due = SCHED.step.get().is_multiple_of(LOOK_EVERY) && IO.count.get() != 0;
    kernel_calls::came_back();
    if IO.count.get() != 0 && (fired || IO.stale.get() || outside_is_due) {
        look();
    }
    if able {
        return;
    }
    let mut waited = 0;
    while !anyone_is_ready() {
        let next = sched::next_deadline();
        if let Some(due) = timer_descriptors::next().filter(|&due| due <= next) {
            clock::reach(due);
            fired = timer_descriptors::fire_due(due);
            debug_assert!(fired);
            look();
            continue;
        }
        if !anyone_waits_for_outside() {
            return;
        }
        let may_jump = next != u64::MAX;
        let most = if kernel_calls::is_out() { LONGEST_MOMENT / 10 } else { LONGEST_MOMENT };
        let left = if clock::is_real() { clock::until(next) / 1_000 } else { u64::MAX };
        // Without a descriptor or a time-out that could end the wait, there is nothing to look at in between.
        if !may_jump && !clock::is_real() && waits_for_no_descriptor() && kernel_calls::wait() {
            kernel_calls::came_back();
            hooks::look_for_signals();
            continue;
        }
        let moment = IO.moment.get().min(most).min(left);
        if wait_for_outside(moment) || hooks::look_for_signals() {
            IO.moment.set(FIRST_MOMENT);
            look();
            continue;
        }
        IO.moment.set((moment * 2).min(LONGEST_MOMENT));
        waited += moment;
        if clock::is_real() {
            wire_log::heartbeat();
            sched::time_passed();
            if may_jump {
                continue;
            }
        } else if may_jump {
            return;
        }
        if waited / 1000 > IO.patience.get() && !kernel_calls::is_out() {
            wire_log::note(Note::OutsideSilent);
            // The other executions of this batch would wait as long.
            wire_log::wire().enough.store(1, SeqCst);
            return;
        }
    }
}

/// Whether a thread can take its step without a time-out, or has a signal to take. With real time, a time-out
/// that has fired counts, too.
fn anyone_is_ready() -> bool {
    let able = |word| {
        !SCHED.late.word(word) | SCHED.signalled.word(word) | if clock::is_real() { u64::MAX } else { 0 }
    };
    (0..words()).any(|word| SCHED.enabled.word(word) & able(word) != 0)
}

fn anyone_waits_for_outside() -> bool {
    waiting().any(|number| awaited(number).iter().any(|fd| fd.fd >= 0 && class(fd.fd) == Class::Outside))
        || kernel_calls::is_out()
}

fn waits_for_no_descriptor() -> bool {
    waiting().all(|number| awaited(number).is_empty())
}

/// Waits in real time until something comes from outside or `micros` have passed.
fn wait_for_outside(micros: u64) -> bool {
    if kernel_calls::came_back() {
        return true;
    }
    let wait = || wait_for_descriptors(micros) as isize;
    let ready = input_log::through(input_log::Kind::Wait, 0, input_log::Out::default(), wait) > 0;
    if ready {
        wire_log::note(Note::Outside);
        recurrence::consulted();
    }
    kernel_calls::came_back() || ready
}

fn wait_for_descriptors(micros: u64) -> bool {
    let mut count = 0;
    'all: for number in waiting() {
        for fd in awaited(number) {
            if count == AT_ONCE {
                break 'all;
            }
            IO.all[count].set(*fd);
            count += 1;
        }
    }
    sys::ppoll_micros(IO.all.as_ptr() as usize, count, micros) > 0
}
