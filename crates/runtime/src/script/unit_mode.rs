//! Unit mode: a script holds the threads of one program at the events that it mentions.
//!
//! CONCURRIT (Elmas, Burnim, Necula, Sen, PLDI'13), section 3 and figures 4 and 5: a thread that comes to an
//! event stops before it; `select` waits for an event of some threads, `release` lets some go on. The engine
//! runs the script. The script's command is in the wire ([`heisen_wire::script`]), as a set of threads and a
//! predicate. So events that do not satisfy the predicate pass without a question to the script.
//!
//! A held thread is barred, so it is not a candidate for the next step. While a script is active the alarm is
//! always due, so other executions pay nothing for scripts. The scheduler knows what every thread waits for,
//! so it notices at once if no thread can go on; CONCURRIT waits for a second. A thread that was never
//! selected is unknown to the script, which could never release it. So such a thread stops only at events
//! that the script waits for.

use crate::platform::baton::Flag;
use crate::platform::{allocation, sys};
use crate::sched::access_mode::{self, mode};
use crate::sched::alarm::set_alarm;
use crate::sched::hooks::HOOKS;
use crate::sched::script_state::{has, held, is_on, set_on, set_promised, waits_for_new};
use crate::sched::{self, Reason, SCHED, me, thread};
use crate::sched::{dependence, faults, pause};
use crate::script::system_mode;
use crate::wire_log;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use heisen_trace::Op;
use heisen_wire::patch::{ENTRY, LINE, RETURN};
use heisen_wire::script::{
    Event as WireEvent, MAX_NAMED, MAX_SCRIPTED, Predicate, Script, answer, code, command, kind, turn,
};

/// The largest number of activations of named functions that are recorded for a thread.
const MAX_FRAMES: usize = 64;

/// The functions named by the script that a thread is in.
struct Frames {
    /// Whether the thread has stopped at an event. What it does meanwhile is not an event.
    stopped: Flag,
    /// The address of the function that the thread has just entered.
    entered: AtomicUsize,
    count: AtomicUsize,
    of: [Frame; MAX_FRAMES],
}

/// An activation of a named function: the function's number, and the stack pointer at its entry.
struct Frame {
    function: AtomicUsize,
    sp: AtomicUsize,
}

impl Frames {
    /// The present activations.
    fn now(&self) -> &[Frame] {
        &self.of[..self.count.load(Relaxed).min(MAX_FRAMES)]
    }

    /// The thread enters a function.
    fn enter(&self, function: usize, sp: usize) {
        // Deeper activations were left by a `longjmp` or an exception.
        let count =
            self.now().iter().rposition(|frame| frame.sp.load(Relaxed) > sp).map_or(0, |last| last + 1);
        if let Some(frame) = self.of.get(count) {
            frame.function.store(function, Relaxed);
            frame.sp.store(sp, Relaxed);
            self.count.store(count + 1, Relaxed);
        }
    }

    /// The thread leaves a function, and the functions that it has called.
    fn leave(&self, function: usize) {
        if let Some(found) = self.now().iter().rposition(|frame| frame.function.load(Relaxed) == function) {
            self.count.store(found, Relaxed);
        }
    }
}

/// All fields are atomic, because in system mode threads run in parallel. Threads with numbers beyond the
/// table share entries.
struct State {
    frames: [Frames; MAX_SCRIPTED],
}

static STATE: State = State {
    frames: [const {
        Frames {
            stopped: Flag::new(false),
            entered: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            of: [const { Frame { function: AtomicUsize::new(0), sp: AtomicUsize::new(0) } }; MAX_FRAMES],
        }
    }; MAX_SCRIPTED],
};

/// An event of the running thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event {
    pub kind: u8,
    pub size: usize,
    pub address: usize,
    pub value: u64,
    pub number: u64,
    pub args: [u64; 2],
    pub returned: u64,
    pub caller: usize,
    pub pc: usize,
    pub op: u8,
}

fn script() -> &'static Script {
    &wire_log::wire().script
}

/// Lets the scheduler call this room.
pub fn plug_in() {
    HOOKS.script_step.set(stepped);
    HOOKS.script_stopped.set(is_stopped);
    HOOKS.script_nobody.set(nobody);
    HOOKS.script_end.set(ended);
}

/// Begins an execution under a script: asks the script for its first command.
pub fn begin() {
    set_on(true);
    ask(answer::BEGINS);
}

fn holds(number: usize) -> bool {
    held(number / 64) >> (number % 64) & 1 != 0
}

/// Whether memory accesses are events.
fn sees_memory() -> bool {
    is_on() && script().kinds.load(Relaxed) & (1 << kind::READ | 1 << kind::WRITE | 1 << kind::CALL) != 0
}

/// Called after each command: sets which accesses of instrumented code the runtime examines. The checked heap
/// examines accesses, too.
fn see_memory() {
    if wire_log::wire().instrumented.load(Relaxed) != 0 {
        let seen = if sees_memory() { mode::SCRIPT } else { 0 };
        let heap = if allocation::has(allocation::HEAP) && SCHED.active.get() { mode::HEAP } else { 0 };
        access_mode::change(mode::SCRIPT | mode::HEAP, seen | heap);
    }
}

/// Gives the turn to the script, and takes its next command.
fn ask(what: u32) {
    /// How often the runtime polls before it waits in the kernel.
    const LOOKS: u32 = 4000;
    let script = script();
    pause::publish_threads();
    script.answer.store(what, Relaxed);
    script.turn.store(turn::SCRIPT, SeqCst);
    wire_log::ring();
    let mut looks = 0;
    while script.turn.load(SeqCst) == turn::SCRIPT {
        looks += 1;
        if looks > LOOKS {
            sys::futex_wait(&script.turn, turn::SCRIPT);
        }
        core::hint::spin_loop();
    }
    for (word, release) in script.release.iter().enumerate() {
        let over = script.command.load(Relaxed) == command::FINISH;
        let held = script.held[word].load(Relaxed);
        let released = if over { held } else { held & release.load(Relaxed) };
        SCHED.barred.set_word(word, SCHED.barred.word(word) & !released);
        script.held[word].store(held & !released, Relaxed);
    }
    set_on(script.command.load(Relaxed) != command::FINISH);
    if set_promised(script.promised.load(Relaxed) != 0) {
        faults::arm();
    }
    set_alarm();
    see_memory();
}

/// Called when the running thread comes to an event. Returns when the script lets the thread go on.
pub fn happens(event: Event) {
    if system_mode::is_on() {
        system_mode::happens(event);
        return;
    }
    let script = script();
    let number = me();
    if !is_on() || !SCHED.running.get() || script.kinds.load(Relaxed) >> event.kind & 1 == 0 {
        return;
    }
    script.events.store(script.events.load(Relaxed).wrapping_add(1), Relaxed);
    let until = &script.until;
    if has(&script.select, number) && satisfies(until, &event) {
        hold(number, &event);
        script.thread.store(number as u32, Relaxed);
        ask(answer::EVENT);
    } else if has(&script.known, number)
        && !has(&script.select, number)
        && satisfies(&script.mentioned, &event)
    {
        hold(number, &event);
    }
    if holds(number) {
        let stopped = &frames(number).stopped;
        stopped.set(true);
        while holds(number) {
            sched::reschedule(Reason::Blocks);
        }
        stopped.set(false);
    }
}

/// Whether the running thread has stopped at an event and waits for the script.
pub fn is_stopped() -> bool {
    is_on() && frames(me()).stopped.get()
}

fn frames(number: usize) -> &'static Frames {
    // Threads with larger numbers share entries. The engine refuses scripts that involve them.
    &STATE.frames[number % MAX_SCRIPTED]
}

/// The running thread has ended and cannot be held any more.
pub fn ended() {
    let script = script();
    let number = me();
    if !is_on() {
        return;
    }
    frames(number).count.store(0, Relaxed);
    let event = Event { kind: kind::END, ..Event::default() };
    if !has(&script.select, number) {
        return;
    }
    script.thread.store(number as u32, Relaxed);
    if satisfies(&script.until, &event) {
        tell_of(number, &event);
        ask(answer::EVENT);
    } else if sched::threads().filter(|(other, _)| has(&script.select, *other)).all(|(_, t)| t.ended.get())
        && !waits_for_new(script)
    {
        ask(answer::ENDED);
    }
}

/// No thread can go on: asks the script. Returns whether there is a script.
pub fn nobody() -> bool {
    if !is_on() {
        return false;
    }
    ask(answer::NOBODY);
    true
}

fn hold(number: usize, event: &Event) {
    SCHED.barred.add(number);
    let word = &script().held[number / 64];
    word.store(word.load(Relaxed) | 1 << (number % 64), Relaxed);
    tell_of(number, event);
}

fn tell_of(number: usize, event: &Event) {
    if let Some(told) = script().at.get(number) {
        tell(told, number, event);
    }
}

/// Writes the event to which a thread has come into the wire.
pub fn tell(to: &WireEvent, number: usize, event: &Event) {
    let WireEvent { kind, size, address, value, number: named, args, returned, caller, pc, step, op, inside } =
        to;
    kind.store(event.kind.into(), Relaxed);
    size.store(event.size as u32, Relaxed);
    address.store(event.address as u64, Relaxed);
    value.store(event.value, Relaxed);
    named.store(event.number, Relaxed);
    args[0].store(event.args[0], Relaxed);
    args[1].store(event.args[1], Relaxed);
    returned.store(event.returned, Relaxed);
    caller.store(event.caller as u64, Relaxed);
    pc.store(event.pc as u64, Relaxed);
    // System mode has no steps.
    step.store(if system_mode::is_on() { 0 } else { SCHED.step.get() }, Relaxed);
    op.store(event.op.into(), Relaxed);
    for (function, times) in inside.iter().enumerate() {
        times.store(depth(number, function) as u8, Relaxed);
    }
}

/// How many activations of a named function a thread is in.
fn depth(number: usize, function: usize) -> usize {
    frames(number).now().iter().filter(|frame| frame.function.load(Relaxed) == function).count()
}

/// The number of the running thread.
fn current() -> usize {
    if system_mode::is_on() { system_mode::current() } else { me() }
}

/// A thread with this number begins, in no named function.
pub fn forget_frames(number: usize) {
    frames(number).count.store(0, Relaxed);
}

/// A thread begins as a copy of another, after a `fork`.
pub fn copy_frames(from: usize, to: usize) {
    let (from, to) = (frames(from), frames(to));
    for (to, from) in to.of.iter().zip(from.now()) {
        to.function.store(from.function.load(Relaxed), Relaxed);
        to.sp.store(from.sp.load(Relaxed), Relaxed);
    }
    to.count.store(from.now().len(), Relaxed);
}

/// Whether an event of the running thread satisfies a predicate. The predicate is in postfix order.
pub fn satisfies(predicate: &Predicate, event: &Event) -> bool {
    let words = &predicate.words[..(predicate.length.load(Relaxed) as usize).min(predicate.words.len())];
    let mut words = words.iter().map(|word| word.load(Relaxed));
    let (mut stack, mut next) = (0u64, || words.next());
    while let Some(word) = next() {
        let rest = word >> 8;
        let mut operand = || next().unwrap_or(0);
        let truth = match word as u8 {
            code::KINDS => rest >> event.kind & 1 != 0,
            code::ADDRESS => {
                let (from, to) = (operand() as usize, operand() as usize);
                event.address < to && event.address + event.size.max(1) > from
            }
            code::NAMED => event.number == rest,
            code::INSIDE => depth(current(), rest as usize & 0xff) >= (rest >> 8) as usize,
            code::CONTROL => event.number == operand(),
            code::ARG0 => event.args[0] == operand(),
            code::ARG1 => event.args[1] == operand(),
            code::VALUE => event.value == operand(),
            code::OP => u64::from(event.op) == rest,
            code::PROGRAM => system_mode::is_of_program(rest),
            code::PROCESS => system_mode::is_of_process(rest),
            code::RETURNS => event.returned == operand(),
            code::AND | code::OR => {
                let (last, before) = (stack & 1, stack >> 1 & 1);
                stack >>= 2;
                (if word as u8 == code::AND { last & before } else { last | before }) != 0
            }
            code::NOT => {
                let last = stack & 1;
                stack >>= 1;
                last == 0
            }
            _ => false,
        };
        stack = stack << 1 | u64::from(truth);
    }
    stack & 1 != 0
}

/// The event kind of an operation, and the number of the event.
#[inline]
pub fn kind_of(op: Op, object: usize) -> (u8, u64) {
    match op {
        Op::Lock
        | Op::TryLock
        | Op::TimedLock
        | Op::Relock
        | Op::SemWait
        | Op::SemTryWait
        | Op::SemTimedWait
        | Op::ReadLock
        | Op::WriteLock
        | Op::StreamLock => (kind::LOCK, 0),
        Op::Unlock | Op::SemPost | Op::RwUnlock | Op::StreamUnlock => (kind::UNLOCK, 0),
        Op::Point => (kind::POINT, object as u64),
        _ => (kind::OTHER, 0),
    }
}

/// The running thread is about to take its next step, at a scheduling point.
pub fn stepped() {
    if !is_on() || is_stopped() {
        return;
    }
    let t = thread(me());
    let op = t.op();
    // Other functions report these.
    let told = matches!(op, Op::Start | Op::End | Op::MemRead | Op::MemWrite);
    if told || matches!(op, Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas) {
        return;
    }
    let (kind, number) = kind_of(op, t.object.get());
    happens(Event {
        kind,
        number,
        address: t.object.get(),
        pc: t.pc.get(),
        op: op as u8,
        ..Event::default()
    });
}

/// The running thread begins.
pub fn starts() {
    if is_on() {
        let t = thread(me());
        let args = [t.arg.get() as u64, 0];
        happens(Event { kind: kind::START, args, address: t.start.get(), ..Event::default() });
    }
}

/// The running thread is about to access memory.
#[cold]
pub fn accesses(address: usize, size: usize, write: bool, value: u64, pc: usize) {
    let kind = if write { kind::WRITE } else { kind::READ };
    let event = Event { kind, address, size, value, pc, ..Event::default() };
    if system_mode::is_on() {
        system_mode::happens(event);
        return;
    }
    let t = thread(me());
    let before = (t.op(), t.object.get(), t.pc.get());
    t.about_to(if write { Op::MemWrite } else { Op::MemRead }, address, pc);
    happens(event);
    t.about_to(before.0, before.1, before.2);
    if dependence::wanted() {
        dependence::memory(address, size, write);
    }
}

/// The running thread has entered an instrumented function; a call among its first instructions returns to
/// `pc`.
#[cold]
pub extern "C" fn calls(pc: usize) {
    if (is_on() || system_mode::is_on()) && access_mode::is_on(mode::SCRIPT) {
        /// The largest distance of that call from the beginning of the function.
        const NEAR: usize = 128;
        if pc.wrapping_sub(frames(current()).entered.swap(0, Relaxed)) < NEAR {
            return;
        }
        happens(Event { kind: kind::CALL, pc, ..Event::default() });
    }
}

/// The running thread has come to a place that the script names; `sp` is its stack pointer there.
pub fn mark(what: u32, sp: usize, registers: &[u64; 16], pc: usize) {
    const RAX: usize = 0;
    const RSI: usize = 6;
    const RDI: usize = 7;
    if !is_on() && !system_mode::is_on() {
        return;
    }
    let named = (what >> 2) as usize % MAX_NAMED;
    let frames = frames(current());
    let number = named as u64;
    match what & 3 {
        ENTRY => {
            frames.enter(named, sp);
            let args = [registers[RDI], registers[RSI]];
            // SAFETY: at the first instruction of a function the stack pointer points at the return address.
            let caller = unsafe { (sp as *const usize).read() };
            happens(Event { kind: kind::ENTER, number, args, caller, pc, ..Event::default() });
            // If the function is instrumented, `calls` would report the same event once more.
            frames.entered.store(pc, Relaxed);
        }
        RETURN => {
            // The function counts as left, so a script that waits for that does not find the thread inside.
            frames.leave(named);
            happens(Event { kind: kind::RETURN, number, returned: registers[RAX], pc, ..Event::default() });
        }
        LINE => happens(Event { kind: kind::LINE, number, pc, ..Event::default() }),
        _ => {}
    }
}
