//! Forces loops to yield that have run for too long but are not proven to be spin loops:
//! `while (!flag) back_off();`, where every round does something different.
//!
//! This is a last resort: otherwise the check would have to give up on the program. A round ends at the first
//! instruction of the loop, in the program's own code. That is the lowest address the thread visited again,
//! in the outermost function in which it was seen. A thread that waits there passes this instruction before
//! it does anything that another thread sees, so schedules remain repeatable. A loop that computes, and would
//! have ended by itself, yields at a moment that depends on the clock: the verdict says so.

use super::{Code, RIP, Traced};
use heisen_inspect::maps;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The index of the stack pointer in `user_regs_struct`.
const RSP: usize = 19;
/// How many instructions are stepped to find a loop, and again to reach its first instruction. In a virtual machine
/// 200 000 steps take seconds. The loops of tests have shorter rounds.
const LONG: usize = if cfg!(debug_assertions) { 20_000 } else { 200_000 };
/// How many instructions are stepped to see whether a thread is in a known loop.
const SHORT: usize = 20_000;

/// The addresses of the first instructions of loops that were forced to yield. All processes of a check share
/// them.
#[derive(Debug, Default)]
pub struct Loops(Mutex<Vec<u64>>);

impl Loops {
    fn heads(&self) -> Vec<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, head: u64) {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !heads.contains(&head) {
            heads.push(head);
        }
    }

    /// Whether any such loop is known.
    pub(super) fn any(&self) -> bool {
        !self.heads().is_empty()
    }

    /// Whether a thread is in a known loop. If so, it is now at the loop's first instruction.
    pub(super) fn comes_by(&self, traced: &Traced, code: &mut Code) -> io::Result<bool> {
        let heads = self.heads();
        let mut passed = None;
        for _ in 0..SHORT {
            let general = traced.general()?;
            if code.leaves(general[RIP]) || !traced.step()? {
                return Ok(false);
            }
            let now = traced.general()?;
            let here = (now[RIP], now[RSP]);
            if heads.contains(&now[RIP]) && passed.replace(here) == Some(here) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds a loop, whatever it does. The thread is then at its first instruction. Returns false if the
    /// thread is not in a loop, or the rounds are too long.
    pub(super) fn find(&self, traced: &Traced, code: &mut Code) -> io::Result<bool> {
        let own = own_code(traced.0)?;
        let mut visits: HashMap<(u64, u64), u32> = HashMap::new();
        for _ in 0..LONG {
            let general = traced.general()?;
            if code.leaves(general[RIP]) || !traced.step()? {
                return Ok(false);
            }
            if own.iter().any(|range| range.contains(&general[RIP])) {
                *visits.entry((general[RSP], general[RIP])).or_default() += 1;
            }
        }
        let again = visits.into_iter().filter(|(_, times)| *times > 1).map(|(place, _)| place);
        // The stack grows downwards, so the outermost function has the highest stack pointer.
        let Some((stack, head)) = again.min_by_key(|&(stack, rip)| (!stack, rip)) else { return Ok(false) };
        for _ in 0..LONG {
            if code.leaves(traced.general()?[RIP]) || !traced.step()? {
                return Ok(false);
            }
            let now = traced.general()?;
            if (now[RSP], now[RIP]) == (stack, head) {
                self.add(head);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The code of the program itself. In a library a thread may hold a lock that Heisen does not see.
fn own_code(tid: i32) -> io::Result<Vec<Range<u64>>> {
    let program = std::fs::read_link(format!("/proc/{tid}/exe"))?;
    let own = maps::read(tid)?.into_iter().filter(|mapping| mapping.executable && mapping.path == program);
    Ok(own.map(|mapping| mapping.start..mapping.end).collect())
}
