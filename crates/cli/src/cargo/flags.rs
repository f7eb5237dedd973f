//! Combines the flags for the Rust compiler: those that the user has set for cargo, and those that
//! instrument.
//!
//! Cargo takes flags from one place only: the environment, else the configuration for the target, else the
//! configuration for all builds. Our flags are added to the environment if it has flags, and otherwise to the
//! configuration for the target. There, cargo joins the flags of several files and of its command line. Cargo
//! then ignores the flags for all builds, so they are repeated beside ours.

use super::build::TARGET;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Separates the flags in `CARGO_ENCODED_RUSTFLAGS`, so that a flag may contain spaces.
const SEPARATOR: &str = "\x1f";
const ENCODED: &str = "CARGO_ENCODED_RUSTFLAGS";

/// Makes cargo pass these flags to the compiler, in addition to the user's.
pub fn add(command: &mut Command, flags: &[String]) {
    let variable = |name: &str| std::env::var(name).ok();
    match from_environment(variable(ENCODED), variable("RUSTFLAGS")) {
        Some(mut all) => {
            all.extend_from_slice(flags);
            command.env(ENCODED, all.join(SEPARATOR));
        }
        None => {
            let for_target = variable(&target_variable()).is_some();
            let for_all = variable("CARGO_BUILD_RUSTFLAGS").unwrap_or_default();
            let mut all = if for_target { Vec::new() } else { for_all_builds(&configurations(), &for_all) };
            all.extend_from_slice(flags);
            // A list of strings has the same form in JSON and in TOML.
            let list = serde_json::json!(all);
            command.arg("--config").arg(format!("target.{TARGET}.rustflags={list}"));
        }
    }
}

/// The linker that the user has chosen: by a flag, by the variable for the target, or in the configuration
/// for the target.
pub fn linker() -> Option<OsString> {
    let variable = |name: &str| std::env::var(name).ok();
    let configurations = configurations();
    let ours = |key: &'static str| {
        configurations.iter().filter_map(move |table| table.get("target")?.get(TARGET)?.get(key))
    };
    let flags = from_environment(variable(ENCODED), variable("RUSTFLAGS")).unwrap_or_else(|| {
        let all = variable(&target_variable()).unwrap_or_default();
        let mut flags =
            for_all_builds(&configurations, &variable("CARGO_BUILD_RUSTFLAGS").unwrap_or_default());
        flags.extend(ours("rustflags").flat_map(listed));
        flags.extend(all.split_whitespace().map(str::to_owned));
        flags
    });
    let set = format!("CARGO_TARGET_{}_LINKER", target_word());
    let by_flag = chosen(&flags).map(OsString::from);
    by_flag
        .or_else(|| std::env::var_os(set).filter(|value| !value.is_empty()))
        .or_else(|| ours("linker").filter_map(toml::Value::as_str).next_back().map(OsString::from))
}

/// The linker that the flags name; the last one counts.
fn chosen(flags: &[String]) -> Option<&str> {
    let option = |at: usize| {
        let joined = flags[at].strip_prefix("-Clinker=");
        joined.or_else(|| flags.get(at + 1).filter(|_| flags[at] == "-C")?.strip_prefix("linker="))
    };
    (0..flags.len()).rev().find_map(option)
}

/// The flags from the environment; `None` if neither variable is set.
fn from_environment(encoded: Option<String>, plain: Option<String>) -> Option<Vec<String>> {
    let split = |text: String, at: &str| {
        text.split(at).map(str::trim).filter(|flag| !flag.is_empty()).map(str::to_owned).collect()
    };
    match (encoded, plain) {
        (Some(encoded), _) => Some(split(encoded, SEPARATOR)),
        (None, Some(plain)) => Some(split(plain, " ")),
        (None, None) => None,
    }
}

/// The configuration files that cargo reads, in ascending order of precedence.
fn configurations() -> Vec<toml::Table> {
    let here = std::env::current_dir().unwrap_or_default();
    let home = std::env::var_os("CARGO_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let mut directories: Vec<PathBuf> = here.ancestors().map(|directory| directory.join(".cargo")).collect();
    directories.extend(home.filter(|home| !directories.contains(home)));
    let read = |directory: &PathBuf| {
        let text = |name: &str| std::fs::read_to_string(Path::new(directory).join(name)).ok();
        // Cargo itself reports a file that is not TOML.
        text("config").or_else(|| text("config.toml"))?.parse().ok()
    };
    directories.iter().rev().filter_map(read).collect()
}

/// The flags for all builds, from the configuration and from the value of `CARGO_BUILD_RUSTFLAGS`. Empty if
/// the configuration has flags for the target.
fn for_all_builds(configurations: &[toml::Table], variable: &str) -> Vec<String> {
    let for_target = |table: &toml::Table| {
        let targets = table.get("target").and_then(toml::Value::as_table);
        targets.is_some_and(|targets| {
            targets.iter().any(|(name, target)| means_ours(name) && target.get("rustflags").is_some())
        })
    };
    if configurations.iter().any(for_target) {
        return Vec::new();
    }
    let mut flags = Vec::new();
    for table in configurations {
        flags
            .extend(table.get("build").and_then(|build| build.get("rustflags")).into_iter().flat_map(listed));
    }
    flags.extend(variable.split_whitespace().map(str::to_owned));
    flags
}

/// The flags of a configuration value: a text or a list.
fn listed(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        toml::Value::Array(list) => list.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Whether a target table of the configuration applies to our target: by its name, or by a condition that
/// names no other system. Conditions are not evaluated, so an unusual condition that does not hold counts as
/// one that holds.
fn means_ours(name: &str) -> bool {
    const OTHERS: [&str; 5] = ["windows", "macos", "wasm", "aarch64", "musl"];
    name == TARGET || name.starts_with("cfg(") && !OTHERS.iter().any(|other| name.contains(other))
}

/// The variable with the flags for the target.
fn target_variable() -> String {
    format!("CARGO_TARGET_{}_RUSTFLAGS", target_word())
}

/// The target as it appears in names of environment variables.
fn target_word() -> String {
    TARGET.to_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_first() {
        let some = |text: &str| Some(text.to_owned());
        let flags = |encoded, plain| from_environment(encoded, plain);
        assert_eq!(flags(None, None), None);
        assert_eq!(flags(None, some(" -g  -O ")), Some(vec!["-g".into(), "-O".into()]));
        assert_eq!(
            flags(some("--cfg\x1fa=\"b c\""), some("-g")),
            Some(vec!["--cfg".into(), "a=\"b c\"".into()])
        );
        // A variable that is set but empty means no flags, rather than those of the configuration.
        assert_eq!(flags(some(""), None), Some(vec![]));
        assert_eq!(flags(None, some("")), Some(vec![]));
    }

    #[test]
    fn the_last_linker_counts() {
        let chosen = |words: &str| {
            let flags: Vec<String> = words.split(' ').map(str::to_owned).collect();
            super::chosen(&flags).map(str::to_owned)
        };
        assert_eq!(chosen("-g -Clink-arg=-s"), None);
        assert_eq!(chosen("-Clinker=gcc -C opt-level=1 -C linker=clang"), Some("clang".into()));
        assert_eq!(chosen("-C linker=clang -Clinker=gcc"), Some("gcc".into()));
    }

    #[test]
    fn flags_for_all_builds_count_where_none_are_for_the_target() {
        let table = |text: &str| text.parse::<toml::Table>().expect("TOML");
        let outer = table("build.rustflags = '--cfg outer'");
        let inner =
            table("[build]\nrustflags = ['--cfg', 'inner']\n[target.'cfg(windows)']\nrustflags = ['-x']");
        assert_eq!(for_all_builds(&[outer.clone(), inner], "-z"), ["--cfg", "outer", "--cfg", "inner", "-z"]);
        for target in [TARGET, "'cfg(unix)'"] {
            let ours = table(&format!("[target.{target}]\nrustflags = ['-y']"));
            assert_eq!(for_all_builds(&[outer.clone(), ours], "-z"), [""; 0]);
        }
    }
}
