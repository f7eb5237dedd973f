//! Arrivals at barriers, as touches tell them: they commute as long as no more threads meet than the barrier is made for.
//!
//! An arrival reads the barrier and writes something of its own. Who goes on from the barrier reads what all arrivals of the
//! round have written, and so comes after all of them and depends on no order among them. An arrival writes the barrier, too, if
//! its caller may look at who was the last, or if another thread has come than those of the first round: then the order
//! decides who meets whom. `search::relation` tells what follows from that.

use super::{mix, place, touch, wanted};
use crate::platform::baton::Guarded;
use crate::sched::me;
use crate::sched::object_key::{key, space};
use core::cell::Cell;
use heisen_trace::Op;

/// Who meets at a barrier.
#[derive(Debug)]
struct Meeting {
    /// Its address; 0 if there is none.
    barrier: Cell<usize>,
    /// Whether the round has an odd number. A thread that goes on from a round does so before the next round is over, so that
    /// two rounds are enough to tell apart.
    odd: Cell<bool>,
    /// Whether it is the first round.
    first: Cell<bool>,
    /// Those that took part in the first round, as bits.
    members: Cell<u64>,
    /// Those that have arrived and not gone on.
    inside: Cell<u64>,
    /// Somebody else has come.
    crowded: Cell<bool>,
}

/// Barriers at which arrivals commute, at most.
const MEETINGS: usize = 64;

struct Meetings([Meeting; MEETINGS]);

static M: Guarded<Meetings> = Guarded::new(Meetings(
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
    M.0.iter().find(|meeting| meeting.barrier.get() == barrier)
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

/// What stands for a thread in a set; nothing if its number is too large.
fn bit(thread: usize) -> u64 {
    1u64.checked_shl(thread as u32).unwrap_or(0)
}

/// What stands for the arrival of a thread.
fn arrival(barrier: usize, thread: usize, odd: bool) -> u64 {
    let number = mix(barrier as u64, (thread as u64) << 1 | u64::from(odd));
    key(space::ARRIVALS, number as usize) as u64
}

/// The running thread arrives at a barrier, from `pc`; `uses` says whether the caller may look at who was the last. The round it
/// takes part in, for [`leaves`].
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

/// All have arrived that the barrier waits for.
pub fn met(barrier: usize) {
    if wanted()
        && let Some(meeting) = found(barrier)
    {
        meeting.odd.set(!meeting.odd.get());
        meeting.first.set(false);
    }
}

/// The running thread goes on from a round.
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

/// The barrier is destroyed. If another is made in its place while some are still to go on from this one, the two are not told
/// apart.
pub fn forget(barrier: usize) {
    if let Some(meeting) = found(barrier) {
        if meeting.inside.get() == 0 {
            meeting.barrier.set(0);
        } else {
            meeting.crowded.set(true);
        }
    }
}
