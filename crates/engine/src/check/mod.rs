//! Runs a check: gives batches of plans to all workers, takes their results, and computes the verdict.
//!
//! This is the top folder: it uses all others, and none uses it. It prints nothing: everything for the user
//! is returned as data.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`session`] | a check as its caller sees it: begin or resume, run, write files |
//! | `options`, `notice`, `outcome` | the user's settings; reports while a check runs; its results |
//! | `case`, `state` | the program and how its executions run; the current search |
//! | `batch`, `worker`, `plan_result` | the batch loop; the threads that run plans; the result of one plan |
//! | `results`, `confirm`, `races` | takes results; confirms failures; confirms data races |
//! | `predictions`, `hang`, `dpor_opening` | predictions in words; executions that hang; how `dpor` begins |
//! | `verdict`, `caveat` | what was explored; what was not |
//! | [`saved`], [`coverage`], `access_point_file`, `plan_spill` | files: search, coverage, access points, plans |
//! | [`scope`], [`changed`] | the code that `--focus` and `--no-preempt` name; changed code |

mod access_point_file;
mod batch;
mod case;
mod caveat;
pub mod changed;
mod confirm;
pub mod coverage;
mod dpor_opening;
mod hang;
mod notice;
mod options;
mod outcome;
mod plan_result;
mod plan_spill;
mod predictions;
mod races;
mod results;
pub mod saved;
pub mod scope;
pub mod session;
mod state;
mod verdict;
mod worker;

pub use caveat::{Caveat, Differs};
pub use notice::{Notice, Notify, Progress};
pub use options::{Kind, Options, Races, rounds, trace_memory};
pub use outcome::{Empty, Ended, Outcome, Reach, Tally};

use crate::error::Result;
use batch::BatchLoop;
use case::Case;
use heisen_search::{Room, Search, Strategy};
use plan_spill::Disk;
use saved::Autosave;
use state::State;
use std::path::Path;
use std::sync::Arc;
use worker::Shared;

/// Runs a search to its end and computes the outcome. Plans that do not fit into memory go to a spill file in
/// `directory`.
fn run(
    case: &Case<'_>,
    search: Search,
    mut tally: Tally,
    directory: &Path,
    mut autosave: Option<Autosave>,
    notify: &mut Notify<'_>,
) -> Result<Outcome> {
    if dpor_opening::applies(case, &tally) {
        Arc::make_mut(&mut tally.points).all = true;
    }
    if let Some(autosave) = &mut autosave {
        // A search that cannot be saved does not begin.
        autosave.save(&tally, &search)?;
    }
    tally.forget_deadline();
    case.warm_up()?;
    let shared = Shared::default();
    let memory = Room { bytes: case.options.memory, spill: Arc::new(Disk::new(directory)) };
    std::thread::scope(|scope| {
        worker::start_all(scope, case, &shared)?;
        let mut state = State::new(case, search, tally, memory);
        let ended = BatchLoop::new(&mut state, &shared, autosave).run(notify);
        shared.close();
        match ended {
            Ok(ended) => state.conclude(ended),
            Err(error) if state.has_findings() || state.search.status().trouble.is_some() => {
                // After an error the findings so far are still reported.
                Ok(Outcome { error: Some(error), ..state.conclude(Ended::Failed)? })
            }
            Err(error) => Err(error),
        }
    })
}
