//! Tests `heisen mcp` with a client that speaks the protocol over the pipes of the real command.

use heisen_testkit::{Sandbox, root, soon};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A program that writes what looks like a message, by the C library and by a system call, and fails.
const WRITES: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) {
    puts("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
    fflush(stdout);
    return write(1, "raw\n", 4) == 4 ? 3 : 0;
}
"#;

/// A server and its client.
struct Client {
    server: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
    /// The notifications that came before the last answer.
    notifications: Vec<Value>,
}

impl Client {
    /// Starts a server and makes the handshake.
    fn start(sandbox: &Sandbox) -> Client {
        let mut command = sandbox.plain_command(&["mcp"]);
        let mut server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("heisen starts");
        let (to, from) = (server.stdin.take(), server.stdout.take().expect("a pipe"));
        let mut client = Client { server, to, from: BufReader::new(from), id: 0, notifications: Vec::new() };
        let hello = client.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "heisen", "{hello:#}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        let to = self.to.as_mut().expect("an open pipe");
        writeln!(to, "{message}").expect("the server reads");
    }

    /// Sends a request. Returns its id.
    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }));
        self.id
    }

    /// The next message. Every line of the output must be one.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the server writes");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Waits for the answer to a request.
    fn answer(&mut self, id: u64) -> Value {
        self.notifications.clear();
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
            assert!(message["id"].is_null(), "another answer: {message:#}");
            self.notifications.push(message);
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        answer["result"].clone()
    }

    /// Calls a tool that succeeds. Returns its JSON and its report.
    #[track_caller]
    fn ok(&mut self, tool: &str, arguments: Value) -> (Value, String) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result:#}");
        let report = result["content"][0]["text"].as_str().expect("a report").to_owned();
        let json = result["structuredContent"].clone();
        let text = result["content"][1]["text"].as_str().expect("the JSON as text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), json);
        (json, report)
    }

    /// Calls a tool that fails with a message that has all of these words.
    #[track_caller]
    fn fails(&mut self, tool: &str, arguments: Value, words: &[&str]) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        let message = result["content"][0]["text"].as_str().expect("a message");
        for word in words {
            assert!(message.contains(word), "{word:?} is not in: {message}");
        }
    }

    /// Starts a check that does not end by itself, and waits until it runs.
    fn begin_endless(&mut self) -> u64 {
        let arguments = json!({
            "program": "account.c",
            "strategy": "random",
            "executions": 1_000_000_000u64,
            "keep_going": true,
        });
        let params = json!({ "name": "check", "arguments": arguments, "_meta": { "progressToken": "here" } });
        let id = self.begin("tools/call", params);
        let progress = self.next();
        assert_eq!(progress["method"], "notifications/progress", "{progress:#}");
        assert_eq!(progress["params"]["progressToken"], "here");
        assert_eq!(progress["params"]["total"], 1_000_000_000.0);
        assert!(progress["params"]["message"].as_str().is_some_and(|line| line.contains("execution")));
        id
    }

    /// Closes the input. The server must end well and leave nothing behind.
    #[track_caller]
    fn end(mut self, sandbox: &Sandbox) {
        self.to = None;
        let status = self.server.wait().expect("it ends");
        assert_eq!(status.code(), Some(0));
        sandbox.assert_tidy();
    }
}

/// A sandbox with an example.
fn sandbox_with(example: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let text = std::fs::read(root().join("examples/c").join(example)).expect("an example");
    sandbox.write(example, text);
    sandbox
}

/// Checks an example that has a bug. Returns the path of the schedule file.
#[track_caller]
fn schedule_of(client: &mut Client, example: &str) -> String {
    let (json, _) = client.ok("check", json!({ "program": example }));
    json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned()
}

#[test]
fn tools_have_descriptions_and_schemas() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox);
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().expect("a list").clone();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["check", "replay", "explain", "list_events", "variables_at", "what_if"]);
    for tool in &tools {
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 50), "{tool:#}");
        let schema = &tool["inputSchema"];
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&"object".into(), &false.into()));
        for (name, property) in schema["properties"].as_object().expect("parameters") {
            assert!(property["description"].is_string(), "{name} of {tool:#}");
        }
    }
    let help = sandbox.heisen(&["mcp", "--help"]).expect(0).out;
    assert!(names.iter().all(|name| help.contains(name)) && help.contains("mcpServers"), "{help}");
    let unknown = client.request("tools/call", json!({ "name": "nothing", "arguments": {} }));
    assert!(
        unknown["error"]["message"].as_str().is_some_and(|text| text.contains("variables_at")),
        "{unknown:#}"
    );
    client.end(&sandbox);
}

#[test]
fn an_agent_studies_a_failure() {
    let sandbox = sandbox_with("account.c");
    let mut client = Client::start(&sandbox);
    let (json, report) = client.ok("check", json!({ "program": "account.c", "bound": 1 }));
    assert_eq!((&json["verdict"], &json["findings"][0]["kind"]), (&"bug".into(), &"assertion".into()));
    assert_eq!(json["findings"][0]["explanation"]["class"], "atomicity-violation");
    assert!(report.contains("why: atomicity violation on `balance`"), "{report}");
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
    assert!(schedule.starts_with('/') && std::path::Path::new(&schedule).is_file());

    let (json, report) = client.ok("replay", json!({ "schedule": schedule }));
    assert_eq!((&json["as_recorded"], &json["finding"]["place"]), (&true.into(), &"account.c:45".into()));
    assert!(json["diverged"].is_null() && report.starts_with("it failed, as recorded"), "{report}");

    let (json, report) = client.ok("explain", json!({ "schedule": schedule }));
    assert!(json["explanation"]["failing"].is_null() && !report.contains("it passes:"), "{report}");
    let (json, report) = client.ok("explain", json!({ "schedule": schedule, "complete": true }));
    assert!(json["explanation"]["failing"].is_array() && report.contains("it passes:"), "{report}");

    let (json, _) = client.ok("list_events", json!({ "schedule": schedule, "object": "balance" }));
    let events = json["events"].as_array().expect("a list");
    let seen =
        |event: &Value| format!("{} {} {}", event["thread"], event["op"], event["value"]).replace('"', "");
    let expected =
        ["T1 mem_read 0", "T2 mem_read 0", "T2 mem_write 50", "T1 mem_write 100", "T0 mem_read 100"];
    assert_eq!(events.iter().map(seen).collect::<Vec<_>>(), expected);
    assert_eq!((&events[0]["locks"], &events[0]["place"]), (&json!(["lock"]), &"account.c:23".into()));
    let step = |index: usize| events[index]["step"].clone();
    let (read, write, last_write) = (step(0), step(2), step(3));

    let (json, report) = client.ok("variables_at", json!({ "schedule": schedule, "step": write }));
    let balance = json["variables"].as_array().expect("a list").iter().find(|v| v["name"] == "balance");
    let balance = balance.expect("balance is known");
    assert_eq!(
        (&balance["value"], &balance["by"], &balance["thread"]),
        (&"50".into(), &"write".into(), &"T2".into())
    );
    assert!(report.contains("balance = 50  written by T2") && report.contains("are not known"), "{report}");
    let stack = json["threads"][1]["stack"].to_string();
    assert!(stack.contains("deposit at account.c:28"), "{stack}");

    // T1's write before T2's read: no deposit is lost.
    let order = json!({ "schedule": schedule, "first": { "step": last_write, "thread": "T1" }, "second": { "step": step(1) } });
    let (json, report) = client.ok("what_if", order);
    assert_eq!((&json["possible"], &json["fails"]), (&true.into(), &false.into()), "{report}");
    let new = json["schedule"].as_str().expect("a schedule").to_owned();
    let (json, _) = client.ok("replay", json!({ "schedule": new }));
    assert_eq!(json["outcome"], "ended well, as recorded");
    // T2's write before T1's read, which holds the lock: T1 waits before it takes the lock.
    let order = json!({ "schedule": schedule, "first": { "step": write }, "second": { "step": read } });
    assert_eq!(client.ok("what_if", order).0["fails"], false);
    // From the passing execution back to the failing one.
    let choices = json!([{ "step": 6, "thread": "T2" }]);
    let (json, _) = client.ok("what_if", json!({ "schedule": new, "choices": choices }));
    assert_eq!((&json["possible"], &json["fails"]), (&true.into(), &true.into()), "{json:#}");
    client.end(&sandbox);
}

#[test]
fn orders_that_are_not_possible() {
    let sandbox = sandbox_with("account.c");
    let mut client = Client::start(&sandbox);
    let schedule = schedule_of(&mut client, "account.c");
    // T1 cannot lock before T0 has created it.
    let order = json!({ "schedule": schedule, "first": { "step": 4 }, "second": { "step": 1 } });
    let (json, report) = client.ok("what_if", order);
    assert_eq!(json["possible"], false, "{report}");
    assert!(report.contains("this order is not possible: T1's step 4"), "{report}");
    let choices = json!([{ "step": 4, "thread": "T0" }]);
    let (json, report) = client.ok("what_if", json!({ "schedule": schedule, "choices": choices }));
    assert_eq!((&json["possible"], &json["choices"][0]["ran"]), (&false.into(), &"T1".into()), "{report}");
    assert!(report.contains("at step 4 T0 could not run"), "{report}");
    client.end(&sandbox);
}

#[test]
fn an_agent_studies_a_deadlock() {
    let sandbox = sandbox_with("lock_order.c");
    let mut client = Client::start(&sandbox);
    let schedule = schedule_of(&mut client, "lock_order.c");
    let (json, _) = client.ok("replay", json!({ "schedule": schedule }));
    assert_eq!((&json["as_recorded"], &json["finding"]["kind"]), (&true.into(), &"deadlock".into()));
    let (json, report) = client.ok("explain", json!({ "schedule": schedule }));
    assert_eq!(json["explanation"]["class"], "deadlock");
    assert!(report.contains("in the same order"), "{report}");
    let (all, _) = client.ok("list_events", json!({ "schedule": schedule }));
    let (part, report) = client.ok("list_events", json!({ "schedule": schedule, "limit": 3, "offset": 2 }));
    assert_eq!((&part["next_offset"], part["events"].as_array().map(Vec::len)), (&5.into(), Some(3)));
    assert_eq!(part["events"][0], all["events"][2]);
    assert!(report.contains("go on with offset 5"), "{report}");
    let (json, _) = client.ok("list_events", json!({ "schedule": schedule, "op": "lock", "thread": "T3" }));
    assert_eq!((&json["matching"], &json["events"][0]["object"]), (&1.into(), &"b.lock".into()));

    let (state, report) =
        client.ok("variables_at", json!({ "schedule": schedule, "step": all["last_step"] }));
    let thread = state["threads"].as_array().expect("a list").iter().find(|t| t["thread"] == "T3");
    let thread = thread.expect("T3 is there");
    assert_eq!(
        (&thread["waits"], &thread["locks"]),
        (&"lock(a.lock), held by T1".into(), &json!(["b.lock"]))
    );
    assert!(report.contains("it waits: lock(b.lock), held by T3"), "{report}");

    // T1 takes its second lock before T3 takes its first: no deadlock. It never had it, so T1 is preferred at a step.
    let step = json["events"][0]["step"].as_u64().expect("a step");
    let choices = json!([{ "step": step, "thread": "T1" }]);
    let (json, _) = client.ok("what_if", json!({ "schedule": schedule, "choices": choices }));
    assert_eq!((&json["possible"], &json["fails"]), (&true.into(), &false.into()), "{json:#}");
    client.end(&sandbox);
}

#[test]
fn bad_input() {
    let sandbox = sandbox_with("account.c");
    let mut client = Client::start(&sandbox);
    client.fails("check", json!({ "program": "missing.c" }), &["missing.c", "not found"]);
    client.fails("check", json!({ "program": "./" }), &["is a directory, not a program"]);
    client.fails(
        "check",
        json!({ "program": "account.c", "strategy": "best", "time": "x" }),
        &["x", "not a time"],
    );
    client.fails("check", json!({ "program": "account.c", "strategy": "luck" }), &["luck", "portfolio"]);
    client.fails(
        "check",
        json!({ "program": "account.c", "strategy": "dfs", "bound": 1 }),
        &["--bound", "dfs"],
    );
    client.fails("check", json!({ "program": "account.c", "bound": "two" }), &["two", "schema of check"]);
    client.fails("check", json!({ "program": "account.c", "fast": true }), &["fast", "no_instrument"]);
    client.fails("check", json!({}), &["program"]);
    for tool in ["replay", "explain", "list_events"] {
        client.fails(tool, json!({ "schedule": "missing" }), &["missing: not found", "heisen check"]);
        client.fails(tool, json!({ "schedule": "." }), &["is a directory", "name a file"]);
        client.fails(tool, json!({ "schedule": "account.c" }), &["not a Heisen schedule"]);
    }
    let schedule = schedule_of(&mut client, "account.c");
    client.fails("variables_at", json!({ "schedule": schedule, "step": 500 }), &["no step 500", "0 to 14"]);
    client.fails("variables_at", json!({ "schedule": schedule, "step": -1 }), &["-1"]);
    client.fails(
        "list_events",
        json!({ "schedule": schedule, "thread": "T7" }),
        &["no thread T7", "T1 depositor"],
    );
    client.fails(
        "list_events",
        json!({ "schedule": schedule, "op": "jump" }),
        &["no operation jump", "mem_read"],
    );
    client.fails("what_if", json!({ "schedule": schedule }), &["give first and second, or choices"]);
    let order =
        |first: Value, second: Value| json!({ "schedule": schedule, "first": first, "second": second });
    client.fails("what_if", order(json!({ "step": 4 }), json!({ "step": 7 })), &["already", "swap"]);
    client.fails("what_if", order(json!({ "step": 5 }), json!({ "step": 4 })), &["both events are of T1"]);
    client.fails(
        "what_if",
        order(json!({ "step": 9, "thread": "T1" }), json!({ "step": 4 })),
        &["step 9 is of T2"],
    );
    client.fails("what_if", order(json!({ "step": 99 }), json!({ "step": 4 })), &["no step 99"]);
    let choices = json!([{ "step": 6, "thread": "T1" }, { "step": 6, "thread": "T2" }]);
    client.fails("what_if", json!({ "schedule": schedule, "choices": choices }), &["must increase"]);
    client.end(&sandbox);
}

#[test]
fn a_changed_program() {
    let sandbox = sandbox_with("account.c");
    let build = |fixed: bool| {
        let text = std::fs::read_to_string(sandbox.path("account.c")).expect("the source");
        // The fix leaves the lock out, so the schedule no longer fits.
        let text = if fixed { text.replace("    pthread_mutex_lock(&lock);", "    ;") } else { text };
        sandbox.compile("prog.c", &text, &[])
    };
    build(false);
    let mut client = Client::start(&sandbox);
    let (json, _) = client.ok("check", json!({ "program": "./prog" }));
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
    let (json, report) = client.ok("variables_at", json!({ "schedule": schedule, "step": 3 }));
    assert_eq!(json["variables"], json!([]));
    assert!(report.contains("no variable is known") && report.contains("heisen cc"), "{report}");
    build(true);
    let (json, report) = client.ok("replay", json!({ "schedule": schedule }));
    assert!(json["warning"].as_str().is_some_and(|text| text.contains("has changed")), "{json:#}");
    assert!(json["diverged"].as_str().is_some_and(|text| text.contains("diverged at step")), "{report}");
    client.fails(
        "list_events",
        json!({ "schedule": schedule }),
        &["no longer fits", "check the program again"],
    );
    client.fails("explain", json!({ "schedule": schedule }), &["has changed", "no longer fits"]);
    client.end(&sandbox);
}

#[test]
fn a_program_cannot_write_between_the_messages() {
    let sandbox = Sandbox::new();
    sandbox.compile("writes.c", WRITES, &[]);
    let mut client = Client::start(&sandbox);
    let options = json!(["--before", "echo before", "--json", "-"]);
    let (json, _) = client.ok("check", json!({ "program": "./writes", "options": options }));
    assert_eq!(json["findings"][0]["kind"], "exit-status");
    let (json, _) = client.ok("replay", json!({ "schedule": json["findings"][0]["schedule"] }));
    assert!(json["output"].as_str().is_some_and(|text| text.ends_with("}}\nraw\n")), "{json:#}");
    client.end(&sandbox);
}

#[test]
fn a_cancelled_check_ends() {
    let sandbox = sandbox_with("account.c");
    let mut client = Client::start(&sandbox);
    let id = client.begin_endless();
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    // The next call waits for its turn, and the cancelled request gets no answer.
    let (json, _) = client.ok("check", json!({ "program": "account.c" }));
    assert_eq!(json["verdict"], "bug");
    assert!(soon(|| sandbox.processes().is_empty()));
    client.end(&sandbox);
}

#[test]
fn the_server_ends_with_its_input_and_by_a_signal() {
    let sandbox = sandbox_with("account.c");
    let mut client = Client::start(&sandbox);
    client.begin_endless();
    client.end(&sandbox);

    let mut client = Client::start(&sandbox);
    client.begin_endless();
    heisen_testkit::send("TERM", client.server.id());
    assert_eq!(client.server.wait().expect("it ends").code(), Some(0));
    sandbox.assert_tidy();

    let closed = sandbox.run(sandbox.command(&["mcp"]).stdin(Stdio::null()));
    assert_eq!((closed.code, closed.out.as_str(), closed.err.as_str()), (0, "", ""));
    let first = r#"echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' | "$0" mcp"#;
    sandbox.run(&mut sandbox.shell(first)).fails(2, &["the first message", "heisen mcp --help"]);
}
