//! Pending signals: sent and not yet delivered, in order of arrival, in a table of fixed size.

use super::{FIRST_QUEUED, bit, own_pid, send};
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::platform::sys::Info;
use crate::sched::{NONE, thread};
use crate::shim::timer;
use core::cell::Cell;

const ROOM: usize = 1024;

/// Ways in which a signal was sent.
pub mod code {
    pub const USER: i32 = 0;
    pub const QUEUE: i32 = -1;
    pub const TIMER: i32 = -2;
    pub const TKILL: i32 = -6;
    pub const KERNEL: i32 = 0x80;
}

/// A signal that the program sends.
pub fn sent(signal: i32, code: i32, value: usize) -> Info {
    Info { who: [own_pid(), sys::getuid() as i32], value, ..Info::new(signal, code) }
}

/// A pending signal.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The thread to which it was sent; [`NONE`] if to the process.
    target: u16,
    /// For a signal to the process: the thread chosen to take it; [`NONE`] if there is none.
    taker: u16,
    /// The timer that sent it, plus 1; 0 if none.
    timer: u16,
    pub info: Info,
}

impl Entry {
    /// Whether this thread may take it.
    fn is_for(&self, number: usize) -> bool {
        self.target as usize == number
            || self.target == NONE && (self.taker == NONE || self.taker as usize == number)
    }
}

struct Pending {
    count: Cell<usize>,
    entries: [Cell<Entry>; ROOM],
}

const EMPTY: Entry = Entry { target: 0, taker: 0, timer: 0, info: Info::new(0, 0) };

static PENDING: Guarded<Pending> =
    Guarded::new(Pending { count: Cell::new(0), entries: [const { Cell::new(EMPTY) }; ROOM] });

/// The places of the pending signals.
fn places() -> &'static [Cell<Entry>] {
    &PENDING.entries[..PENDING.count.get()]
}

/// The pending signals.
fn entries() -> impl Iterator<Item = Entry> {
    places().iter().map(Cell::get)
}

fn remove(index: usize) -> Entry {
    let all = places();
    let entry = all[index].get();
    for pair in all[index..].windows(2) {
        pair[0].set(pair[1].get());
    }
    PENDING.count.set(PENDING.count.get() - 1);
    entry
}

/// Adds a signal; false if there is no room.
pub fn add(target: Option<usize>, taker: Option<usize>, timer: u16, info: &Info) -> bool {
    let index = PENDING.count.get();
    if index == ROOM {
        return false;
    }
    PENDING.count.set(index + 1);
    let number = |thread: Option<usize>| thread.map_or(NONE, |number| number as u16);
    PENDING.entries[index].set(Entry { target: number(target), taker: number(taker), timer, info: *info });
    true
}

/// Whether this signal, if at most one can be pending, is pending for a thread or the process.
pub fn has(target: Option<usize>, signal: i32) -> bool {
    let target = target.map_or(NONE, |number| number as u16);
    signal < FIRST_QUEUED && entries().any(|e| e.target == target && e.info.signal == signal)
}

/// Whether a signal of this timer is pending.
pub fn has_of_timer(timer: u16) -> bool {
    entries().any(|e| e.timer == timer)
}

/// The set of all signals pending for a thread or for the process.
pub fn set_of(number: usize) -> u64 {
    let all = entries().filter(|e| e.target == NONE || e.target as usize == number);
    all.fold(0, |set, e| set | bit(e.info.signal))
}

/// Takes a signal of the set for a thread. As in Linux, signals sent to the thread come first, then the lowest
/// number, then the oldest.
pub fn take(number: usize, set: u64) -> Option<Info> {
    let fits = |e: &&(usize, Entry)| e.1.is_for(number) && set & bit(e.1.info.signal) != 0;
    let all = entries().enumerate();
    let order = |(index, e): &(usize, Entry)| (e.target == NONE, e.info.signal, *index);
    let (index, _) = all.filter(|e| fits(&e)).min_by_key(order)?;
    let entry = remove(index);
    let mut info = entry.info;
    if entry.timer != 0 {
        info.who[1] = timer::delivered(entry.timer as usize - 1);
    }
    Some(info)
}

/// Discards a signal, for all threads.
pub fn forget(signal: i32) {
    while let Some(index) = entries().position(|e| e.info.signal == signal) {
        remove(index);
    }
}

/// A thread does not take the signals for which it was chosen: other threads may.
pub fn hand_on(number: usize) {
    let blocked = if thread(number).ended.get() { u64::MAX } else { thread(number).blocked.get() };
    for index in 0..PENDING.count.get() {
        let place = &PENDING.entries[index];
        let entry = place.get();
        if entry.target == NONE && entry.taker as usize == number && blocked & bit(entry.info.signal) != 0 {
            place.set(Entry { taker: NONE, ..entry });
            let other = send::first_taker(entry.info.signal);
            place.set(Entry { taker: other.map_or(NONE, |other| other as u16), ..entry });
            if let Some(other) = other {
                send::wake(other);
            }
        }
    }
}

/// A thread has ended: discards the signals that were sent to it.
pub fn thread_ended(number: usize) {
    while let Some(index) = entries().position(|e| e.target as usize == number) {
        remove(index);
    }
    hand_on(number);
    if super::mask::of_kernel() != 0 || thread(number).blocked.get() != 0 {
        super::mask::tell_kernel();
    }
}
