//! Tests that searches with little memory explore the same as searches with enough.

use crate::toy::drive::{Pace, drive, drive_for, sorted};
use crate::toy::program::Do::{Add, Choose, Load, Lock, Store, Unlock};
use crate::toy::program::{Program, independent};
use heisen_search::{Best, Dfs, Icb, Room, Search, SpillFile, Strategy};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

/// A spill file in memory that counts its writes.
#[derive(Debug, Default)]
struct Counting(Mutex<(u64, HashMap<u64, Vec<u8>>)>);

impl SpillFile for Counting {
    fn put(&self, bytes: &[u8]) -> io::Result<u64> {
        let (count, places) = &mut *self.0.lock().unwrap();
        *count += 1;
        places.insert(*count, bytes.to_vec());
        Ok(*count)
    }

    fn get(&self, place: u64, _length: usize) -> io::Result<Vec<u8>> {
        Ok(self.0.lock().unwrap().1[&place].clone())
    }

    fn free(&self, place: u64, _length: usize) {
        assert!(self.0.lock().unwrap().1.remove(&place).is_some());
    }
}

fn programs() -> [Program; 3] {
    let locked = vec![Lock(0), Add(1), Unlock(0)];
    let racy = vec![Load(0), Store(0), Load(0)];
    [
        independent(3, 3),
        vec![locked.clone(), locked, vec![Choose(2), Add(1)]],
        vec![racy.clone(), racy, vec![Choose(2), Add(0)]],
    ]
}

fn searches() -> [Search; 3] {
    [Dfs::new().into(), Icb::new(None).into(), Icb::new(Some(2)).into()]
}

/// Runs a search with this much memory, and returns the number of executions.
fn with_room(mut search: Search, bytes: usize, program: &Program) -> (Search, usize) {
    let spill = Arc::new(Counting::default());
    search.bound_memory(Room { bytes, spill: spill.clone() });
    let visits = drive(&mut search, program, Pace::Batches(4)).len();
    assert!(spill.0.lock().unwrap().1.is_empty(), "what is explored needs no room");
    (search, visits)
}

#[test]
fn plans_in_the_spill_file_are_explored_in_their_order() {
    let mut put = 0;
    for program in programs() {
        for search in searches() {
            let mut free = search.clone();
            let whole = drive(&mut free, &program, Pace::Batches(4));
            let spill = Arc::new(Counting::default());
            let mut tight = search;
            tight.bound_memory(Room { bytes: 600, spill: spill.clone() });
            assert_eq!(drive(&mut tight, &program, Pace::Batches(4)), whole);
            assert_eq!(tight.status(), free.status());
            put += spill.0.lock().unwrap().0;
        }
    }
    assert!(put > 100, "{put} parcels are too few to show anything");
}

#[test]
fn a_search_that_is_saved_has_what_is_in_the_spill_file() {
    let program = independent(3, 3);
    for search in searches() {
        let whole = drive(&mut search.clone(), &program, Pace::Batches(1)).len();
        let spill = Arc::new(Counting::default());
        let mut tight = search;
        tight.bound_memory(Room { bytes: 600, spill: spill.clone() });
        let before = drive_for(&mut tight, &program, Pace::Batches(1), whole / 2).len();
        assert!(!spill.0.lock().unwrap().1.is_empty());
        let mut read: Search = serde_json::from_str(&serde_json::to_string(&tight).unwrap()).unwrap();
        let after = drive(&mut read, &program, Pace::Batches(1));
        assert_eq!(before + after.len(), whole);
        assert_eq!(drive(&mut tight, &program, Pace::Batches(1)), after);
    }
}

/// A full cache drops fewer branches, never more. Every state is still reached, and the number of executions
/// is between those with a cache and without.
#[test]
fn states_that_have_no_room_are_explored_again() {
    for program in programs() {
        for (cached, plain) in [
            (Search::from(Dfs::new().cached()), Search::from(Dfs::new())),
            (Icb::new(None).cached().into(), Icb::new(None).into()),
        ] {
            let all = drive(&mut plain.clone(), &program, Pace::Batches(4)).len();
            let (free, fewest) = with_room(cached.clone(), 1 << 20, &program);
            assert_eq!(free.status().unnoted, 0);
            let (none, most) = with_room(cached.clone(), 600, &program);
            assert!(none.status().unnoted > 0 && none.status().exhaustive);
            assert_eq!((most, none.status().dropped), (all, 0), "without any room nothing is left out");
            let (some, between) = with_room(cached, 2400, &program);
            assert!((fewest..=all).contains(&between), "{fewest} {between} {all}");
            assert!(some.status().exhaustive);
        }
    }
}

/// Classes that do not fit into memory count as new. That may change the order of executions, but not their
/// set.
#[test]
fn best_with_little_room_explores_the_same() {
    for program in programs() {
        let whole = sorted(&drive(&mut Best::new(None, vec![]), &program, Pace::Batches(4)));
        for bytes in [600, 20_000] {
            let spill = Arc::new(Counting::default());
            let mut tight = Search::from(Best::new(None, vec![]));
            tight.bound_memory(Room { bytes, spill: spill.clone() });
            let mut visits = drive_for(&mut tight, &program, Pace::Batches(1), whole.len() / 2);
            assert!(bytes > 600 || !spill.0.lock().unwrap().1.is_empty());
            let mut read: Search = serde_json::from_str(&serde_json::to_string(&tight).unwrap()).unwrap();
            let rest = drive(&mut read, &program, Pace::Batches(4));
            assert_eq!(sorted(&[&visits[..], &rest[..]].concat()), whole);
            visits.extend(drive(&mut tight, &program, Pace::Batches(4)));
            assert_eq!(sorted(&visits), whole);
            assert!(spill.0.lock().unwrap().1.is_empty(), "what is explored needs no room");
        }
    }
}
