//! Holds the access points: the places in the code whose memory accesses are scheduling points. A place
//! becomes one when one of its accesses conflicts with another thread's and no scheduling point orders the
//! two. See "Iterative context bounding", PLDI'07, sections 3.1 and 4; CHESS, OSDI'08, section 4.4.1.
//! `runtime::memory::race` states the rule and proves it.
//!
//! The search begins without access points, or with those of an earlier check, and starts over when it finds
//! new ones. `dpor` may begin with every access as a scheduling point (`check::dpor_opening`).

use heisen_trace::{CodePlace, ThreadId};
use heisen_wire::{Lists, MAX_CONFLICTS, MAX_POINTS, MAX_RACY, Report, Wire, access, kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// One of two conflicting accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Its place in the code, as a return address.
    pub pc: u64,
    /// The thread that made the access.
    pub thread: ThreadId,
    /// Whether it writes.
    pub write: bool,
    /// Whether it is atomic.
    pub atomic: bool,
    /// How many bytes it touches within one aligned group of 8.
    pub size: u32,
}

/// Two unordered accesses of the same memory by different threads, at least one a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The first byte that both accesses touch.
    pub address: u64,
    /// The earlier access.
    pub first: Side,
    /// The later access.
    pub second: Side,
    /// The step of the later access.
    pub step: u32,
}

impl Conflict {
    /// Whether the conflict is a data race. It is not if both accesses are atomic.
    pub fn is_race(&self) -> bool {
        !(self.first.atomic && self.second.atomic)
    }

    /// The two places in the code with the kinds of their accesses, sorted. Equal for the same two accesses
    /// in either order.
    pub fn pair(&self) -> [(u64, bool, bool); 2] {
        let mut pair = [self.first, self.second].map(|side| (side.pc, side.write, side.atomic));
        pair.sort_unstable();
        pair
    }
}

/// Reads the conflicts that an execution reported.
pub(crate) fn read_conflicts(report: &Report, lists: &Lists) -> Vec<Conflict> {
    let count = (report.conflicts.load(Relaxed) as usize).min(MAX_CONFLICTS);
    let read = |told: &heisen_wire::Conflict| {
        let halves = |word: u32| (word & 0xffff, word >> 16);
        let (threads, kinds, sizes) = (
            halves(told.threads.load(Relaxed)),
            halves(told.kinds.load(Relaxed)),
            halves(told.sizes.load(Relaxed)),
        );
        let side = |pc: u64, thread: u32, bits: u32, size: u32| Side {
            pc,
            thread: ThreadId(thread as u16),
            write: bits & kind::WRITE != 0,
            atomic: bits & kind::ATOMIC != 0,
            size,
        };
        Conflict {
            address: told.address.load(Relaxed),
            first: side(told.first_pc.load(Relaxed), threads.0, kinds.0, sizes.0),
            second: side(told.second_pc.load(Relaxed), threads.1, kinds.1, sizes.1),
            step: told.step.load(Relaxed),
        }
    };
    lists.conflicts[..count].iter().map(read).collect()
}

/// The access points, in the form that the runtime uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Points {
    /// Whether every access is a scheduling point for now; see `check::dpor_opening`.
    #[serde(default)]
    pub(crate) all: bool,
    /// Their places in the code, as return addresses.
    pcs: BTreeSet<u64>,
    /// Memory locations of data races. The runtime records every access there.
    racy: BTreeSet<u64>,
}

impl Points {
    /// The number of access points.
    pub fn len(&self) -> usize {
        self.pcs.len()
    }

    /// Whether there are no access points.
    pub fn is_empty(&self) -> bool {
        self.pcs.is_empty()
    }

    /// Whether the list of access points is full.
    pub fn is_full(&self) -> bool {
        self.pcs.len() >= MAX_POINTS
    }

    /// Adds the two places of a conflict. Returns whether one of them is a new access point.
    pub fn learn(&mut self, conflict: &Conflict) -> bool {
        let mut new = false;
        for pc in [conflict.first.pc, conflict.second.pc] {
            new |= !self.is_full() && self.pcs.insert(pc);
        }
        self.remember(conflict);
        new
    }

    /// Adds the memory location of a data race. The runtime records every access there from now on.
    pub fn remember(&mut self, conflict: &Conflict) {
        if conflict.is_race() && self.racy.len() < MAX_RACY {
            self.racy.insert(conflict.address & !7);
        }
    }

    /// Whether a place in the code is an access point.
    pub(crate) fn has(&self, pc: u64) -> bool {
        self.pcs.contains(&pc)
    }

    /// Whether all these places are access points.
    pub(crate) fn contain(&self, pcs: &BTreeSet<u64>) -> bool {
        pcs.is_subset(&self.pcs)
    }

    /// Whether a data race was found at this memory location.
    pub fn is_racy(&self, address: u64) -> bool {
        self.racy.contains(&(address & !7))
    }

    /// Writes the access points into the wire of a parked program.
    pub(crate) fn write(&self, wire: &Wire) {
        for (out, pc) in wire.points.iter().zip(&self.pcs) {
            out.store(*pc, Relaxed);
        }
        for (out, address) in wire.racy.iter().zip(&self.racy) {
            out.store(*address, Relaxed);
        }
        if self.all {
            wire.access_flags.fetch_or(access::ALL, Relaxed);
        } else {
            wire.access_flags.fetch_and(!access::ALL, Relaxed);
        }
        wire.points_count.store(self.pcs.len() as u32, Relaxed);
        wire.racy_count.store(self.racy.len() as u32, Relaxed);
        wire.points_version.fetch_add(1, Relaxed);
    }

    /// Resolves recorded places to addresses of a process.
    pub fn resolve(places: &[CodePlace], pid: i32) -> Points {
        let modules = modules(pid);
        let find = |place: &CodePlace| {
            if place.module.is_empty() {
                return Some(place.offset);
            }
            modules.iter().find(|m| m.name == place.module).map(|m| m.base + place.offset)
        };
        Points { pcs: places.iter().filter_map(find).collect(), ..Points::default() }
    }

    /// The access points in the form in which files record them. `describe` gives a text for an address.
    pub fn places(&self, pid: i32, mut describe: impl FnMut(u64) -> String) -> Vec<CodePlace> {
        let modules = modules(pid);
        let name = |&pc: &u64| {
            let place = describe(pc);
            match modules.iter().find(|m| (m.base..m.end).contains(&pc)) {
                Some(module) => CodePlace { module: module.name.clone(), offset: pc - module.base, place },
                None => CodePlace { module: String::new(), offset: pc, place },
            }
        };
        self.pcs.iter().map(name).collect()
    }

    /// Adds all access points of another set.
    pub fn extend(&mut self, other: &Points) {
        self.all |= other.all;
        self.pcs.extend(&other.pcs);
        self.racy.extend(&other.racy);
    }
}

struct Module {
    name: String,
    base: u64,
    end: u64,
}

/// The files mapped into a process, each from its first mapping to its last.
fn modules(pid: i32) -> Vec<Module> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut modules: Vec<Module> = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let Some(path) = words.nth(4).filter(|path| path.starts_with('/')) else { continue };
        let Some((start, end)) = range else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)) else {
            continue;
        };
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        match modules.iter_mut().find(|m| m.name == name) {
            Some(module) => module.end = end,
            None => modules.push(Module { name, base: start, end }),
        }
    }
    modules
}
