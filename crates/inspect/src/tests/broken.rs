//! Truncated or damaged files give fewer results, never an error or a panic.

use super::super::elf::Source;
use super::super::memory::StackMemory;
use super::super::module::Module;
use super::super::unwind::Cpu;
use super::*;

const C: &str = r#"
#include <pthread.h>
struct pool { pthread_mutex_t lock; int grid[3][5]; };
struct pool pools[2];
static inline int inlined(int n) { static int calls; return calls += n; }
int main(int argc, char **argv) { return inlined(argc) + pools[1].grid[2][argc]; }
"#;

const CPP: &str = r#"
#include <array>
#include <atomic>
struct Slot { int a; std::atomic<int> b; };
namespace { std::array<Slot, 3> slots; Slot local; }
struct Pool : Slot { union { int x; long y; }; int grid[2][3]; } pools[2];
static inline int f(int n) {
    static Slot calls;
    auto add = [&](int k) { return k + calls.a + local.a; };
    return add(n) + slots[1].a;
}
int main(int argc, char **) { return f(argc) + pools[1].x; }
"#;

fn open(bytes: &[u8]) -> Option<Module> {
    Module::new(Path::new("/tmp/broken"), false, Source::Bytes(bytes.into()))
}

/// Addresses all over the functions and variables of an undamaged file.
fn addresses(bytes: &[u8]) -> Vec<u64> {
    let module = open(bytes).unwrap();
    let symbols = module.symbols().all();
    symbols
        .flat_map(|s| (s.address..s.address + s.size).step_by(s.size.div_ceil(16).max(1) as usize))
        .collect()
}

/// Asks for every kind of result and returns how many there were.
fn ask(bytes: &[u8], addresses: &[u64]) -> usize {
    let Some(module) = open(bytes) else { return 0 };
    let mut memory = StackMemory::new(std::process::id() as i32);
    let here = &raw const memory as u64;
    module.bias(0x1000, 0x1000);
    let mut known = 0;
    for &address in addresses {
        if let Some(tables) = module.unwind() {
            let registers = Registers { rip: address, rsp: here, rbp: here, ..Registers::default() };
            tables.step(address, 0, &mut Cpu::new(registers), &mut memory);
        }
        known += usize::from(module.symbols().function(address).is_some());
        known += usize::from(module.symbols().object(address).is_some());
        if let Some(debug) = module.debug() {
            known += debug.spots(address).len();
            known += usize::from(debug.variable(address, Some(8)).is_some());
        }
    }
    known
}

#[test]
fn cut_off() {
    let built = Built::new("small.c", C, &["-g", "-O1"]);
    let whole = fs::read(&built.program).unwrap();
    let addresses = addresses(&whole);
    assert!(ask(&whole, &addresses) > 50);
    for part in 0..32 {
        ask(&whole[..whole.len() * part / 32], &addresses);
    }
    assert_eq!(ask(&[0; 100], &addresses), 0);
}

/// Rounds of damage to each program. An environment variable can ask for more.
fn rounds() -> usize {
    std::env::var("HEISEN_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(50)
}

#[test]
fn damaged() {
    let programs: [(&str, &str, &[&str]); 4] = [
        ("small.c", C, &["-g", "-O1"]),
        ("small.c", C, &["-gdwarf-4", "-O0", "-gz"]),
        ("small.cc", CPP, &["-g", "-O0"]),
        ("small.cc", CPP, &["-gdwarf-3", "-O2"]),
    ];
    for (name, source, flags) in programs {
        let built = Built::new(name, source, flags);
        let whole = fs::read(&built.program).unwrap();
        let addresses = addresses(&whole);
        assert!(ask(&whole, &addresses) > 50);
        // Pseudo-random numbers that are the same in every run.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for round in 0..rounds() {
            let mut bytes = whole.clone();
            // Damage to the headers, at both ends, soon makes a file useless: most rounds spare them.
            let spared = if round % 8 == 0 { 0 } else { 0xa00 };
            for _ in 0..1 << (round % 7) {
                let at = spared + next(bytes.len() - 2 * spared);
                bytes[at] = [0, 0xff, 0x80, next(256) as u8][next(4)];
            }
            ask(&bytes, &addresses);
        }
    }
}
