//! Accesses the slots of the wire for the engine: writes jobs into them and reads results from them.

use crate::error::{Error, Result};
use crate::process::access_points::{Conflict, read_conflicts};
use crate::process::run_config::RunConfig;
use heisen_inspect::{Registers, View};
use heisen_trace::finding::SwitchKind;
use heisen_trace::plan::{Sleeper, Touches};
use heisen_trace::symbolic::ChosenInput;
use heisen_trace::{
    Counted, Decision, DecisionKind, Deed, Divergence, End, Execution, Expected, Hold, Note, Op, Plan,
    Policy, Schedule, ThreadId, Touch,
};
use heisen_wire::{
    Lists, MAX_COUNTED, MAX_DECISIONS, MAX_EVENTS, MAX_HOLDS, MAX_OVERRIDES, MAX_SLOTS, MAX_TEXT, NO_THREAD,
    Report, Slot, Wire, diverged, end, flag, named, policy, saved, sleeper,
};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

/// What an execution logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Only how it ended.
    #[default]
    End,
    /// Also its decisions. If the plan goes on by default, only the decisions from its last override on.
    Decisions,
    /// Its decisions and the state at each.
    States,
    /// Its decisions and the touches of its steps.
    Touches,
    /// Its decisions, the touches of its steps, and their places in the code.
    Places,
    /// Its decisions and events.
    Events,
    /// Everything, with pauses for a close-up.
    All,
    /// As [`Detail::All`], and every access of memory with its value.
    Accesses,
    /// Its decisions, touches, events and accesses, without pauses. Executions with events have processes of their own.
    AccessLog,
    /// As [`Detail::AccessLog`], without accesses.
    CallLog,
    /// Its decisions and its symbolic trace, if [`RunConfig::symbolic`] is set.
    Symbolic,
}

/// One operation of a thread, with addresses instead of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The thread.
    pub thread: ThreadId,
    /// The operation that the thread was about to perform.
    pub op: Op,
    /// The object.
    pub object: u64,
    /// The return address of the call.
    pub pc: u64,
}

impl From<&Event> for Operation {
    fn from(event: &Event) -> Operation {
        Operation { thread: event.thread, op: event.op, object: event.object, pc: event.pc }
    }
}

/// A job for a zygote: a plan of a search, or a schedule from a file.
#[derive(Clone, Copy, Debug)]
pub enum Job<'a> {
    /// A plan.
    Plan(&'a Plan),
    /// A schedule.
    Schedule(&'a Schedule),
}

impl Job<'_> {
    fn overrides(&self) -> usize {
        match self {
            Job::Plan(plan) => plan.overrides.len(),
            Job::Schedule(schedule) => schedule.entries.len(),
        }
    }

    /// The inputs that it chooses; a schedule leaves them to the settings.
    pub(crate) fn inputs(&self) -> &[ChosenInput] {
        match self {
            Job::Plan(plan) => &plan.inputs,
            Job::Schedule(_) => &[],
        }
    }

    fn sleepers(&self) -> &[Sleeper] {
        match self {
            Job::Plan(plan) => &plan.sleep.sleepers,
            Job::Schedule(_) => &[],
        }
    }
}

/// One event of an execution.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The step.
    pub step: u32,
    /// The thread.
    pub thread: ThreadId,
    /// The operation.
    pub op: Op,
    /// Whether the operation succeeded.
    pub ok: bool,
    /// The object.
    pub object: u64,
    /// The return address of the call.
    pub pc: u64,
    /// For an access of memory that was logged with its value.
    pub access: Option<MemoryAccess>,
    /// For an operation that ends memory, such as [`Op::Free`]: the size of the memory.
    pub ended: u64,
}

/// An access of memory, as [`Detail::Accesses`] logs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The size in bytes, at most 8.
    pub size: u8,
    /// The value that was read or written, as an unsigned number.
    pub value: u64,
}

/// The end of an execution, beyond what [`Execution`] records.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// One of `heisen_wire::end`.
    pub end: u32,
    /// Exit status or, for an assertion, its line.
    pub code: i32,
    /// The thread that ended the execution.
    pub thread: u16,
    /// The code address at which the execution was ended.
    pub pc: u64,
    /// Texts of a failed assertion: expression, file, function.
    pub texts: Vec<String>,
    /// The first misuse: one of `heisen_wire::misuse`, thread, code address, object.
    pub misuse: Option<(u32, u16, u64, u64)>,
    /// The thread of the last Rust panic.
    pub panic: Option<u16>,
    /// The message of the command after the execution, if that command failed.
    pub after: Option<String>,
    /// The operation at which a divergence was noticed.
    pub diverged: Option<Operation>,
}

/// A finished execution with its end.
#[derive(Clone, Debug)]
pub struct Run {
    /// The part that the search uses.
    pub execution: Execution,
    /// The additional part that the judge uses.
    pub tail: Tail,
    /// Set if the execution ran in a process of its own instead of a runner: why, one of
    /// `heisen_wire::runner`.
    pub forked: Option<u32>,
    /// Set if the execution began after a shared prefix: the number of steps in that prefix.
    pub skipped: Option<u32>,
    /// Conflicting accesses of the execution.
    pub conflicts: Vec<Conflict>,
    /// Whether the program has instrumented code.
    pub instrumented: bool,
}

/// Writes as many of the jobs as fit. Returns how many.
pub(crate) fn write_plans(
    wire: &Wire,
    jobs: &[Job<'_>],
    detail: Detail,
    flags: u32,
    config: &RunConfig,
) -> Result<usize> {
    let flags = flags
        | match detail {
            Detail::End => 0,
            Detail::Decisions => flag::DECISIONS,
            Detail::States => flag::DECISIONS | flag::STATES,
            Detail::Touches => flag::DECISIONS | flag::TOUCHES,
            Detail::Places => flag::DECISIONS | flag::TOUCHES | flag::PLACES,
            Detail::Events => flag::DECISIONS | flag::EVENTS,
            Detail::All => flag::DECISIONS | flag::EVENTS | flag::STOPS,
            Detail::Accesses => flag::DECISIONS | flag::EVENTS | flag::STOPS | flag::ACCESSES,
            Detail::AccessLog => flag::DECISIONS | flag::TOUCHES | flag::EVENTS | flag::ACCESSES,
            Detail::CallLog => flag::DECISIONS | flag::TOUCHES | flag::EVENTS,
            Detail::Symbolic => flag::DECISIONS | flag::SYMBOLIC,
        };
    let mut first = 0;
    for (number, &job) in jobs.iter().take(MAX_SLOTS).enumerate() {
        let count = job.overrides() + job.sleepers().len();
        if count > MAX_OVERRIDES {
            return Err(Error::Input(format!(
                "a schedule with {count} decisions; {MAX_OVERRIDES} is the most"
            )));
        }
        if first + count > MAX_OVERRIDES {
            return Ok(number);
        }
        write_plan(wire, number, job, first, flags, config);
        first += count;
    }
    Ok(jobs.len().min(MAX_SLOTS))
}

fn write_plan(wire: &Wire, number: usize, job: Job<'_>, first: usize, flags: u32, config: &RunConfig) {
    let (slot, lists) = (&wire.slots[number], &wire.lists[number]);
    let plan = &slot.plan;
    let (chosen, expect, flags) = match job {
        Job::Plan(plan) => (&plan.policy, plan.expect, flags | asked(plan, flags)),
        Job::Schedule(_) => (&Policy::Default, 0, flags),
    };
    let (kind, seed, parameter, steps) = match *chosen {
        Policy::Default => (policy::DEFAULT, 0, 0, 0),
        Policy::Random { seed } => (policy::RANDOM, seed, 0, 0),
        Policy::Burst { seed, length } => (policy::BURST, seed, length, 0),
        Policy::Pct { seed, depth, steps } => (policy::PCT, seed, depth, steps),
        Policy::FairPct { seed, depth, steps } => (policy::FAIR_PCT, seed, depth, steps),
        Policy::Pos { seed } => (policy::POS, seed, 0, 0),
        Policy::Surw { seed, part, length, .. } => (policy::SURW, seed, part, length),
        Policy::Delay { seed, delays, steps } => (policy::DELAY, seed, delays, steps),
        Policy::Directed { seed, length, .. } => (policy::DIRECTED, seed, length, 0),
    };
    let expected: &[Expected] = if let Policy::Surw { expected, .. } = chosen { expected } else { &[] };
    plan.expected.store(expected.len().min(MAX_COUNTED) as u32, Relaxed);
    for (out, from) in lists.expected.iter().zip(expected) {
        out.events.store(from.events, Relaxed);
        out.first_child.store(from.first_child, Relaxed);
        out.children.store(from.children, Relaxed);
    }
    let holds: &[Hold] = if let Policy::Directed { to, .. } = chosen { &to.target.holds } else { &[] };
    plan.holds.store(holds.len().min(MAX_HOLDS) as u32, Relaxed);
    for (out, from) in lists.holds.iter().zip(holds) {
        write_deed(&out.at, &from.at);
        write_deed(&out.until, &from.until);
        out.past.store(from.past.into(), Relaxed);
    }
    plan.policy.store(if flags & flag::SCRIPT != 0 { policy::SCRIPT } else { kind }, Relaxed);
    // Sleeping threads wake by what other threads touch, so the runtime must record states.
    let watched = if job.sleepers().is_empty() { 0 } else { flag::STATES };
    let symmetry = if config.symmetry { flag::SYMMETRY } else { 0 };
    plan.flags.store(flags | watched | symmetry, Relaxed);
    plan.seed.store(seed, Relaxed);
    plan.expect.store(expect, Relaxed);
    plan.parameter.store(parameter, Relaxed);
    plan.expected_steps.store(steps, Relaxed);
    plan.step_limit.store(config.steps, Relaxed);
    plan.horizon.store(config.world.timeouts.as_nanos().try_into().unwrap_or(u64::MAX), Relaxed);
    plan.spin_patience.store(config.world.patience, Relaxed);
    // A part of the time for which the engine tolerates a program without steps, so that the program reports
    // first.
    plan.patience.store((config.hang.as_millis() / 4).try_into().unwrap_or(u32::MAX), Relaxed);
    plan.spurious.store(config.spurious, Relaxed);
    plan.faults.store(config.faults.most, Relaxed);
    plan.fault_kinds.store(config.faults.kinds, Relaxed);
    plan.overrides.store(job.overrides() as u32, Relaxed);
    plan.first_override.store(first as u32, Relaxed);
    plan.sleepers.store(job.sleepers().len() as u32, Relaxed);
    plan.sleep_from.store(if let Job::Plan(plan) = job { plan.sleep.from } else { 0 }, Relaxed);
    let overrides = &wire.overrides[first..];
    match job {
        Job::Plan(plan) => {
            for (out, from) in overrides.iter().zip(&plan.overrides) {
                out.step.store(from.step, Relaxed);
                out.choice.store(from.choice as u32, Relaxed);
                out.expect.store(from.options as u32 | NO_THREAD << 16, Relaxed);
                out.kind.store(from.kind, Relaxed);
                out.by_name.store(if from.named { named::PREFERENCE } else { named::INDEX }, Relaxed);
                out.op.store(0, Relaxed);
            }
        }
        Job::Schedule(schedule) => {
            for (out, from) in overrides.iter().zip(&schedule.entries) {
                let thread = u32::from(from.to.0);
                let (kind, choice) = match from.kind {
                    SwitchKind::Preempt | SwitchKind::Free => (DecisionKind::Thread, thread),
                    SwitchKind::Wake => (DecisionKind::Waiter, thread),
                    SwitchKind::Choose(value) => (DecisionKind::Choose, value.into()),
                    SwitchKind::Spurious => (DecisionKind::Spurious, 1),
                    SwitchKind::Fault(fault) => (DecisionKind::Fault, fault as u32),
                };
                out.step.store(from.step, Relaxed);
                out.choice.store(choice, Relaxed);
                out.expect.store(from.options as u32 | (from.from.0 as u32) << 16, Relaxed);
                out.kind.store(kind as u8, Relaxed);
                out.by_name.store(named::NAME, Relaxed);
                out.op.store(from.op as u8, Relaxed);
            }
        }
    }
    for (out, from) in overrides[job.overrides()..].iter().zip(job.sleepers()) {
        let (kind, object) = match from.touches {
            Touches::Nothing => (sleeper::NOTHING, 0),
            Touches::Reads(object) => (sleeper::READS, object),
            Touches::Writes(object) => (sleeper::WRITES, object),
            Touches::Everything => (sleeper::EVERYTHING, 0),
        };
        out.step.store(object as u32, Relaxed);
        out.choice.store((object >> 32) as u32, Relaxed);
        out.expect.store(from.thread.into(), Relaxed);
        out.kind.store(kind, Relaxed);
    }
    slot.undone.store(0, Relaxed);
    clear(&slot.report);
}

/// Additional flags that a plan asks for.
fn asked(plan: &Plan, flags: u32) -> u32 {
    let mut asked = 0;
    if plan.tells_class() {
        asked |= flag::STATES;
    }
    // A close-up records its own data.
    if plan.touches && flags & flag::STOPS == 0 {
        asked |= flag::DECISIONS | flag::TOUCHES;
        asked |= if plan.places { flag::PLACES } else { 0 };
    }
    // A strategy that branches from an execution does so after the last override.
    let whole = flag::EVENTS | flag::STOPS | flag::TOUCHES | flag::DEBUGGER | flag::SYMBOLIC;
    if plan.policy == Policy::Default && (flags | asked) & (flag::DECISIONS | whole) == flag::DECISIONS {
        asked |= flag::LATE;
    }
    asked
}

fn write_deed(out: &heisen_wire::Deed, from: &Deed) {
    out.object.store(from.object, Relaxed);
    out.nth.store(from.nth, Relaxed);
    out.who.store(u32::from(from.thread) | u32::from(from.op) << 16, Relaxed);
}

/// Reads the result of the execution in a slot. `stuck` says that the engine had to end it.
pub(crate) fn read_run(wire: &Wire, number: usize, stuck: bool) -> Result<Run> {
    let (slot, lists) = (&wire.slots[number], &wire.lists[number]);
    let report = &slot.report;
    let status = slot.status.load(Relaxed);
    if status == u32::MAX {
        return Err(Error::Uncontrolled(
            "the program could not be forked: too many processes or too little memory".into(),
        ));
    }
    let status = ExitStatus::from_raw(status as i32);
    let tail = Tail {
        end: report.end.load(Relaxed),
        code: report.end_code.load(Relaxed) as i32,
        thread: report.end_thread.load(Relaxed) as u16,
        pc: report.end_pc.load(Relaxed),
        texts: read_texts(report, lists),
        misuse: match report.misuse.load(Relaxed) {
            0 => None,
            what => Some((
                what,
                report.misuse_thread.load(Relaxed) as u16,
                report.misuse_pc.load(Relaxed),
                report.misuse_object.load(Relaxed),
            )),
        },
        panic: report.panic_thread.load(Relaxed).checked_sub(1).map(|t| t as u16),
        after: None,
        diverged: diverged_place(report),
    };
    let end = match tail.end {
        _ if stuck => End::Stuck,
        end::DEADLOCK => End::Deadlock,
        end::STEP_LIMIT => End::StepLimit,
        _ => match (status.code(), status.signal()) {
            (_, Some(signal)) => End::Signal(signal),
            (code, None) => End::Exit(code.unwrap_or(0)),
        },
    };
    let first = (report.first_decision.load(Relaxed) as usize).min(MAX_DECISIONS);
    let logged = report.decisions.load(Relaxed) as usize;
    let (mut decisions, mut touches) = (Vec::new(), Vec::new());
    for [first, second] in wire.decisions[first..].iter().take(logged) {
        let words = [first.load(Relaxed), second.load(Relaxed)];
        match Decision::unpack(words) {
            Some(decision) => decisions.push(decision),
            None => touches.extend(Touch::unpack(words)),
        }
    }
    Ok(Run {
        execution: Execution {
            steps: report.steps.load(Relaxed),
            threads: report.threads.load(Relaxed),
            decisions,
            touches,
            end,
            notes: Note::in_word(report.notes.load(Relaxed)).collect(),
            diverged: read_divergence(wire, slot).filter(|_| !stuck),
            fingerprint: read_fingerprint(slot),
            counted: read_counted(report, lists),
            symbolic: None,
        },
        tail,
        forked: (slot.undone.load(Relaxed) == 0).then(|| wire.reset_reason.load(Relaxed)),
        skipped: read_skipped(slot),
        conflicts: read_conflicts(report, lists),
        instrumented: wire.instrumented.load(Relaxed) != 0,
    })
}

/// The happens-before class of the execution, if it was recorded.
pub(crate) fn read_fingerprint(slot: &Slot) -> Option<u64> {
    let asked = slot.plan.flags.load(Relaxed) & (flag::STATES | flag::TOUCHES) != 0;
    asked.then(|| slot.report.graph.load(Relaxed))
}

/// The length of the shared prefix, if the execution began after one.
pub(crate) fn read_skipped(slot: &Slot) -> Option<u32> {
    (slot.undone.load(Relaxed) == 2).then(|| slot.skipped.load(Relaxed))
}

/// The operation at which a divergence was noticed, if there was one.
pub(crate) fn diverged_place(report: &Report) -> Option<Operation> {
    (report.diverged.load(Relaxed) != diverged::NO).then(|| Operation {
        thread: ThreadId(report.diverged_thread.load(Relaxed) as u16),
        op: Op::from_code(report.diverged_op.load(Relaxed) as u8).unwrap_or(Op::Start),
        object: report.diverged_object.load(Relaxed),
        pc: report.diverged_pc.load(Relaxed),
    })
}

fn read_divergence(wire: &Wire, slot: &Slot) -> Option<Divergence> {
    let report = &slot.report;
    let why = report.diverged.load(Relaxed);
    let planned = slot.plan.overrides.load(Relaxed);
    let followed = report.followed.load(Relaxed).min(planned);
    let missed = wire.overrides.get((slot.plan.first_override.load(Relaxed) + followed) as usize);
    if why == diverged::NO {
        let first = slot.plan.first_override.load(Relaxed);
        let left = &wire.overrides[(first + followed) as usize..][..(planned - followed) as usize];
        let missed = left.iter().find(|missed| missed.by_name.load(Relaxed) != named::PREFERENCE);
        return missed.map(|missed| Divergence {
            step: missed.step.load(Relaxed),
            found: "the end of the execution".to_owned(),
        });
    }
    let thread = report.diverged_thread.load(Relaxed);
    let op = Op::from_code(report.diverged_op.load(Relaxed) as u8).map_or("?", Op::name);
    let options = report.diverged_options.load(Relaxed);
    let at = format!("T{thread} about to {op}");
    let found = match why {
        diverged::NO_DECISION => format!("{at}, with no such choice to make"),
        diverged::OPTIONS => format!("{at}, with {options} choices"),
        diverged::NOT_ENABLED if missed.is_some_and(chooses_value) => {
            format!("{at}, where that cannot be chosen")
        }
        diverged::NOT_ENABLED => format!("{at}, but the chosen thread cannot run"),
        diverged::HASH => format!("{at}, but the steps before it were others"),
        diverged::OTHER_OP => at,
        diverged::INPUT => format!("{at}, to which the recorded input does not fit"),
        _ => "something else".to_owned(),
    };
    Some(Divergence { step: report.diverged_step.load(Relaxed), found })
}

/// Whether an override fixes a value rather than a thread.
fn chooses_value(fixed: &heisen_wire::Override) -> bool {
    let kind = DecisionKind::from_code(fixed.kind.load(Relaxed));
    !matches!(kind, None | Some(DecisionKind::Thread | DecisionKind::Waiter))
}

fn read_counted(report: &Report, lists: &Lists) -> Vec<Counted> {
    let count = (report.counted.load(Relaxed) as usize).min(MAX_COUNTED);
    let read = |counted: &heisen_wire::Counted| {
        let place = counted.place.load(Relaxed);
        let parent = (place & 0xffff != NO_THREAD).then_some(place as u16);
        Counted { parent, child: (place >> 16) as u16, events: counted.events.load(Relaxed) }
    };
    lists.counted[..count].iter().map(read).collect()
}

fn read_texts(report: &Report, lists: &Lists) -> Vec<String> {
    let length = (report.text.load(Relaxed) as usize).min(MAX_TEXT);
    let bytes: Vec<u8> = lists.text[..length].iter().map(|b| b.load(Relaxed)).collect();
    bytes
        .split_inclusive(|&b| b == 0)
        .map(|part| String::from_utf8_lossy(part).trim_end_matches('\0').to_owned())
        .collect()
}

fn clear(report: &Report) {
    for word in [
        &report.steps,
        &report.threads,
        &report.decisions,
        &report.events,
        &report.end,
        &report.end_code,
        &report.end_thread,
        &report.misuse,
        &report.misuse_thread,
        &report.panic_thread,
        &report.diverged,
        &report.diverged_step,
        &report.diverged_thread,
        &report.diverged_op,
        &report.diverged_options,
        &report.text,
        &report.followed,
        &report.conflicts,
        &report.counted,
    ] {
        word.store(0, Relaxed);
    }
    for word in [
        &report.notes,
        &report.graph,
        &report.end_pc,
        &report.misuse_pc,
        &report.misuse_object,
        &report.diverged_object,
        &report.diverged_pc,
    ] {
        word.store(0, Relaxed);
    }
}

/// The report of the current execution, at a pause.
pub fn report_of(wire: &Wire) -> &Report {
    &wire.slots[wire.slot.load(SeqCst) as usize % MAX_SLOTS].report
}

fn read_event([head, object, pc, value]: &heisen_wire::Event) -> Option<Event> {
    let word = head.load(Relaxed);
    let (step, thread, op) = heisen_wire::unpack_event(word);
    let op = Op::from_code(op)?;
    Some(Event {
        step,
        thread: ThreadId(thread),
        op,
        ok: word & heisen_wire::EVENT_FAILED == 0,
        object: object.load(Relaxed),
        pc: pc.load(Relaxed),
        access: (word & heisen_wire::EVENT_ACCESS != 0).then(|| MemoryAccess {
            size: 1 << (word >> heisen_wire::EVENT_SIZE & 3),
            value: value.load(Relaxed),
        }),
        ended: if op.ends_memory() { value.load(Relaxed) } else { 0 },
    })
}

/// The event that was logged last.
pub(crate) fn read_last_event(wire: &Wire) -> Option<Event> {
    let index = (report_of(wire).events.load(Relaxed) as usize).checked_sub(1)?;
    read_event(&wire.events[index % MAX_EVENTS])
}

/// The events that an execution with [`Detail::All`] has logged so far.
pub fn read_events(wire: &Wire) -> Vec<Event> {
    let logged = report_of(wire).events.load(Relaxed) as usize;
    // The log is a ring buffer: if there were more events than fit, only the last remain.
    (logged.saturating_sub(MAX_EVENTS)..logged)
        .filter_map(|index| read_event(&wire.events[index % MAX_EVENTS]))
        .collect()
}

/// The registers of the current thread, at a pause.
pub(crate) fn registers(wire: &Wire) -> Registers {
    let r: [u64; 8] = std::array::from_fn(|i| wire.stop.registers[i].load(Relaxed));
    Registers { rip: r[0], rsp: r[1], rbp: r[2], rbx: r[3], r12: r[4], r13: r[5], r14: r[6], r15: r[7] }
}

/// The registers that a switch left on the stack of a thread; `None` if they cannot be read.
pub(crate) fn saved_registers(view: &View<'_>, sp: u64) -> Option<Registers> {
    let mut words = [0; saved::WORDS];
    if sp == 0 {
        return None;
    }
    view.read_words(sp, &mut words).ok()?;
    Some(Registers {
        rip: words[saved::RIP],
        rsp: sp + 8 * saved::WORDS as u64,
        rbp: words[saved::RBP],
        rbx: words[saved::RBX],
        r12: words[saved::R12],
        r13: words[saved::R13],
        r14: words[saved::R14],
        r15: words[saved::R15],
    })
}
