//! Makes a crate outside of this workspace that uses the crate `heisen`.

use super::{Sandbox, root};
use std::process::Command;

/// A sandbox with a crate whose library has this text.
pub fn package(text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("src")).expect("a directory");
    let api = root().join("crates/heisen");
    sandbox.write(
        "Cargo.toml",
        format!(
            "[package]\nname = \"bank\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[workspace]\n[dependencies]\nheisen = \
             {{ path = {api:?} }}\n"
        ),
    );
    sandbox.write("src/lib.rs", text);
    sandbox
}

/// A `cargo test` command in that crate, with these arguments.
pub fn cargo(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["300", env!("CARGO"), "test", "--offline", "--lib"])
        .args(args)
        .current_dir(sandbox.path(""));
    for variable in ["CARGO_TARGET_DIR", "RUSTFLAGS", "RUST_BACKTRACE", "LD_PRELOAD", "HEISEN"] {
        command.env_remove(variable);
    }
    command
}

/// `PATH` without directories that contain an installed `heisen`.
pub fn path_without_heisen() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let without = std::env::split_paths(&path).filter(|directory| !directory.join("heisen").exists());
    std::env::join_paths(without).expect("it came from there")
}
