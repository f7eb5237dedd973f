//! `heisen`, the command-line tool.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    heisen_cli::heisen()
}
