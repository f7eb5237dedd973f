//! Generates random C programs, each from its seed alone. They use threads that are joined or not, all kinds
//! of locks, atomics, timed waits, cancellation, signals and processes, and end in any thread. `world.h`
//! holds their shared code.

/// A random number generator: SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// What `main` does with a thread that it has created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Joined,
    Detached,
    Left,
    Cancelled,
}

/// The state of the generator of one program, which all its parts share.
struct Generator {
    seed: u64,
    numbers: Numbers,
    /// Whether the program registers functions that run on exit.
    handlers: bool,
    /// Whether `main` and the first thread meet at the barrier.
    barrier: bool,
    /// Whether `main` may cancel a thread.
    cancels: bool,
    text: String,
    /// The estimated number of steps of each thread. `main` is the last.
    steps: Vec<u64>,
}

/// A program: the text of its functions, and its entry in the table of programs.
pub struct Program {
    pub seed: u64,
    pub text: String,
    entry: String,
}

/// The approximate largest number of schedules of a program. The test explores all of them.
const SCHEDULES: u64 = 150;

/// The program of a seed: the first one drawn from it that has few enough schedules.
pub fn program(seed: u64) -> Program {
    let mut numbers = Numbers(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    loop {
        let handlers = numbers.one_in(4);
        let cancels = numbers.one_in(6);
        let barrier = !cancels && numbers.one_in(12);
        let text = String::new();
        let mut generator = Generator { seed, numbers, handlers, barrier, cancels, text, steps: vec![] };
        generator.write();
        if schedules(&generator.steps) <= SCHEDULES {
            let entry = format!("{{ main_{seed}, {} }}", u8::from(handlers));
            return Program { seed, text: generator.text, entry };
        }
        numbers = generator.numbers;
    }
}

/// The number of interleavings of the threads' steps. If it exceeds `SCHEDULES`, the result is some larger
/// number.
fn schedules(steps: &[u64]) -> u64 {
    let (mut ways, mut all) = (1, 0);
    for &own in steps {
        // Each intermediate quotient is a binomial coefficient, so the division is exact.
        for step in 1..=own {
            all += 1;
            ways = ways * all / step;
            if ways > SCHEDULES {
                return ways;
            }
        }
    }
    ways
}

/// The text of a C file with these programs.
pub fn file(programs: &[Program]) -> String {
    let texts: String = programs.iter().map(|program| program.text.as_str()).collect();
    let entries: Vec<&str> = programs.iter().map(|program| program.entry.as_str()).collect();
    format!(
        "#include \"world.h\"\n{texts}\nstatic const struct program programs[] = {{ {} }};\n\
         int main(int argc, char **argv) {{ return start(argc, argv, programs); }}\n",
        entries.join(", ")
    )
}

/// A part of a program's text, and the number of its steps.
type Part = (String, u64);

fn part(text: impl Into<String>, steps: u64) -> Part {
    (text.into(), steps)
}

impl Generator {
    fn write(&mut self) {
        let seed = self.seed;
        let count = [1, 1, 1, 2, 2, 3][self.numbers.below(6) as usize];
        for thread in 0..count {
            let length = 1 + self.numbers.below(3);
            let (mut body, mut steps) = self.body(length, thread == 0 && self.barrier, thread);
            if self.numbers.one_in(4) {
                let (end, more) = self.end(true, thread);
                body += &end;
                steps += more;
            }
            self.text += &format!(
                "static void *thread_{seed}_{thread}(void *unused) {{\n unsigned acc = 0;\n{body} jitter();\n \
                 PUBLISH({thread}, acc);\n return unused;\n}}\n"
            );
            // Plus two steps: the thread's start and its `PUBLISH`.
            self.steps.push(steps + 2);
        }
        self.write_main(count);
    }

    fn write_main(&mut self, count: u64) {
        let seed = self.seed;
        let mut text = String::new();
        let mut fates = Vec::new();
        for thread in 0..count {
            text += &format!(" pthread_create(&threads[{thread}], 0, thread_{seed}_{thread}, 0);\n");
            fates.push(match self.numbers.below(8) {
                0 | 1 => Fate::Joined,
                2 | 3 => Fate::Detached,
                _ if self.cancels => Fate::Cancelled,
                _ => Fate::Left,
            });
        }
        let length = self.numbers.below(3);
        let (body, mut steps) = self.body(length, self.barrier, 3);
        text += &body;
        for (thread, fate) in fates.iter().enumerate() {
            text += " jitter();\n";
            let (more, own) = match fate {
                Fate::Joined => part(format!(" pthread_join(threads[{thread}], 0);\n"), 0),
                Fate::Detached => part(format!(" pthread_detach(threads[{thread}]);\n"), 0),
                Fate::Left if self.numbers.one_in(3) => {
                    part(format!(" pthread_kill(threads[{thread}], SIGUSR1);\n"), 2)
                }
                Fate::Left => part("", 0),
                Fate::Cancelled => part(
                    format!(
                        " pthread_cancel(threads[{thread}]);\n jitter();\n {{ void *result; \
                         pthread_join(threads[{thread}], &result); acc += result == PTHREAD_CANCELED; }}\n"
                    ),
                    1,
                ),
            };
            text += &more;
            steps += own;
        }
        text += " PUBLISH(3, acc);\n";
        let (end, own) = self.end(false, 3);
        let waits = fates.iter().all(|&fate| fate == Fate::Joined || fate == Fate::Cancelled);
        self.steps.push(if waits { steps } else { steps + 1 + own });
        self.text += &format!("static void main_{seed}(void) {{\n unsigned acc = 0;\n{text}{end}}}\n");
    }

    /// `length` random operations of a thread. If `barrier` is set, a wait at the barrier is among them.
    fn body(&mut self, length: u64, barrier: bool, thread: u64) -> Part {
        let meets = if barrier { self.numbers.below(length + 1) } else { u64::MAX };
        let (mut body, mut steps) = part("", 0);
        for at in 0..=length {
            if at == meets {
                body += " jitter();\n pthread_barrier_wait(&barrier);\n";
                steps += 1;
            }
            if at < length {
                let (text, own) = self.operation(thread);
                body += " jitter();\n";
                body += &text;
                steps += own;
            }
        }
        (body, steps)
    }

    /// A critical section from the code that takes the lock, runs inside it and releases it.
    fn section(&mut self, take: &str, inside: &str, release: &str) -> Part {
        let (variable, number) = (self.numbers.below(3), 1 + self.numbers.below(3));
        let (more, steps) = match self.numbers.below(4) {
            0 => part(format!(" ADD({variable}, {number});\n"), 1),
            1 => part(format!(" acc = acc * 3 + VALUE({variable});\n"), 1),
            2 => part(" jitter();\n", 0),
            _ => part("", 0),
        };
        let text = match take.strip_prefix("try ") {
            Some(attempt) => {
                format!(" if ({attempt} == 0) {{\n {inside}\n{more} {release}\n acc++;\n }}\n")
            }
            None => format!(" {take};\n {inside}\n{more} {release}\n"),
        };
        (text, steps + 2)
    }

    /// One random operation. Two kinds are left out: whether a thread is the serial one at a barrier, because
    /// POSIX does not specify it; and timed read-write locks and joins, because dpor treats them as untimed
    /// and misses their time-outs.
    fn operation(&mut self, thread: u64) -> Part {
        let (variable, number) = (self.numbers.below(3), 1 + self.numbers.below(3));
        let which = self.numbers.below(2);
        let unlock = format!("pthread_mutex_unlock(&mutex[{which}]);");
        let count = format!("acc += locked[{which}]++;");
        let (rw_unlock, spin_unlock) = ("pthread_rwlock_unlock(&rwlock);", "pthread_spin_unlock(&spin);");
        let (reads, writes) = ("acc += read_locked;", "acc += read_locked++;");
        match self.numbers.below(27) {
            0 | 1 => part(format!(" ADD({variable}, {number});\n"), 1),
            2 | 3 => part(format!(" acc = acc * 3 + VALUE({variable});\n"), 1),
            4 => part(
                format!(
                    " {{ unsigned long seen = atomic_load(&world); jitter();\n acc += \
                     atomic_compare_exchange_strong(&world, &seen, seen + ({number}ul << AT({variable}))); }}\n"
                ),
                2,
            ),
            5 => self.section(&format!("pthread_mutex_lock(&mutex[{which}])"), &count, &unlock),
            6 => self.section(&format!("try pthread_mutex_trylock(&mutex[{which}])"), &count, &unlock),
            7 => {
                let take = format!("try pthread_mutex_timedlock(&mutex[{which}], &moment)");
                let (text, steps) = self.section(&take, &count, &unlock);
                part(format!(" {{ struct timespec moment = soon();\n{text} }}\n"), steps)
            }
            8 => self.section("pthread_rwlock_rdlock(&rwlock)", reads, rw_unlock),
            9 => self.section("pthread_rwlock_wrlock(&rwlock)", writes, rw_unlock),
            10 => self.section("try pthread_rwlock_tryrdlock(&rwlock)", reads, rw_unlock),
            11 => self.section("try pthread_rwlock_trywrlock(&rwlock)", writes, rw_unlock),
            12 => self.section("pthread_spin_lock(&spin)", "acc += spin_locked++;", spin_unlock),
            13 => self.section("try pthread_spin_trylock(&spin)", "acc += spin_locked++;", spin_unlock),
            14 | 15 => part(" sem_post(&sem);\n", 1),
            16 => part(" acc = acc * 2 + (sem_trywait(&sem) == 0);\n", 1),
            17 => part(
                " { struct timespec moment = soon(); acc = acc * 2 + (sem_timedwait(&sem, &moment) == 0); }\n",
                1,
            ),
            18 => part(
                " { struct timespec moment = soon();\n pthread_mutex_lock(&mutex[0]);\n \
                 pthread_cleanup_push(unlock_mutex, &mutex[0]);\n \
                 if (!flag) acc += 1 + (pthread_cond_timedwait(&cond, &mutex[0], &moment) == 0);\n \
                 acc += 4 * flag;\n pthread_cleanup_pop(1); }\n",
                4,
            ),
            19 => {
                let wake = if which == 0 { "signal" } else { "broadcast" };
                let text = format!(
                    " pthread_mutex_lock(&mutex[0]);\n flag = 1;\n pthread_cond_{wake}(&cond);\n \
                     pthread_mutex_unlock(&mutex[0]);\n"
                );
                part(text, 3)
            }
            20 => part(" pthread_once(&once, init_once);\n", 2),
            21 if self.cancels && thread != 3 => part(" pthread_testcancel();\n", 1),
            21 => part(" sched_yield();\n", 1),
            22 => part(" usleep(100);\n", 1),
            23 => part(" raise(SIGUSR1);\n", 2),
            24 => match which {
                0 => part(" kill(getpid(), SIGUSR1);\n", 2),
                _ => part(" pthread_kill(main_thread, SIGUSR1);\n", 2),
            },
            25 => part(format!(" acc += forked({number});\n"), 2),
            _ => {
                let (end, steps) = self.end(true, thread);
                part(format!(" if (VALUE({variable}) == {number}) {{\n{end} }}\n"), 1 + steps)
            }
        }
    }

    /// The end of the process or of the thread. `in_thread` is false in `main`.
    fn end(&mut self, in_thread: bool, thread: u64) -> Part {
        let number = 1 + self.numbers.below(9);
        let tell = |how: &str| format!(" number = {number};\n jitter();\n tell(\"{how}\");\n");
        let (own, steps) = match self.handlers {
            true => part(format!(" number = {number};\n jitter();\n"), 3),
            false => part(tell("exit"), 2),
        };
        match self.numbers.below(12) {
            0..=4 => part(format!("{own} exit(0);\n"), steps),
            5 | 6 => part(format!("{} _exit(0);\n", tell("_exit")), 2),
            7 => part(format!("{own} quick_exit(0);\n"), steps),
            8 if self.numbers.one_in(2) => part(format!("{} abort();\n", tell("abort")), 2),
            // The process ends with its last thread. The exit handlers then print the outcome.
            9 | 10 if !in_thread && self.handlers => part(" pthread_exit(0);\n", 1),
            // A thread that the other one expects at the barrier must not end before it gets there.
            9.. if in_thread && !self.barrier => {
                part(format!(" PUBLISH({thread}, acc + 32);\n pthread_exit(0);\n"), 1)
            }
            _ => part(format!("{own} exit(0);\n"), steps),
        }
    }
}
