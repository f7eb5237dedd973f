//! The commands of `heisen`, one file each. A command calls the engine and renders the result.

pub mod cc;
pub mod check;
pub mod coverage;
pub mod diff;
pub mod explain;
pub mod mcp;
pub mod pages;
pub mod prepared;
pub mod replay;
pub mod run;
pub mod script;
pub mod show;
