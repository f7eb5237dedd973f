//! Describes memory errors: the block concerned, in words, and where it was allocated and freed. The runtime
//! knows only one code address of each, mostly in a library. So the schedule is run once more, with pauses at
//! the block's allocation and release, and the stacks are taken there.

use crate::error::Result;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Job, registers};
use crate::process::zygote::{Observer, Zygote};
use crate::program::Program;
use heisen_inspect::{Symbols, View};
use heisen_trace::finding::{Block, BlockEvent};
use heisen_trace::{Stack, ThreadId};
use heisen_wire::{NO_THREAD, Wire, misuse, stop};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// A memory error, as far as it is known when it occurs.
#[derive(Clone, Debug)]
pub struct Error {
    /// One of `heisen_wire::misuse`.
    what: u32,
    /// The thread that made the error.
    thread: ThreadId,
    /// The size of the access in bytes.
    access: u64,
    /// The address of the access.
    address: u64,
    /// The number of leaked blocks and bytes.
    leaked: (u64, u64),
    /// The block.
    pub block: Option<Block>,
}

impl Error {
    /// Reads the error from the wire, at the pause where it happened.
    pub fn read(wire: &Wire, view: &mut View<'_>, what: u32, thread: ThreadId, address: u64) -> Error {
        let heap = &wire.heap;
        let mut event = |thread: u32, pc: u64| BlockEvent {
            thread: ThreadId(thread as u16),
            stack: Stack(view.frame_at(pc, true)),
        };
        let freed = Some(heap.free_thread.load(Relaxed)).filter(|&thread| thread != NO_THREAD);
        let number = heap.serial.load(Relaxed);
        let block = (number != 0).then(|| Block {
            size: heap.size.load(Relaxed),
            number,
            offset: heap.offset.load(Relaxed) as i64,
            allocated: event(heap.alloc_thread.load(Relaxed), heap.alloc_pc.load(Relaxed)),
            freed: freed.map(|thread| event(thread, heap.free_pc.load(Relaxed))),
        });
        let leaked = (heap.leaked_blocks.load(Relaxed), heap.leaked_bytes.load(Relaxed));
        Error { what, thread, access: heap.access.load(Relaxed), address, leaked, block }
    }

    /// Describes the error in one sentence.
    pub fn message(&self) -> String {
        let thread = self.thread;
        let Some(block) = &self.block else {
            return match self.what {
                misuse::INVALID_FREE => {
                    format!("{thread} frees {:#x}, which was never allocated", self.address)
                }
                _ => format!("{thread} uses {:#x}, where no memory was allocated", self.address),
            };
        };
        let (access, whole, place) = (bytes(self.access), bytes(block.size), place(block));
        let freed = block.freed.as_ref().map_or(String::new(), |freed| match freed.thread == thread {
            true => "it has freed already".to_owned(),
            false => format!("{} has freed", freed.thread),
        });
        match self.what {
            misuse::USE_AFTER_FREE_READ if self.access == 0 => {
                format!("{thread} asks for the size of a block of {whole} that {freed}")
            }
            misuse::USE_AFTER_FREE_READ => {
                format!("{thread} reads {access} {place} a block of {whole} that {freed}")
            }
            misuse::USE_AFTER_FREE_WRITE => {
                format!("{thread} writes {access} {place} a block of {whole} that {freed}")
            }
            misuse::REALLOC_FREED => format!("{thread} calls realloc with a block of {whole} that {freed}"),
            misuse::DOUBLE_FREE => format!("{thread} frees a block of {whole} that {freed}"),
            misuse::INVALID_FREE => {
                format!("{thread} frees an address {place} a block of {whole}, which is not its start")
            }
            misuse::HEAP_OVERFLOW_READ => {
                format!("{thread} reads {access}, and so {place} a block of {whole}")
            }
            misuse::HEAP_OVERFLOW_WRITE => {
                format!("{thread} writes {access}, and so {place} a block of {whole}")
            }
            misuse::HEAP_TRAMPLED => {
                format!("{thread} frees a block of {whole}, and memory {place} it had been overwritten")
            }
            misuse::LEAK => {
                let (blocks, lost) = self.leaked;
                let what = if blocks == 1 { "1 block is" } else { &format!("{blocks} blocks are") };
                format!("{what} unreachable at the end, {} in all", bytes(lost))
            }
            _ => format!("{thread} misuses a block of {whole}"),
        }
    }
}

fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

/// The error's position relative to its block, such as `4 bytes into`.
fn place(block: &Block) -> String {
    match block.offset {
        0 if block.size > 0 => "at the start of".to_owned(),
        before @ ..0 => format!("{} before", bytes(before.unsigned_abs())),
        inside if (inside as u64) < block.size => format!("{} into", bytes(inside as u64)),
        behind => match behind as u64 - block.size {
            0 => "just behind".to_owned(),
            more => format!("{} behind", bytes(more)),
        },
    }
}

/// Takes the stacks at which a block is allocated and freed.
#[derive(Debug)]
struct BlockWatcher<'a> {
    symbols: &'a mut Symbols,
    allocated: Option<BlockEvent>,
    freed: Option<BlockEvent>,
}

impl Observer for BlockWatcher<'_> {
    fn stopped(&mut self, wire: &Wire, pid: i32) {
        let place = match wire.stop.reason.load(Relaxed) {
            stop::ALLOCATED => &mut self.allocated,
            stop::FREED => &mut self.freed,
            _ => return,
        };
        if let Ok(mut view) = View::new(self.symbols, pid) {
            let thread = ThreadId(wire.stop.thread.load(Relaxed) as u16);
            *place = Some(BlockEvent { thread, stack: view.stack(registers(wire)) });
        }
    }
}

/// Runs the job once more and replaces single frames by the full stacks of the block's allocation and
/// release. An event that does not occur again, such as an allocation before `main`, keeps its single frame.
pub fn complete(
    (runtime, program, config): (&Path, &Program, &RunConfig),
    job: Job<'_>,
    symbols: &mut Symbols,
    block: &mut Block,
) -> Result<()> {
    let mut zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
    let heap = &zygote.wire().heap;
    heap.stop_at_alloc.store(block.number, Relaxed);
    heap.stop_at_free.store(block.number, Relaxed);
    let mut watcher = BlockWatcher { symbols, allocated: None, freed: None };
    zygote.run(job, Detail::All, Some(&mut watcher))?;
    let BlockWatcher { allocated, freed, .. } = watcher;
    if let Some(event) = allocated.filter(|event| event.thread == block.allocated.thread) {
        block.allocated = event;
    }
    if let (Some(known), Some(event)) = (&mut block.freed, freed)
        && known.thread == event.thread
    {
        *known = event;
    }
    Ok(())
}
