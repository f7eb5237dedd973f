# The commands one needs. `just` lists them; each is short enough to type by hand as well.

default:
    @just --list

# Build the command-line tool, optimised.
build:
    cargo build --release

# Check one example from start to finish.
try:
    cargo run --release -- check examples/c/account.c

# Type-check everything.
check:
    cargo check --workspace --all-targets

# Format and lint, as CI does.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Run all tests, or those of one room: `just test heisen-runtime`, `just test heisen-search icb`.
test room="" filter="":
    cargo test {{ if room == "" { "--workspace" } else { "-p " + room } }} {{ if filter == "" { "" } else { "-- " + filter } }}

# Rewrite the command output in the documents and the generated tables.
bless:
    HEISEN_BLESS=1 cargo test -p heisen-cli docs

# What CI runs.
ci:
    bash .ci/run

# The slow tests that CI leaves out.
nightly:
    bash scripts/nightly

# Build the API documentation and, where mdbook is installed, the book.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
    -mdbook build

# Check licences, advisories and duplicate dependencies (needs cargo-deny).
deny:
    cargo deny check
