//! The list of tests for each crate. The tests themselves are in the packages beside this file.

/// A use of a crate in its current version.
#[derive(Debug)]
pub struct Smoke {
    /// The test in the package `smoke`; it has the name of the crate.
    pub test: &'static str,
    /// What the threads of the test do.
    pub operations: &'static str,
    /// The limit of executions, if bound 2 has too many.
    pub executions: Option<u64>,
}

const fn smoke(test: &'static str, operations: &'static str) -> Smoke {
    Smoke { test, operations, executions: None }
}

pub const SMOKE: &[Smoke] = &[
    smoke("std_mpsc", "two sends, receives, the end of the channel"),
    smoke("crossbeam_channel", "a channel with room for one: a send, receives, the end of the channel"),
    smoke("crossbeam_deque", "the owner of two tasks pops them, a thief steals"),
    Smoke {
        executions: Some(1000),
        ..smoke("crossbeam_epoch", "a writer replaces a value and has the old one destroyed, a reader")
    },
    smoke("parking_lot", "`Mutex` and `Condvar`: one waits for a count, one counts"),
    smoke("dashmap", "an entry that both change, an insertion and a removal of another"),
    smoke("flume", "a channel with room for one: two sends, receives, the end of the channel"),
    smoke("once_cell", "both initialise a cell"),
    smoke("arc_swap", "a store, two loads"),
    Smoke { executions: Some(1000), ..smoke("rayon", "a pool of two, `join`") },
    Smoke {
        executions: Some(1000),
        ..smoke("tokio", "a runtime of two workers, two tasks, a oneshot channel")
    },
    smoke("async_channel", "a channel with room for one: a send, receives, the end of the channel"),
    smoke("event_listener", "one listens for an event, one notifies"),
];

/// A bug of an old version that was published and fixed.
#[derive(Debug)]
pub struct Bug {
    /// The test in the packages `old` and `fixed`; it has the name of the crate.
    pub test: &'static str,
    /// Where the bug was published.
    pub published: &'static str,
    /// A part of the message of the finding.
    pub message: &'static str,
    /// The limit of executions of the fixed version, if bound 2 has too many.
    pub executions: Option<u64>,
}

const fn bug(test: &'static str, published: &'static str, message: &'static str) -> Bug {
    Bug { test, published, message, executions: None }
}

pub const BUGS: &[Bug] = &[
    Bug {
        executions: Some(3000),
        ..bug("crossbeam_channel", "RUSTSEC-2025-0024", "that it has freed already")
    },
    bug("flume", "flume's issue 78", "assertion `left == right` failed"),
    bug("internment", "RUSTSEC-2020-0017", "that T2 has freed"),
    bug("spin", "RUSTSEC-2023-0031", "Encountered INCOMPLETE when polling Once"),
    bug("thread_local", "RUSTSEC-2022-0006", "nothing orders the two"),
    bug("tokio", "RUSTSEC-2021-0124", "that T1 has freed"),
];
