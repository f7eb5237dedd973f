//! Touches of arrivals at barriers: arrivals commute as long as no more threads meet than the barrier is made
//! for.
//!
//! An arrival reads the barrier and writes an object of its own. A thread that leaves the barrier reads the
//! objects of all arrivals of the round. So it comes after all of them and depends on no order among them. An
//! arrival also writes the barrier if its caller may look at which thread was the last. It does so, too, if a
//! thread has come that was not in the first round: then the order decides which threads meet.
//! `search::analysis::relation` explains the consequences.

use super::{mix, place, touch, wanted};
use crate::platform::baton::Guarded;
use crate::sched::me;
use crate::sched::object_key::{key, space};
use core::cell::Cell;
use heisen_trace::Op;

/// The threads that meet at a barrier.
#[derive(Debug)]
struct Meeting {
    /// The address of the barrier; 0 if the entry is unused.
    barrier: Cell<usize>,
    /// Whether the round has an odd number. A thread leaves a round before the next round is over, so
    /// distinguishing two rounds is enough.
    odd: Cell<bool>,
    /// Whether it is the first round.
    first: Cell<bool>,
    /// The threads that took part in the first round, as bits.
    members: Cell<u64>,
    /// The threads that have arrived and not left yet.
    inside: Cell<u64>,
    /// Whether a thread has come that is not a member.
    crowded: Cell<bool>,
}

/// The largest number of barriers at which arrivals commute.
const MEETINGS: usize = 64;

struct Meetings([Meeting; MEETINGS]);

static ARRIVALS: Guarded<Meetings> = Guarded::new(Meetings(
    [const {
        Meeting {
            barrier: Cell::new(0),
            odd: Cell::new(false),
            first: Cell::new(false),
            members: Cell::new(0),
            inside: Cell::new(0),
            crowded: Cell::new(false),
        }
    }; MEETINGS],
));

fn found(barrier: usize) -> Option<&'static Meeting> {
    ARRIVALS.0.iter().find(|meeting| meeting.barrier.get() == barrier)
}

fn found_or_made(barrier: usize) -> Option<&'static Meeting> {
    found(barrier).or_else(|| {
        let meeting = found(0)?;
        meeting.barrier.set(barrier);
        meeting.odd.set(false);
        meeting.first.set(true);
        meeting.members.set(0);
        meeting.inside.set(0);
        meeting.crowded.set(false);
        Some(meeting)
    })
}

/// The bit of a thread in a set; 0 if its number is too large.
fn bit(thread: usize) -> u64 {
    1u64.checked_shl(thread as u32).unwrap_or(0)
}

/// The object that the arrival of a thread writes.
fn arrival(barrier: usize, thread: usize, odd: bool) -> u64 {
    let number = mix(barrier as u64, (thread as u64) << 1 | u64::from(odd));
    key(space::ARRIVALS, number as usize) as u64
}

/// The running thread arrives at a barrier, in a call from `pc`. `uses` says whether the caller may look at
/// which thread was the last. Returns the parity of the round, for [`leaves`].
pub fn arrives(barrier: usize, pc: usize, uses: impl Fn() -> bool) -> bool {
    if !wanted() {
        return false;
    }
    let bit = bit(me());
    let meeting = found_or_made(barrier);
    let crowds = meeting.is_none_or(|meeting| {
        if meeting.first.get() {
            meeting.members.set(meeting.members.get() | bit);
        }
        meeting.inside.set(meeting.inside.get() | bit);
        meeting.crowded.set(meeting.crowded.get() || meeting.members.get() & bit == 0);
        meeting.crowded.get()
    });
    let odd = meeting.is_some_and(|meeting| meeting.odd.get());
    place(Op::Barrier, pc);
    match crowds {
        false if uses() => touch(barrier as u64, true, 0),
        crowds => touch(barrier as u64, crowds, Op::Barrier as u8),
    }
    touch(arrival(barrier, me(), odd), true, Op::Barrier as u8);
    odd
}

/// All threads that the barrier waits for have arrived.
pub fn met(barrier: usize) {
    if wanted()
        && let Some(meeting) = found(barrier)
    {
        meeting.odd.set(!meeting.odd.get());
        meeting.first.set(false);
    }
}

/// The running thread leaves a round.
pub fn leaves(barrier: usize, odd: bool) {
    if !wanted() {
        return;
    }
    let Some(meeting) = found(barrier) else { return };
    meeting.inside.set(meeting.inside.get() & !bit(me()));
    let mut members = meeting.members.get();
    while members != 0 {
        touch(arrival(barrier, members.trailing_zeros() as usize, odd), false, Op::Barrier as u8);
        members &= members - 1;
    }
}

/// The barrier is destroyed. If threads have not left it yet, a new barrier at the same address is not
/// distinguished from it, and all its arrivals are ordered.
pub fn forget(barrier: usize) {
    if let Some(meeting) = found(barrier) {
        if meeting.inside.get() == 0 {
            meeting.barrier.set(0);
        } else {
            meeting.crowded.set(true);
        }
    }
}
