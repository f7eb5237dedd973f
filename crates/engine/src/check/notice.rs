//! What a check reports while it runs, as data: the engine prints nothing.

use crate::check::changed::Changed;
use crate::error::Error;
use heisen_search::Status;
use std::path::Path;
use std::time::Duration;

/// Something to show while a check runs. It does not affect the outcome.
#[derive(Debug)]
pub enum Notice<'a> {
    /// How far the search is; sent several times a second.
    Progress(&'a Progress<'a>),
    /// The code with which the search begins (`--changed-since`).
    ChangedCode {
        /// The revision that the code is compared with.
        revision: &'a str,
        /// The executable.
        program: &'a Path,
        /// The changed code.
        changed: &'a Changed,
    },
    /// The access points that an earlier check stored cannot be read.
    AccessPointsNotRead(&'a Error),
    /// The access points cannot be stored for the next check.
    AccessPointsNotStored(&'a Error),
    /// The search cannot be saved, but continues. Reported once.
    NotSaved(&'a Error),
}

/// Receives the notices of a check.
pub type Notify<'a> = dyn FnMut(Notice<'_>) + 'a;

/// How far a search is.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Executions so far.
    pub executions: u64,
    /// Executions after which the search ends.
    pub limit: Option<u64>,
    /// Time so far.
    pub time: Duration,
    /// The state of the strategy at the last batch.
    pub status: &'a Status,
    /// Findings so far.
    pub findings: usize,
}
