//! Waiting for descriptors: a thread that would block in the kernel is disabled instead, and enabled when a descriptor
//! it waits for is ready. So input and output do not stop the world, which on one kernel thread they would.
//!
//! What threads of the program say to each other through a pipe or a socket is in the kernel before the call that said
//! it returns. So it is enough to look (one `poll` that does not wait) after a call that can have made something ready,
//! and what is found depends on the schedule alone. What comes from outside may come at any time: it is looked for now
//! and then, and, when no thread can take a step, waited for in a `poll` that does. Virtual time does not pass the outside
//! world by unseen: before it jumps, the outside gets a moment of real time.

use crate::blocking::{input_log, kernel_calls, timer_descriptors};
use crate::memory::race::order;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::access_mode::{is_on, mode};
use crate::sched::object_key::{key, space};
use crate::sched::thread_set::Bits;
use crate::sched::{self, S, Woken, thread, threads, words};
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

/// What is known of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Nothing yet.
    Unknown = 0,
    /// A file, a directory, a device, and whatever the program was started with: no way for threads to talk, and calls
    /// on it take no time.
    Plain = 1,
    /// Both ends are in this process.
    Inside = 2,
    /// Someone outside may be at the other end.
    Outside = 3,
    /// An `epoll`: outside as soon as something outside was added to any of them. Which copy of which one it was added
    /// by is not followed: libraries wait by one copy and add by another.
    Epoll = 4,
}

impl Class {
    /// Whether threads can talk through it, so that calls on it are scheduling points.
    pub fn talks(self) -> bool {
        self >= Class::Inside
    }
}

/// Descriptors whose class is remembered.
const KNOWN: usize = 1 << 16;
/// Steps between two looks at the outside while threads run.
const LOOK_EVERY: u32 = 256;
/// The first and the longest moment of real time, in microseconds, that the outside gets before virtual time jumps.
const FIRST_MOMENT: u64 = 100;
const LONGEST_MOMENT: u64 = 10_000;
/// Descriptors in one real `poll`; more are looked at in turn.
const AT_ONCE: usize = 1024;

// As for `sched::Sched`.
#[repr(C, align(4096))]
struct Io {
    /// Threads that wait for descriptors.
    waiting: Bits,
    /// How many.
    count: Cell<usize>,
    /// A call was made that can have changed what is ready.
    stale: Cell<bool>,
    /// The program has started another process, which may hold the other end of anything.
    shared: Cell<bool>,
    /// Something outside was added to an `epoll`.
    epolls_lead_out: Cell<bool>,
    /// How long the outside was last waited for.
    moment: Cell<u64>,
    /// Whether standard input is one to wait for.
    input_streams: Cell<bool>,
    /// For how long, in milliseconds, the outside is waited for when nothing else can happen.
    patience: Cell<u64>,
    class: [Cell<u8>; KNOWN],
    /// Sockets that were made by `socket` or `accept`.
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

/// Lets the scheduler call this room.
pub fn plug_in() {
    hooks::HOOKS.errands.set(errands);
}

/// An execution begins: what the program was started with is not a way to talk, and silence from outside ends it after
/// so many milliseconds.
pub fn begin(patience: u64) {
    let patience =
        input_log::through(input_log::Kind::Patience, 0, input_log::Out::default(), || patience as isize);
    IO.patience.set(patience as u64);
    // Output is taken from the program as it comes.
    for fd in 0..3 {
        set_class(fd, Class::Plain);
    }
    if IO.input_streams.get() {
        set_class(0, Class::Outside);
    }
}

/// Before an execution: standard input may have to be waited for, or not.
pub fn look_at_input() {
    IO.input_streams.set(is_stream(0));
}

const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFSOCK: u32 = 0o140_000;

/// Whether the kernel calls it a pipe, a socket, or an object without a name, such as an `eventfd`.
fn is_stream(fd: i32) -> bool {
    sys::file_mode(fd).is_some_and(|mode| matches!(mode & S_IFMT, S_IFIFO | S_IFSOCK | 0))
}

/// Remembers what a descriptor is.
pub fn set_class(fd: i32, class: Class) {
    if let Some(slot) = usize::try_from(fd).ok().and_then(|fd| IO.class.get(fd)) {
        slot.set(class as u8);
        if class == Class::Unknown {
            set_socket(fd, false);
        }
    }
}

/// Remembers whether a descriptor is a socket that may lead outside; not so one of a pair.
pub fn set_socket(fd: i32, is: bool) {
    if let Some(word) = usize::try_from(fd).ok().and_then(|fd| IO.sockets.get(fd / 64)) {
        let bit = 1 << (fd % 64);
        word.set(if is { word.get() | bit } else { word.get() & !bit });
    }
}

/// Whether a descriptor is such a socket.
pub fn is_socket(fd: i32) -> bool {
    let word = usize::try_from(fd).ok().and_then(|fd| IO.sockets.get(fd / 64));
    word.is_some_and(|word| word.get() >> (fd % 64) & 1 != 0)
}

/// What a descriptor is, [`Class::Epoll`] resolved; the kernel is asked the first time.
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

/// A descriptor was added to an `epoll`.
pub fn added_to_epoll(fd: i32) {
    if class(fd) == Class::Outside {
        IO.epolls_lead_out.set(true);
    }
    touched();
}

/// A descriptor that is none, for [`says`] and [`hears`]: the kernel itself is talked to.
pub const NOBODY: i32 = -1;

/// What orders threads that talk through a descriptor: both ends of a pipe are one file; for all else, which has two ends
/// that the kernel alone can match, there is one for all.
fn channel(fd: i32) -> usize {
    match sys::pipe_number(fd) {
        Some(number) => key(space::FILE, number as usize),
        None => key(space::KERNEL, 0),
    }
}

/// The running thread says something through a descriptor.
pub fn says(fd: i32) {
    if is_on(mode::CHECK) {
        order::release(channel(fd));
    }
}

/// It hears what was said.
pub fn hears(fd: i32) {
    if is_on(mode::CHECK) {
        order::acquire(channel(fd));
    }
}

/// Another process was started.
pub fn share() {
    IO.shared.set(true);
}

/// A call was made that can have made a descriptor ready, or no longer ready.
#[inline]
pub fn touched() {
    IO.stale.set(true);
}

/// Waits until one of the descriptors is ready, or the deadline passes. With none, it only waits for the deadline.
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

/// The descriptors a thread waits for.
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

/// Looks which threads can go on. Those that were found ready before may no longer be: another was faster.
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

/// Before a choice is made: `able` says whether the running thread can go on in any case. Called at each scheduling
/// point while a thread waits for a descriptor or a timer is armed.
#[cold]
fn errands(able: bool) {
    let mut fired = timer_descriptors::fire_due(clock::now());
    let outside_is_due = S.step.get().is_multiple_of(LOOK_EVERY) && IO.count.get() != 0;
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
            // The others of this turn would be waited for as long.
            wire_log::wire().enough.store(1, SeqCst);
            return;
        }
    }
}

/// Whether a thread can take its step without timing out, or has a signal to take. Real time has run out where it has.
fn anyone_is_ready() -> bool {
    let able =
        |word| !S.late.word(word) | S.signalled.word(word) | if clock::is_real() { u64::MAX } else { 0 };
    (0..words()).any(|word| S.enabled.word(word) & able(word) != 0)
}

fn anyone_waits_for_outside() -> bool {
    waiting().any(|number| awaited(number).iter().any(|fd| fd.fd >= 0 && class(fd.fd) == Class::Outside))
        || kernel_calls::is_out()
}

/// Waits, for real, until something comes from outside or `micros` have passed.
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
