//! Loops of which it cannot be proven that they wait for memory to change, but which have run for too long: `while (!flag) back_off();`,
//! where what is done in a round differs from round to round.
//!
//! Such a loop is made to yield, too, as a last resort: the program would be given up otherwise. A round ends at the first
//! instruction of the loop, in the program's own code: in the outermost function that the thread was seen in, the lowest address that it
//! came by again. A thread that waits there comes by before it does anything that another thread sees, so schedules stay the same. One
//! that computes, and would have ended by itself, yields sooner or later by the clock: the verdict says so.

use super::{Code, RIP, Traced};
use crate::inspect::maps;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The word of `user_regs_struct` with the stack pointer.
const RSP: usize = 19;
/// Instructions that are taken to find a loop, and to come to its first one.
const LONG: usize = 200_000;
/// Instructions that are taken to see whether a thread comes by a loop that is known.
const SHORT: usize = 20_000;

/// The first instructions of loops that were made to yield, by address; shared by all processes of a check.
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

    /// Whether any is known.
    pub(super) fn any(&self) -> bool {
        !self.heads().is_empty()
    }

    /// Whether a thread goes round in a loop that is known; it is at the first instruction then.
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

    /// Finds a loop, whatever it does; the thread is at its first instruction then. False if it is not in one, or its rounds are too
    /// long.
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
        // The stack grows downwards.
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

/// The code of the program itself: in a library a thread may hold a lock that nobody knows of.
fn own_code(tid: i32) -> io::Result<Vec<Range<u64>>> {
    let program = std::fs::read_link(format!("/proc/{tid}/exe"))?;
    let own = maps::read(tid)?.into_iter().filter(|mapping| mapping.executable && mapping.path == program);
    Ok(own.map(|mapping| mapping.start..mapping.end).collect())
}
