//! Recognises test programs, and whether one ran any test. A test program that ran no test has shown nothing.

use crate::program::libraries::{Elf, needed};
use object::{Object, ObjectSection};

/// Strings in the executables of test harnesses: Rust's libtest, GoogleTest, Catch2.
const MARKS: [&[u8]; 3] = [b"test result: ", b"[==========]", b"No tests ran"];
/// The shared libraries of test harnesses.
const LIBRARIES: [&str; 2] = ["libgtest", "libCatch2"];

/// Whether an executable has a test harness.
pub(crate) fn is_test_program(bytes: &[u8]) -> bool {
    let Ok(elf) = Elf::parse(bytes) else { return false };
    if needed(&elf).iter().any(|name| LIBRARIES.iter().any(|library| name.starts_with(library))) {
        return true;
    }
    let strings = elf.section_by_name(".rodata").and_then(|section| section.data().ok()).unwrap_or_default();
    MARKS.iter().any(|mark| strings.windows(mark.len()).any(|window| window == *mark))
}

/// Whether a test program's output says that it ran no test.
pub(crate) fn ran_none(output: &str) -> bool {
    let ran = |line: &str| {
        if let Some(result) = line.strip_prefix("test result: ") {
            Some(!result.contains(" 0 passed; 0 failed;"))
        } else if let Some(result) = line.strip_prefix("[==========] Running ") {
            Some(!result.starts_with("0 tests "))
        } else if line.starts_with("No tests ran") {
            Some(false)
        } else {
            None
        }
    };
    let told: Vec<bool> = output.lines().filter_map(ran).collect();
    !told.is_empty() && !told.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_harnesses_say() {
        let libtest = |passed: u32, ignored: u32| {
            format!(
                "\nrunning {} tests\n\ntest result: ok. {passed} passed; 0 failed; {ignored} ignored; 0 measured; 2 \
                 filtered out; finished in 0.00s\n\n",
                passed + ignored
            )
        };
        assert!(ran_none(&libtest(0, 0)) && ran_none(&libtest(0, 3)));
        assert!(
            !ran_none(&libtest(1, 0))
                && !ran_none(&libtest(10, 0))
                && !ran_none(&(libtest(0, 0) + &libtest(1, 0)))
        );
        assert!(ran_none("Note: Google Test filter = x\n[==========] Running 0 tests from 0 test suites.\n"));
        assert!(!ran_none("[==========] Running 10 tests from 1 test suite.\n"));
        assert!(ran_none("No tests ran\n") && !ran_none("hello\n") && !ran_none(""));
    }

    #[test]
    fn this_very_program_is_one() {
        let bytes = std::fs::read("/proc/self/exe").expect("this program");
        assert!(is_test_program(&bytes));
    }
}
