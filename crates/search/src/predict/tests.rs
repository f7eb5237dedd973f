//! Checks predictions against brute force, on small random programs.
//!
//! Every failure that some schedule shows must be predicted from one execution, and steering must reach
//! predictions.

use super::model::{Access, Chance, Does, Program, Ran, nth};
use super::{atomicity, history::History, locks, targets, wakeups};
use heisen_trace::Target;
use std::collections::BTreeSet;

const PROGRAMS: u64 = 2000;

/// Nested lock sections with accesses inside.
fn sections(chance: &mut Chance, held: &mut Vec<u64>, room: &mut usize, accesses: bool) -> Vec<Does> {
    let mut code = Vec::new();
    for _ in 0..=chance.below(2) {
        if *room == 0 {
            break;
        }
        *room -= 1;
        let lock = chance.below(3);
        if accesses && chance.below(2) == 0 {
            code.push(if chance.below(2) == 0 { Does::Read(0) } else { Does::Write(0) });
        } else if !held.contains(&lock) {
            code.push(Does::Lock(lock));
            held.push(lock);
            code.extend(sections(chance, held, room, accesses));
            held.pop();
            code.push(Does::Unlock(lock));
        }
    }
    code
}

fn program(seed: u64, threads: u64, room: usize, accesses: bool) -> Program {
    let mut chance = Chance::new(seed);
    let mut threads: Vec<Vec<Does>> = (0..threads)
        .map(|_| {
            let mut left = room;
            let mut code = sections(&mut chance, &mut vec![], &mut left, accesses);
            code.extend(sections(&mut chance, &mut vec![], &mut left, accesses));
            code
        })
        .collect();
    // Sometimes the last thread is created after the others were joined.
    if chance.below(4) == 0 {
        let last = threads.pop().into_iter().collect();
        return Program { groups: vec![threads, last] };
    }
    Program::of(threads)
}

fn hangs(program: &Program, targets: &[Target]) -> bool {
    targets.iter().any(|target| program.steered(&target.holds).hung)
}

fn predicted(ran: &Ran, family: fn(&History, usize) -> Vec<Target>) -> Vec<Target> {
    family(&History::read(&ran.execution), 1000)
}

#[test]
fn deadlocks_are_predicted_from_any_execution_without_one_and_led_to() {
    let (mut with, mut without, mut led) = (0, 0, 0);
    for seed in 0..PROGRAMS {
        let program = program(seed, 3, 5, false);
        let can = program.can_hang();
        for ran in [program.default_run(), program.random_run(seed), program.random_run(!seed)] {
            if ran.hung {
                assert!(can);
                continue;
            }
            let targets = predicted(&ran, locks::targets);
            assert_eq!(!targets.is_empty(), can, "seed {seed}: {program:?}");
            *if can { &mut with } else { &mut without } += 1;
            led += usize::from(can && hangs(&program, &targets));
        }
    }
    assert!(with > 500 && without > 500, "{with} with deadlocks, {without} without");
    assert_eq!(led, with, "all of them are led to");
}

/// Triples of accesses as (thread, its first access, other thread, its access), by index.
type Indices = BTreeSet<(usize, usize, usize, usize)>;

/// The triples of an execution that are not equivalent to one in which the other thread comes before or
/// after.
fn torn(accesses: &[Access]) -> Indices {
    let mut all = Indices::new();
    for (at, &(thread, first, _, one)) in accesses.iter().enumerate() {
        let later = &accesses[at + 1..];
        let Some(next) = later.iter().position(|a| a.0 == thread) else { continue };
        let two = later[next].3;
        for &(other, between, _, middle) in &later[..next] {
            let bad = [(false, true, false), (true, true, false), (true, false, true), (false, true, true)];
            if bad.contains(&(one, middle, two)) {
                all.insert((thread, first, other, between));
            }
        }
    }
    all
}

#[test]
fn torn_accesses_are_those_of_all_schedules() {
    let mut count = 0;
    for seed in 0..300 {
        let program = program(seed, 2, 4, true);
        if program.can_hang() {
            continue;
        }
        let all: Indices = program.all_orders().iter().flat_map(|accesses| torn(accesses)).collect();
        let ran = program.default_run();
        let seen = torn(&ran.accesses);
        let history = History::read(&ran.execution);
        let code: Vec<&Vec<Does>> = program.groups.iter().flatten().collect();
        let index = |thread: u16, wanted: u32| {
            let thread = usize::from(thread);
            let accesses = nth(code[thread - 1])
                .into_iter()
                .filter(|&(index, _)| matches!(code[thread - 1][index], Does::Read(_) | Does::Write(_)));
            accesses.into_iter().find(|&(_, nth)| nth == wanted).map(|(index, _)| (thread, index)).unwrap()
        };
        let told: Indices = atomicity::triples(&history, usize::MAX / 8)
            .iter()
            .filter(|triple| triple.first.op().is_none())
            .map(|triple| {
                let (thread, first) = index(triple.first.thread(), triple.first.deed.nth);
                let (other, between) = index(triple.between.thread(), triple.between.deed.nth);
                (thread, first, other, between)
            })
            .collect();
        assert_eq!(told, all.difference(&seen).copied().collect(), "seed {seed}: {program:?}");
        count += told.len();
        let targets = atomicity::targets(&history, 1000);
        let led: Indices =
            targets.iter().flat_map(|target| torn(&program.steered(&target.holds).accesses)).collect();
        assert_eq!(told.difference(&led).collect::<Vec<_>>(), Vec::<&_>::new(), "seed {seed}: {program:?}");
    }
    assert!(count > 300, "{count}");
}

#[test]
fn lost_wake_ups_are_led_to_where_there_are_any() {
    let (mut with, mut without) = (0, 0);
    for seed in 0..PROGRAMS {
        let mut chance = Chance::new(seed);
        let looks = chance.below(2) == 0;
        let waits =
            vec![Does::Lock(0), if looks { Does::WaitUnless(0, 0) } else { Does::Wait(0) }, Does::Unlock(0)];
        // Write and signal, in this order or the other, each with or without the lock.
        let mut signals: Vec<Does> = Vec::new();
        let first_writes = chance.below(3) != 0;
        let (one, two) =
            if first_writes { (Does::Write(0), Does::Signal) } else { (Does::Signal, Does::Write(0)) };
        match chance.below(4) {
            0 => signals.extend([one, two]),
            1 => signals.extend([Does::Lock(0), one, two, Does::Unlock(0)]),
            2 => signals.extend([Does::Lock(0), one, Does::Unlock(0), two]),
            _ => signals.extend([one, Does::Lock(0), two, Does::Unlock(0)]),
        }
        let program = Program::of(vec![waits, signals]);
        let ran = program.default_run();
        assert!(!ran.hung, "the wait comes first");
        let found = hangs(&program, &predicted(&ran, wakeups::targets));
        assert_eq!(found, program.can_hang(), "seed {seed}: {program:?}");
        *if found { &mut with } else { &mut without } += 1;
    }
    assert!(with > 100 && without > 100, "{with}, {without}");
}

#[test]
fn what_is_ordered_by_creation_and_joins_is_not_predicted() {
    let forward = vec![Does::Lock(0), Does::Lock(1), Does::Write(0), Does::Unlock(1), Does::Unlock(0)];
    let backward = vec![Does::Lock(1), Does::Lock(0), Does::Write(0), Does::Unlock(0), Does::Unlock(1)];
    let one_by_one = Program { groups: vec![vec![forward.clone()], vec![backward.clone()]] };
    assert!(targets(&one_by_one.default_run().execution).is_empty());
    let at_a_time = Program::of(vec![forward, backward]);
    assert!(!targets(&at_a_time.default_run().execution).is_empty());
}

#[test]
fn a_gate_keeps_the_locks_apart() {
    let under = |first, second| {
        vec![
            Does::Lock(2),
            Does::Lock(first),
            Does::Lock(second),
            Does::Unlock(second),
            Does::Unlock(first),
            Does::Unlock(2),
        ]
    };
    let program = Program::of(vec![under(0, 1), under(1, 0)]);
    assert!(predicted(&program.default_run(), locks::targets).is_empty());
}

#[test]
fn a_cycle_of_six() {
    let philosopher = |i: u64| {
        let (left, right) = (i, (i + 1) % 6);
        vec![Does::Lock(left), Does::Lock(right), Does::Unlock(right), Does::Unlock(left)]
    };
    let program = Program::of((0..6).map(philosopher).collect());
    let targets = predicted(&program.default_run(), locks::targets);
    assert_eq!(targets.len(), 2, "there and back");
    assert_eq!(targets[0].deeds.len(), 12);
    assert!(hangs(&program, &targets));
}

#[test]
fn half_a_log_is_no_reason_to_fail() {
    let program = program(3, 3, 5, true);
    let mut execution = program.random_run(1).execution;
    while execution.touches.pop().is_some() {
        targets(&execution);
    }
}
