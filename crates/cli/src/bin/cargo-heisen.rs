//! The executable `cargo-heisen`, which cargo starts for `cargo heisen`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    heisen_cli::cargo_heisen()
}
