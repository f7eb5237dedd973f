//! Finds spin loops without a scheduling point, such as `while (!flag) ;`, and makes their threads yield.
//!
//! Under Heisen no other thread runs meanwhile, so such a loop would never end. If a program has not moved
//! for a while, the engine samples its registers a few times (`ptrace`). If it seems to return to an earlier
//! state, the engine single-steps it. Suppose all its registers have the same values as before, and so has
//! every byte written in between. Then the thread is in exactly the same state again, and would go on like
//! this for ever: the test has no false positives.
//!
//! The engine then makes the thread yield, by a signal at the first instruction of the loop. The loop always
//! passes that instruction in the same state. So where a thread yields does not depend on time, and schedules
//! remain repeatable.
//!
//! A loop that also computes something, such as a count of its rounds, is recognised by the values its
//! branches depend on: see [`varied`]. A loop that is not recognised and does not end is finally forced to
//! yield: see [`forced`].
//!
//! CHESS (OSDI'08), section 4.3, requires that threads yield where they make no progress. This module removes
//! that requirement.

mod forced;
mod varied;

pub use forced::Loops;

use heisen_inspect::memory::read_bytes;
use heisen_wire::SPINS;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

/// The most instructions that are single-stepped.
const WATCHED: usize = 3_000;
/// How often a thread's registers are sampled, and how long it runs between two samples.
const GLANCES: usize = 24;
const MOMENT: Duration = Duration::from_micros(20);
/// The signal code of a single step.
const TRAP_TRACE: i32 = 2;
/// The length of the longest instruction.
const LONGEST: usize = 15;

/// The number of words in `user_regs_struct`, and the indices of the ones used by name.
const GENERAL: usize = size_of::<libc::user_regs_struct>() / 8;
const ORIG_RAX: usize = 15;
const RIP: usize = 16;

/// All registers of a thread, flags included, except SSE and x87.
type General = [u64; GENERAL];

/// A written byte: its address and its value before.
type Written = (u64, u8);

/// A thread of another process, traced while this value exists.
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
            // The thread was about to receive a signal, which must not be lost: perhaps for a system call of
            // a runner.
            request(libc::PTRACE_DETACH, self.0, signal as usize)?;
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }

    /// Lets the thread run for a moment.
    fn go_on(&self) -> io::Result<()> {
        request(libc::PTRACE_CONT, self.0, 0)?;
        std::thread::sleep(MOMENT);
        self.interrupt()
    }

    /// Waits until the thread stops. Returns the signal that stopped it, and the event.
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

    /// Executes one instruction, which must not leave the program (see [`Code::leaves`]): the step of a system call
    /// ends with a signal that looks like the program's own. Returns false if a signal came instead; the thread
    /// receives it.
    fn step(&self) -> io::Result<bool> {
        request(libc::PTRACE_SINGLESTEP, self.0, 0)?;
        let (signal, _) = self.wait()?;
        // A breakpoint's signal is the same as a step's, and the thread may have been stopped between a
        // breakpoint and its signal.
        if signal == libc::SIGTRAP && self.cause()? == TRAP_TRACE {
            return Ok(true);
        }
        request(libc::PTRACE_DETACH, self.0, signal as usize)?;
        Ok(false)
    }

    /// The code of the signal that stopped the thread.
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

    /// The SSE and x87 registers.
    fn floating(&self) -> io::Result<Vec<u8>> {
        let mut floating = vec![0u8; size_of::<libc::user_fpregs_struct>()];
        request(libc::PTRACE_GETFPREGS, self.0, floating.as_mut_ptr() as usize)?;
        Ok(floating)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // This fails if the thread is gone or no longer traced; both are fine.
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

/// Spin loops found so far whose rounds are not identical.
#[derive(Debug, Default)]
pub(crate) struct Known(Vec<varied::Loop>);

/// How closely to examine a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchLevel {
    /// Steps are slow. So the thread is stepped only if samples show the same state twice, as they do in a
    /// short loop, or if it is in a known loop.
    Glance,
    /// The thread is stepped.
    Thorough,
    /// The thread is forced to yield even if it is not known to wait.
    Force,
}

/// Makes a thread yield if it waits in a spin loop. Returns whether it does. If that cannot be determined,
/// because the thread is gone or may not be traced, the answer is no. Before the thread goes on, `tell`
/// receives the kind of loop, one of `heisen_wire::spin`.
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
        // It is in a system call, which a step would only restart. Perhaps it has just stopped for us, and
        // waits.
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

/// Samples the general registers. Returns whether earlier values recur.
fn recurs(traced: &Traced) -> io::Result<bool> {
    let mut seen: HashSet<General> = HashSet::new();
    let mut last = [0; GENERAL];
    for _ in 0..GLANCES {
        let general = traced.general()?;
        // The thread may not have run between two samples, because the processor was busy.
        if general != last && !seen.insert(general) {
            return Ok(true);
        }
        last = general;
        traced.go_on()?;
    }
    Ok(false)
}

/// Steps until the general registers have earlier values again; returns false if that takes too long. Most
/// code never gets there, and this test is cheap.
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

/// Steps until the thread is in exactly its present state again; returns `None` if that takes too long.
/// Otherwise returns how many steps lie between that state and the first instruction of the loop. The first
/// instruction has the lowest address; if the loop passes it several times, the visit with the lowest
/// registers counts. So it is the same one wherever in the loop the thread was stopped. The result is at
/// least one step, because a signal can be delivered only after a step.
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

/// Whether a step would make the kernel reset the process's handler for breakpoints. The kernel does so if it
/// has to send that signal while the thread blocks it, as in a handler for it.
fn would_lose_handler(tid: i32) -> io::Result<bool> {
    const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
    let status = std::fs::read_to_string(format!("/proc/{tid}/status"))?;
    let has = |name: &str| {
        let set = status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        set.and_then(|set| u64::from_str_radix(set, 16).ok()).is_some_and(|set| set & TRAP != 0)
    };
    Ok(has("SigBlk:") && (has("SigCgt:") || has("SigIgn:")))
}

/// Whether every written byte has its old value again.
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

/// The instructions of a program, decoded when first reached.
struct Code {
    tid: i32,
    met: HashMap<u64, Option<Instruction>>,
    factory: InstructionInfoFactory,
}

impl Code {
    fn new(tid: i32) -> Code {
        Code { tid, met: HashMap::new(), factory: InstructionInfoFactory::new() }
    }

    /// The instruction at this address; `None` if its effect depends on more than registers and memory.
    fn at(&mut self, rip: u64) -> Option<Instruction> {
        self.any_at(rip).filter(is_plain)
    }

    /// Whether the instruction at this address leaves the program, as a system call does.
    fn leaves(&mut self, rip: u64) -> bool {
        self.any_at(rip).is_none_or(|instruction| leaves(&instruction))
    }

    fn any_at(&mut self, rip: u64) -> Option<Instruction> {
        *self.met.entry(rip).or_insert_with(|| decode(self.tid, rip))
    }
}

fn decode(tid: i32, rip: u64) -> Option<Instruction> {
    let mut code = [0; LONGEST];
    // At the end of a mapping there may be fewer bytes.
    let length = (1..=LONGEST).rev().find(|&length| read_bytes(tid, rip, &mut code[..length]).is_ok())?;
    let mut instruction = Instruction::default();
    Decoder::with_ip(64, &code[..length], rip, DecoderOptions::NONE).decode_out(&mut instruction);
    Some(instruction)
}

/// Whether an instruction leaves the program, or is invalid.
fn leaves(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::INVALID | Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int | Mnemonic::Int3
    )
}

/// Whether the effect of an instruction depends on registers and memory alone, and takes one step.
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

/// The bytes that an instruction will write, with their present values. `None` if they are not known.
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

/// The general registers of two states, in pairs.
fn registers<'a>(one: &'a General, other: &'a General) -> impl Iterator<Item = (Register, u64, u64)> + 'a {
    let all = ORDER.iter().zip(one.iter().zip(other));
    all.filter(|(r, _)| **r != Register::None).map(|(&r, (&one, &other))| (r, one, other))
}

/// The flags that arithmetic instructions set.
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

    /// Exits with 1 if the handler does not run after a breakpoint.
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

    /// Has no handler, so a signal that is not its own kills it. The loop has as many rounds as it takes to be taken
    /// for a spin loop, so the system call often comes while the watcher waits for the next round.
    const CALLS: &str = r#"
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(void) {
            for (volatile long called = 0;; called++) {
                for (int round = 0; round < 5; round++) __asm__ volatile(".rept 64; nop; .endr");
                syscall(SYS_getppid);
            }
        }"#;

    /// Examines the program again and again. It must survive that, and is never seen to wait.
    fn survives(source: &str) {
        let directory = tempfile::tempdir().unwrap();
        let (file, program) = (directory.path().join("watched.c"), directory.path().join("watched"));
        std::fs::write(&file, source).unwrap();
        assert!(Command::new("cc").arg(&file).arg("-o").arg(&program).status().unwrap().success());
        let mut child = Command::new(&program).stderr(Stdio::null()).spawn().unwrap();
        for _ in 0..1000 {
            let tid = child.id() as i32;
            let found = yields(tid, WatchLevel::Thorough, &mut Known::default(), &Loops::default(), |_| {});
            assert!(!found, "it counts, so it is never in the same state again");
            // The tracer is the parent, so it may have taken the status of a program that died.
            let status = child.try_wait().expect("the program died while it was watched");
            assert_eq!(status, None, "it received a signal that was not its own, or lost one");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_breakpoint_is_no_step() {
        survives(BREAKPOINTS);
    }

    #[test]
    fn the_step_of_a_system_call_is_no_signal_of_the_program() {
        survives(CALLS);
    }
}
