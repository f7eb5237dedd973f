//! Builds the runtime, which the engine embeds. Cargo cannot make one crate's `cdylib` an input of another, so this
//! script runs a cargo of its own, with a target directory of its own.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// How the runtime is compiled.
const FLAGS: [&str; 6] = [
    "--cfg=heisen_embedded",
    "-Cpanic=abort",
    // It finds the caller of an intercepted function by the frame pointer, and is itself unwound through.
    "-Cforce-frame-pointers=yes",
    "-Cforce-unwind-tables=yes",
    // Every processor that has the fsgsbase instructions, which it needs, is at least one of these.
    "-Ctarget-cpu=x86-64-v2",
    "-Clink-arg=-Wl,-z,defs",
];

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    for part in ["crates/runtime", "crates/wire", "crates/trace", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    if env::var("TARGET").is_ok_and(|target| target != "x86_64-unknown-linux-gnu") {
        panic!("Heisen's runtime exists for x86_64-unknown-linux-gnu only");
    }
    let target = out.join("runtime");
    let status = Command::new(env::var_os("CARGO").expect("set by cargo"))
        .args(["build", "--release", "--package", "heisen-runtime", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"))
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        // Flags and wrappers that are meant for the outer build, such as clippy's.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .expect("cargo could not be started to build the runtime");
    assert!(status.success(), "the runtime did not build");
    let library = target.join("release/libheisen_runtime.so");
    println!("cargo::rustc-env=HEISEN_RUNTIME={}", library.display());
}
