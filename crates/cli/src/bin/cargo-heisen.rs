//! `cargo heisen`, which cargo starts under this name.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    heisen_cli::cargo_heisen()
}
