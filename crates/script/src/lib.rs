//! Scripts: what is known of a schedule is said, and the rest is searched.
//!
//! After CONCURRIT (Elmas, Burnim, Necula, Sen, PLDI'13). A script is run along with the program, once for each execution: it
//! waits for events of threads, lets threads go on, and chooses; an oracle resolves its choices, differently each time.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`source`] | the text of a script, and what it names |
//! | [`predicate`] | sets of events |
//! | [`event`] | what a thread is about to do |
//! | [`oracle`] | who resolves choices, and in which order they are explored |
//! | [`run`] | one execution: `select` and `release`, and why neither may be possible |
//! | [`threads`] | sets of threads |
//! | [`subject`] | what a script is run with: one program under control, or a system whose threads run free |
//! | `processes` | what it can say of the processes of a system |
//! | `words` | what an execution has come to, in words |
//! | [`script`] | what a script is: a text, or one that is run elsewhere |
//! | [`remote`] | a script that is run elsewhere: a function in Rust, next to its test |
//! | `language` | the words of the language, for rhai |
//! | `names` | the names of its functions, for messages |
//! | `library` | functions made of `select`, `release` and `choose`: figure 8 of the paper, and the patterns of section 5.1 |
//! | `promises` | what it can say of decisions that are none of threads |
//! | [`record`] | an execution along a schedule, as a script would see it |
//! | [`generate`] | a script from a finding |
//! | [`test`] | the executions of a script, one after the other |

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
