//! Random programs of the toy machine.

use crate::toy::program::{Do, Expr, Place, Program};
use heisen_trace::ValueOp;

/// A pseudo-random sequence.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ value >> 31) % end as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// What programs may contain. Each is more than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Features {
    /// Reads, writes, branches, assertions, threads.
    Branches,
    /// Also mutexes and attempts.
    Mutexes,
    /// Also arrays, updates, mixed sizes, switches, divisions.
    Memory,
    /// Also inputs.
    Inputs,
    /// Also condition variables.
    Conditions,
    /// Also semaphores.
    Semaphores,
    /// Also read-write locks, locks with a time-out, and attempts to join.
    Locks,
    /// Also barriers and initialisers that run once.
    Barriers,
    /// Also futexes.
    Futexes,
}

/// For a wake: all that wait.
const ALL: usize = 1 << 20;

struct Generator {
    random: Random,
    features: Features,
    /// How many visible instructions may still be added.
    left: usize,
    inputs: usize,
    /// The register that was loaded last in this thread.
    loaded: usize,
    /// Addresses are below this.
    words: usize,
}

/// A random program. Some are of a kind in which locks and signals decide what can happen.
pub fn program(seed: u64, features: Features) -> Program {
    let mut random = Random::new(seed);
    match random.below(6) {
        0 if features == Features::Mutexes || features == Features::Conditions => sections(random, features),
        0..4 if features == Features::Futexes => sleepers(random),
        0..4 if features == Features::Barriers => rounds(random),
        0..4 if features > Features::Conditions => sections(random, features),
        1 | 2 if features == Features::Conditions => waiters(random),
        _ => mixed(random, features),
    }
}

/// A program in which a thread frees the memory that others use.
pub fn program_that_frees(seed: u64, features: Features) -> Program {
    let mut random = Random::new(seed ^ 0xf4ee);
    if random.one_in(4) {
        return counted(random);
    }
    let mut program = program(seed, features);
    for _ in 0..1 + random.below(2) {
        let thread = random.below(program.code.len());
        let code = &mut program.code[thread];
        let replaced = |instruction: &Do| matches!(instruction, Do::Load(..) | Do::Store(..) | Do::Add(..));
        let all: Vec<usize> = (0..code.len()).filter(|&at| replaced(&code[at])).collect();
        if !all.is_empty() {
            code[all[random.below(all.len())]] = Do::Free;
        }
    }
    if random.below(3) > 0 {
        // Otherwise most programs would end with a failing access.
        let main = &mut program.code[0];
        while matches!(main.last(), Some(Do::Load(..) | Do::Assert(..))) {
            main.pop();
        }
    }
    program
}

/// Threads that count how many of them still use the memory. The last one frees it, or the one before.
fn counted(mut random: Random) -> Program {
    const COUNT: Place = Place::Fixed(9);
    let threads = 2 + random.below(2);
    let last = if random.one_in(2) { 1 } else { 2 };
    let mut code = vec![Vec::new()];
    for _ in 0..threads {
        let mut body = Vec::new();
        for _ in 0..random.below(3) {
            let place = Place::Fixed(random.below(2) as u64);
            body.push(match random.below(3) {
                0 => Do::Load(1, place, 1),
                1 => Do::Store(place, 1, Expr::Const(1)),
                _ => Do::Add(1, place, Expr::Const(1)),
            });
        }
        if random.one_in(6) {
            // An update in two steps.
            body.push(Do::Load(0, COUNT, 1));
            body.push(Do::Store(COUNT, 1, Expr::of(ValueOp::Sub, Expr::Reg(0), Expr::Const(1))));
        } else {
            body.push(Do::Add(0, COUNT, Expr::Const(255)));
        }
        let at = body.len() + 2;
        body.push(Do::JumpUnless(Expr::of(ValueOp::Eq, Expr::Reg(0), Expr::Const(last)), at));
        body.push(Do::Free);
        code.push(body);
    }
    code[0] = (1..=threads).map(Do::Create).chain((0..threads).map(Do::Join)).collect();
    Program { code, memory: vec![(9, threads as u8)], ..Program::default() }
}

/// What guards a section: how a thread enters and leaves it.
fn guard(random: &mut Random, features: Features, object: u64) -> (Do, Do) {
    match features {
        Features::Semaphores => {
            let enter = match random.below(6) {
                0 => Do::TryTake(5, object),
                1 => Do::TimedTake(5, object),
                _ => Do::Take(object),
            };
            (enter, Do::Post(object))
        }
        Features::Locks => match random.below(8) {
            0 => (Do::TimedLock(5, object), Do::Unlock(object)),
            1 => (Do::Lock(object), Do::Unlock(object)),
            2 => (Do::TryReadLock(5, object), Do::RwUnlock(object)),
            3 => (Do::TryWriteLock(5, object), Do::RwUnlock(object)),
            4 | 5 => (Do::ReadLock(object), Do::RwUnlock(object)),
            _ => (Do::WriteLock(object), Do::RwUnlock(object)),
        },
        _ => match random.below(4) {
            0 => (Do::TryLock(5, object), Do::Unlock(object)),
            _ => (Do::Lock(object), Do::Unlock(object)),
        },
    }
}

/// Whether an instruction notes in register 5 whether it succeeded.
fn may_fail(enter: &Do) -> bool {
    use Do::{TimedLock, TimedTake, TryLock, TryReadLock, TryTake, TryWriteLock};
    matches!(
        enter,
        TryLock(..) | TimedLock(..) | TryReadLock(..) | TryWriteLock(..) | TryTake(..) | TimedTake(..)
    )
}

/// Two threads with sections of mostly one mutex or the like, in which what is read twice or written and read back mostly does not
/// change.
fn sections(mut random: Random, features: Features) -> Program {
    let (tokens, parties) = (vec![[1, 1, 1, 2, 0][random.below(5)], 1], vec![]);
    let mut thread = || {
        let mut code = Vec::new();
        for _ in 0..1 + random.below(2) {
            let mutex = u64::from(random.one_in(5));
            let (x, one) = (Place::Fixed(random.below(2) as u64), Expr::Const(1));
            let equal = |a: usize, b: Expr| Expr::of(ValueOp::Eq, Expr::Reg(a), b);
            let (enter, leave) = guard(&mut random, features, mutex);
            let attempt = may_fail(&enter).then_some(code.len() + 1);
            code.push(enter);
            if attempt.is_some() {
                code.push(Do::Jump(0));
            }
            // A semaphore may be posted by another thread, or twice, or not at all.
            let posts = if features == Features::Semaphores { [0, 1, 1, 1, 2][random.below(5)] } else { 1 };
            let unlocks_early = random.one_in(4);
            code.push(Do::Load(0, x.clone(), 1));
            if unlocks_early {
                code.extend(std::iter::repeat_n(leave.clone(), posts));
            }
            let more = Expr::of(ValueOp::Add, Expr::Reg(0), one);
            match random.below(3) {
                0 => {
                    code.push(Do::Load(1, x, 1));
                    code.push(Do::Assert(equal(1, Expr::Reg(0))));
                }
                1 => {
                    code.push(Do::Store(x.clone(), 1, more.clone()));
                    code.push(Do::Load(1, x, 1));
                    code.push(Do::Assert(equal(1, more)));
                }
                _ => code.push(Do::Store(x, 1, more)),
            }
            if !unlocks_early {
                code.extend(std::iter::repeat_n(leave, posts));
            }
            if let Some(at) = attempt {
                code[at] = Do::JumpUnless(Expr::Reg(5), code.len());
            }
        }
        code
    };
    let code = [thread(), thread()];
    let [first, second] = code;
    let count = 1 + random.below(4) as u8;
    let bound = Expr::of(ValueOp::Ule, Expr::Const(count), Expr::Reg(0));
    let main = vec![
        Do::Create(1),
        Do::Create(2),
        Do::Join(0),
        Do::Join(1),
        Do::Load(0, Place::Fixed(0), 1),
        Do::Assert(bound),
    ];
    Program { code: vec![main, first, second], tokens, parties, ..Program::default() }
}

/// Threads that meet at a barrier several times, and in between write and look at what others wrote.
fn rounds(mut random: Random) -> Program {
    let threads = 2 + random.below(2);
    // Mostly all of them meet; otherwise some round may never end.
    let parties = vec![if random.one_in(4) { 2 } else { threads as u64 }];
    let mut code = vec![Vec::new()];
    for thread in 0..threads {
        let mut body = Vec::new();
        let at = |address: usize| Place::Fixed(address as u64);
        for _ in 0..1 + random.below(2) {
            if random.one_in(3) {
                let end = body.len() + 3;
                let more = Expr::of(ValueOp::Add, Expr::Reg(0), Expr::Const(1));
                let initialiser = [Do::Once(0, end), Do::Store(at(2), 1, more), Do::OnceEnd(0)];
                body.extend(initialiser);
            }
            body.push(Do::Store(at(thread % 2), 1, Expr::Const(1 + random.below(2) as u8)));
            let register = random.one_in(3).then_some(5);
            body.push(Do::Barrier(register, 0));
            body.push(Do::Load(0, at(random.below(3)), 1));
            match random.below(3) {
                0 if register.is_some() => body.push(Do::Assert(Expr::Reg(5))),
                1 => body.push(Do::Assert(Expr::Reg(0))),
                _ => {
                    // Whether it comes to the next round depends on what it saw.
                    let enough = Expr::of(ValueOp::Ule, Expr::Const(1 + random.below(2) as u8), Expr::Reg(0));
                    body.push(Do::JumpUnless(enough, 1000));
                }
            }
        }
        let end = body.len();
        for one in &mut body {
            if let Do::JumpUnless(_, to @ 1000) = one {
                *to = end;
            }
        }
        code.push(body);
    }
    code[0] = (1..=threads).map(Do::Create).chain((0..threads).map(Do::Join)).collect();
    Program { code, parties, ..Program::default() }
}

/// Two threads that wait on a condition variable, and one that signals; each thread writes down that it went on.
fn waiters(mut random: Random) -> Program {
    let mut code = vec![Vec::new()];
    for _ in 0..2 {
        let (asks, times_out) = (random.one_in(2), random.one_in(4));
        let mut body = vec![Do::Lock(0)];
        if asks {
            // Only waits if nothing was announced.
            body.extend([
                Do::Load(0, Place::Fixed(1), 1),
                Do::JumpUnless(Expr::of(ValueOp::Eq, Expr::Reg(0), Expr::Const(0)), 4),
            ]);
        }
        body.push(if times_out { Do::TimedWait(3, 0, 0) } else { Do::Wait(0, 0) });
        body.push(Do::Add(1, Place::Fixed(0), Expr::Const(1)));
        if random.one_in(2) {
            body.push(Do::Assert(Expr::of(ValueOp::Eq, Expr::Reg(1), Expr::Const(random.below(2) as u8))));
        }
        body.push(Do::Unlock(0));
        code.push(body);
    }
    let mut signaller = Vec::new();
    let locks = random.one_in(2);
    for _ in 0..1 + random.below(2) {
        if locks {
            signaller.push(Do::Lock(0));
        }
        if random.one_in(2) {
            signaller.push(Do::Store(Place::Fixed(1), 1, Expr::Const(1)));
        }
        signaller.push(if random.one_in(4) { Do::Broadcast(0) } else { Do::Signal(0) });
        if locks {
            signaller.push(Do::Unlock(0));
        }
    }
    if random.one_in(2) {
        // How many have gone on already?
        signaller
            .extend([Do::Load(0, Place::Fixed(0), 1), Do::JumpUnless(Expr::Reg(0), signaller.len() + 2)]);
    }
    code.push(signaller);
    let joined = 1 + random.below(3);
    let mut main = vec![Do::Create(1), Do::Create(2), Do::Create(3)];
    main.extend((0..joined).map(Do::Join));
    main.push(Do::Load(0, Place::Fixed(0), 1));
    main.push(Do::Assert(Expr::of(ValueOp::Ule, Expr::Reg(0), Expr::Const(1 + random.below(2) as u8))));
    code[0] = main;
    Program { code, ..Program::default() }
}

/// Two or three threads that wait on a futex, and one or two that wake.
fn sleepers(mut random: Random) -> Program {
    const WORD: u64 = 1;
    let number = |random: &mut Random, below| Expr::Const(random.below(below) as u8);
    let mut code = vec![Vec::new()];
    for _ in 0..2 + random.below(2) {
        let mut body = Vec::new();
        let mut expected = Expr::Const(0);
        match random.below(3) {
            // As condition variables do it: whatever the word was before.
            0 => {
                body.push(Do::Load(0, Place::Fixed(WORD), 1));
                expected = Expr::Reg(0);
            }
            // As locks do it: an announcement first.
            1 => body.push(Do::Add(0, Place::Fixed(2), Expr::Const(1))),
            _ => {}
        }
        body.push(Do::FutexWait(1, WORD, expected, random.one_in(4)));
        if random.one_in(3) {
            body.push(Do::Assert(Expr::of(ValueOp::Ult, Expr::Reg(1), number(&mut random, 4))));
        }
        body.push(Do::Add(2, Place::Fixed(0), Expr::Const(1)));
        if random.one_in(2) {
            body.push(Do::Assert(Expr::of(ValueOp::Ule, Expr::Reg(2), number(&mut random, 3))));
        }
        code.push(body);
    }
    for _ in 0..1 + random.below(2) {
        let mut body = Vec::new();
        match random.below(3) {
            0 => body.push(Do::Store(Place::Fixed(WORD), 1, Expr::Const(1))),
            1 => body.push(Do::Load(3, Place::Fixed(2), 1)),
            _ => {}
        }
        for _ in 0..1 + random.one_in(3) as usize {
            body.push(Do::FutexWake(1, WORD, [1, 1, 2, ALL][random.below(4)]));
            match random.below(4) {
                0 => body.push(Do::Assert(Expr::of(ValueOp::Ule, Expr::Reg(1), number(&mut random, 3)))),
                1 => body.push(Do::Store(Place::Fixed(3), 1, Expr::Reg(1))),
                _ => {}
            }
        }
        code.push(body);
    }
    let mut main: Vec<Do> = (1..code.len()).map(Do::Create).collect();
    main.extend((0..random.below(code.len())).map(Do::Join));
    let (asks, bound) = (random.one_in(2), number(&mut random, 3));
    main.push(Do::Load(0, Place::Fixed(if asks { 3 } else { 0 }), 1));
    main.push(Do::Assert(Expr::of(ValueOp::Ule, Expr::Reg(0), bound)));
    code[0] = main;
    Program { code, ..Program::default() }
}

fn mixed(mut random: Random, features: Features) -> Program {
    let threads = [1, 2, 2, 2, 3][random.below(5)];
    let left = 6 + random.below(5);
    let words = 1 + random.below(3);
    let mut g = Generator { random, features, left, inputs: 2, loaded: 0, words };
    let tokens = (0..2).map(|_| g.random.below(3) as u64).collect();
    let parties = vec![2, 2 + g.random.below(2) as u64];
    let memory = (0..4).map(|at| (at, g.random.below(3) as u8)).filter(|(_, value)| *value > 0).collect();
    let mut code = vec![Vec::new()];
    for _ in 0..threads {
        let mut body = Vec::new();
        let most = 2 + g.random.below(4);
        g.loaded = 0;
        if g.random.one_in(2) {
            // Most threads begin with a value that depends on others.
            let place = g.place();
            body.push(Do::Load(0, place, 1));
        }
        g.block(&mut body, most, 2);
        code.push(body);
    }
    // One of the threads may create the last one, instead of the main thread.
    let nested = threads > 1 && g.random.one_in(6);
    let created = if nested { threads - 1 } else { threads };
    let mut main = Vec::new();
    for thread in 1..=created {
        main.push(Do::Create(thread));
        if g.random.one_in(4) {
            g.block(&mut main, 1, 1);
        }
    }
    if nested {
        let mut at = 0;
        if g.random.one_in(2) {
            // Only on some paths.
            code[1].push(Do::Load(0, Place::Fixed(0), 1));
            at = code[1].len() + 2;
            code[1].push(Do::JumpUnless(Expr::Reg(0), at));
        }
        code[1].push(Do::Create(threads));
        let _ = at;
    }
    if features == Features::Locks && g.random.one_in(3) {
        // The value of what the thread has written says whether it has ended.
        let at = main.len();
        main.extend([Do::TryJoin(5, g.random.below(created)), Do::JumpUnless(Expr::Reg(5), at + 3)]);
        main.push(Do::Load(0, Place::Fixed(0), 1));
    }
    let joined = if g.random.one_in(4) { g.random.below(created + 1) } else { created };
    main.extend((0..joined).map(Do::Join));
    if g.random.below(3) > 0 {
        let address = g.random.below(g.words) as u64;
        main.push(Do::Load(0, Place::Fixed(address), 1));
        g.loaded = 0;
        let assertion = g.assertion();
        main.push(Do::Assert(assertion));
    }
    code[0] = main;
    Program { code, memory, tokens, parties }
}

impl Generator {
    fn may(&self, feature: Features) -> bool {
        self.features >= feature
    }

    /// A register to read: mostly the one that was loaded last.
    fn register(&mut self) -> usize {
        if self.random.one_in(3) { self.random.below(3) } else { self.loaded }
    }

    /// A register to write.
    fn target(&mut self) -> usize {
        self.loaded = self.random.below(3);
        self.loaded
    }

    /// A test that holds more often than not.
    fn assertion(&mut self) -> Expr {
        let register = Expr::Reg(self.register());
        let number = Expr::Const(1 + self.random.below(7) as u8);
        match self.random.below(4) {
            0 => Expr::of(ValueOp::Ule, register, number),
            1 => Expr::of(
                ValueOp::Ule,
                register,
                Expr::of(ValueOp::Add, number, Expr::Reg(self.random.below(3))),
            ),
            _ => Expr::of(ValueOp::Xor, register, number),
        }
    }

    fn value(&mut self) -> Expr {
        let ops = [ValueOp::Add, ValueOp::Sub, ValueOp::Mul, ValueOp::Xor, ValueOp::And];
        match self.random.below(8) {
            0 | 1 => Expr::Const(self.random.below(4) as u8),
            2 | 3 => Expr::Reg(self.register()),
            4 if self.may(Features::Memory) && self.random.one_in(4) => {
                let divide = [ValueOp::UDiv, ValueOp::SRem][self.random.below(2)];
                Expr::of(divide, Expr::Const(6), Expr::Reg(self.register()))
            }
            _ => {
                let op = ops[self.random.below(ops.len())];
                let (a, b) = (Expr::Reg(self.register()), Expr::Const(self.random.below(4) as u8));
                if self.random.one_in(3) {
                    Expr::of(op, a, Expr::Reg(self.register()))
                } else {
                    Expr::of(op, a, b)
                }
            }
        }
    }

    fn test(&mut self) -> Expr {
        let ops = [ValueOp::Eq, ValueOp::Ult, ValueOp::Ule, ValueOp::Slt, ValueOp::Xor];
        let op = ops[self.random.below(ops.len())];
        let (a, b) = (Expr::Reg(self.register()), Expr::Const(self.random.below(4) as u8));
        match self.random.below(3) {
            0 => Expr::of(op, b, a),
            1 => Expr::of(op, Expr::Reg(self.register()), a),
            _ => Expr::of(op, a, b),
        }
    }

    fn place(&mut self) -> Place {
        let address = self.random.below(self.words) as u64;
        if self.may(Features::Memory) && self.random.one_in(6) {
            return Place::Indexed(address / 2, Expr::Reg(self.register()), [1, 3][self.random.below(2)]);
        }
        Place::Fixed(address)
    }

    fn size(&mut self) -> u8 {
        if self.may(Features::Memory) && self.random.one_in(6) { 2 } else { 1 }
    }

    /// Adds some instructions.
    fn block(&mut self, code: &mut Vec<Do>, most: usize, depth: usize) {
        for _ in 0..most {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.instruction(code, depth);
        }
    }

    fn instruction(&mut self, code: &mut Vec<Do>, depth: usize) {
        if self.features > Features::Conditions && depth > 0 && self.random.one_in(3) {
            return self.guarded(code, depth);
        }
        match self.random.below(16) {
            0 | 3 | 15 if self.may(Features::Futexes) => {
                let word = self.random.below(self.words) as u64;
                let register = self.target();
                if self.random.one_in(2) {
                    let (expected, timed) = (self.value(), self.random.one_in(3));
                    code.push(Do::FutexWait(register, word, expected, timed));
                } else {
                    let most = [1, 1, 2, ALL][self.random.below(4)];
                    code.push(Do::FutexWake(register, word, most));
                }
            }
            0..=2 => {
                let (place, size) = (self.place(), self.size());
                let register = self.target();
                code.push(Do::Load(register, place, size));
                if self.random.one_in(2) {
                    let test = self.assertion();
                    code.push(Do::Assert(test));
                }
            }
            3..=5 => {
                let (place, size, value) = (self.place(), self.size(), self.value());
                code.push(Do::Store(place, size, value));
            }
            6..=9 if depth > 0 => {
                let place = self.place();
                let register = self.target();
                code.push(Do::Load(register, place, 1));
                let test = self.test();
                self.when(code, test, depth);
            }
            10 | 11 if self.may(Features::Mutexes) && depth > 0 => {
                let mutex = self.random.below(2) as u64;
                if self.random.one_in(3) {
                    let register = 3 + self.random.below(3);
                    code.push(Do::TryLock(register, mutex));
                    let at = code.len();
                    code.push(Do::Jump(0));
                    self.block(code, 1, depth - 1);
                    code.push(Do::Unlock(mutex));
                    code[at] = Do::JumpUnless(Expr::Reg(register), code.len());
                } else {
                    code.push(Do::Lock(mutex));
                    self.left += 1;
                    self.block(code, 2, depth);
                    code.push(Do::Unlock(mutex));
                }
            }
            12 if self.may(Features::Memory) => {
                let (place, value) = (self.place(), self.value());
                let register = self.target();
                if self.random.one_in(2) {
                    code.push(Do::Add(register, place, value));
                } else {
                    let new = self.value();
                    code.push(Do::Cas(register, place, value, new));
                }
            }
            13 if self.may(Features::Memory) && self.random.one_in(2) => {
                let place = self.place();
                let register = self.target();
                code.push(Do::Load(register, place, 1));
                self.switch(code, register);
            }
            14 if self.may(Features::Inputs) && self.inputs > 0 => {
                self.inputs -= 1;
                let register = self.target();
                let bits = 1 + self.random.below(2) as u32;
                code.push(Do::Input(register, bits));
                if self.random.one_in(3) {
                    let test = self.test();
                    code.push(Do::Assume(test));
                }
                let (test, place) = (self.test(), self.place());
                match self.random.below(3) {
                    0 => code.push(Do::Store(place, 1, Expr::Reg(register))),
                    _ if depth > 0 => self.when(code, test, depth),
                    _ => code.push(Do::Assert(test)),
                }
            }
            15 if self.may(Features::Conditions) && depth > 0 => {
                let condition = self.random.below(2).min(self.random.below(2)) as u64;
                match self.random.below(4) {
                    0 | 1 => {
                        code.push(Do::Lock(0));
                        if self.random.one_in(3) {
                            code.push(Do::TimedWait(3, condition, 0));
                        } else {
                            code.push(Do::Wait(condition, 0));
                        }
                        self.block(code, 1, 0);
                        code.push(Do::Unlock(0));
                    }
                    2 => code.push(Do::Signal(condition)),
                    _ => code.push(Do::Broadcast(condition)),
                }
            }
            _ => {
                // An increment that is not atomic.
                let (from, place) = (self.place(), self.place());
                let register = self.target();
                code.push(Do::Load(register, from, 1));
                let one = Expr::Const(1 + self.random.below(2) as u8);
                code.push(Do::Store(place, 1, Expr::of(ValueOp::Add, Expr::Reg(register), one)));
            }
        }
    }

    /// Adds instructions about a semaphore, or a section of a lock.
    fn guarded(&mut self, code: &mut Vec<Do>, depth: usize) {
        let object = self.random.below(2) as u64;
        if self.features == Features::Barriers {
            if self.random.one_in(2) {
                let register = self.random.one_in(2).then_some(self.target());
                return code.push(Do::Barrier(register, object));
            }
            let at = code.len();
            code.push(Do::Jump(0));
            self.block(code, 2, depth - 1);
            code.push(Do::OnceEnd(object));
            code[at] = Do::Once(object, code.len());
            return;
        }
        let (enter, leave) = guard(&mut self.random, self.features, object);
        if self.features == Features::Semaphores && self.random.one_in(2) {
            return code.push(leave);
        }
        let fails = may_fail(&enter);
        code.push(enter);
        let at = code.len();
        if fails {
            code.push(Do::Jump(0));
        }
        self.block(code, 1, depth - 1);
        if self.features == Features::Locks || self.random.one_in(2) {
            code.push(leave);
        }
        if fails {
            code[at] = Do::JumpUnless(Expr::Reg(5), code.len());
        }
    }

    fn when(&mut self, code: &mut Vec<Do>, test: Expr, depth: usize) {
        let at = code.len();
        code.push(Do::Jump(0));
        self.block(code, 2, depth - 1);
        if self.random.one_in(3) {
            let otherwise = code.len();
            code.push(Do::Jump(0));
            code[at] = Do::JumpUnless(test, code.len());
            self.block(code, 1, depth - 1);
            code[otherwise] = Do::Jump(code.len());
        } else {
            code[at] = Do::JumpUnless(test, code.len());
        }
    }

    fn switch(&mut self, code: &mut Vec<Do>, register: usize) {
        code.push(Do::Switch(Expr::Reg(register)));
        let table = code.len();
        code.extend([Do::Jump(table + 4), Do::Jump(table + 4), Do::Jump(0), Do::Jump(0)]);
        self.block(code, 1, 0);
        let value = self.value();
        code.push(Do::Store(Place::Fixed(3), 1, value));
        code[table + 2] = Do::Jump(code.len());
        self.block(code, 1, 0);
        code[table + 3] = Do::Jump(code.len());
    }
}
