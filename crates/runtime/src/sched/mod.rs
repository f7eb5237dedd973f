//! The scheduler: which threads exist, which of them are enabled, and which of them takes the next step.
//!
//! **Rule:** uses `platform` and `wire_log` only. The rooms above plug in through [`hooks`], which serve cold
//! paths only. Whatever a scheduling point needs at each step lies in this room.
//!
//! | module | what it is |
//! | --- | --- |
//! | `core` | the state that every scheduling point uses: the sets of threads, the choice and the switch |
//! | `thread`, [`thread_set`], [`handles`] | the record of a thread; sets of threads; which thread has which `pthread_t` |
//! | `wait`, `queue`, `deadline` | the ways to wait: for an object or a signal, in a queue, until a deadline |
//! | [`decision`], [`policy`] | a decision, and the choice where the plan fixes none |
//! | [`plan`], [`alarm`] | the overrides of the plan, and the step at which something is due next |
//! | `known_choice` | choices that a policy announces in advance: the fast path |
//! | [`events`], [`operation_log`] | the log of steps; the visible operations of a symbolic trace |
//! | [`pause`], [`debugger`] | where the execution stops, for the engine or a debugger |
//! | [`dependence`], [`sleep_sets`], [`symmetry`] | reductions: what each step touches, which threads need not run, which are interchangeable |
//! | [`fair`], [`spin`], [`recurrence`] | fairness, spin loops, livelocks |
//! | [`faults`], [`scope`], [`atomic_section`] | calls that fail, code without preemption, sections that are one step |
//! | [`clock`], [`arrived_signals`], [`script_state`] | virtual time; what the scheduler knows of signals and of a script |
//! | [`epoch`], [`access_mode`], [`object_key`] | for the race check: when a thread last synchronised, what is done at an access, objects without an address |
//! | [`hooks`] | the functions that the rooms above plug in |

pub mod access_mode;
pub mod alarm;
pub mod arrived_signals;
pub mod atomic_section;
pub mod clock;
mod core;
mod deadline;
pub mod debugger;
pub mod decision;
pub mod dependence;
pub mod epoch;
pub mod events;
pub mod fair;
pub mod faults;
pub mod handles;
pub mod hooks;
mod known_choice;
pub mod object_key;
pub mod operation_log;
pub mod pause;
pub mod plan;
pub mod policy;
mod queue;
pub mod recurrence;
pub mod scope;
pub mod script_state;
pub mod sleep_sets;
pub mod spin;
pub mod symmetry;
mod thread;
pub mod thread_set;
mod wait;

pub use self::core::{
    NONE, Reason, SCHED, Sched, add, add_errand, awaited, candidates, cannot, enable, end, freed,
    has_errands, has_others, hold, init, is_candidate, is_needed, me, needs, next_step, point, remove_errand,
    reschedule, taken, thread, threads, watch_steps, without_owner, words, yield_point,
};
pub use arrived_signals::Delivered;
pub use deadline::{become_timer, is_near, next_deadline, set_timer, time_passed, timer_fires, timer_waits};
pub use known_choice::KnownChoice;
pub use queue::{
    ANY, Left, MANY, sleep_in_queue, sleep_in_queue_interruptibly, take_off, take_off_met, ticket,
    wait_in_queue, waiters,
};
pub use thread::{Thread, uncontrolled};
pub use wait::{
    Signals, Woken, interrupt, leave_waits, release, set_ready, wait_for, wait_for_interruptibly,
    wait_for_key, wait_for_signal, wait_outside,
};

use self::core::{count_candidates, disable, set_need};
