//! Runs many executions in one process: takes a snapshot of the program's memory where executions begin, and
//! restores it after each.
//!
//! A fork, an exit and a wait cost some hundred microseconds, a hundred times the time of a small execution.
//! So the zygote forks a *runner* and waits for its end. The runner runs one slot after the other and takes
//! turns with the engine itself. It undoes the changes of each execution: [`snapshot`] restores memory, and
//! [`calls`], which sees every system call, restores the state of the kernel.
//!
//! Some executions crash or do something that cannot be undone. Such an execution goes on as if it had a
//! process of its own, and the runner ends with it. The zygote then forks the next runner. If that happens
//! again and again, the zygote forks each execution instead and reports the reason.
//!
//! Memory may be restored by prediction: only where it was ever seen to change. All dirty pages are compared
//! after some executions and at the end of a turn. If the comparison finds a missed change, the results after
//! the first of these executions are discarded, and the engine runs their plans again. The same happens if
//! the runner ends before the comparison. In that case as many executions as were discarded then run without
//! prediction.
//!
//! After some executions the runner takes the snapshot again, at the first decision or at a later one that
//! the engine names. Later executions begin there; see [`later_snapshot`].
//!
//! All data of the runner lies in memory of its own, at an address range that nothing else uses.

mod bindings;
pub mod calls;
mod exit;
mod handlers;
mod later_snapshot;
mod modules;
mod snapshot;
mod trap_handlers;

pub use handlers::{exit_calls_functions, quick_exit_calls_functions, registered, registered_quick};

use crate::lifecycle::{begin as execution, zygote};
use crate::platform::{constant, sys};
use crate::sched::SCHED;
use crate::sched::hooks::{self, HOOKS};
use crate::wire_log;
use core::arch::{asm, naked_asm};
use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8};
use heisen_wire::{MAX_DECISIONS, Wire, end, flag, policy, runner, turn};

/// The address of the runner's memory, and its layout.
const BASE: usize = 0x0e00_0000_0000;
const STACK: usize = BASE + 0x4_0000;
const STACK_SIZE: usize = 0x1_0000;
const PAGES: usize = STACK + STACK_SIZE;
const SIZE: usize = PAGES - BASE + snapshot::SIZE;
/// The stack for the runner's own signal handlers, so that they need no writable page of the program.
const HANDLERS: usize = BASE + 0xc000_0000;
const HANDLERS_SIZE: usize = 0x2_0000;
/// Where [`later_snapshot`] stores the log of the steps before the snapshot.
const LOG: usize = BASE + 0x8000_0000;

/// The value at both ends of [`Control`]. A program that writes to wrong addresses may overwrite it.
const CANARY: u64 = 0x5afe_c0de_0b5e_55ed;

/// The number of executions after which predictions are verified at first. It doubles each time they were
/// right.
const VERIFIED: u32 = 64;

/// After this many runners, the zygote decides whether runners are worthwhile.
const TRIES: u32 = 4;

/// The data of the runner.
struct Control {
    canary: Cell<u64>,
    /// Whether the kernel hands system calls to [`calls`]. The kernel reads this byte.
    selector: AtomicU8,
    context: Context,
    fs: Cell<usize>,
    /// The slot that runs, and where its decisions begin in the log.
    slot: Cell<usize>,
    decisions: Cell<u32>,
    /// The version of the access points at the time of the snapshot.
    points: Cell<u32>,
    resets: Cell<u32>,
    /// After how many executions predictions are verified.
    trusted: Cell<u32>,
    /// Whether the execution that runs cannot be undone.
    left: Cell<bool>,
    bindings: bindings::Bindings,
    handlers: handlers::Handlers,
    calls: calls::Calls,
    later: later_snapshot::LaterSnapshot,
    snapshot: snapshot::Snapshot,
    other_canary: Cell<u64>,
}

const _: () = assert!(size_of::<Control>() <= STACK - BASE);
const _: () = assert!(BASE + SIZE <= LOG && LOG + later_snapshot::LOG_SIZE <= HANDLERS);

/// The point where an execution begins: the registers that a called function must preserve.
#[repr(C)]
struct Context {
    rsp: Cell<usize>,
    rbp: Cell<usize>,
    rbx: Cell<usize>,
    r12: Cell<usize>,
    r13: Cell<usize>,
    r14: Cell<usize>,
    r15: Cell<usize>,
    rip: Cell<usize>,
    control: Cell<u64>,
}

/// Whether this process is a runner. Unlike [`Control`], this lies in the program's memory: in other
/// processes `Control` is not mapped.
static RUNNER: AtomicBool = AtomicBool::new(false);

/// Whether the runtime sees every system call of this process: it is a runner, and its execution can be
/// undone so far.
pub fn sees() -> bool {
    RUNNER.load(Relaxed) && !control().left.get()
}

/// Called when a word of the runtime has received a value that takes long to compute. The value is the same
/// in all executions as long as the code at `code` is loaded, so it is written into the snapshot.
fn keep(word: usize, value: usize, code: usize) {
    if RUNNER.load(Relaxed) && control().bindings.stays(code) {
        control().snapshot.keep(word, value);
    }
}

/// Lets the rooms below call this one.
pub fn plug_in() {
    constant::plug_in(keep);
    HOOKS.at_choice.set(later_snapshot::reach);
    HOOKS.stack_mapped.set(mapped_stack);
    HOOKS.zero_pages.set(drops);
}

/// Fills pages with zeros if this is a runner; there that costs much less than a system call. Returns whether
/// it was done.
fn drops(at: usize, size: usize) -> bool {
    if !sees() {
        return false;
    }
    let c = control();
    // The system calls of the snapshot are not calls of the program.
    let before = c.selector.swap(calls::UNSEEN, Relaxed);
    let done = c.snapshot.drop_pages(at, size);
    c.selector.store(before, Relaxed);
    done
}

/// Called when the program needs a stack of this size and the pool of stacks has none.
fn mapped_stack(size: usize, guard: usize) {
    if RUNNER.load(Relaxed) {
        control().later.mapped_stack(size, guard);
    }
}

fn control() -> &'static Control {
    // SAFETY: only a runner calls this. It has mapped that memory, which begins as zeros. All fields are
    // cells and atomics.
    unsafe { &*(BASE as *const Control) }
}

/// Whether the slots of this turn can run in a runner.
pub fn suits(wire: &Wire) -> bool {
    const PLAIN: u32 =
        flag::DECISIONS | flag::STATES | flag::TOUCHES | flag::PLACES | flag::LATE | flag::SYMBOLIC;
    wire.reset.load(Relaxed) == runner::ASKED && wire.slots[0].plan.flags.load(Relaxed) & !PLAIN == 0
}

/// How a runner ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// This process is the runner, and an execution begins.
    Here,
    /// The runner has ended. The wire says how many slots it has run.
    Ended,
    /// The runner has ended, and its last executions do not count.
    InDoubt,
}

/// Called in the zygote: runs the slots from `first` on in a runner and waits for its end.
pub fn run(wire: &Wire, zygote: i32, first: usize, decisions: u32) -> Ran {
    wire.runner.store(runner::BEGINS, SeqCst);
    let child = sys::fork();
    if child == 0 {
        sys::die_with_parent();
        if sys::getppid() != zygote {
            sys::exit_group(0);
        }
        wire.child.store(sys::getpid() as u32, SeqCst);
        hooks::process_begins();
        begin(wire, first, decisions);
        return Ran::Here;
    }
    wire.child.store(child.max(0) as u32, SeqCst);
    let status = if child < 0 { u32::MAX } else { zygote::wait_for(child) };
    wire.child.store(0, SeqCst);
    let runs = wire.runner.swap(runner::NONE, SeqCst) == runner::RUNS;
    let doubtful = wire.unverified.swap(0, Relaxed);
    if doubtful != 0 {
        // Of the unverified executions only the first began in verified memory.
        wire.slots_run.store(wire.slot.load(SeqCst) + 1 - doubtful, Relaxed);
        wire.resets.store(wire.resets.load(Relaxed) + 1 - doubtful, Relaxed);
        wire.careful.store(doubtful, Relaxed);
        return Ran::InDoubt;
    }
    if runs {
        let number = wire.slot.load(SeqCst) as usize;
        zygote::ended(wire, child, number, status);
        wire.slots_run.store(number as u32 + 1, Relaxed);
        let (runs, resets) = (wire.runners.load(Relaxed) + 1, wire.resets.load(Relaxed));
        wire.runners.store(runs, Relaxed);
        if runs >= TRIES && resets < runs / 2 {
            // Hardly any execution can be undone.
            wire.reset.store(runner::REFUSED, Relaxed);
        }
    } else if status != 0 {
        // The runner failed before its first execution, or between two executions.
        wire.reset.store(runner::REFUSED, Relaxed);
    }
    Ran::Ended
}

/// Called in a new runner: takes the snapshot and begins the first execution. Returns again at the start of
/// each execution.
fn begin(wire: &Wire, first: usize, decisions: u32) {
    if !sys::reserve_usable(BASE, SIZE) {
        refuse(wire, runner::NO_MEMORY);
    }
    for (at, size) in [(HANDLERS, HANDLERS_SIZE), (LOG, later_snapshot::LOG_SIZE)] {
        if !sys::reserve_usable(at, size) {
            refuse(wire, runner::NO_MEMORY);
        }
    }
    let c = control();
    c.canary.set(CANARY);
    c.other_canary.set(CANARY);
    RUNNER.store(true, Relaxed);
    c.slot.set(first);
    c.decisions.set(decisions);
    c.points.set(wire.points_version.load(Relaxed));
    c.fs.set(crate::sched::thread(0).fs.get());
    c.bindings.find();
    c.handlers.find();
    exit::shorten();
    if !c.calls.begin() {
        refuse(wire, runner::NO_DISPATCH);
    }
    // SAFETY: saves the registers of this frame. Memory is restored before the jump back, so the frame is
    // intact then.
    if unsafe { save_context(&raw const c.context) } == 0 {
        if let Err(why) = c.snapshot.take(c.context.rsp.get()) {
            refuse(wire, why);
        }
        if !c.calls.watch(&c.selector) {
            refuse(wire, runner::NO_DISPATCH);
        }
    }
    begins(c, wire);
}

/// Begins the execution in the next slot.
fn begins(c: &Control, wire: &Wire) {
    let number = c.slot.get();
    let from_later = c.later.is_there();
    if from_later && !c.later.suits(wire, number) {
        misfit(c, wire);
    }
    let report = &wire.slots[number].report;
    report.first_decision.store(c.decisions.get(), Relaxed);
    // Other processes read these only after they have waited for this process.
    wire.slot.store(number as u32, Release);
    wire.runner.store(runner::RUNS, Release);
    if from_later {
        c.later.resume(wire, number);
    } else {
        execution::begin(number);
        later_snapshot::begin(c, wire);
    }
    c.selector.store(calls::SEEN, Relaxed);
}

/// Ends the runner, because the next plan does not fit its later snapshot. Another runner will run that plan.
fn misfit(c: &Control, wire: &Wire) -> ! {
    if wire.unverified.load(Relaxed) != 0 && c.snapshot.verify() {
        wire.unverified.store(0, Relaxed);
    }
    if !c.later.was_requested() {
        wire.misfits.store(wire.misfits.load(Relaxed) + 1, Relaxed);
    }
    sys::exit_group(0)
}

/// Ends a runner that cannot take a snapshot, and stores the reason.
fn refuse(wire: &Wire, why: u32) -> ! {
    wire.reset_reason.store(why, Relaxed);
    sys::exit_group(1)
}

/// The program exits, and the destructors of the calling thread have run. Ends the execution if nothing else
/// is left to do.
pub fn exits(status: i32) {
    if sees() && control().handlers.are_done() {
        exit::exits(status);
    }
}

/// The execution does something that cannot be undone. It goes on without the runner's control, and the
/// runner ends with it.
fn leave(c: &Control, why: u32) {
    c.left.set(true);
    c.selector.store(calls::UNSEEN, Relaxed);
    // From here on nobody makes pages writable before the kernel writes to them.
    c.snapshot.unprotect();
    wire_log::wire().reset_reason.store(why, Relaxed);
}

/// The execution has ended with this status. Goes on with the next one, on the runner's own stack.
fn finished(status: i32) -> ! {
    // SAFETY: nothing on the old stack is needed any more.
    unsafe {
        asm!(
            "mov rsp, {stack}",
            "xor ebp, ebp",
            "call {next}",
            "ud2",
            stack = in(reg) STACK + STACK_SIZE,
            next = sym next,
            in("rdi") status as isize,
            options(noreturn),
        )
    }
}

/// Restores everything and begins the next execution, in this turn or a later one.
extern "C" fn next(status: i32) -> ! {
    let c = control();
    let wire = wire_log::wire();
    let number = c.slot.get();
    let slot = &wire.slots[number];
    slot.status.store((status as u32 & 0xff) << 8, Relaxed);
    slot.undone.store(1 + u32::from(c.later.began()), Relaxed);
    slot.skipped.store(c.later.skipped(), Relaxed);
    wire.slots_run.store(number as u32 + 1, Relaxed);
    wire.resets.store(wire.resets.load(Relaxed) + 1, Relaxed);
    wire.runner.store(runner::WAITS, Release);
    c.decisions.set(c.decisions.get() + slot.report.decisions.load(Relaxed));
    c.slot.set(number + 1);
    let full = c.decisions.get() as usize > MAX_DECISIONS / 2;
    let mut ends =
        full || wire.enough.load(SeqCst) != 0 || c.slot.get() >= wire.slots_wanted.load(Relaxed) as usize;
    c.resets.set(c.resets.get() + 1);
    let intact = c.canary.get() == CANARY && c.other_canary.get() == CANARY;
    if !intact || !c.calls.undo() {
        give_up(wire);
    }
    if !put_back(c, wire, number, ends) {
        ends = true;
    }
    if ends {
        c.slot.set(0);
        c.decisions.set(0);
        wire.turn.store(turn::ENGINE, SeqCst);
        wire_log::ring();
    }
    if ends {
        while wire.turn.load(SeqCst) == turn::ENGINE {
            sys::futex_wait(&wire.turn, turn::ENGINE);
        }
        let other = wire.turn.load(SeqCst) != turn::ZYGOTE;
        if other || !suits(wire) || wire.points_version.load(Relaxed) != c.points.get() {
            // The zygote handles this turn.
            sys::exit_group(0);
        }
    }
    // SAFETY: the thread that began the execution had this base.
    unsafe { asm!("wrfsbase {}", in(reg) c.fs.get(), options(nostack)) };
    // SAFETY: the stack is the same as when the context was saved.
    unsafe { go_back(&raw const c.context) }
}

/// Restores memory after the execution in a slot. Returns false if an earlier restoration missed a change, so
/// that the last executions do not count.
fn put_back(c: &Control, wire: &Wire, number: usize, ends: bool) -> bool {
    // After executions 1, 2, 4, 8, ... all memory is compared.
    let thorough = c.resets.get().is_power_of_two();
    if thorough {
        c.bindings.keep(&c.snapshot);
        c.snapshot.protect_unchanged();
    }
    let careful = wire.careful.load(Relaxed);
    wire.careful.store(careful.saturating_sub(1), Relaxed);
    let mut unverified = wire.unverified.load(Relaxed);
    // A full comparison now would hide changes that earlier predictions missed, so those are verified first.
    let slot = &wire.slots[number];
    // An execution that is cut off in the middle leaves changes behind that others do not.
    let exits = slot.report.end.load(Relaxed) == end::EXIT && slot.status.load(Relaxed) == 0;
    let unusual = !exits || SCHED.live.get() > 1;
    // Systematic strategies use the default policy and make claims, so predictions must not affect them.
    let exact = slot.plan.policy.load(Relaxed) == policy::DEFAULT;
    if c.snapshot.put_back(unverified == 0 && (thorough || careful != 0), exact) {
        unverified += 1;
    }
    let verify = ends || thorough || unusual || unverified >= c.trusted.get().max(VERIFIED);
    let good = unverified == 0 || !verify || c.snapshot.verify();
    if verify && unverified != 0 {
        c.trusted.set(if good { c.trusted.get().max(2 * unverified) } else { VERIFIED });
    }
    wire.unverified.store(if verify { 0 } else { unverified }, Relaxed);
    if !good {
        // As in `run`, except that this execution has ended, too.
        wire.slots_run.store(number as u32 + 2 - unverified, Relaxed);
        wire.resets.store(wire.resets.load(Relaxed) + 1 - unverified, Relaxed);
        return false;
    }
    if !c.snapshot.has_room() || thorough && !c.snapshot.equals_memory() {
        give_up(wire);
    }
    true
}

/// Ends the runner because memory cannot be restored. The engine runs the plans again whose results do not
/// count.
fn give_up(wire: &Wire) -> ! {
    wire.reset_reason.store(runner::DAMAGED, Relaxed);
    wire.reset.store(runner::REFUSED, Relaxed);
    sys::exit_group(0)
}

/// Saves the registers of the caller and returns 0. Returns again, with 1, after [`go_back`].
#[unsafe(naked)]
unsafe extern "C" fn save_context(at: *const Context) -> usize {
    naked_asm!(
        "lea rax, [rsp + 8]",
        "mov [rdi], rax",
        "mov [rdi + 8], rbp",
        "mov [rdi + 16], rbx",
        "mov [rdi + 24], r12",
        "mov [rdi + 32], r13",
        "mov [rdi + 40], r14",
        "mov [rdi + 48], r15",
        "mov rax, [rsp]",
        "mov [rdi + 56], rax",
        "stmxcsr [rdi + 64]",
        "fnstcw [rdi + 68]",
        "xor eax, eax",
        "ret",
    )
}

#[unsafe(naked)]
unsafe extern "C" fn go_back(at: *const Context) -> ! {
    naked_asm!(
        "fninit",
        "ldmxcsr [rdi + 64]",
        "fldcw [rdi + 68]",
        "mov rsp, [rdi]",
        "mov rbp, [rdi + 8]",
        "mov rbx, [rdi + 16]",
        "mov r12, [rdi + 24]",
        "mov r13, [rdi + 32]",
        "mov r14, [rdi + 40]",
        "mov r15, [rdi + 48]",
        "mov eax, 1",
        "jmp [rdi + 56]",
    )
}
