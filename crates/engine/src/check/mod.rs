//! A check: batches of plans over all workers, their results, and the verdict.
//!
//! The highest room: it uses all others, and none uses it. It prints nothing: what a person should see comes back as data.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`session`] | a check from the caller's side: begun or resumed, run, written to files |
//! | `options`, `notice`, `outcome` | what the user asks for; reports while it runs; what was done and found |
//! | `case`, `state` | the program and how its executions run; the search under way |
//! | `batch`, `worker`, `plan_result` | the batch loop; the threads that run plans; one result on its way |
//! | `results`, `confirm`, `races` | the result taker; the confirmer of failures, and of data races |
//! | `predictions`, `hang`, `dpor_opening` | predictions in words; executions that hang; how dpor begins |
//! | `verdict`, `caveat` | what was explored; what was not |
//! | [`saved`], [`coverage`], `access_point_file`, `plan_spill` | files: the search, its coverage, access points, waiting plans |
//! | [`scope`], [`changed`] | code that the user names; code that has changed |

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
pub use options::{Kind, Options, Races};
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

/// Runs a search to its end, and concludes. Plans that do not fit into memory go to a spill file in `directory`.
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
        // A search that cannot be saved is not begun.
        autosave.save(&tally, &search)?;
    }
    tally.forget_deadline();
    case.warm_up()?;
    let shared = Shared::default();
    let memory = Room { bytes: case.options.memory, shelf: Arc::new(Disk::new(directory)) };
    std::thread::scope(|scope| {
        worker::start_all(scope, case, &shared)?;
        let mut state = State::new(case, search, tally, memory);
        let ended = BatchLoop::new(&mut state, &shared, autosave).run(notify);
        shared.close();
        match ended {
            Ok(ended) => state.conclude(ended),
            Err(error) if state.has_findings() || state.search.status().trouble.is_some() => {
                // An error does not lose the findings.
                Ok(Outcome { error: Some(error), ..state.conclude(Ended::Failed)? })
            }
            Err(error) => Err(error),
        }
    })
}
