//! Finds the instructions that lock and unlock the `Mutex` of Rust's standard library, in code into which
//! they were inlined.
//!
//! Such an instruction is recognised by the call that follows it. `Mutex::lock` is a compare-exchange; if it
//! fails, a call of `Mutex::lock_contended` follows. `Mutex::unlock` is an exchange; if it yields 2, a call
//! of `Mutex::wake` follows. Both functions are private to the library, and nothing else calls them. So take
//! a compare-exchange from which a path leads to `lock_contended` without another call or atomic instruction
//! in between. It must be the one of a lock: code that locks by any other instruction has that other
//! instruction on its path.
//!
//! The compare-exchange may be an instruction, a call that instrumentation has made of it, or, in unoptimised
//! code, a call of a function of `core::sync::atomic`. Calls are redirected to the runtime;
//! `runtime::memory::word_lock` describes how it handles them.

use super::code::{Read, atomic};
use heisen_wire::patch::{CAS, LOCK, UNLOCK, XCHG};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::HashMap;

/// The part that a function plays in a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It compares and exchanges.
    CompareExchange,
    /// It exchanges.
    Exchange,
    /// It continues with a lock that is held by another thread.
    Contended,
    /// It wakes the threads that wait for the lock.
    Wake,
}

/// Functions with a role, by address.
pub type Roles = HashMap<u64, Role>;

/// Every function with a role has one of these parts in its mangled name.
pub const PARTS: [&str; 5] =
    ["lock_contended", "5Mutex4wake", "compare_exchange", "atomic_swap", "__tsan_atomic32_exchange"];

/// The role of a function with this demangled name.
pub fn role(name: &str) -> Option<Role> {
    const MUTEX: &str = "std::sys::sync::mutex::futex::Mutex";
    let name = name.trim_start_matches('<');
    if let Some(method) = name.strip_prefix(MUTEX) {
        return match method.trim_start_matches('>') {
            "::lock_contended" => Some(Role::Contended),
            "::wake" => Some(Role::Wake),
            _ => None,
        };
    }
    match name {
        "__tsan_atomic32_compare_exchange_val" => Some(Role::CompareExchange),
        "__tsan_atomic32_exchange" => Some(Role::Exchange),
        _ if name.starts_with("core::sync::atomic::atomic_compare_exchange") => Some(Role::CompareExchange),
        _ if name.starts_with("core::sync::atomic::atomic_swap") => Some(Role::Exchange),
        _ => None,
    }
}

/// A call to be redirected to the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its address.
    pub at: u64,
    /// Its length in bytes: enough for a call with a relative target.
    pub len: usize,
    /// Whether it locks rather than unlocks.
    pub locks: bool,
}

/// The lock operations of a function.
#[derive(Debug, Default)]
pub struct Locks {
    /// Kinds of the instructions that lock or unlock, by address.
    pub instructions: HashMap<u64, u8>,
    /// Calls that lock or unlock.
    pub calls: Vec<Call>,
}

/// How many instructions are searched from a possible lock instruction. Only few lie before the call, also in
/// unoptimised code.
const FAR: usize = 32;

/// A function to be searched for lock operations.
pub struct Function<'a> {
    /// All of its instructions.
    pub instructions: &'a [Instruction],
    /// The functions with a role.
    pub roles: &'a Roles,
    /// Reads memory: the tables through which functions are called.
    pub read: &'a Read<'a>,
}

impl Function<'_> {
    /// Finds all instructions and calls that lock or unlock.
    pub fn locks(&self) -> Locks {
        let mut found = Locks::default();
        for (at, instruction) in self.instructions.iter().enumerate() {
            let is_call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            let (compares, is_call) = match (self.called(at), atomic(instruction)) {
                (Some(Role::CompareExchange), _) if is_call => (true, true),
                (Some(Role::Exchange), _) if is_call => (false, true),
                (None, Some(site)) if site.kind == CAS && site.size == 4 => (true, false),
                (None, Some(site)) if site.kind == XCHG && site.size == 4 => (false, false),
                _ => continue,
            };
            if !self.leads_to(at, if compares { Role::Contended } else { Role::Wake }) {
                continue;
            }
            if !is_call {
                found.instructions.insert(instruction.ip(), if compares { LOCK } else { UNLOCK });
            } else if instruction.len() >= 5 {
                found.calls.push(Call { at: instruction.ip(), len: instruction.len(), locks: compares });
            }
        }
        found
    }

    /// Whether a path leads from an instruction's successor to a call of a function with this role.
    fn leads_to(&self, from: usize, role: Role) -> bool {
        let mut waiting = vec![from + 1];
        let mut seen: Vec<usize> = Vec::new();
        while let Some(at) = waiting.pop() {
            let Some(instruction) = self.instructions.get(at) else { continue };
            if seen.contains(&at) || seen.len() >= FAR || atomic(instruction).is_some() {
                continue;
            }
            seen.push(at);
            let target = || {
                let target = instruction.near_branch_target();
                self.instructions.binary_search_by_key(&target, Instruction::ip).ok()
            };
            if self.called(at) == Some(role) {
                return true;
            }
            match instruction.flow_control() {
                FlowControl::Next => waiting.push(at + 1),
                FlowControl::ConditionalBranch => {
                    waiting.push(at + 1);
                    waiting.extend(target());
                }
                FlowControl::UnconditionalBranch => waiting.extend(target()),
                _ => {}
            }
        }
        false
    }

    /// The role of the function that an instruction calls, or jumps to as a tail call.
    fn called(&self, at: usize) -> Option<Role> {
        use FlowControl::{Call, ConditionalBranch, IndirectBranch, IndirectCall, UnconditionalBranch};
        let instruction = &self.instructions[at];
        let target = match instruction.flow_control() {
            Call | UnconditionalBranch | ConditionalBranch
                if instruction.op0_kind() == OpKind::NearBranch64 =>
            {
                instruction.near_branch_target()
            }
            IndirectCall | IndirectBranch if instruction.op0_kind() == OpKind::Memory => {
                self.word_of(instruction)?
            }
            // In unoptimised code the address is in a register that the previous instruction loaded.
            IndirectCall => {
                let load = self.instructions.get(at.checked_sub(1)?)?;
                let loads =
                    load.mnemonic() == Mnemonic::Mov && load.op0_register() == instruction.op0_register();
                if !loads || instruction.op0_register() == Register::None {
                    return None;
                }
                self.word_of(load)?
            }
            _ => return None,
        };
        self.roles.get(&target).copied()
    }

    /// The word at an instruction's memory operand, if the operand's address is fixed.
    fn word_of(&self, instruction: &Instruction) -> Option<u64> {
        if !instruction.is_ip_rel_memory_operand() {
            return None;
        }
        let bytes = (self.read)(instruction.ip_rel_memory_address(), 8);
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    const CONTENDED: u64 = 0x3000;
    const WAKE: u64 = 0x4000;
    const COMPARE: u64 = 0x5000;

    #[test]
    fn functions_with_a_role() {
        assert_eq!(role("<std::sys::sync::mutex::futex::Mutex>::lock_contended"), Some(Role::Contended));
        assert_eq!(role("std::sys::sync::mutex::futex::Mutex::wake"), Some(Role::Wake));
        assert_eq!(role("core::sync::atomic::atomic_compare_exchange"), Some(Role::CompareExchange));
        assert_eq!(role("std::sys::sync::rwlock::futex::RwLock::wake_writer"), None);
        assert_eq!(role("mine::Mutex::lock_contended"), None);
    }

    /// Kinds of instructions, and whether calls lock, by offset.
    type Found = (Vec<(u64, u8)>, Vec<(u64, bool)>);

    /// The lock operations found in code at 0x1000.
    fn found(bytes: &[u8]) -> Found {
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).into_iter().collect();
        let roles =
            Roles::from([(CONTENDED, Role::Contended), (WAKE, Role::Wake), (COMPARE, Role::CompareExchange)]);
        // A table at 0x2000 holds the address of `lock_contended`.
        let read =
            |at: u64, _: usize| if at == 0x2000 { CONTENDED.to_le_bytes().to_vec() } else { Vec::new() };
        let locks = Function { instructions: &instructions, roles: &roles, read: &read }.locks();
        let kinds = locks.instructions.into_iter().map(|(at, kind)| (at - 0x1000, kind)).collect();
        (kinds, locks.calls.into_iter().map(|call| (call.at - 0x1000, call.locks)).collect())
    }

    /// A call of `target` at this offset.
    fn call(offset: u64, target: u64) -> [u8; 5] {
        let distance = (target - (0x1000 + offset + 5)) as u32;
        let [a, b, c, d] = distance.to_le_bytes();
        [0xe8, a, b, c, d]
    }

    #[test]
    fn a_lock_is_known_by_what_follows_if_it_fails() {
        // lock cmpxchg [rdi], ecx; jne -> the call; ret; call lock_contended; ret
        let mut code = vec![0xf0, 0x0f, 0xb1, 0x0f, 0x75, 0x01, 0xc3];
        code.extend(call(7, CONTENDED));
        code.push(0xc3);
        assert_eq!(found(&code), (vec![(0, LOCK)], vec![]));
        // Another call comes first, so this is not a lock.
        let mut other = vec![0xf0, 0x0f, 0xb1, 0x0f, 0x75, 0x01, 0xc3];
        other.extend(call(7, 0x6000));
        other.extend(call(12, CONTENDED));
        assert_eq!(found(&other), (vec![], vec![]));
        // lock cmpxchg [rsi], ecx; then the same: only the second belongs to a lock.
        let mut second = vec![0xf0, 0x0f, 0xb1, 0x0e, 0xf0, 0x0f, 0xb1, 0x0f, 0x75, 0x01, 0xc3];
        second.extend(call(11, CONTENDED));
        assert_eq!(found(&second), (vec![(4, LOCK)], vec![]));
    }

    #[test]
    fn an_unlock_is_known_by_whom_it_wakes() {
        // xchg [rdi], eax; cmp eax, 2; je -> the call; ret; call wake
        let mut code = vec![0x87, 0x07, 0x83, 0xf8, 0x02, 0x74, 0x01, 0xc3];
        code.extend(call(8, WAKE));
        assert_eq!(found(&code), (vec![(0, UNLOCK)], vec![]));
        // The same with a tail call.
        code[8] = 0xe9;
        assert_eq!(found(&code), (vec![(0, UNLOCK)], vec![]));
    }

    #[test]
    fn calls_that_compare_and_exchange() {
        // call atomic_compare_exchange; test eax, eax; je -> ret; mov rax, [rip + ...] (0x2000); call rax; ret
        let mut code = call(0, COMPARE).to_vec();
        code.extend([0x85, 0xc0, 0x74, 0x09, 0x48, 0x8b, 0x05, 0xf0, 0x0f, 0, 0, 0xff, 0xd0, 0xc3]);
        assert_eq!(found(&code), (vec![], vec![(0, true)]));
    }
}
