//! Tests inputs and assumptions of the crate on a program that is built symbolically.

use heisen_testkit::{Sandbox, root};
use std::path::PathBuf;
use std::process::Command;

/// The newest file of this crate's dependencies whose name begins and ends like this.
fn newest(start: &str, end: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test");
    let files = std::fs::read_dir(test.parent().expect("a directory")).expect("the dependencies");
    let is_it = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with(start) && name.ends_with(end)
    };
    let written = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    let found = files.filter_map(|entry| Some(entry.ok()?.path())).filter(is_it).max_by_key(written);
    found.unwrap_or_else(|| panic!("no {start}…{end}"))
}

#[test]
fn the_search_chooses_inputs_of_a_rust_program() {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("rustc") {
        eprintln!("skipped: no rustc");
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("lib")).expect("a directory");
    std::fs::copy(newest("libheisen_macros-", ".so"), sandbox.path("lib/libheisen_macros.so"))
        .expect("a copy");
    let built = Command::new("rustc")
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "rlib",
            "--crate-name",
            "heisen",
            "-O",
            "-g",
            "--out-dir",
            "lib",
        ])
        .args(["--extern", "heisen_macros=lib/libheisen_macros.so"])
        .arg(root().join("crates/heisen/src/lib.rs"))
        .current_dir(sandbox.path(""))
        .status();
    assert!(built.is_ok_and(|status| status.success()));
    let example = root().join("examples/inputs/checksum.rs").display().to_string();
    let mut command = sandbox.command(&["check", "--inputs", "--no-explain", "--json", "-", &example]);
    let lib = sandbox.path("lib").display().to_string();
    command.env("RUSTC", format!("rustc --extern heisen={lib}/libheisen.rlib -L {lib}"));
    let json = sandbox.run(&mut command).expect(1).json();
    assert_eq!(json["findings"][0]["kind"], "crash", "{json:#}");
    let inputs = json["findings"][0]["inputs"].as_array().expect("inputs");
    let value = |name: &str| {
        let found = inputs.iter().find(|input| input["name"] == name);
        found.and_then(|input| input["value"].as_u64()).unwrap_or_else(|| panic!("no {name}: {json:#}"))
    };
    let message = (value("message") as u32).to_le_bytes();
    assert_eq!((message[0], message[1]), (b'M', 16), "{json:#}");
    let sum: u64 = message.iter().map(|&byte| u64::from(byte)).sum();
    assert_eq!(value("key"), sum, "{json:#}");
    assert!(sum > 300 && value("trusted") & 1 == 1, "{json:#}");
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
    sandbox.heisen(&["replay", "-q", schedule]).expect(1);
}
