//! The commands of `heisen`, one file each: they parse, ask the engine, and have the result rendered.

pub mod cc;
pub mod check;
pub mod coverage;
pub mod replay;
pub mod run;
pub mod script;
pub mod show;
