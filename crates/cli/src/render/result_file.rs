//! The files that results are written to. They are checked before a search that may take long.

use crate::render::paint;
use heisen_engine::Error;
use heisen_engine::platform::atomic_file;
use std::path::Path;

/// Refuses files that cannot be written, or that two options name, before work that may take long. Only options that
/// `may_be_stdout` take `-` for standard output.
pub fn check_files(files: &[(&str, Option<&Path>)], may_be_stdout: bool) -> Result<(), Error> {
    let given: Vec<(&str, &Path)> =
        files.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    for (index, (option, path)) in given.iter().enumerate() {
        let stdout = may_be_stdout && is_stdout(path);
        if let Some((other, _)) = given[..index].iter().find(|(_, other)| other == path) {
            let what = if stdout { "both write to standard output" } else { "name the same file" };
            return Err(Error::Input(format!("{other} and {option} {what}; choose another for one")));
        }
        if !stdout {
            check_file(option, path)?;
        }
    }
    Ok(())
}

/// Writes a result to a file, or to standard output for `-`.
pub fn write(text: &str, path: &Path) -> Result<(), Error> {
    if is_stdout(path) {
        paint::write(text, false);
        return Ok(());
    }
    atomic_file::write(path, text.as_bytes())
}

pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses a file that cannot be written.
pub fn check_file(option: &str, path: &Path) -> Result<(), Error> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let (path, directory) = (path.display(), directory.display());
        return Err(Error::Input(format!(
            "{path} cannot be written: {directory} is not a directory; create it"
        )));
    }
    if path.is_dir() {
        return Err(Error::Input(format!("{} is a directory; name a file for {option}", path.display())));
    }
    atomic_file::check(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_results_need_two_files() {
        let path = |text: &'static str| Some(Path::new(text));
        let error =
            |files: &[(&str, Option<&Path>)]| check_files(files, true).map_err(|error| error.to_string());
        assert_eq!(error(&[("--json", path("-")), ("--sarif", path("a.sarif")), ("--junit", None)]), Ok(()));
        assert_eq!(
            error(&[("--json", path("-")), ("--sarif", None), ("--junit", path("-"))]),
            Err("--json and --junit both write to standard output; choose another for one".to_owned())
        );
        assert_eq!(
            error(&[("--json", path("a")), ("--sarif", path("a"))]),
            Err("--json and --sarif name the same file; choose another for one".to_owned())
        );
    }

    #[test]
    fn files_that_cannot_be_written_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let error =
            |path: &Path| check_files(&[("--dot", Some(path))], true).map_err(|error| error.to_string());
        let below = directory.path().join("none/a.dot");
        assert!(error(&below).is_err_and(|text| text.contains("none is not a directory; create it")));
        assert!(
            error(directory.path())
                .is_err_and(|text| text.ends_with("is a directory; name a file for --dot"))
        );
        // Nobody can create files there, not even root.
        let missing = error(Path::new("/proc/self/a.dot"));
        assert!(missing.is_err_and(|text| text.starts_with("/proc/self/a.dot cannot be written: ")));
        assert_eq!(error(&directory.path().join("a.dot")), Ok(()));
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
        assert_eq!(error(Path::new("/dev/null")), Ok(()));
    }
}
