//! Scripts: a script fixes a part of a schedule, and the search explores the rest.
//!
//! After CONCURRIT (Elmas, Burnim, Necula, Sen, PLDI'13). A script runs together with the program, once for
//! each execution. It waits for events of threads, releases threads, and makes choices. An oracle resolves
//! the choices, differently each time.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`source`] | the text of a script, and the functions and lines that it names |
//! | [`predicate`] | sets of events |
//! | [`event`] | the next operation of a thread |
//! | [`oracle`] | resolves choices, and decides in which order they are explored |
//! | [`run`] | one execution: `select` and `release`, and why they may be infeasible |
//! | [`threads`] | sets of threads |
//! | [`subject`] | what a script controls: one program, or a system whose threads run in parallel |
//! | `processes` | commands for the processes of a system |
//! | `words` | describes executions in words |
//! | [`script`] | a script: a text, or a remote one |
//! | [`remote`] | a script in another process: a Rust function beside its test |
//! | `language` | the functions and types of the language, for rhai |
//! | `names` | the names of its functions, for messages |
//! | `library` | functions built from `select`, `release` and `choose`: figure 8 of the paper, and the patterns of section 5.1 |
//! | `promises` | commands for decisions that are not about threads |
//! | [`record`] | an execution along a schedule, as a script would see it |
//! | [`generate`] | turns a finding into a script |
//! | [`mod@test`] | runs the executions of a script, one after the other |

pub mod event;
pub mod generate;
mod language;
mod library;
mod names;
pub mod oracle;
pub mod predicate;
mod processes;
mod promises;
pub mod record;
pub mod remote;
pub mod run;
pub mod script;
pub mod source;
pub mod subject;
pub mod test;
pub mod threads;
mod words;
