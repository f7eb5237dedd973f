//! Tests of the solver-driven search on Rust programs that call functions without instrumentation.

use crate::symbolic::searched;
use heisen_testkit::{Sandbox, usual_or_nightly};

/// The search finds no bug, and names these functions as a reason why it proves nothing.
#[track_caller]
fn names(functions: &[&str], options: &[&str], program: &str) {
    let sandbox = Sandbox::new();
    sandbox.write("calls.rs", program);
    let json = searched(&sandbox, 0, &[&["--strategy", "causal", "--races=off"], options].concat());
    assert_eq!(json["complete"], false, "{json:#}");
    let said = json["not_controlled"].to_string();
    assert!(functions.iter().all(|function| said.contains(function)), "{said}");
}

#[test]
fn functions_that_read_memory_or_files_are_named() {
    if !usual_or_nightly(false, true) {
        return;
    }
    names(
        &["memmem", "read"],
        &["calls.rs"],
        r#"
        use std::ffi::c_void;
        use std::fs::OpenOptions;
        use std::io::{Read, Write};
        use std::thread;
        unsafe extern "C" { fn memmem(text: *const c_void, size: usize, part: *const c_void, of: usize) -> *const c_void; }
        static mut TEXT: [u8; 4] = *b"abcd";
        fn main() {
            let mut to = OpenOptions::new().write(true).create(true).open("file").unwrap();
            let mut from = OpenOptions::new().read(true).open("file").unwrap();
            let t = thread::spawn(move || {
                unsafe { TEXT[0] = b'x' };
                to.write(b"x").unwrap();
            });
            let found = unsafe { memmem((&raw const TEXT).cast(), 4, c"xb".as_ptr().cast(), 2) };
            let read = from.read(&mut [0; 4]).unwrap();
            t.join().unwrap();
            assert!(found.is_null() || read > 0);
        }"#,
    );
}

#[test]
fn functions_that_read_inputs_before_there_are_threads_are_named() {
    names(
        &["memmem"],
        &["--input", "argv:1", "calls.rs", "--", "abc"],
        r#"
        use std::ffi::c_void;
        use std::os::unix::ffi::OsStringExt;
        use std::thread;
        unsafe extern "C" { fn memmem(text: *const c_void, size: usize, part: *const c_void, of: usize) -> *const c_void; }
        fn main() {
            let text = std::env::args_os().nth(1).unwrap().into_vec();
            let found = unsafe { memmem(text.as_ptr().cast(), text.len(), c"xyz".as_ptr().cast(), 3) };
            thread::spawn(|| {}).join().unwrap();
            assert!(found.is_null());
        }"#,
    );
}
