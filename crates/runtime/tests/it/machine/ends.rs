//! Tests that no process of a check outlives it, whatever signal ends the check.

use heisen_testkit::{Sandbox, processes_of, run, soon};
use std::path::Path;
use std::process::{Child, Stdio};

/// Starts a daemon: a grandchild in its own session that ignores all signals it can. Then computes forever,
/// so that the check ends in the middle of an execution.
const DAEMON: &str = "#include <signal.h>\n#include <stdlib.h>\n#include <sys/prctl.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    static void lasts(void) { for (int s = 1; s < 32; s++) signal(s, SIG_IGN); prctl(PR_SET_PDEATHSIG, 0); for (;;) pause(); }\n\
    int main(int argc, char **argv) {\n\
        if (argc > 2) lasts();\n\
        pid_t child = fork();\n\
        if (child == 0) {\n\
            setsid();\n\
            if (fork() == 0) { setsid(); lasts(); }\n\
            if (fork() == 0) { execl(\"/proc/self/exe\", argv[0], \"x\", \"executed\", (char *)0); _exit(9); }\n\
            _exit(0);\n\
        }\n\
        int status;\n\
        waitpid(child, &status, 0);\n\
        if (argc > 1) return 0;\n\
        for (volatile unsigned n = 0;; n++) ;\n\
    }\n";

/// Whether whoever started the tests has seen to it that the signal is ignored, as `nohup` does, and a shell for commands in
/// the background. The check then ignores it, too.
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("a file of the kernel");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a set of signals");
    u64::from_str_radix(mask.trim(), 16).expect("a number") >> (signal - 1) & 1 != 0
}

/// Starts the check and waits until the program and its daemons run.
fn begun(sandbox: &Sandbox, program: &Path) -> Child {
    let mut command = sandbox.plain_command(&["check", "--jobs", "2", "--hang", "1000s", "--", "./daemon"]);
    let check = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("heisen starts");
    // The keeper, the zygote, the execution and two daemons.
    assert!(soon(|| processes_of(program).len() >= 5), "{:?}", processes_of(program));
    check
}

fn send(signal: &str, check: &Child) {
    run(std::process::Command::new("kill").args(["-s", signal, &check.id().to_string()])).expect(0);
}

#[test]
fn a_check_that_is_killed_leaves_no_process() {
    let sandbox = Sandbox::new();
    let program = sandbox.compile("daemon.c", DAEMON, &[]);
    for (signal, number) in [("KILL", 9), ("HUP", 1), ("QUIT", 3), ("TERM", 15), ("INT", 2)] {
        if is_ignored(number) {
            eprintln!("SIG{signal} is left out: it is ignored here");
            continue;
        }
        let mut check = begun(&sandbox, &program);
        send(signal, &check);
        let gone = soon(|| processes_of(&program).is_empty());
        assert!(gone, "{signal}: {:?}", processes_of(&program));
        check.wait().expect("it was started");
    }
}

#[test]
fn a_check_that_ends_leaves_no_process() {
    let sandbox = Sandbox::new();
    let program = sandbox.compile("daemon.c", DAEMON, &[]);
    run(&mut sandbox.command(&["check", "--quiet", "--executions", "5", "--", "./daemon", "ends"])).expect(0);
    assert_eq!(processes_of(&program), Vec::<i32>::new());
}
