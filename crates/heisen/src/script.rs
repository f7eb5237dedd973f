//! Scripts in Rust: a function beside the test fixes a part of the schedule, and Heisen searches the rest.
//!
//! The commands are those of the language of `heisen script` (`docs/reference/script-language.md` in Heisen's
//! repository), with the same names and the same engine. The test is the program, and the script is another
//! function:
//!
//! ```
//! use heisen::script::*;
//! use std::sync::Mutex;
//!
//! fn deposit(balance: &Mutex<i32>) {
//!     let seen = *balance.lock().unwrap();
//!     heisen::point_at(1);
//!     *balance.lock().unwrap() = seen + 1;
//! }
//!
//! // One thread stops between its read and its write while the other makes its deposit.
//! fn one_comes_between() {
//!     let [a, b] = wait_for_distinct_threads(enters("deposit"));
//!     run_until(a, at_control(1));
//!     run_until(b, returns("deposit"));
//!     run_until(a, returns("deposit"));
//! }
//!
//! #[heisen::test(script = one_comes_between)]
//! fn deposits_add_up() {
//!     let balance = Mutex::new(0);
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| deposit(&balance));
//!         scope.spawn(|| deposit(&balance));
//!     });
//!     assert_eq!(balance.into_inner().unwrap(), 2);
//! }
//! ```
//!
//! The script runs in the process of `cargo test`, at least once for each execution. The test itself runs in
//! other processes, under Heisen.
//!
//! A command that the execution can no longer follow unwinds out of the script function, without a message.
//! An ordinary panic in the script fails the test. A script must depend on nothing but the results of its
//! commands: otherwise Heisen cannot repeat its choices.
//!
//! Differences from the script language:
//!
//! - `..` stands where the language leaves out an argument: `reads(..)`, `select(t, ..)`.
//! - `any()`, `t.has_ended()` and the fields `file` and `line` of an event are functions.
//! - [`assert()`] always takes a text.
//! - [`wait_for_distinct_threads`] takes the number of threads from the array that it returns.
//!
//! The test harness runs each test in a thread of its own, `T1`. A script that waits for [`starts`] meets
//! this thread first:
//!
//! ```no_run
//! # use heisen::script::*;
//! release(wait_for_thread(any(), starts()));
//! search_seq(2); // of the threads that the test starts
//! ```

mod commands;
mod event;
mod patterns;
mod predicate;
mod session;
mod threads;

pub use commands::*;
pub use event::Event;
pub use patterns::*;
pub use predicate::*;
pub(crate) use session::{Ended, follow};
pub use threads::{Thread, Threads, any};

/// Writes a string as a literal of the script language.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Writes values as an array of the script language.
fn listed(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!(quoted("a\"b\\c\n\t\u{7f}ä"), "\"a\\\"b\\\\c\\u000a\\u0009\\u007fä\"");
        assert_eq!(listed(["1".to_owned(), "2".to_owned()]), "[1, 2]");
    }
}
