//! Tests of the runtime: under its scheduler, programs behave in every schedule as they do natively.

mod api;
mod attempts;
mod carriers;
mod complete;
mod conformance;
mod controlled;
mod exits;
mod header;
mod machine;
mod outside;
mod primitives;
mod rooms;
mod rust_locks;
mod sections;
mod signals;
mod stdin;
mod strings;
mod suite;
mod symbolic;
mod undone;
mod unjoined;
