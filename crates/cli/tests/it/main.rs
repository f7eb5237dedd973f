//! Tests of the commands `heisen` and `cargo heisen`: their options, output and documents.

mod bad_input;
mod book;
mod build;
mod cargo;
mod docs;
mod examples;
mod gdb;
mod html;
mod inputs;
mod json;
mod mcp;
mod pages;
mod rooms;
mod symbolic;
mod symbolic_cpp;
mod symbolic_ends;
mod symbolic_rust;
mod symbolic_sync;
mod symbolic_table;
mod tasks;
mod verdicts;
