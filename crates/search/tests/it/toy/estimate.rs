//! Compares the estimate of the remaining executions with their real number.

use crate::toy::drive::{Pace, drive, drive_for};
use crate::toy::program::Do::{Choose, Load, Lock, Step, Store, Unlock};
use crate::toy::program::{Program, independent};
use heisen_search::{Dfs, Icb, Remaining, Search, Strategy};

fn programs() -> [Program; 4] {
    let locked = vec![Lock(0), Step, Unlock(0)];
    let racy = vec![Load(0), Store(0), Load(0)];
    [
        independent(3, 2),
        vec![locked.clone(), locked, vec![Choose(3), Step]],
        vec![racy.clone(), racy],
        vec![vec![Choose(2), Choose(3), Choose(2)]],
    ]
}

#[test]
fn at_the_end_nothing_is_left() {
    for program in programs() {
        for search in [Dfs::new().into(), Icb::new(None).into(), Icb::new(Some(1)).into()] {
            for cached in [false, true] {
                let mut search: Search = match search {
                    Search::Dfs(ref dfs) if cached => dfs.clone().cached().into(),
                    Search::Icb(ref icb) if cached => icb.clone().cached().into(),
                    ref search => search.clone(),
                };
                drive(&mut search, &program, Pace::Batches(4));
                let left = search.status().remaining;
                assert!(left.is_none_or(|left| left.executions == 0), "{left:?}: {program:?}");
            }
        }
    }
}

/// If all subtrees have the same size, the first executions give the exact number.
#[test]
fn an_even_tree_is_known_at_once() {
    // An outcome v skips v steps. The steps between the choices make sure that every outcome reaches the next
    // choice.
    let program = vec![vec![Choose(2), Step, Choose(3), Step, Step, Choose(4)]];
    let mut dfs = Dfs::new();
    for done in 1..=24 {
        assert_eq!(drive_for(&mut dfs, &program, Pace::Batches(1), 1).len(), 1);
        let known = (done >= 2).then_some(Remaining { executions: 24 - done, factor: 1.0 });
        assert_eq!(dfs.status().remaining.map(rounded), known, "after {done}");
    }
    assert!(dfs.status().exhausted);
}

/// The weights are sums of fractions such as 1/3, so they need rounding.
fn rounded(left: Remaining) -> Remaining {
    Remaining { factor: (left.factor * 1e9).round() / 1e9, ..left }
}

/// In an uneven tree the estimate of the total is off by less than a factor of 2 from half way on.
#[test]
fn an_uneven_tree() {
    for program in programs() {
        let whole = drive(&mut Dfs::new(), &program, Pace::Batches(1)).len() as f64;
        let mut dfs = Dfs::new();
        let mut done = 0.0;
        while done < whole {
            drive_for(&mut dfs, &program, Pace::Batches(1), 1);
            done += 1.0;
            if done * 2.0 >= whole
                && let Some(left) = dfs.status().remaining
            {
                let told = done + left.executions as f64;
                assert!(told / whole < 2.0 && whole / told < 2.0, "{told} of {whole} after {done}");
            }
        }
    }
}

/// When a bound begins, the plans deferred by the previous bound are its known roots.
#[test]
fn of_a_bound_the_roots_are_known() {
    // Without locks and with two threads, only the end of a thread switches without a preemption. So each
    // plan is one execution.
    let program = independent(2, 4);
    let mut icb = Icb::new(Some(2));
    let mut told = 0;
    while !icb.status().exhausted {
        drive_for(&mut icb, &program, Pace::Batches(1), 1);
        let status = icb.status();
        if status.bound == Some(2)
            && let Some(left) = status.remaining
        {
            told += 1;
            assert_eq!((left.executions, rounded(left).factor), (status.queued as u64, 1.0));
        }
    }
    assert!(told > 10, "{told}");
}
