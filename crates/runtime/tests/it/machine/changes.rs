//! Tests of programs that change the clock, other processes or the machine.

use heisen_testkit::{Ran, compile, run, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of `programs/` with its cases.
struct Program {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    fn new(name: &str) -> Program {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
        let text = std::fs::read_to_string(tests.join("machine/programs").join(name)).expect("a program");
        let directory = scratch();
        let include = format!("-I{}", tests.join("primitives/programs").display());
        let path = compile(directory.path(), name, &text, &[&include]);
        Program { directory, path }
    }

    /// Runs `script` in a shell. Its `"$@"` is `heisen check` of one case of the program.
    fn checked_by(&self, mut shell: Command, script: &str, case: &str, options: &[&str]) -> Ran {
        shell.args(["timeout", "-s", "KILL", "60", "sh", "-c", script, "sh", heisen_testkit::heisen_path()]);
        shell.args(["check", "--quiet", "--json", "-"]).args(options).arg("--").arg(&self.path).arg(case);
        shell.env_remove("LD_PRELOAD").current_dir(self.directory.path());
        run(&mut shell)
    }

    /// Checks that no execution of the case finds a bug, with and without a process for each execution.
    /// Returns the caveats.
    #[track_caller]
    fn good(&self, apart: impl Fn() -> Command, script: &str, case: &str) -> Vec<String> {
        // Several executions, because the effects of one must not reach the next.
        const SEVERAL: [&str; 4] = ["--strategy", "random", "--executions", "10"];
        let [first, second] = [&["--hang", "20s"][..], &["--fork"]].map(|options| {
            let options = &[options, &SEVERAL].concat();
            let ran = self.checked_by(apart(), script, case, options).expect(0);
            let json = ran.json();
            assert_eq!(json["findings"], Value::Array(vec![]), "{case}: {json:#}");
            let said = json["not_controlled"].as_array().expect("sentences").clone();
            let said = said.iter().map(|words| words.as_str().expect("a sentence").to_owned());
            // Every program with a second thread gets the caveat about memory accesses.
            said.filter(|words| !words.starts_with("memory accesses")).collect::<Vec<_>>()
        });
        assert_eq!(first, second, "{case}");
        first
    }
}

/// A command in its own namespaces, without rights on the machine and without access to its processes.
/// Returns `None`, with a message, if the machine does not allow that.
fn apart() -> Option<Command> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child"]);
    let mut probe = Command::new("unshare");
    probe.args(command.get_args()).arg("true");
    let allowed = probe.output().is_ok_and(|output| output.status.success());
    if !allowed {
        eprintln!("skipped: this machine allows no user namespaces (unshare --user --map-root-user --pid)");
    }
    allowed.then_some(command)
}

const PLAINLY: &str = "exec \"$@\"";

#[test]
fn the_clock_that_is_set_is_that_of_the_execution() {
    if apart().is_none() {
        return;
    }
    let program = Program::new("clock.c");
    let inside = || apart().expect("namespaces");
    for case in ["set", "refused", "waits", "instructions"] {
        assert_eq!(program.good(inside, PLAINLY, case), Vec::<String>::new(), "{case}");
    }
    let said = program.good(inside, PLAINLY, "rate");
    assert!(said.len() == 1 && said[0].starts_with("adjtimex: it cannot change the rate"), "{said:?}");
}

#[test]
fn signals_reach_no_process_of_others() {
    if apart().is_none() {
        return;
    }
    let program = Program::new("kills.c");
    let inside = || apart().expect("namespaces");
    // The bystander has its own process group, so a signal to it would end it.
    let script = "setsid sleep 100 & export BYSTANDER=$!; \
                  while [ $(($(ps -o pgid= -p $!))) != $! ]; do sleep 0.01; done; \
                  \"$@\"; code=$?; kill -0 $! || exit 77; exit $code";
    for case in ["everyone", "bystander"] {
        let said = program.good(inside, script, case);
        assert!(
            said.len() == 1
                && said[0].starts_with(
                    "kill, sigqueue, setpriority, prlimit or the like at a process of others: refused"
                ),
            "{said:?}"
        );
    }
    for options in [&["--fork"][..], &[]] {
        program.checked_by(inside(), script, "everyone_by_instruction", options).expect(0);
    }
    assert_eq!(program.good(inside, script, "own_group"), Vec::<String>::new());
    for case in ["children", "grandchildren"] {
        let said = program.good(inside, script, case);
        assert!(said[0].starts_with("fork"), "{said:?}");
        assert!(!said.iter().any(|words| words.contains("refused")), "{said:?}");
    }
}

#[test]
fn what_changes_the_machine_is_refused_by_name() {
    let program = Program::new("refused.c");
    let plain = || Command::new("env");
    for (case, words) in [
        ("reboots", "reboot"),
        ("names", "sethostname"),
        ("mounts", "mount"),
        ("accounting", "swapon"),
        ("kernel_code", "init_module"),
        ("devices", "iopl"),
    ] {
        let said = program.good(plain, PLAINLY, case);
        assert!(said.len() == 1 && said[0].starts_with(words), "{case}: {said:?}");
    }
    for case in ["instructions", "children"] {
        for options in [&["--fork"][..], &[]] {
            program.checked_by(plain(), PLAINLY, case, options).expect(0);
        }
    }
}

/// All executions have the same process id, even those that run at the same time.
#[test]
fn files_that_are_named_by_the_process_id_are_pointed_out() {
    let directory = scratch();
    let text = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
                int main(void) {\n    char name[64];\n    snprintf(name, sizeof name, \"lock.%d\", (int)getpid());\n    \
                int fd = open(name, O_CREAT | O_RDWR, 0600);\n    return fd < 0 || unlink(name) != 0;\n}\n";
    let path = compile(directory.path(), "named.c", text, &[]);
    let program = Program { directory, path };
    let says = |jobs| {
        let said = program.checked_by(Command::new("env"), PLAINLY, "", &["--jobs", jobs]).expect(0).json();
        said["not_controlled"].to_string().contains("files: one is named by the process id")
    };
    assert!(says("2") && !says("1"));
}
