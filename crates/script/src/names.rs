//! The names of the functions of the language, for messages about unknown functions.

/// The functions that a script can call, without those of rhai itself.
#[rustfmt::skip]
pub const FUNCTIONS: &[&str] = &[
    "accesses", "assert", "assume", "at", "at_control", "calls", "choose", "choose_thread",
    "context_bounded", "end_run", "ends", "enters", "exact_schedule", "exists", "forall", "has_ended",
    "in_func", "in_process", "let_choose", "let_fail", "let_wake", "let_wake_early", "locks",
    "of_program", "operation", "permute", "print", "reads", "release", "returns", "returns_value",
    "run_through", "run_until", "satisfies", "search_all", "search_in_buggy", "search_in_func",
    "search_in_func_large_steps", "search_seq", "select", "start", "starts", "stop", "test_end",
    "test_start", "time_limit", "unlocks", "wait_for_distinct_threads", "wait_for_end",
    "wait_for_output", "wait_for_port", "wait_for_thread", "with_arg0", "with_arg1", "with_value",
    "writes",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that register functions with rhai.
    const SOURCES: [&str; 3] =
        [include_str!("language.rs"), include_str!("promises.rs"), include_str!("processes.rs")];

    #[test]
    fn all_functions_are_there() {
        let text = SOURCES.concat();
        for name in FUNCTIONS.iter().filter(|name| **name != "print") {
            assert!(text.contains(&format!("\"{name}\"")), "{name} is none");
        }
        let hidden = ["part", "tell", "to_string", "to_debug"];
        for told in text.split("register_fn(").skip(1) {
            let Some(name) = told.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next())
            else {
                continue;
            };
            let is_sign = !name.starts_with(|c: char| c.is_ascii_alphabetic());
            assert!(is_sign || hidden.contains(&name) || FUNCTIONS.contains(&name), "{name} is missing");
        }
    }
}
