//! Generates random programs in C and in Rust: two or three threads that lock, count, and set and read flags.
//!
//! A file holds several programs. Its argument is the seed of the program to run.

use std::fmt::Write;

/// The language of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Rust,
}

impl Language {
    pub fn file_name(self) -> &'static str {
        match self {
            Language::C => "programs.c",
            Language::Rust => "programs.rs",
        }
    }
}

/// One statement of a thread.
#[derive(Debug)]
enum Statement {
    /// Runs statements while it holds a lock.
    Locked(usize, Vec<Statement>),
    /// Runs statements if it gets the lock at once.
    Tried(usize, Vec<Statement>),
    /// Changes the data with this index. The lock with the same index protects it.
    Counts(usize),
    /// Sets a flag to a value.
    Sets(usize, u32),
    /// Adds a value to a flag.
    Adds(usize, u32),
    /// Records the value of a flag.
    Notes(usize),
    /// Adds 1 to the second flag if the first one is set.
    AddsIf(usize, usize),
}

const LOCKS: usize = 2;
const FLAGS: usize = 2;

/// A small random number generator (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn simple(&mut self, held: Option<usize>) -> Statement {
        match self.roll(6) {
            0 | 1 => Statement::Counts(held.unwrap_or(0)),
            2 => Statement::Sets(self.roll(FLAGS), 1 + self.roll(3) as u32),
            3 => Statement::Adds(self.roll(FLAGS), 1 + self.roll(3) as u32),
            4 => Statement::Notes(self.roll(FLAGS)),
            _ => Statement::AddsIf(self.roll(FLAGS), self.roll(FLAGS)),
        }
    }

    fn locked(&mut self) -> Statement {
        let (outer, nested) = (self.roll(LOCKS), self.roll(3) == 0);
        let inside = if nested {
            let inner = 1 - outer;
            vec![Statement::Locked(inner, vec![self.simple(Some(inner))])]
        } else {
            vec![self.simple(Some(outer))]
        };
        if self.roll(5) == 0 { Statement::Tried(outer, inside) } else { Statement::Locked(outer, inside) }
    }

    fn thread(&mut self, most: usize) -> Vec<Statement> {
        let count = 1 + self.roll(most);
        // Data outside of a lock would be a data race, which safe Rust cannot express. So only flags are used
        // outside of locks.
        (0..count)
            .map(|_| match self.roll(3) {
                0 => loop {
                    let statement = self.simple(None);
                    if !matches!(statement, Statement::Counts(_)) {
                        break statement;
                    }
                },
                _ => self.locked(),
            })
            .collect()
    }
}

fn threads(seed: u64) -> Vec<Vec<Statement>> {
    let mut dice = Dice(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..8 {
        dice.roll(2);
    }
    match dice.roll(4) {
        0 => (0..3).map(|_| dice.thread(1)).collect(),
        _ => (0..2).map(|_| dice.thread(2)).collect(),
    }
}

/// The comment in the text of a file before the program of a seed. [`END`] follows each program.
pub fn heading(seed: u64) -> String {
    format!("/* program {seed} */\n")
}

/// The comment after each program; see [`heading`].
pub const END: &str = "/* end */\n";

/// The text of a file with the programs of these seeds.
pub fn file(language: Language, seeds: impl Iterator<Item = u64>) -> String {
    let seeds: Vec<u64> = seeds.collect();
    let mut text = match language {
        Language::C => include_str!("frame.c").to_owned(),
        Language::Rust => include_str!("frame.rs").to_owned(),
    };
    for &seed in &seeds {
        text.push_str(&heading(seed));
        let threads = threads(seed);
        for (number, statements) in threads.iter().enumerate() {
            let mut body = String::new();
            for statement in statements {
                write(language, statement, number, &mut body);
            }
            let _ = match language {
                Language::C => {
                    writeln!(
                        text,
                        "static void *p{seed}_{number}(void *unused) {{\n{body}    return unused;\n}}"
                    )
                }
                Language::Rust => writeln!(text, "fn p{seed}_{number}(s: &Shared) {{\n{body}}}"),
            };
        }
        let names: Vec<String> = (0..threads.len()).map(|n| format!("p{seed}_{n}")).collect();
        let list = names.join(", ");
        let _ = match language {
            Language::C => writeln!(
                text,
                "static void p{seed}(void) {{ body *all[] = {{{list}}}; run(all, {}); }}",
                threads.len()
            ),
            Language::Rust => writeln!(text, "fn p{seed}() {{ run(&[{list}]); }}"),
        };
        text.push_str(END);
    }
    let _ = match language {
        Language::C => writeln!(
            text,
            "int main(int count, char **args) {{\n    switch (count > 1 ? atoi(args[1]) : -1) {{"
        ),
        Language::Rust => {
            writeln!(text, "fn main() {{\n    match std::env::args().nth(1).as_deref().unwrap_or(\"\") {{")
        }
    };
    for seed in seeds {
        let _ = match language {
            Language::C => writeln!(text, "    case {seed}: p{seed}(); break;"),
            Language::Rust => writeln!(text, "        \"{seed}\" => p{seed}(),"),
        };
    }
    text.push_str(match language {
        Language::C => "    }\n    return 0;\n}\n",
        Language::Rust => "        _ => {}\n    }\n}\n",
    });
    text
}

/// Appends the text of one statement to `out`.
fn write(language: Language, statement: &Statement, thread: usize, out: &mut String) {
    let inside = |statements: &[Statement]| {
        let mut body = String::new();
        statements.iter().for_each(|statement| write(language, statement, thread, &mut body));
        body
    };
    let line = match (language, statement) {
        (Language::C, Statement::Locked(lock, body)) => {
            format!("lock(&locks[{lock}]);\n{}unlock(&locks[{lock}]);", inside(body))
        }
        (Language::C, Statement::Tried(lock, body)) => {
            format!("if (try_lock(&locks[{lock}])) {{\n{}unlock(&locks[{lock}]);\n}}", inside(body))
        }
        (Language::C, Statement::Counts(data)) => {
            format!("data[{data}] = data[{data}] * 2 + {};", thread + 1)
        }
        (Language::C, Statement::Sets(flag, value)) => format!("atomic_store(&flags[{flag}], {value});"),
        (Language::C, Statement::Adds(flag, value)) => format!("atomic_fetch_add(&flags[{flag}], {value});"),
        (Language::C, Statement::Notes(flag)) => {
            format!("noted[{thread}] = noted[{thread}] * 10 + atomic_load(&flags[{flag}]);")
        }
        (Language::C, Statement::AddsIf(looked_at, flag)) => {
            format!("if (atomic_load(&flags[{looked_at}])) atomic_fetch_add(&flags[{flag}], 1);")
        }
        (Language::Rust, Statement::Locked(lock, body)) => {
            format!("{{\nlet mut _d{lock} = s.locks[{lock}].lock().unwrap();\n{}}}", inside(body))
        }
        (Language::Rust, Statement::Tried(lock, body)) => {
            format!("if let Ok(mut _d{lock}) = s.locks[{lock}].try_lock() {{\n{}}}", inside(body))
        }
        (Language::Rust, Statement::Counts(data)) => {
            format!("*_d{data} = *_d{data} * 2 + {};", thread + 1)
        }
        (Language::Rust, Statement::Sets(flag, value)) => format!("s.flags[{flag}].store({value}, SeqCst);"),
        (Language::Rust, Statement::Adds(flag, value)) => {
            format!("s.flags[{flag}].fetch_add({value}, SeqCst);")
        }
        (Language::Rust, Statement::Notes(flag)) => {
            format!("s.note({thread}, s.flags[{flag}].load(SeqCst));")
        }
        (Language::Rust, Statement::AddsIf(looked_at, flag)) => {
            format!("if s.flags[{looked_at}].load(SeqCst) != 0 {{ s.flags[{flag}].fetch_add(1, SeqCst); }}")
        }
    };
    out.push_str(&line);
    out.push('\n');
}
