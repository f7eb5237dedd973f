//! Tests of patching with generated machine code. It has atomic instructions of all kinds at all kinds of
//! positions. Patched, it must compute the same as natively, whatever thread runs at its scheduling points.
//!
//! Each function works on memory of its own thread, so its result does not depend on the schedule. Before the
//! atomic instructions it sets general registers, flags, the red zone, vector and x87 registers. Afterwards
//! it adds them to the result.

use heisen_testkit::{Sandbox, run};
use std::fmt::Write;
use std::process::Command;

/// A small random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % sides
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.roll(n) == 0
    }
}

/// All general registers but the stack pointer, by size: 64, 32, 16 and 8 bits.
const REGISTERS: [[&str; 4]; 15] = [
    ["rax", "eax", "ax", "al"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rbx", "ebx", "bx", "bl"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
    ["r8", "r8d", "r8w", "r8b"],
    ["r9", "r9d", "r9w", "r9b"],
    ["r10", "r10d", "r10w", "r10b"],
    ["r11", "r11d", "r11w", "r11b"],
    ["r12", "r12d", "r12w", "r12b"],
    ["r13", "r13d", "r13w", "r13b"],
    ["r14", "r14d", "r14w", "r14b"],
    ["r15", "r15d", "r15w", "r15b"],
];
const SIZES: [&str; 4] = ["qword", "dword", "word", "byte"];
/// The index of the first register that `cmpxchg16b` does not use.
const FIRST_FREE: usize = 4;

/// Writes functions and counts their atomic instructions.
struct Writer {
    dice: Dice,
    text: String,
    sites: usize,
    labels: usize,
    vectors: bool,
    /// Whether all functions have an unwind table.
    tables: bool,
}

impl Writer {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str("    ");
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    fn function(&mut self, number: usize) {
        // Some functions can be found only by their symbol, the others by their unwind table.
        let table = self.tables || !self.dice.one_in(4);
        let _ = writeln!(self.text, "    .globl f{number}\n    .type f{number}, @function\nf{number}:");
        if table {
            self.line(".cfi_startproc");
        }
        if self.dice.one_in(6) {
            // The shortest possible function.
            let op = self.dice.of(&["lock inc", "lock dec", "lock not", "lock neg"]);
            self.line(format!("{op} dword ptr [rdi]"));
            self.line("ret");
            self.sites += 1;
        } else {
            self.long_function();
        }
        if table {
            self.line(".cfi_endproc");
        }
        let _ = writeln!(self.text, "    .size f{number}, . - f{number}");
        self.line(".balign 16, 0xcc");
    }

    fn long_function(&mut self) {
        for saved in ["rbx", "rbp", "r12", "r13", "r14", "r15"] {
            self.line(format!("push {saved}"));
        }
        let base = FIRST_FREE + self.dice.roll(REGISTERS.len() - FIRST_FREE);
        let mut index = base;
        while index == base {
            index = FIRST_FREE + self.dice.roll(REGISTERS.len() - FIRST_FREE);
        }
        if REGISTERS[base][0] != "rdi" {
            self.line(format!("mov {}, rdi", REGISTERS[base][0]));
        }
        for (number, [name, ..]) in REGISTERS.iter().enumerate() {
            if number == index {
                let value = self.dice.roll(4);
                self.line(format!("mov {name}, {value}"));
            } else if number != base {
                let (high, low) = (self.dice.roll(1 << 31), self.dice.roll(1 << 31));
                self.line(format!("movabs {name}, {:#x}", (high as u64) << 32 | low as u64));
            }
        }
        let base_name = REGISTERS[base][0];
        self.line("mov qword ptr [rsp - 8], rax");
        self.line("mov qword ptr [rsp - 64], rcx");
        self.line("mov qword ptr [rsp - 120], rdx");
        if self.vectors {
            for number in 0..16 {
                let from = 16 * self.dice.roll(8);
                self.line(format!("vmovdqu ymm{number}, ymmword ptr [{base_name} + {from}]"));
            }
        }
        self.line("fld1");
        self.line("fldpi");
        // A loop with all of this inside, so the code has a jump target.
        let rounds = 1 + self.dice.roll(3);
        self.line(format!("mov dword ptr [rsp - 16], {rounds}"));
        let label = self.label();
        if self.dice.one_in(4) {
            // A jump with a target that static analysis cannot know.
            self.line(format!("lea rax, [rip + {label}]"));
            self.line("jmp rax");
        }
        let _ = writeln!(self.text, "{label}:");
        self.line("movabs rax, 0x123456789abcdef");
        for _ in 0..1 + self.dice.roll(6) {
            self.atomic(base, index);
            self.between(base, index);
        }
        self.line("dec dword ptr [rsp - 16]");
        self.line(format!("jnz {label}"));
        self.result(base);
        for saved in ["r15", "r14", "r13", "r12", "rbp", "rbx"] {
            self.line(format!("pop {saved}"));
        }
        self.line("ret");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!(".Lg{}", self.labels)
    }

    /// A register that may be changed.
    fn value(&mut self, base: usize, index: usize) -> usize {
        loop {
            let register = self.dice.roll(REGISTERS.len());
            if register != base && register != index {
                return register;
            }
        }
    }

    /// A memory operand, and whether all threads share it.
    fn operand(&mut self, base: usize, index: usize) -> (String, bool) {
        let (base, index) = (REGISTERS[base][0], REGISTERS[index][0]);
        let near = 8 * self.dice.roll(8);
        let far = 512 + 8 * self.dice.roll(8);
        match self.dice.roll(8) {
            0 => (format!("[{base}]"), false),
            1 => (format!("[{base} + {near}]"), false),
            2 => (format!("[{base} + {far}]"), false),
            3 => (format!("[{base} + {index}*8 + {near}]"), false),
            4 => (format!("[{base} + {index}*4 + {far}]"), false),
            5 => ("[rsp - 64]".into(), false),
            6 => ("[rsp + 8]".into(), false),
            _ => ("[rip + shared]".into(), true),
        }
    }

    /// An atomic instruction. It does not change memory that all threads share.
    fn atomic(&mut self, base: usize, index: usize) {
        self.sites += 1;
        let (mut operand, mut shared) = self.operand(base, index);
        while operand.starts_with("[rsp + ") {
            // The memory above the stack pointer holds saved registers.
            (operand, shared) = self.operand(base, index);
        }
        let size = self.dice.roll(4);
        let register = REGISTERS[self.value(base, index)][size];
        let number = if shared { 0 } else { self.dice.roll(100) };
        let typed = format!("{} ptr {operand}", SIZES[size]);
        if shared {
            match self.dice.roll(3) {
                0 => self.line(format!("lock or {typed}, 0")),
                1 => self.line(format!("lock add {typed}, 0")),
                _ => {
                    self.line(format!("xor {register}, {register}"));
                    self.line(format!("lock xadd {typed}, {register}"));
                }
            }
            return;
        }
        match self.dice.roll(12) {
            0 => self.line(format!("lock add {typed}, {register}")),
            1 => self.line(format!("lock xadd {typed}, {register}")),
            2 => self.line(format!("xchg {typed}, {register}")),
            3 => self.line(format!("lock xchg {typed}, {register}")),
            4 => self.line(format!("lock cmpxchg {typed}, {register}")),
            5 => self.line(format!("lock sub {typed}, {number}")),
            6 => {
                let op = self.dice.of(&["inc", "dec", "not", "neg"]);
                self.line(format!("lock {op} {typed}"));
            }
            7 => {
                let op = self.dice.of(&["bts", "btr", "btc"]);
                let size = self.dice.of(&["qword", "dword", "word"]);
                self.line(format!("lock {op} {size} ptr {operand}, {}", number % 16));
            }
            8 => {
                let op = self.dice.of(&["adc", "sbb", "and", "or", "xor"]);
                self.line(format!("lock {op} {typed}, {register}"));
            }
            9 => self.line(format!("lock cmpxchg8b qword ptr [{}]", REGISTERS[base][0])),
            10 => self.line(format!("lock cmpxchg16b xmmword ptr [{} + 16]", REGISTERS[base][0])),
            _ => {
                // `ah` cannot be encoded together with the newer registers.
                let old = REGISTERS[base][0].chars().all(|c| c.is_ascii_alphabetic());
                let at = if old { REGISTERS[base][0] } else { "rsp - 67" };
                self.line(format!("xchg byte ptr [{at} + 3], ah"));
            }
        }
    }

    /// Instructions that use flags and registers.
    fn between(&mut self, base: usize, index: usize) {
        let name = REGISTERS[base][0];
        for _ in 0..self.dice.roll(4) {
            let value = self.value(base, index);
            match self.dice.roll(6) {
                0 => {
                    let condition = self.dice.of(&["c", "z", "s", "o", "nc", "nz"]);
                    let at = 256 + self.dice.roll(64);
                    self.line(format!("set{condition} byte ptr [{name} + {at}]"));
                }
                1 => self.line(format!("adc {}, 7", REGISTERS[value][0])),
                2 => self.line(format!("lea {0}, [{0} + {0}*2 + 1]", REGISTERS[value][0])),
                3 => {
                    // A conditional jump over an instruction.
                    let label = self.label();
                    let condition = self.dice.of(&["jz", "jnz", "jc", "js"]);
                    self.line(format!("{condition} {label}"));
                    self.line(format!("xor {}, 85", REGISTERS[value][1]));
                    let _ = writeln!(self.text, "{label}:");
                }
                4 => self.line(format!("rcl {}, 3", REGISTERS[value][1])),
                _ => self.line("nop"),
            }
        }
    }

    /// Adds all registers to the result.
    fn result(&mut self, base: usize) {
        let name = REGISTERS[base][0];
        for (number, [register, ..]) in REGISTERS.iter().enumerate() {
            if number != base {
                self.line(format!("add qword ptr [{name} + {}], {register}", 1024 + 8 * number));
            }
        }
        for (slot, at) in [8, 64, 120].iter().enumerate() {
            self.line(format!("mov rax, qword ptr [rsp - {at}]"));
            self.line(format!("add qword ptr [{name} + {}], rax", 1152 + 8 * slot));
        }
        self.line(format!("fstp qword ptr [{name} + 1184]"));
        self.line(format!("fstp qword ptr [{name} + 1192]"));
        if self.vectors {
            for number in 1..16 {
                self.line(format!("vpsubq xmm0, xmm0, xmm{number}"));
                self.line(format!("vextractf128 xmm0, ymm{number}, 1"));
                self.line(format!("vpaddq xmm0, xmm0, xmmword ptr [{name} + 1200]"));
                self.line(format!("vmovdqu xmmword ptr [{name} + 1200], xmm0"));
                self.line(format!("vpaddq xmm0, xmm{number}, xmmword ptr [{name} + 1216]"));
                self.line(format!("vmovdqu xmmword ptr [{name} + 1216], xmm0"));
            }
            self.line("vzeroupper");
        }
    }
}

const FUNCTIONS: usize = 40;

fn main_text() -> String {
    let mut text = String::from(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         struct memory { _Alignas(64) unsigned char bytes[2048]; };\n\
         static struct memory memories[3];\n",
    );
    for number in 0..FUNCTIONS {
        let _ = writeln!(text, "void f{number}(struct memory *);");
    }
    text.push_str("static unsigned long sums[3];\nstatic void *work(void *arg) {\n    long n = (long)arg;\n");
    text.push_str("    struct memory *m = &memories[n];\n");
    text.push_str("    for (int i = 0; i < 1024; i++) m->bytes[i] = i * 7 + 3;\n");
    for number in 0..FUNCTIONS {
        let _ = writeln!(text, "    f{number}(m);");
    }
    text.push_str(
        "    unsigned long sum = 14695981039346656037ul;\n\
         \x20   for (int i = 0; i < 2048; i++) sum = (sum ^ m->bytes[i]) * 1099511628211ul;\n\
         \x20   sums[n] = sum;\n    return 0;\n}\n\
         int main(int argc, char **argv) {\n    pthread_t t[2];\n\
         \x20   for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)(i + 1));\n\
         \x20   work(0);\n\
         \x20   for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
         \x20   assert(sums[0] == sums[1] && sums[0] == sums[2]);\n\
         \x20   if (argc > 1) assert(sums[0] == strtoul(argv[1], 0, 10));\n\
         \x20   printf(\"%lu\\n\", sums[0]);\n}\n",
    );
    text
}

/// Generates a program, runs it natively, and checks it patched.
fn check(seed: u64, flags: &[&str]) {
    let sandbox = Sandbox::new();
    let vectors = std::is_x86_feature_detected!("avx2");
    let tables = flags.contains(&"-s");
    let mut writer = Writer { dice: Dice(seed), text: String::new(), sites: 0, labels: 0, vectors, tables };
    for number in 0..FUNCTIONS {
        writer.function(number);
    }
    let text = format!(
        "    .intel_syntax noprefix\n    .text\n{}    .bss\n    .balign 16\nshared: .zero 16\n    \
         .section .note.GNU-stack,\"\",@progbits\n",
        writer.text
    );
    let functions = sandbox.write("functions.s", text);
    let program =
        sandbox.compile("generated.c", &main_text(), &[&[functions.to_str().unwrap()], flags].concat());
    let native = run(&mut Command::new(&program)).expect(0).out;
    let program = program.to_str().unwrap();
    let expected = native.trim();
    for carrier in ["fibers", "kernel"] {
        let json = sandbox.clean(
            &[
                &["--patch", "default", "--strategy", "random", "--executions", "20", "--carrier", carrier],
                &["--", program, expected][..],
            ]
            .concat(),
        );
        let told = format!(": {} in generated (", writer.sites);
        let said = json["not_controlled"][0].as_str().unwrap();
        assert!(said.contains(&told), "seed {seed}: {told}: {said}");
        assert!(json["steps"].as_u64().unwrap() > 20 * 3 * writer.sites as u64, "seed {seed}: {json:#}");
    }
}

#[test]
fn generated_code_computes_the_same() {
    for seed in 1..=4 {
        check(seed, &["-O2"]);
    }
    check(5, &["-O0", "-no-pie"]);
    check(6, &["-s"]);
}
