//! The command line: commands, options and exit codes.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`args`] | the commands and their options |
//! | [`search_options`] | converts the options of a search into those of the engine |
//! | [`exit`] | exit codes |

pub mod args;
pub mod exit;
pub mod search_options;
