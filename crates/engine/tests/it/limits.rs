//! Tests of limits: `--time`, signals, and programs that wait for someone outside.
//!
//! Every program here would run for hours, so a slow machine cannot make these tests fail.

use heisen_testkit::{Sandbox, free_port, send, soon};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const LONG: &str = include_str!("limits/long.c");
const IDLE: &str = include_str!("limits/idle.c");

/// Far more than each limit, and far less than the programs would run.
const FAR_TOO_LONG: Duration = Duration::from_secs(40);

/// Runs a check that finds nothing and is incomplete. Returns its output and its result.
#[track_caller]
fn incomplete(sandbox: &Sandbox, args: &[&str]) -> (String, Value) {
    let began = Instant::now();
    let ran = sandbox.heisen(&[&["check", "--json", "result"], args].concat()).expect(0);
    assert!(began.elapsed() < FAR_TOO_LONG, "{:?}\n{}", began.elapsed(), ran.out);
    let text = std::fs::read_to_string(sandbox.path("result")).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result["verdict"], "incomplete", "{}", ran.out);
    assert!(ran.out.starts_with("nothing found:"), "{}", ran.out);
    sandbox.assert_tidy();
    (ran.out, result)
}

fn long() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.compile("long.c", LONG, &[]);
    sandbox
}

const ENDLESS: [&str; 4] = ["--steps", "2000000000", "--jobs", "1"];

#[test]
fn an_execution_that_still_runs_is_cut_and_counted() {
    let sandbox = long();
    for strategy in ["icb", "dpor", "random"] {
        let args = [&ENDLESS[..], &["--time", "1s", "--strategy", strategy, "--", "./long"]].concat();
        let (said, result) = incomplete(&sandbox, &args);
        assert!(said.contains("1 execution still ran when --time was over (raise --time"), "{said}");
        assert_eq!((&result["cut"], &result["executions"]), (&1.into(), &0.into()));
    }
}

#[test]
fn a_failure_that_there_is_no_time_to_confirm_is_reported() {
    let sandbox = long();
    let args = [&ENDLESS[..], &["--time", "2s", "--strategy", "icb", "--", "./long", "fails"]].concat();
    let (said, result) = incomplete(&sandbox, &args);
    let words = "1 execution failed (assertion `fstat(1, &output) == 0 && S_ISFIFO(output.st_mode)` failed), but --time was over \
                 before a replay confirmed it (raise --time)";
    assert!(said.contains(words), "{said}");
    assert_eq!(result["unexamined"], 1);
}

/// Sends signals during a close-up that would never end.
fn interrupted(sandbox: &Sandbox, signals: &[&str]) -> Output {
    let args = [&["check"], &ENDLESS[..], &["--", "./long", "fails"]].concat();
    let mut check = sandbox.plain_command(&args);
    let check = check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("heisen starts");
    assert!(soon(|| sandbox.path("looked-at").exists()), "the close look begins");
    let began = Instant::now();
    for signal in signals {
        send(signal, check.id());
    }
    let output = check.wait_with_output().expect("heisen ends");
    assert!(began.elapsed() < FAR_TOO_LONG, "{:?}", began.elapsed());
    assert_eq!(output.status.code(), Some(130));
    sandbox.assert_tidy();
    std::fs::remove_file(sandbox.path("looked-at")).expect("the file is removed");
    output
}

#[test]
fn a_signal_ends_a_close_look_and_what_is_known_is_reported() {
    let sandbox = long();
    for signal in ["TERM", "INT"] {
        let output = interrupted(&sandbox, &[signal]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains("but the check was interrupted before a replay confirmed it (resume the check)"),
            "{said}"
        );
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("interrupted; continue with:"), "{error}");
    }
    interrupted(&sandbox, &["TERM", "TERM"]);
}

fn idle() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.compile("idle.c", IDLE, &[]);
    sandbox
}

#[test]
fn an_idle_server_is_not_a_deadlock() {
    let sandbox = idle();
    for mode in ["accept", "epoll"] {
        let port = free_port().to_string();
        let (said, result) = incomplete(&sandbox, &["--hang", "2s", "--", "./idle", mode, &port]);
        let words = format!(
            "T0 waits on descriptor 3 for a connection to 127.0.0.1:{port}, and nobody came for 0.5 s"
        );
        assert!(said.contains(&words) && said.contains("which is not a deadlock"), "{said}");
        assert_eq!(result["idle"], 1);
    }
}

#[test]
fn what_a_program_waits_for_is_what_it_reads_from() {
    let sandbox = idle();
    // The program also listens, but it does not wait for a connection.
    let port = free_port().to_string();
    let (said, _) = incomplete(&sandbox, &["--hang", "2s", "--", "./idle", "inotify", &port]);
    assert!(said.contains("T0 waits on descriptor 4 (anon_inode:inotify)"), "{said}");
}

/// Threads that wait for each other are in a deadlock, even if another thread waits for someone outside.
#[test]
fn a_deadlock_beside_a_server_that_is_idle() {
    let sandbox = idle();
    let port = free_port().to_string();
    let ran = sandbox.heisen(&["check", "--hang", "2s", "--", "./idle", "crossed", &port]).expect(1);
    assert!(ran.out.contains("deadlock: T2 waits for locks["), "{}", ran.out);
}

#[test]
fn a_server_that_only_lets_time_pass_is_cut_and_named() {
    let sandbox = idle();
    let port = free_port().to_string();
    let args = [&ENDLESS[..], &["--time", "1s", "--", "./idle", "tick", &port]].concat();
    let (said, _) = incomplete(&sandbox, &args);
    let words = format!("descriptor 3 listens on 127.0.0.1:{port}, and nobody connects (run a client");
    assert!(said.contains(&words), "{said}");
}

#[test]
fn a_fifo_that_nobody_writes_to() {
    let sandbox = idle();
    let made = Command::new("mkfifo").arg(sandbox.path("input")).status();
    assert!(made.is_ok_and(|status| status.success()), "a fifo");
    let (said, _) = incomplete(&sandbox, &["--hang", "2s", "--", "./idle", "fifo", "input"]);
    let path = sandbox.path("input");
    let words =
        format!("T0 waits on descriptor 3 for somebody at the other end of the fifo {}", path.display());
    assert!(said.contains(&words), "{said}");
}

/// A program that waits for its own child process, which in turn waits for it, is in a deadlock.
#[test]
fn a_pipe_to_a_child_that_waits_is_a_deadlock() {
    let sandbox = idle();
    let ran = sandbox.heisen(&["check", "--hang", "2s", "--", "./idle", "pipe"]).expect(1);
    assert!(ran.out.contains("deadlock: T0 waits to read from descriptor"), "{}", ran.out);
}
