//! Tests of input from outside the program. It is recorded with a finding, so a replay needs no client or
//! server.

use heisen_testkit::{Sandbox, free_port, replays};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const SERVER: &str = include_str!("input/server.c");

/// Runs two clients with the same request, again and again while the check runs.
fn clients(check: &mut Child, port: u16) {
    while matches!(check.try_wait(), Ok(None)) {
        let connect = || TcpStream::connect(("127.0.0.1", port));
        let (Ok(mut one), Ok(mut other)) = (connect(), connect()) else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        for client in [&mut one, &mut other] {
            let _ = client.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = client.write_all(b"take 100\n");
        }
        for client in [&mut one, &mut other] {
            let _ = client.read_to_end(&mut Vec::new());
        }
    }
}

/// The result files with this extension.
fn results(sandbox: &Sandbox, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path(".heisen")).into_iter().flatten().flatten();
    let names = entries.map(|entry| format!(".heisen/{}", entry.file_name().to_string_lossy()));
    names.filter(|name| name.ends_with(ending)).collect()
}

/// Finds the server's bug while clients run. Returns the schedule and its recorded input.
#[track_caller]
fn found(sandbox: &Sandbox, mode: &str) -> (String, String) {
    let port = free_port();
    let arguments = ["check", "--strategy", "random", "--executions", "500", "--jobs", "1", "--", "./server"];
    let mut check = sandbox.plain_command(&arguments);
    let check = check.args([mode, &port.to_string()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = check.spawn().expect("heisen starts");
    clients(&mut check, port);
    let output = check.wait_with_output().expect("heisen ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("assertion `balance >= 0` failed"), "{said}");
    assert!(!said.contains("could not be recorded"), "{said}");
    let (schedules, inputs) = (results(sandbox, ".schedule"), results(sandbox, ".input"));
    assert_eq!((schedules.len(), inputs.len()), (1, 1), "{said}");
    (schedules[0].clone(), inputs[0].clone())
}

/// Finds the bug, and replays it many times without a client. The port may be in use by then.
#[track_caller]
fn replays_alone(mode: &str) {
    let sandbox = Sandbox::new();
    sandbox.compile("server.c", SERVER, &[]);
    let (schedule, _) = found(&sandbox, mode);
    let traced = sandbox.heisen(&["replay", "--trace", &schedule]).expect(1).out;
    for number in 0..replays() {
        let carrier = if number % 4 == 3 { "kernel" } else { "fibers" };
        let ran = sandbox.heisen(&["replay", "--trace", "--carrier", carrier, &schedule]).expect(1);
        assert_eq!(ran.out, traced);
    }
}

#[test]
fn a_thread_for_each_client() {
    replays_alone("threads");
}

#[test]
fn clients_waited_for_by_epoll() {
    replays_alone("epoll");
}

#[test]
fn clients_waited_for_by_poll() {
    replays_alone("poll");
}

#[test]
fn clients_waited_for_by_select() {
    replays_alone("select");
}

#[test]
fn an_input_that_is_damaged_or_gone() {
    let sandbox = Sandbox::new();
    sandbox.compile("server.c", SERVER, &[]);
    let (schedule, input) = found(&sandbox, "threads");
    let bytes = fs::read(sandbox.path(&input)).expect("the input");
    sandbox.write(&input, &bytes[..bytes.len() / 2]);
    sandbox.heisen(&["replay", &schedule]).fails(2, &[&input, "has changed", "recorded input"]);
    fs::remove_file(sandbox.path(&input)).expect("the input is removed");
    sandbox.heisen(&["replay", &schedule]).fails(2, &[&input, "No such file", "put it back"]);
    sandbox.write(&input, &bytes);
    sandbox.heisen(&["replay", &schedule]).expect(1);
    // A program that sends something else does not get the recorded input.
    let other = SERVER.replace("int on = 1;\n", "int on = 1;\n        write(client, \"hello\\n\", 6);\n");
    assert_ne!(other, SERVER);
    sandbox.compile("server.c", &other, &[]);
    let ran = sandbox.heisen(&["replay", &schedule]).expect(4);
    assert!(ran.err.contains("diverged at step"), "{}", ran.err);
}

#[test]
fn a_client_that_stays_away() {
    let sandbox = Sandbox::new();
    sandbox.compile("server.c", SERVER, &[]);
    let port = free_port().to_string();
    let ran = sandbox
        .heisen(&["check", "--hang", "2s", "--jobs", "1", "--", "./server", "threads", &port])
        .expect(0);
    let awaited = format!("T0 waits on descriptor 3 for a connection to 127.0.0.1:{port}");
    assert!(ran.out.contains(&awaited), "{}", ran.out);
    assert_eq!(results(&sandbox, ".schedule"), Vec::<String>::new());
}

/// The program asks a server that no longer exists when the finding is replayed.
#[test]
fn a_server_that_is_gone() {
    let sandbox = Sandbox::new();
    sandbox.compile("asks.c", include_str!("input/asks.c"), &[]);
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let stop = AtomicBool::new(false);
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut open = Vec::new();
            while !stop.load(Relaxed) {
                match listener.accept() {
                    Ok((mut client, _)) => {
                        let _ = client.write_all(b"41\n");
                        open.push(client);
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let ran = sandbox.heisen(&["check", "--jobs", "1", "--", "./asks", &port]);
        stop.store(true, Relaxed);
        ran.expect(1).out
    });
    drop(listener);
    assert!(
        said.contains("assertion `number == 42` failed") && !said.contains("could not be recorded"),
        "{said}"
    );
    assert_eq!(results(&sandbox, ".input").len(), 1);
    sandbox.heisen(&["replay", &results(&sandbox, ".schedule")[0]]).expect(1);
}

/// Threads that communicate only with each other need no recorded input.
#[test]
fn nobody_outside() {
    let sandbox = Sandbox::new();
    let body = "int p[2]; char c; return pipe(p) || read(p[0], &c, 1) != 1;";
    sandbox.compile("alone.c", &format!("#include <unistd.h>\nint main(void) {{ {body} }}\n"), &[]);
    sandbox.finds("deadlock", &["--", "./alone"]);
}
