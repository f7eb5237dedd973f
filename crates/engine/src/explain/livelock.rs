//! Compares states of a paused program to see whether an execution that does not end returns to the same
//! state. `runtime::sched::recurrence` says when it asks for a comparison, and what equal states prove.
//!
//! The state is all memory that the program can write, and for each thread its registers and its stack from
//! the point where it called the runtime. Offsets in open files are part of the state. The runtime's own
//! memory is not, nor are unused parts of stacks. If anything cannot be read, the states count as different:
//! in doubt there is no livelock.

use crate::process::slots::{registers, report_of, saved_registers};
use heisen_inspect::memory::read_bytes;
use heisen_inspect::{ProgramFrame, View};
use heisen_wire::{SIZE, Wire, state};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

const PAGE: u64 = 4096;
/// A program with more pages in use is not compared: 512 MB.
const MAX_PAGES: usize = 1 << 17;
/// How many page-map entries are read at a time.
const CHUNK: u64 = 1 << 12;
/// Where the runtime has its data about the program: snapshots and shadow memory; marks of the heap and its
/// quarantine.
const RUNTIME: [Range<u64>; 2] = [0x0e00_0000_0000..0x5000_0000_0000, 0x6100_0000_0000..0x6300_0000_0000];
/// The size of the rseq area, to which the kernel writes by itself.
const RSEQ: u64 = 32;

/// Two steps at which the program was in the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recurred {
    pub(crate) since: u32,
    pub(crate) at: u32,
}

/// Stores states and compares them, as the runtime asks for at its pauses.
#[derive(Debug, Default)]
pub(crate) struct Recurrence {
    states: BTreeMap<u32, State>,
    pub(crate) found: Option<Recurred>,
}

impl Recurrence {
    /// The program has paused so that its state is stored or compared.
    pub(crate) fn stopped(&mut self, wire: &Wire, view: &View<'_>) {
        let told = &wire.recurrence;
        let (anchor, since) = (told.anchor.load(Relaxed), told.since.load(Relaxed));
        let step = wire.stop.step.load(Relaxed);
        if since == step {
            self.states.extend(State::take(wire, view).map(|state| (anchor, state)));
            return;
        }
        if self.states.get_mut(&anchor).is_some_and(|state| state.is_again(wire, view)) {
            self.found = Some(Recurred { since, at: step });
            told.wanted.store(0, Relaxed);
        }
    }
}

#[derive(Debug)]
struct State {
    threads: Vec<(usize, Option<ProgramFrame>)>,
    /// Offsets in open files.
    files: BTreeMap<String, String>,
    /// Pages that are not all zeros.
    pages: BTreeMap<u64, Box<[u8]>>,
    /// A page that differed in the last comparison. It most likely differs again.
    different: Option<u64>,
}

impl State {
    fn take(wire: &Wire, view: &View<'_>) -> Option<State> {
        let threads = threads(wire, view)?;
        let pages = Memory::new(wire, view, &threads).pages()?;
        Some(State { threads, files: files(view.pid()), pages, different: None })
    }

    fn is_again(&mut self, wire: &Wire, view: &View<'_>) -> bool {
        let Some(threads) = threads(wire, view).filter(|threads| *threads == self.threads) else {
            return false;
        };
        let memory = Memory::new(wire, view, &threads);
        if let Some(page) = self.different
            && memory.page(page).as_ref() != self.pages.get(&page)
        {
            return false;
        }
        if files(view.pid()) != self.files {
            return false;
        }
        let Some(pages) = memory.pages() else { return false };
        self.different = self
            .pages
            .keys()
            .chain(pages.keys())
            .copied()
            .find(|page| self.pages.get(page) != pages.get(page));
        self.different.is_none()
    }
}

/// The threads that have not ended, each with the frame where it left the program, if it has begun. `None` if
/// the frame of one is unknown.
fn threads(wire: &Wire, view: &View<'_>) -> Option<Vec<(usize, Option<ProgramFrame>)>> {
    let running = wire.stop.thread.load(Relaxed) as usize;
    let count = report_of(wire).threads.load(Relaxed) as usize;
    let mut out = Vec::new();
    for (number, t) in wire.threads.iter().enumerate().take(count) {
        let frame = match t.state.load(Relaxed) {
            state::ENDED => continue,
            state::NEW => None,
            _ if number == running => Some(view.program_frame(registers(wire))?),
            _ => Some(view.program_frame(saved_registers(view, t.sp.load(Relaxed))?)?),
        };
        out.push((number, frame));
    }
    Some(out)
}

/// The offset in each open file.
fn files(pid: i32) -> BTreeMap<String, String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let position = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        (entry.file_name().to_string_lossy().into_owned(), text.lines().next().unwrap_or_default().to_owned())
    };
    entries.map(position).collect()
}

/// The memory that is compared.
struct Memory {
    pid: i32,
    regions: Vec<Range<u64>>,
    /// Ranges in it that do not count, in no order.
    apart: Vec<Range<u64>>,
}

impl Memory {
    fn new(wire: &Wire, view: &View<'_>, threads: &[(usize, Option<ProgramFrame>)]) -> Memory {
        let own = wire.recurrence.wire.load(Relaxed);
        let ours = |region: &Range<u64>| {
            RUNTIME.iter().any(|part| part.contains(&region.start))
                || (own..own + SIZE as u64).contains(&region.start)
        };
        let rseq = wire.recurrence.rseq.load(Relaxed);
        let mut apart: Vec<Range<u64>> = view.hidden().collect();
        apart.push(rseq..rseq + RSEQ);
        for (number, frame) in threads {
            let Some(frame) = frame else { continue };
            let t = &wire.threads[*number];
            let stack = match t.stack.load(Relaxed) {
                // The main thread's stack is the mapping that it lies in.
                0 if *number == 0 => view.start_of_mapping(frame.stack).unwrap_or(frame.stack)..frame.stack,
                0 => continue,
                start => start..t.stack_end.load(Relaxed),
            };
            if *number == 0 || stack.contains(&frame.stack) {
                apart.push(stack.start..frame.stack);
            }
        }
        Memory { pid: view.pid(), regions: view.writable().filter(|region| !ours(region)).collect(), apart }
    }

    /// All pages that are not zeros; `None` if there are too many or they cannot be read.
    fn pages(&self) -> Option<BTreeMap<u64, Box<[u8]>>> {
        let map = File::open(format!("/proc/{}/pagemap", self.pid)).ok()?;
        let mut out = BTreeMap::new();
        for region in &self.regions {
            let mut at = region.start;
            while at < region.end {
                let count = ((region.end - at) / PAGE).min(CHUNK);
                for page in in_use(&map, at, count)? {
                    out.extend(self.page(page).map(|bytes| (page, bytes)));
                    if out.len() > MAX_PAGES {
                        return None;
                    }
                }
                at += count * PAGE;
            }
        }
        Some(out)
    }

    /// The content of a page, with zeros in place of the ranges that do not count; `None` if nothing else
    /// remains.
    fn page(&self, page: u64) -> Option<Box<[u8]>> {
        let mut bytes = vec![0; PAGE as usize];
        read_bytes(self.pid, page, &mut bytes).ok()?;
        for part in &self.apart {
            let (from, to) = (part.start.max(page), part.end.min(page + PAGE));
            if from < to {
                bytes[(from - page) as usize..(to - page) as usize].fill(0);
            }
        }
        bytes.iter().any(|&byte| byte != 0).then(|| bytes.into_boxed_slice())
    }
}

/// Which of these pages were ever touched.
fn in_use(map: &File, from: u64, count: u64) -> Option<Vec<u64>> {
    // Present, or in swap.
    const USED: u64 = 1 << 63 | 1 << 62;
    let mut entries = vec![0; 8 * count as usize];
    map.read_exact_at(&mut entries, from / PAGE * 8).ok()?;
    let used = |(index, entry): (u64, &[u8])| {
        let entry = u64::from_le_bytes(entry.try_into().ok()?);
        (entry & USED != 0).then_some(from + index * PAGE)
    };
    Some((0..).zip(entries.chunks_exact(8)).filter_map(used).collect())
}
