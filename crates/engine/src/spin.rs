//! Loops that wait for memory to change, with no scheduling point in them: `while (!flag) ;`.
//!
//! Under Heisen no other thread runs meanwhile, so such a loop would never end. A program that has not moved for a while
//! is therefore run by single steps (`ptrace`) and watched: if all its registers are what they were before, and every
//! byte that was written in between is what it was, then it is in the very same state again, and would go on like this
//! for ever. That cannot be mistaken: a loop that counts, computes or looks at the clock never comes back to the same
//! state. The thread is then told, by a signal that it gets at the first instruction of the loop, to yield there. As
//! the loop always comes by there in the same state, where a thread yields does not depend on time, and schedules stay
//! the same each time.
//!
//! CHESS (OSDI'08), section 4.3, asks that threads yield where they make no progress; this is how we do without.

use crate::look::memory::read_bytes;
use heisen_wire::SPINS;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use std::collections::HashMap;
use std::io;

/// Instructions that are watched at most.
pub(crate) const WATCHED: usize = 2_000;
/// The code of a signal that tells of a step.
const TRAP_TRACE: i32 = 2;
/// The longest instruction.
const LONGEST: usize = 15;

/// Everything that a thread keeps in registers, as far as the kernel tells: general ones, flags, SSE and x87.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    general: [u64; GENERAL],
    floating: Vec<u8>,
}

/// Words of `user_regs_struct`, and the places of those that are needed by name.
const GENERAL: usize = size_of::<libc::user_regs_struct>() / 8;
const ORIG_RAX: usize = 15;
const RIP: usize = 16;

/// A byte that was written: where, and what was there before.
type Written = (u64, u8);

/// A thread of another process, traced for as long as this lives.
struct Traced(libc::pid_t);

impl Traced {
    /// Stops the thread.
    fn stop(tid: i32) -> io::Result<Traced> {
        request(libc::PTRACE_SEIZE, tid, 0)?;
        let traced = Traced(tid);
        request(libc::PTRACE_INTERRUPT, tid, 0)?;
        let (signal, event) = traced.wait()?;
        if event != libc::PTRACE_EVENT_STOP {
            // It was about to get a signal, which must not be lost: perhaps a system call of a runner's.
            request(libc::PTRACE_DETACH, tid, signal as usize)?;
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(traced)
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

    fn state(&self) -> io::Result<State> {
        let mut general = [0u64; GENERAL];
        request(libc::PTRACE_GETREGS, self.0, (&raw mut general) as usize)?;
        let mut floating = vec![0u8; size_of::<libc::user_fpregs_struct>()];
        request(libc::PTRACE_GETFPREGS, self.0, floating.as_mut_ptr() as usize)?;
        Ok(State { general, floating })
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

/// Makes a thread yield that waits for memory to change; whether it does wait so, in a loop that shows within so many
/// instructions. What cannot be found out, as the thread is gone or may not be traced, is "no".
pub(crate) fn yields(tid: i32, instructions: usize) -> bool {
    try_yield(tid, instructions).unwrap_or(false)
}

fn try_yield(tid: i32, instructions: usize) -> io::Result<bool> {
    let traced = Traced::stop(tid)?;
    if would_lose_handler(tid)? {
        return Ok(false);
    }
    if traced.state()?.general[ORIG_RAX] as i64 >= 0 {
        // It is in a system call, which a step would only begin anew: perhaps it has just stopped for us, and waits.
        return Ok(false);
    }
    let mut factory = InstructionInfoFactory::new();
    let mut states: Vec<u64> = Vec::new();
    let mut seen: HashMap<State, usize> = HashMap::new();
    let mut written: Vec<Vec<Written>> = Vec::new();
    for now in 0..instructions {
        let state = traced.state()?;
        if let Some(&before) = seen.get(&state)
            && is_restored(tid, &written[before..])
        {
            // On to the first instruction of the loop, which comes again at the same distance.
            let first = (before..now).min_by_key(|&i| states[i]).unwrap_or(before);
            for _ in before..first {
                if !traced.step()? {
                    return Ok(false);
                }
            }
            if first == before && !wind(&traced, now - before)? {
                return Ok(false);
            }
            request(libc::PTRACE_DETACH, tid, SPINS as usize)?;
            return Ok(true);
        }
        let Some(writes) = writes(tid, &state, &mut factory) else { return Ok(false) };
        states.push(state.general[RIP]);
        written.push(writes);
        seen.insert(state, now);
        if !traced.step()? {
            return Ok(false);
        }
    }
    Ok(false)
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

/// Once around the loop: a signal can only be given to a thread that has just taken a step.
fn wind(traced: &Traced, steps: usize) -> io::Result<bool> {
    for _ in 0..steps {
        if !traced.step()? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether all that was written is what it was before.
fn is_restored(tid: i32, written: &[Vec<Written>]) -> bool {
    let mut before: HashMap<u64, u8> = HashMap::new();
    for &(address, byte) in written.iter().flatten() {
        before.entry(address).or_insert(byte);
    }
    before.iter().all(|(&address, &byte)| {
        let mut now = [0];
        read_bytes(tid, address, &mut now).is_ok() && now[0] == byte
    })
}

/// The bytes that the next instruction will write, as they are now. None if it is one that depends on more than registers
/// and memory, or if what it writes is not known.
fn writes(tid: i32, state: &State, factory: &mut InstructionInfoFactory) -> Option<Vec<Written>> {
    let rip = state.general[RIP];
    let mut code = [0; LONGEST];
    // At the end of what is mapped there may be fewer bytes.
    let length = (1..=LONGEST).rev().find(|&length| read_bytes(tid, rip, &mut code[..length]).is_ok())?;
    let mut instruction = Instruction::default();
    Decoder::with_ip(64, &code[..length], rip, DecoderOptions::NONE).decode_out(&mut instruction);
    let outside = matches!(
        instruction.mnemonic(),
        Mnemonic::INVALID
            | Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::Int
            | Mnemonic::Int3
            | Mnemonic::Rdtsc
            | Mnemonic::Rdtscp
            | Mnemonic::Rdrand
            | Mnemonic::Rdseed
            | Mnemonic::Rdpid
            | Mnemonic::Xbegin
    );
    if outside || instruction.has_rep_prefix() && instruction.is_string_instruction() {
        return None;
    }
    let mut out = Vec::new();
    for memory in factory.info(&instruction).used_memory() {
        if matches!(memory.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess) {
            continue;
        }
        let address = memory.virtual_address(0, |register, _, _| value(state, register))?;
        let mut bytes = vec![0; memory.memory_size().size()];
        if bytes.is_empty() || read_bytes(tid, address, &mut bytes).is_err() {
            return None;
        }
        out.extend((address..).zip(bytes));
    }
    Some(out)
}

/// The value of a register that is part of an address, or the base of a segment.
fn value(state: &State, register: Register) -> Option<u64> {
    // In the order of `user_regs_struct`.
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
    if matches!(register, Register::CS | Register::DS | Register::ES | Register::SS) {
        return Some(0);
    }
    let full = if register.is_gpr() { register.full_register() } else { register };
    let value = state.general[ORDER.iter().position(|&r| r == full)?];
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
        for _ in 0..3000 {
            assert!(!yields(child.id() as i32, 20), "it counts, so it is never in the same state again");
            assert_eq!(child.try_wait().unwrap(), None, "the signal of a breakpoint was lost");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
