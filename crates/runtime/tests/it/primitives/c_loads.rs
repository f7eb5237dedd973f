//! Tests of shared libraries that have thread-local variables and keys.

use crate::suite::{Suite, programs};
use heisen_testkit::scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

fn library(directory: &Path, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let library = directory.join(name);
    let mut command = Command::new("cc");
    command.args(["-g", "-pthread", "-shared", "-fPIC"]).args(flags);
    let status = command.arg(programs().join(source)).arg("-o").arg(&library).status();
    assert!(status.expect("cc runs").success(), "{source}");
    library
}

fn loads(flags: &[&str]) {
    let directory = scratch();
    let at = directory.path().to_str().expect("a plain path");
    library(directory.path(), "keyed.c", "libkeyed.so", &[]);
    let plugin = library(directory.path(), "plugin.c", "plugin.so", flags);
    let (search, path) = (format!("-L{at}"), format!("-Wl,-rpath,{at}"));
    let flags = [search.as_str(), path.as_str(), "-lkeyed", "-ldl"];
    Suite::in_directory(directory, "loads.c", &flags).with("PLUGIN", plugin).conform(4);
}

#[test]
fn libraries_with_thread_local_variables() {
    loads(&[]);
}

#[test]
fn libraries_with_thread_local_variables_of_fixed_place() {
    loads(&["-DSTATIC_TLS"]);
}
