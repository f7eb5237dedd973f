//! The command line: what the user may say, and what it asks of the engine.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`args`] | the commands and their options |
//! | [`search_options`] | from the options of a search to what the engine takes |
//! | [`exit`] | exit codes |

pub mod args;
pub mod exit;
pub mod search_options;
