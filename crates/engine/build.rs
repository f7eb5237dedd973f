//! Builds the two parts that the engine embeds: the runtime, as a library, and the stub, as an object file. Cargo cannot make
//! these an input of another crate, so this script runs a cargo of its own, with target directories of its own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the runtime is compiled.
const RUNTIME: [&str; 6] = [
    "--cfg=heisen_embedded",
    "-Cpanic=abort",
    // It finds the caller of an intercepted function by the frame pointer, and is itself unwound through.
    "-Cforce-frame-pointers=yes",
    "-Cforce-unwind-tables=yes",
    // Every processor that has the fsgsbase instructions, which it needs, is at least one of these.
    "-Ctarget-cpu=x86-64-v2",
    "-Clink-arg=-Wl,-z,defs",
];

/// How the stub is compiled: it runs wherever instrumented programs do.
const STUB: [&str; 1] = ["-Cpanic=abort"];

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    for part in ["crates/runtime", "crates/stub", "crates/abi", "crates/wire", "crates/trace", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    if env::var("TARGET").is_ok_and(|target| target != "x86_64-unknown-linux-gnu") {
        panic!("Heisen's runtime exists for x86_64-unknown-linux-gnu only");
    }
    let target = out.join("runtime");
    run(cargo("build", "heisen-runtime", &root, &target, &RUNTIME).env("CARGO_PROFILE_RELEASE_LTO", "fat"));
    let library = target.join("release/libheisen_runtime.so");
    println!("cargo::rustc-env=HEISEN_RUNTIME={}", library.display());

    let object = out.join("stub.o");
    run(cargo("rustc", "heisen-stub", &root, &out.join("stub"), &STUB)
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .arg("--")
        .arg(format!("--emit=obj={}", object.display())));
    println!("cargo::rustc-env=HEISEN_STUB={}", object.display());
}

/// A cargo that builds `package` alone.
fn cargo(command: &str, package: &str, root: &Path, target: &Path, flags: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").expect("set by cargo"));
    cargo
        .args([command, "--release", "--package", package, "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        // Flags and wrappers that are meant for the outer build, such as clippy's.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_TARGET_DIR");
    cargo
}

fn run(cargo: &mut Command) {
    let status = cargo.status().expect("cargo could not be started to build what the engine embeds");
    assert!(status.success(), "what the engine embeds did not build");
}
