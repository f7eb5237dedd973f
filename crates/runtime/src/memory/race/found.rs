//! Reports conflicts to the engine, each pair of places once in an execution.

use super::shadow::Access;
use super::{is_on, mode};
use crate::platform::baton::Guarded;
use crate::sched::pause;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Note;
use heisen_wire::{MAX_CONFLICTS, stop};

const SEEN: usize = 256;

struct Seen([Cell<(usize, usize)>; SEEN]);

/// Pairs of places that were reported already, by their hash. A slot keeps only its latest pair.
static TOLD: Guarded<Seen> = Guarded::new(Seen([const { Cell::new((0, 0)) }; SEEN]));

fn is_new(first: usize, second: usize) -> bool {
    let hash = (first.wrapping_mul(31) ^ second).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    TOLD.0[hash].replace((first, second)) != (first, second)
}

/// Reports two accesses that conflict and that nothing orders.
#[cold]
pub fn conflict(old: &Access, new: &Access, address: usize) {
    if is_on(mode::WATCH) {
        watched(old, new);
    }
    if !is_new(old.pc(), new.pc()) {
        return;
    }
    let (told, count) = wire_log::conflicts();
    let known = told.iter().take(count).any(|conflict| {
        conflict.first_pc.load(Relaxed) == old.pc() as u64
            && conflict.second_pc.load(Relaxed) == new.pc() as u64
    });
    if known {
        return;
    }
    if count == MAX_CONFLICTS {
        wire_log::note(Note::TooManyConflicts);
        return;
    }
    let both = |first: usize, second: usize| first as u32 | (second as u32) << 16;
    let conflict = &told[count];
    conflict.address.store(address as u64, Relaxed);
    conflict.first_pc.store(old.pc() as u64, Relaxed);
    conflict.second_pc.store(new.pc() as u64, Relaxed);
    conflict.threads.store(both(old.epoch.thread(), new.epoch.thread()), Relaxed);
    conflict.kinds.store(old.kind() | new.kind() << 16, Relaxed);
    let size = |access: &Access| access.bytes().count_ones() as usize;
    conflict.sizes.store(both(size(old), size(new)), Relaxed);
    conflict.step.store(crate::sched::SCHED.step.get(), Relaxed);
    wire_log::set_conflicts(count + 1);
}

/// In a close-up: stops if this is the conflict that the engine looks for.
fn watched(old: &Access, new: &Access) {
    let wire = wire_log::wire();
    if old.pc() as u64 == wire.watch_pc.load(Relaxed)
        && old.epoch.thread() as u32 == wire.watch_thread.load(Relaxed)
        && new.pc() as u64 == wire.watch_conflicts.load(Relaxed)
    {
        pause::stop_at(stop::CONFLICT);
    }
}
