//! Tests of scripts: the language, scripts on systems, and scripts made from findings.

mod from_finding;
mod language;
mod system;
