//! Measures executions a second of six small C programs against shuttle and loom on the same logic in Rust.
//! Also measures how many executions each tool needs for a complete search.
//!
//! Run it with `cargo bench --features peers --bench executions`. All programs are built by `cc` and checked
//! as they are. Programs with atomics are also instrumented and checked with the race check, which a complete
//! search of them needs.
//!
//! All tools take turns [`ROUNDS`] times in one run, and ratios compare results of the same run. The fastest
//! time of each counts, because other load on the machine only makes it slower. If a search has not ended
//! after [`MOST`] executions, the output says "more".

use serde_json::Value;
use shuttle::scheduler::{DfsScheduler, RandomScheduler};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc as Shared;
use std::sync::atomic::AtomicUsize as Counter;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// How often each rate is measured.
const ROUNDS: usize = 5;
/// The number of executions for the rate of a worker: enough to make the start negligible.
const WALKS: usize = 1_000_000;
/// The same for shuttle, whose start takes no time.
const SHUTTLE_WALKS: usize = 200_000;
/// The same for loom, which is slower.
const LOOM_WALKS: usize = 10_000;
/// The number of executions after which a complete search gives up.
const MOST: usize = 200_000;

/// The same logic for both crates, with the types of each.
macro_rules! programs {
    ($module:ident, $krate:ident) => {
        mod $module {
            use $krate::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
            use $krate::sync::{Arc, Condvar, Mutex};
            use $krate::thread::spawn;

            fn all<T: Send + Sync + 'static>(shared: T, count: usize, work: fn(&T, usize)) {
                let shared = Arc::new(shared);
                let threads: Vec<_> = (0..count)
                    .map(|me| {
                        let shared = shared.clone();
                        spawn(move || work(&shared, me))
                    })
                    .collect();
                threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            }

            pub fn mutex_counter() {
                all(Mutex::new(0), 2, |total, _| (0..3).for_each(|_| *total.lock().unwrap() += 1));
            }

            pub fn racy_counter() {
                all(AtomicUsize::new(0), 2, |total, _| {
                    let seen = total.load(SeqCst);
                    total.store(seen + 1, SeqCst);
                });
            }

            pub fn ping_pong() {
                all((Mutex::new(0), Condvar::new()), 2, |(lock, changed), me| {
                    for _ in 0..2 {
                        let mut turn = lock.lock().unwrap();
                        while *turn != me {
                            turn = changed.wait(turn).unwrap();
                        }
                        *turn = 1 - me;
                        changed.notify_one();
                    }
                });
            }

            struct Stack {
                head: AtomicIsize,
                next: [AtomicIsize; 4],
            }

            impl Stack {
                fn push(&self, node: isize) {
                    loop {
                        let seen = self.head.load(SeqCst);
                        self.next[node as usize].store(seen, SeqCst);
                        if self.head.compare_exchange(seen, node, SeqCst, SeqCst).is_ok() {
                            return;
                        }
                    }
                }

                fn pop(&self) -> Option<isize> {
                    loop {
                        let seen = self.head.load(SeqCst);
                        if seen == -1 {
                            return None;
                        }
                        let next = self.next[seen as usize].load(SeqCst);
                        if self.head.compare_exchange(seen, next, SeqCst, SeqCst).is_ok() {
                            return Some(seen);
                        }
                    }
                }
            }

            pub fn treiber() {
                let next = std::array::from_fn(|_| AtomicIsize::new(0));
                all(Stack { head: AtomicIsize::new(-1), next }, 2, |stack, me| {
                    stack.push(me as isize);
                    stack.pop();
                });
            }

            pub fn philosophers() {
                let forks: [Mutex<()>; 3] = std::array::from_fn(|_| Mutex::new(()));
                all(forks, 3, |forks, me| {
                    let other = (me + 1) % 3;
                    let _first = forks[me.min(other)].lock().unwrap();
                    let _second = forks[me.max(other)].lock().unwrap();
                });
            }

            struct Queue {
                lock: Mutex<()>,
                head: AtomicUsize,
                tail: AtomicUsize,
                items: [AtomicUsize; 4],
            }

            impl Queue {
                fn put(&self, item: usize) {
                    let at = self.tail.load(SeqCst);
                    self.items[at].store(item, SeqCst);
                    self.tail.store(at + 1, SeqCst);
                }

                fn take(&self) -> Option<usize> {
                    let at = self.tail.load(SeqCst).checked_sub(1)?;
                    self.tail.store(at, SeqCst);
                    if self.head.load(SeqCst) <= at {
                        return Some(self.items[at].load(SeqCst));
                    }
                    let _guard = self.lock.lock().unwrap();
                    if self.head.load(SeqCst) <= at {
                        return Some(self.items[at].load(SeqCst));
                    }
                    self.tail.store(at + 1, SeqCst);
                    None
                }

                fn steal(&self) -> Option<usize> {
                    let _guard = self.lock.lock().unwrap();
                    let at = self.head.load(SeqCst);
                    self.head.store(at + 1, SeqCst);
                    if at < self.tail.load(SeqCst) {
                        return Some(self.items[at].load(SeqCst));
                    }
                    self.head.store(at, SeqCst);
                    None
                }
            }

            pub fn stealing() {
                let queue = Arc::new(Queue {
                    lock: Mutex::new(()),
                    head: AtomicUsize::new(0),
                    tail: AtomicUsize::new(0),
                    items: std::array::from_fn(|_| AtomicUsize::new(0)),
                });
                let thief = {
                    let queue = queue.clone();
                    spawn(move || {
                        queue.steal();
                    })
                };
                queue.put(1);
                queue.put(2);
                queue.take();
                queue.take();
                thief.join().expect("no panic");
            }
        }
    };
}

programs!(by_shuttle, shuttle);
programs!(by_loom, loom);

/// The name of a program, and its functions for shuttle and for loom.
type Program = (&'static str, fn(), fn());

const PROGRAMS: [Program; 6] = [
    ("mutex_counter", by_shuttle::mutex_counter, by_loom::mutex_counter),
    ("racy_counter", by_shuttle::racy_counter, by_loom::racy_counter),
    ("ping_pong", by_shuttle::ping_pong, by_loom::ping_pong),
    ("treiber", by_shuttle::treiber, by_loom::treiber),
    ("philosophers", by_shuttle::philosophers, by_loom::philosophers),
    ("stealing", by_shuttle::stealing, by_loom::stealing),
];

fn shuttle_rate(test: fn()) -> f64 {
    let runner = shuttle::Runner::new(RandomScheduler::new(SHUTTLE_WALKS), shuttle::Config::default());
    let start = Instant::now();
    let count = runner.run(test);
    count as f64 / start.elapsed().as_secs_f64()
}

fn shuttle_all(test: fn()) -> usize {
    shuttle::Runner::new(DfsScheduler::new(Some(MOST), false), shuttle::Config::default()).run(test)
}

/// How many executions loom runs, up to `most`, and how many a second.
fn loom(test: fn(), most: usize) -> (usize, f64) {
    let runs = Shared::new(Counter::new(0));
    let counted = runs.clone();
    let mut builder = loom::model::Builder::new();
    builder.max_permutations = Some(most);
    let start = Instant::now();
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        test();
    });
    let count = runs.load(Relaxed);
    (count, count as f64 / start.elapsed().as_secs_f64())
}

fn has_atomics(file: &Path) -> bool {
    std::fs::read_to_string(file).expect("the program").contains("stdatomic.h")
}

/// A program to check, in a directory of its own.
struct Checked {
    directory: tempfile::TempDir,
    /// The argument of `heisen check`: the source to instrument, or the program.
    what: Vec<PathBuf>,
}

impl Checked {
    fn new(file: &Path, instrumented: bool) -> Checked {
        let directory = tempfile::tempdir().expect("a directory");
        if instrumented {
            return Checked { directory, what: vec![file.to_owned()] };
        }
        let program = directory.path().join("program");
        let mut cc = Command::new("cc");
        let built = cc.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(file).status();
        assert!(built.is_ok_and(|status| status.success()), "{cc:?}");
        Checked { directory, what: vec!["--".into(), program] }
    }

    fn check(&self, args: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heisen"));
        command.current_dir(self.directory.path()).args(["check", "--json", "-"]).args(args).args(&self.what);
        let output = command.output().expect("heisen runs");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    fn rate(&self, jobs: usize) -> f64 {
        let (jobs, walks) = (jobs.to_string(), (jobs * WALKS).to_string());
        let json = self.check(&["--jobs", &jobs, "--strategy", "random", "--executions", &walks]);
        assert_eq!(json["executions"].to_string(), walks, "{json:#}");
        json["executions"].as_f64().expect("a number") / json["seconds"].as_f64().expect("a number")
    }
}

/// The highest of each rate. The rates are measured in turns.
fn best<const N: usize>(rates: [&dyn Fn() -> f64; N]) -> [f64; N] {
    let mut best = [0.0; N];
    for _ in 0..ROUNDS {
        for (best, rate) in best.iter_mut().zip(rates) {
            *best = rate().max(*best);
        }
    }
    best
}

fn up_to(count: usize) -> String {
    if count >= MOST { format!("more than {MOST}") } else { count.to_string() }
}

fn main() {
    // `cargo test` runs a bench with this option.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let wanted = std::env::args().nth(1).filter(|arg| !arg.starts_with("--"));
    for (name, with_shuttle, with_loom) in PROGRAMS {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/small").join(name).with_extension("c");
        let plain = Checked::new(&file, false);
        let [by_shuttle, by_loom, one, two] = best([
            &|| shuttle_rate(with_shuttle),
            &|| loom(with_loom, LOOM_WALKS).1,
            &|| plain.rate(1),
            &|| plain.rate(2),
        ]);
        println!("{name}: shuttle {by_shuttle:.0}, loom {by_loom:.0} executions a second");
        let tell = |how: &str, one: f64, two: f64| {
            println!(
                "  {how}: {one:.0} on one worker ({:.2} and {:.1} times), {two:.0} on two ({:.2} times one)",
                one / by_shuttle,
                one / by_loom,
                two / one
            );
        };
        tell("unmodified", one, two);
        let instrumented = has_atomics(&file).then(|| Checked::new(&file, true));
        if let Some(checked) = &instrumented {
            let [one, two] = best([&|| checked.rate(1), &|| checked.rate(2)]);
            tell("instrumented", one, two);
        }
        let (all, _) = loom(with_loom, MOST);
        println!("  to see everything: shuttle {}, loom {}", up_to(shuttle_all(with_shuttle)), up_to(all));
        let checked = instrumented.unwrap_or(plain);
        // The access points that the checks above have learnt must not be reused.
        std::fs::remove_dir_all(checked.directory.path().join(".heisen/points")).ok();
        let [first, again] = [(); 2].map(|()| checked.check(&["--strategy", "dpor"]));
        println!(
            "  dpor: {} executions, {} if it is checked again, {} classes",
            first["executions"], again["executions"], first["classes"]
        );
    }
}
