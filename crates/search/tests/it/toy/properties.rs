//! Compares the strategies with the oracle on random programs (proptest).

use crate::toy::drive::{Pace, drive, drive_one_by_one, sorted};
use crate::toy::oracle::{Outcome, schedules};
use crate::toy::program::{Do, OBJECTS, Program};
use heisen_search::{Best, Dfs, Icb, Strategy};
use heisen_testkit::usual_or_nightly;
use proptest::prelude::{Just, ProptestConfig, prop};
use proptest::strategy::Strategy as Generator;
use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};

/// Programs with more schedules than this are left out.
const MOST: usize = 1500;

fn operation() -> impl Generator<Value = Do> {
    prop_oneof![
        3 => Just(Do::Step),
        3 => (0..OBJECTS).prop_map(Do::Lock),
        3 => (0..OBJECTS).prop_map(Do::Unlock),
        2 => (0..OBJECTS).prop_map(Do::Post),
        2 => (0..OBJECTS).prop_map(Do::Wait),
        1 => (1..4u16).prop_map(Do::Choose),
        1 => (0..OBJECTS).prop_map(Do::Try),
        1 => Just(Do::Doze),
    ]
}

/// A program and its schedules, sorted.
fn program() -> impl Generator<Value = (Program, Vec<Outcome>)> {
    let thread = prop::collection::vec(operation(), 1..6);
    prop::collection::vec(thread, 1..5).prop_filter_map("too many schedules", |program| {
        let mut all = schedules(&program, MOST)?;
        all.sort();
        Some((program, all))
    })
}

fn pace() -> impl Generator<Value = Pace> {
    prop_oneof![(1..9usize).prop_map(Pace::Batches), (1..9usize).prop_map(Pace::Window)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: usual_or_nightly(50, 200), max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn dfs_visits_every_schedule_once((program, all) in program(), pace in pace()) {
        let mut dfs = Dfs::new();
        let visits = drive(&mut dfs, &program, pace);
        prop_assert_eq!(sorted(&visits), all);
        prop_assert!(dfs.status().exhausted && dfs.status().exhaustive);
        for (plan, whole) in visits {
            prop_assert_eq!(plan.preemptions, whole.preemptions);
        }
    }

    #[test]
    fn icb_visits_those_within_the_bound_in_order(
        (program, mut all) in program(),
        max in prop::option::of(0..5u32),
        pace in pace(),
    ) {
        let most = all.iter().map(|w| w.preemptions).max().unwrap();
        all.retain(|w| max.is_none_or(|max| w.preemptions <= max));
        let mut icb = Icb::new(max);
        let visits = drive(&mut icb, &program, pace);
        prop_assert_eq!(sorted(&visits), all);
        prop_assert!(visits.is_sorted_by_key(|(_, whole)| whole.preemptions));
        for (plan, whole) in visits {
            prop_assert_eq!(plan.preemptions, whole.preemptions);
        }
        let status = icb.status();
        prop_assert!(status.exhausted);
        prop_assert_eq!(status.exhaustive, max.is_none_or(|max| max >= most));
        prop_assert_eq!(status.explored_bound, Some(max.map_or(most, |max| max.min(most))));
    }

    #[test]
    fn best_visits_those_within_the_bound_once(
        (program, mut all) in program(),
        max in prop::option::of(0..5u32),
        changed in prop::collection::vec((0x1000..0x1080u64, 0x1080..0x2100u64), 0..2),
        pace in pace(),
    ) {
        let most = all.iter().map(|w| w.preemptions).max().unwrap();
        all.retain(|w| max.is_none_or(|max| w.preemptions <= max));
        let mut best = Best::new(max, changed);
        let visits = drive(&mut best, &program, pace);
        prop_assert_eq!(sorted(&visits), all);
        let status = best.status();
        prop_assert!(status.exhausted);
        prop_assert_eq!(status.exhaustive, max.is_none_or(|max| max >= most));
        prop_assert_eq!(status.explored_bound, max);
    }

    #[test]
    fn icb_finds_a_deadlock_with_the_fewest_preemptions((program, all) in program()) {
        let fewest = all.iter().filter(|w| w.deadlock).map(|w| w.preemptions).min();
        let visits = drive_one_by_one(&mut Icb::new(None), &program);
        let found = visits.iter().find(|(_, w)| w.deadlock).map(|(p, _)| p.preemptions);
        prop_assert_eq!(found, fewest);
    }

    #[test]
    fn the_counts_of_waiting_plans_are_right((program, all) in program()) {
        let mut dfs = Dfs::new();
        let mut left = all.len();
        while let Some(plan) = dfs.next() {
            let before = dfs.status();
            prop_assert!(before.queued + before.out <= left);
            let run = crate::toy::runner::run(&program, &plan);
            dfs.done(&plan, &run.execution);
            left -= 1;
        }
        prop_assert_eq!((left, dfs.status().queued), (0, 0));
    }
}
