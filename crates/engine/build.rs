//! Builds the two parts that the engine embeds: the runtime, as a library, and the stub, as an object file. Cargo cannot
//! make these an input of another crate, so this script runs a cargo of its own, with target directories of its own.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
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

/// How the runtime of a release is optimised.
const RELEASE: &[(&str, &str)] =
    &[("CARGO_PROFILE_RELEASE_LTO", "fat"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")];

/// How the runtime of all other builds, which the tests use, is made: it checks itself, and is built fast. Like that of a
/// release it has line tables, by which gdb steps over its functions.
const DEBUG: &[(&str, &str)] = &[
    ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true"),
    ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
];

/// How the stub is compiled: it runs wherever instrumented programs do.
const STUB: [&str; 1] = ["-Cpanic=abort"];

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());
    for part in ["runtime", "stub", "abi", "wire", "trace"] {
        // Not all of the folder: a change of a test changes nothing here.
        for input in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", root.join("crates").join(part).join(input).display());
        }
    }
    if env::var("TARGET").is_ok_and(|target| target != "x86_64-unknown-linux-gnu") {
        panic!("Heisen's runtime exists for x86_64-unknown-linux-gnu only");
    }
    println!("cargo::rerun-if-env-changed=RUSTC_WORKSPACE_WRAPPER");
    let target = out.join("runtime");
    let library = target.join("release/libheisen_runtime.so");
    let object = out.join("stub.o");
    println!("cargo::rustc-env=HEISEN_RUNTIME={}", library.display());
    println!("cargo::rustc-env=HEISEN_STUB={}", object.display());
    if lints_only() {
        create_empty(&library);
        create_empty(&object);
        println!("cargo::rustc-env=HEISEN_RUNTIME_HASH=");
        return;
    }

    let profile = if env::var("PROFILE").is_ok_and(|profile| profile == "release") { RELEASE } else { DEBUG };
    run(cargo("build", "heisen-runtime", &root, &target, &RUNTIME).envs(profile.iter().copied()));
    // The same in every profile: the object may need no other, and a check that fails would call `core`.
    run(cargo("rustc", "heisen-stub", &root, &out.join("stub"), &STUB)
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .arg("--")
        .arg(format!("--emit=obj={}", object.display())));
    println!("cargo::rustc-env=HEISEN_RUNTIME_HASH={:016x}", hash(&library));
}

/// A hash of a file's bytes, which names its copy in the cache. It only has to tell versions apart: the bytes are
/// compared as well.
fn hash(file: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    fs::read(file).expect("cargo has built it").hash(&mut hasher);
    hasher.finish()
}

/// Whether clippy compiles the engine: nothing will run then. Cargo gives clippy's build scripts an `OUT_DIR` of their
/// own, so the empty files never reach a real build. A build script cannot distinguish `cargo check` and `cargo doc`
/// from `cargo build`: all three share its output.
fn lints_only() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
    wrapper.is_some_and(|wrapper| wrapper.file_stem().is_some_and(|name| name == "clippy-driver"))
}

fn create_empty(file: &Path) {
    let folder = file.parent().expect("a file in the build script's directory");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, []))
        .expect("the build script's directory can be written to");
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
        // Cut into many small units the runtime would be another program than the one that is tested.
        .env("CARGO_INCREMENTAL", "0")
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
