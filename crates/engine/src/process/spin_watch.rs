//! Loops that wait for memory to change, with no scheduling point in them: `while (!flag) ;`.
//!
//! Under Heisen no other thread runs meanwhile, so such a loop would never end. A program that has not moved for a while
//! is therefore glanced at a few times (`ptrace`) and, if it seems to come by the same state again, run by single steps and
//! watched: if all its registers are what they were before, and every byte that was written in between is what it was, then
//! it is in the very same state again, and would go on like this for ever. That cannot be mistaken. The thread is then told, by a signal that it gets at
//! the first instruction of the loop, to yield there. As the loop always comes by there in the same state, where a thread
//! yields does not depend on time, and schedules stay the same each time.
//!
//! A loop that computes something besides, as it counts its rounds, is recognised by what its branches depend on: see [`varied`]. One
//! that is not recognised, and does not end, is made to yield in the end: see [`forced`].
//!
//! CHESS (OSDI'08), section 4.3, asks that threads yield where they make no progress; this is how we do without.

mod forced;
mod varied;

pub use forced::Loops;

use crate::inspect::memory::read_bytes;
use heisen_wire::SPINS;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

/// Instructions that are watched at most.
const WATCHED: usize = 3_000;
/// So often a thread is glanced at, after it has run for so long each time.
const GLANCES: usize = 24;
const MOMENT: Duration = Duration::from_micros(20);
/// The code of a signal that tells of a step.
const TRAP_TRACE: i32 = 2;
/// The longest instruction.
const LONGEST: usize = 15;

/// Words of `user_regs_struct`, and the places of those that are needed by name.
const GENERAL: usize = size_of::<libc::user_regs_struct>() / 8;
const ORIG_RAX: usize = 15;
const RIP: usize = 16;

/// All that a thread keeps in registers, flags among them, but for those of SSE and x87.
type General = [u64; GENERAL];

/// A byte that was written: where, and what was there before.
type Written = (u64, u8);

/// A thread of another process, traced for as long as this lives.
struct Traced(libc::pid_t);

impl Traced {
    /// Stops the thread.
    fn stop(tid: i32) -> io::Result<Traced> {
        request(libc::PTRACE_SEIZE, tid, 0)?;
        let traced = Traced(tid);
        traced.interrupt()?;
        Ok(traced)
    }

    fn interrupt(&self) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.0, 0)?;
        let (signal, event) = self.wait()?;
        if event != libc::PTRACE_EVENT_STOP {
            // It was about to get a signal, which must not be lost: perhaps a system call of a runner's.
            request(libc::PTRACE_DETACH, self.0, signal as usize)?;
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }

    /// Lets it run for a moment.
    fn go_on(&self) -> io::Result<()> {
        request(libc::PTRACE_CONT, self.0, 0)?;
        std::thread::sleep(MOMENT);
        self.interrupt()
    }

    /// Waits until it stops; the signal by which, and the event.
    fn wait(&self) -> io::Result<(i32, i32)> {
        let mut status = 0;
        loop {
            // SAFETY: a plain system call that fills in the status.
            let got = unsafe { libc::waitpid(self.0, &raw mut status, libc::__WALL) };
            if got == self.0 && libc::WIFSTOPPED(status) {
                return Ok((libc::WSTOPSIG(status), status >> 16));
            }
            let error = io::Error::last_os_error();
            if got >= 0 || error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Takes one instruction; false if a signal came instead, which is left to the thread.
    fn step(&self) -> io::Result<bool> {
        request(libc::PTRACE_SINGLESTEP, self.0, 0)?;
        let (signal, _) = self.wait()?;
        // A thread may have been stopped between a breakpoint and its signal, which is the same as that of a step.
        if signal == libc::SIGTRAP && self.cause()? == TRAP_TRACE {
            return Ok(true);
        }
        request(libc::PTRACE_DETACH, self.0, signal as usize)?;
        Ok(false)
    }

    /// The code of the signal by which it has stopped.
    fn cause(&self) -> io::Result<i32> {
        // SAFETY: all zeros are a valid one.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETSIGINFO, self.0, (&raw mut info) as usize)?;
        Ok(info.si_code)
    }

    fn general(&self) -> io::Result<General> {
        let mut general = [0u64; GENERAL];
        request(libc::PTRACE_GETREGS, self.0, (&raw mut general) as usize)?;
        Ok(general)
    }

    /// The registers of SSE and x87.
    fn floating(&self) -> io::Result<Vec<u8>> {
        let mut floating = vec![0u8; size_of::<libc::user_fpregs_struct>()];
        request(libc::PTRACE_GETFPREGS, self.0, floating.as_mut_ptr() as usize)?;
        Ok(floating)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // It may be gone, or no longer ours, which is as well.
        let _ = request(libc::PTRACE_DETACH, self.0, 0);
    }
}

fn request(what: libc::c_uint, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: the kernel checks the thread; where it writes to `data`, that is a buffer of the caller's of the size
    // that the request asks for.
    match unsafe { libc::ptrace(what, tid, 0usize, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Loops that were found to wait for memory to change though no two rounds are the same.
#[derive(Debug, Default)]
pub(crate) struct Known(Vec<varied::Loop>);

/// How closely a thread is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchLevel {
    /// Steps are slow, so none are taken if the thread is not seen in the same state twice by chance, as in a short loop it is, nor in
    /// a loop that is known.
    Glance,
    /// Some steps are taken.
    Thorough,
    /// If it does not wait, as far as is known, it is made to yield all the same.
    Force,
}

/// Makes a thread yield that waits for memory to change; whether it does wait so. What cannot be found out, as the thread is gone or may
/// not be traced, is "no". Before the thread goes on, `tell` is called with what is known of the loop, of `heisen_wire::spin`.
pub(crate) fn yields(
    tid: i32,
    look: WatchLevel,
    known: &mut Known,
    loops: &Loops,
    tell: impl FnOnce(u32),
) -> bool {
    try_yield(tid, look, known, loops, tell).unwrap_or(false)
}

fn try_yield(
    tid: i32,
    look: WatchLevel,
    known: &mut Known,
    loops: &Loops,
    tell: impl FnOnce(u32),
) -> io::Result<bool> {
    let traced = Traced::stop(tid)?;
    let rip = traced.general()?[RIP];
    let thorough = look != WatchLevel::Glance;
    let is_known = known.0.iter().any(|found| (found.head..=found.last).contains(&rip));
    if would_lose_handler(tid)? || !thorough && !is_known && !loops.any() && !recurs(&traced)? {
        return Ok(false);
    }
    if traced.general()?[ORIG_RAX] as i64 >= 0 {
        // It is in a system call, which a step would only begin anew: perhaps it has just stopped for us, and waits.
        return Ok(false);
    }
    let mut code = Code::new(tid);
    if look == WatchLevel::Force || loops.any() && loops.comes_by(&traced, &mut code)? {
        if look == WatchLevel::Force && !loops.find(&traced, &mut code)? {
            return Ok(false);
        }
        tell(heisen_wire::spin::FORCED);
        request(libc::PTRACE_DETACH, tid, SPINS as usize)?;
        return Ok(true);
    }
    let varied = if thorough || is_known { varied::find(&traced, &mut code)? } else { None };
    if let Some(found) = varied {
        if !known.0.contains(&found) {
            known.0.push(found);
        }
        tell(if found.writes { heisen_wire::spin::WRITES } else { heisen_wire::spin::SAME });
    } else {
        let mut budget = WATCHED;
        if !repeats(&traced, &mut code, &mut budget)? {
            return Ok(false);
        }
        let Some(distance) = first_in_loop(&traced, &mut code, &mut budget)? else { return Ok(false) };
        for _ in 0..distance {
            if !traced.step()? {
                return Ok(false);
            }
        }
        tell(heisen_wire::spin::SAME);
    }
    request(libc::PTRACE_DETACH, tid, SPINS as usize)?;
    Ok(true)
}

/// Looks at the general registers every now and then: whether they come to be what they were before.
fn recurs(traced: &Traced) -> io::Result<bool> {
    let mut seen: HashSet<General> = HashSet::new();
    let mut last = [0; GENERAL];
    for _ in 0..GLANCES {
        let general = traced.general()?;
        // It may not have come to run, as others do.
        if general != last && !seen.insert(general) {
            return Ok(true);
        }
        last = general;
        traced.go_on()?;
    }
    Ok(false)
}

/// Steps until the general registers are what they were before; false if that is not soon. Most code does not get there, and so much can
/// be seen cheaply.
fn repeats(traced: &Traced, code: &mut Code, budget: &mut usize) -> io::Result<bool> {
    let mut seen: HashSet<General> = HashSet::new();
    while *budget > 0 {
        *budget -= 1;
        let general = traced.general()?;
        if code.at(general[RIP]).is_none() {
            return Ok(false);
        }
        if !seen.insert(general) {
            return Ok(true);
        }
        if !traced.step()? {
            return Ok(false);
        }
    }
    Ok(false)
}

/// Steps until the thread is again in the very state in which it is now; none if that is not soon. Else how many steps it is then from the
/// first instruction of the loop, which is that of the lowest address and, if the loop comes by several times, the lowest registers: the
/// same one wherever in the loop the thread was stopped. That is one step at least, as a signal can only be given after one.
fn first_in_loop(traced: &Traced, code: &mut Code, budget: &mut usize) -> io::Result<Option<usize>> {
    let (first, floating) = (traced.general()?, traced.floating()?);
    let mut now = first;
    let mut passed: Vec<General> = Vec::new();
    let mut written: Vec<Written> = Vec::new();
    while *budget > 0 {
        *budget -= 1;
        let Some(writes) = code.at(now[RIP]).and_then(|i| writes(traced.0, &now, i, &mut code.factory))
        else {
            return Ok(None);
        };
        written.extend(writes);
        if !traced.step()? {
            return Ok(None);
        }
        now = traced.general()?;
        passed.push(now);
        if now == first && traced.floating()? == floating && is_restored(traced.0, &written) {
            return Ok((1..)
                .zip(&passed)
                .min_by_key(|(_, at)| (at[RIP], **at))
                .map(|(distance, _)| distance));
        }
    }
    Ok(None)
}

/// Whether a step would make the kernel forget what the process wants done at a breakpoint. It does so where it has to send that signal
/// and the thread blocks it, as in a handler for it.
fn would_lose_handler(tid: i32) -> io::Result<bool> {
    const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
    let status = std::fs::read_to_string(format!("/proc/{tid}/status"))?;
    let has = |name: &str| {
        let set = status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        set.and_then(|set| u64::from_str_radix(set, 16).ok()).is_some_and(|set| set & TRAP != 0)
    };
    Ok(has("SigBlk:") && (has("SigCgt:") || has("SigIgn:")))
}

/// Whether all that was written is what it was before.
fn is_restored(tid: i32, written: &[Written]) -> bool {
    let mut before: HashMap<u64, u8> = HashMap::new();
    for &(address, byte) in written {
        before.entry(address).or_insert(byte);
    }
    before.iter().all(|(&address, &byte)| {
        let mut now = [0];
        read_bytes(tid, address, &mut now).is_ok() && now[0] == byte
    })
}

/// The instructions of a program, as they were met.
struct Code {
    tid: i32,
    met: HashMap<u64, Option<Instruction>>,
    factory: InstructionInfoFactory,
}

impl Code {
    fn new(tid: i32) -> Code {
        Code { tid, met: HashMap::new(), factory: InstructionInfoFactory::new() }
    }

    /// The instruction at this address; none if it is one that depends on more than registers and memory.
    fn at(&mut self, rip: u64) -> Option<Instruction> {
        self.any_at(rip).filter(is_plain)
    }

    /// Whether the instruction at this address leads out of the program.
    fn leaves(&mut self, rip: u64) -> bool {
        self.any_at(rip).is_none_or(|instruction| leaves(&instruction))
    }

    fn any_at(&mut self, rip: u64) -> Option<Instruction> {
        *self.met.entry(rip).or_insert_with(|| decode(self.tid, rip))
    }
}

fn decode(tid: i32, rip: u64) -> Option<Instruction> {
    let mut code = [0; LONGEST];
    // At the end of what is mapped there may be fewer bytes.
    let length = (1..=LONGEST).rev().find(|&length| read_bytes(tid, rip, &mut code[..length]).is_ok())?;
    let mut instruction = Instruction::default();
    Decoder::with_ip(64, &code[..length], rip, DecoderOptions::NONE).decode_out(&mut instruction);
    Some(instruction)
}

/// Whether an instruction leads out of the program, or is none.
fn leaves(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::INVALID | Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int | Mnemonic::Int3
    )
}

/// Whether what an instruction does depends on registers and memory alone, and it takes one step.
fn is_plain(instruction: &Instruction) -> bool {
    let outside = matches!(
        instruction.mnemonic(),
        Mnemonic::Rdtsc
            | Mnemonic::Rdtscp
            | Mnemonic::Rdrand
            | Mnemonic::Rdseed
            | Mnemonic::Rdpid
            | Mnemonic::Xbegin
    );
    let long = instruction.has_rep_prefix() && instruction.is_string_instruction();
    !outside && !long && !leaves(instruction)
}

/// The bytes that an instruction will write, as they are now. None if what it writes is not known.
fn writes(
    tid: i32,
    general: &General,
    instruction: Instruction,
    factory: &mut InstructionInfoFactory,
) -> Option<Vec<Written>> {
    let mut out = Vec::new();
    for memory in factory.info(&instruction).used_memory() {
        if matches!(memory.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess) {
            continue;
        }
        let address = memory.virtual_address(0, |register, _, _| value(general, register))?;
        let mut bytes = vec![0; memory.memory_size().size()];
        if bytes.is_empty() || read_bytes(tid, address, &mut bytes).is_err() {
            return None;
        }
        out.extend((address..).zip(bytes));
    }
    Some(out)
}

/// The registers in the order of `user_regs_struct`.
const ORDER: [Register; 27] = [
    Register::R15,
    Register::R14,
    Register::R13,
    Register::R12,
    Register::RBP,
    Register::RBX,
    Register::R11,
    Register::R10,
    Register::R9,
    Register::R8,
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::None,
    Register::RIP,
    Register::None,
    Register::None,
    Register::RSP,
    Register::None,
    Register::FS,
    Register::GS,
    Register::None,
    Register::None,
    Register::None,
    Register::None,
];

/// The general registers of two states.
fn registers<'a>(one: &'a General, other: &'a General) -> impl Iterator<Item = (Register, u64, u64)> + 'a {
    let all = ORDER.iter().zip(one.iter().zip(other));
    all.filter(|(r, _)| **r != Register::None).map(|(&r, (&one, &other))| (r, one, other))
}

/// The flags that arithmetic leaves behind.
fn flags(general: &General) -> u64 {
    const EFLAGS: usize = 18;
    general[EFLAGS] & 0x8d5
}

/// The value of a register that is part of an address, or the base of a segment.
fn value(general: &General, register: Register) -> Option<u64> {
    if matches!(register, Register::CS | Register::DS | Register::ES | Register::SS) {
        return Some(0);
    }
    let full = if register.is_gpr() { register.full_register() } else { register };
    let value = general[ORDER.iter().position(|&r| r == full)?];
    Some(if register.is_gpr32() { value & 0xffff_ffff } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Ends with 1 if a breakpoint is not followed by its handler.
    const BREAKPOINTS: &str = r#"
        #include <signal.h>
        static volatile long made, handled;
        static void handler(int signal) { handled++; }
        int main(void) {
            signal(SIGTRAP, handler);
            for (;;) {
                made++;
                __asm__ volatile("int3");
                if (handled != made) return 1;
            }
        }"#;

    #[test]
    fn a_breakpoint_is_no_step() {
        let directory = tempfile::tempdir().unwrap();
        let (source, program) = (directory.path().join("int3.c"), directory.path().join("int3"));
        std::fs::write(&source, BREAKPOINTS).unwrap();
        assert!(Command::new("cc").arg(&source).arg("-o").arg(&program).status().unwrap().success());
        let mut child = Command::new(&program).stderr(Stdio::null()).spawn().unwrap();
        for _ in 0..1000 {
            let found = yields(
                child.id() as i32,
                WatchLevel::Thorough,
                &mut Known::default(),
                &Loops::default(),
                |_| {},
            );
            assert!(!found, "it counts, so it is never in the same state again");
            assert_eq!(child.try_wait().unwrap(), None, "the signal of a breakpoint was lost");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
