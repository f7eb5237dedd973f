//! Scripts in Rust: what is known of a schedule is said, next to the test, and the rest is searched.
//!
//! It is the language of `heisen script` (`docs/reference/script-language.md` in Heisen's repository) with the same names and the same engine behind it.
//! The test is the program, the script is another function:
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
//! // One thread stops between reading and writing, and the other does all of its work.
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
//! The script runs in the process of `cargo test`, once for each execution and sometimes once more; the test runs in processes of its own,
//! under Heisen. A command that cannot be followed any more leaves the function as a panic would, but says nothing; an ordinary panic is a
//! failure of the test. A script that depends on anything but what its commands give does not follow its own choices.
//!
//! Differences from the language of scripts: `..` stands for anything where that leaves an argument out (`reads(..)`, `select(t, ..)`), `any()` is a
//! function, and so are `t.has_ended()` and the fields `file` and `line` of an event; [`assert`] always takes a text; [`wait_for_distinct_threads`]
//! gives as many threads as are asked for.
//!
//! The harness runs a test in a thread of its own, T1, that starts like any other. What waits for [`starts`] meets it first:
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

/// A text as the language writes it.
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

/// Values as an array of the language.
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
