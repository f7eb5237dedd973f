//! Tests of long searches: saved while they run, resumed, short of memory or disk space, and with killed
//! workers.

use heisen_testkit::{Sandbox, saved_executions, send, soon, timeless};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Two threads read under a lock and write under it, but release it in between. So updates are lost.
const LOST: &str = "#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x;
static int get(void) { pthread_mutex_lock(&lock); int v = x; pthread_mutex_unlock(&lock); return v; }
static void put(int v) { pthread_mutex_lock(&lock); x = v; pthread_mutex_unlock(&lock); }
static void *work(void *arg) { for (int i = 0; i < 2; i++) put(get() + 1); return arg; }
int main(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    assert(x > 2);
    assert(x > 3);
    return 0;
}
";

/// Three threads lock four times each. The program has very many schedules and no bug. Its optional argument
/// sets how long it computes first.
const MANY: &str = "#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {
    for (int i = 0; i < 4; i++) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }
    return arg;
}
int main(int argc, char **argv) {
    if (argc > 1) for (volatile int i = 0; i < 1000 * atoi(argv[1]); i++) {}
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    return 0;
}
";

fn sandbox(text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.compile("prog.c", text, &[]);
    sandbox
}

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.plain_command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("heisen starts")
}

/// Kills a search with each of the signals and resumes it. Its result must equal that of an uninterrupted
/// search.
#[track_caller]
fn goes_on(searches: &[(&[&str], &[&str])]) {
    let sandbox = sandbox(LOST);
    for (options, signals) in searches {
        // The delay makes a search last until it is killed. The file `fast` switches it off.
        let slow = ["--before", "test -e fast || sleep 0.05"];
        let check = |more: &[&str]| {
            // How far a schedule is minimised and explained depends on the time, which the delay takes.
            let most =
                ["check", "--keep-going", "--no-minimise", "--no-explain", "--jobs", "1", "--json", "result"];
            [&most, &slow[..], options, more, &["--", "./prog"]]
                .concat()
                .iter()
                .map(|s| (*s).to_owned())
                .collect()
        };
        sandbox.write("fast", "");
        let whole: Vec<String> = check(&[]);
        sandbox.heisen(&whole.iter().map(String::as_str).collect::<Vec<_>>()).expect(1);
        let result = || -> Value {
            let text = std::fs::read_to_string(sandbox.path("result")).expect("a result");
            timeless(serde_json::from_str(&text).expect("JSON"))
        };
        let expected = result();
        assert!(!expected["findings"].as_array().expect("a list").is_empty());
        for &signal in *signals {
            let file = sandbox.path("saved");
            let _ = std::fs::remove_file(&file);
            std::fs::remove_file(sandbox.path("fast")).expect("the file exists");
            let args: Vec<String> = check(&["--save", "saved"]);
            let child = start(&sandbox, &args.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(soon(|| saved_executions(&file) > 0), "{options:?}: nothing is saved");
            send(signal, child.id());
            let output = child.wait_with_output().expect("heisen ends");
            let code = if signal == "INT" { Some(130) } else { None };
            assert_eq!(
                output.status.code(),
                code,
                "{options:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            sandbox.assert_tidy();
            sandbox.write("fast", "");
            let before = saved_executions(&file);
            let all = expected["executions"].as_u64().expect("a number");
            assert!(before < all, "{options:?}: {before} of {all}, so it was over");
            let limited = options.contains(&"--executions");
            let left = (all - before).to_string();
            let more: &[&str] = if limited { &["--executions", &left] } else { &[] };
            let resume = ["check", "--jobs", "2", "--json", "result", "--resume", "saved"];
            sandbox.heisen(&[&resume, more].concat()).expect(1);
            assert_eq!(result(), expected, "{options:?} after {before} of {all}, {signal}");
            // The resumed search saves to the same file, up to its end.
            assert_eq!(saved_executions(&file), all);
        }
    }
}

#[test]
fn a_systematic_search_that_is_killed_goes_on_as_if_it_had_not_been() {
    goes_on(&[
        (&["--bound", "2"], &["KILL"]),
        (&["--strategy", "dfs", "--executions", "100"], &["KILL"]),
        (&["--strategy", "dfs", "--reduce"], &["KILL", "INT"]),
    ]);
}

#[test]
fn a_search_by_chance_that_is_killed_goes_on_as_if_it_had_not_been() {
    goes_on(&[
        (&["--strategy", "surw", "--executions", "100"], &["KILL", "INT"]),
        (&["--strategy", "guided", "--executions", "100"], &["KILL", "INT"]),
    ]);
}

#[test]
fn other_searches_that_are_killed_go_on_as_if_they_had_not_been() {
    goes_on(&[
        (&["--strategy", "best", "--executions", "100"], &["KILL"]),
        (&["--strategy", "dpor"], &["KILL"]),
    ]);
}

/// The next check removes an unfinished file that a killed check left behind.
#[test]
fn unfinished_files_are_removed() {
    let sandbox = sandbox(LOST);
    sandbox.write("saved.999999999.tmp", "{");
    sandbox.write("saved.x.tmp.txt", "not ours");
    sandbox.heisen(&["check", "--save", "saved", "--", "./prog"]).expect(1);
    assert!(!sandbox.path("saved.999999999.tmp").exists());
    assert!(sandbox.path("saved.x.tmp.txt").exists());
}

#[test]
fn places_where_a_search_cannot_be_saved() {
    let sandbox = sandbox(LOST);
    let check = |file: &str| sandbox.heisen(&["check", "--save", file, "--", "./prog"]);
    check("none/saved").fails(2, &["none/saved cannot be written", "none is not a directory", "create it"]);
    check(".").fails(2, &[". is a directory", "name a file for --save"]);
    // The check reports the error before it explores anything.
    check("/dev/full").fails(2, &["/dev/full cannot be written", "No space left"]);
    for [one, other] in [["--save", "--json"], ["--save", "--coverage"], ["--coverage", "--json"]] {
        let words = format!("{one} and {other} name the same file");
        sandbox.heisen(&["check", one, "same", other, "same", "--", "./prog"]).fails(2, &[&words]);
    }
}

/// A limit that stopped a search does not stop it again when it is resumed. A limit that it has not reached
/// still holds.
#[test]
fn a_search_that_has_reached_its_limit_goes_on() {
    let sandbox = sandbox(MANY);
    let executions = |args: &[&str]| {
        let ran = sandbox.heisen(&[&["check", "--json", "-"], args].concat()).expect(0);
        ran.json()["executions"].as_u64().expect("a number")
    };
    let all = executions(&["--bound", "1", "--", "./prog"]);
    let begin = ["--bound", "1", "--executions", "30", "--save", "saved", "--", "./prog"];
    assert_eq!(executions(&begin), 30);
    assert_eq!(executions(&["--resume", "saved", "--executions", "20"]), 50);
    assert_eq!(executions(&["--resume", "saved"]), all);
    assert_eq!(executions(&begin), 30);
    assert_eq!(executions(&["--resume", "saved", "--time", "1m"]), all);
}

/// On a terminal the check shows progress, also if a batch takes less time than the interval between two
/// lines.
#[test]
fn progress_is_told_on_a_terminal() {
    let sandbox = sandbox(MANY);
    for (options, words) in
        [("--strategy dfs", " left (recent estimates: within a factor of "), ("--strategy random", "/s · ")]
    {
        let check = format!("{} check {options} --time 2s -- ./prog", heisen_testkit::heisen_path());
        let ran =
            heisen_testkit::run(&mut sandbox.shell(&format!("script -qefc '{check}' /dev/null </dev/null")))
                .expect(0);
        let lines: Vec<&str> = ran.out.split("\r\x1b[K").filter(|line| line.contains(words)).collect();
        assert!(lines.len() >= 5, "{options}: {}", ran.out);
    }
}

/// Runs a shell command with a small file system of its own at `small`. Returns `None` if this machine does
/// not allow that, and prints the reason to standard error.
fn on_small_disk(sandbox: &Sandbox, size: &str, script: &str) -> Option<heisen_testkit::Ran> {
    std::fs::create_dir_all(sandbox.path("small")).expect("a directory");
    let mount = format!("mount -t tmpfs -o size={size} none small");
    let script = format!("unshare -Urm sh -c '{mount} && {script}' \"$0\"");
    if !Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: no user and mount namespaces here, so there is no small disk to fill");
        return None;
    }
    Some(heisen_testkit::run(&mut sandbox.shell(&script)))
}

#[test]
fn the_disk_is_full_while_saving() {
    let sandbox = sandbox(MANY);
    // Within 5 s the file outgrows the disk. The check continues up to its time limit.
    let options = "--bound 9 --time 5s --json result --save small/saved";
    let script = format!("\"$0\" check {options} -- ./prog; code=$?; cp small/saved kept; exit $code");
    let Some(ran) = on_small_disk(&sandbox, "32k", &script) else { return };
    let ran = ran.expect(2);
    let messages = ran.messages();
    assert_eq!(messages.len(), 2, "{}", ran.err);
    assert!(messages[0].contains("note: small/saved cannot be written: No space left"), "{}", ran.err);
    assert!(messages[0].ends_with("the check continues without saving"), "{}", ran.err);
    assert!(messages[1].contains("small/saved cannot be written: No space left"), "{}", ran.err);
    // The results exist, and so does the last file that was saved.
    assert!(ran.out.contains("nothing found: no bug"), "{}", ran.out);
    assert!(sandbox.path("result").is_file());
    sandbox.heisen(&["check", "--resume", "kept", "--save", "other", "--executions", "10"]).expect(0);
}

#[test]
fn the_disk_is_full_when_memory_is() {
    let sandbox = sandbox(MANY);
    let script = "\"$0\" check --bound 3 --memory 64K -o small --json result --save saved -- ./prog";
    let Some(ran) = on_small_disk(&sandbox, "4k", script) else { return };
    let ran = ran.expect(2);
    assert_eq!(ran.messages().len(), 1, "{}", ran.err);
    for words in ["more memory than --memory allows", "put on disk: No space left", "raise --memory"] {
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    let text = std::fs::read_to_string(sandbox.path("result")).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&result["verdict"], &result["complete"]), (&"incomplete".into(), &false.into()));
    let before = result["executions"].as_u64().expect("a number");
    assert!(before > 100, "{before}");
    // With more memory the search continues where it stopped.
    let args = ["check", "--resume", "saved", "--memory", "1G", "--executions", "100", "--json", "-"];
    assert_eq!(sandbox.heisen(&args).expect(0).json()["executions"], before + 100);
}

#[test]
fn with_little_memory_the_result_is_the_same() {
    let sandbox = sandbox(MANY);
    for options in [&["--bound", "3"][..], &["--strategy", "dfs"]] {
        let check = |memory: &str| {
            let last = ["--executions", "4000", "--memory", memory, "--", "./prog"];
            let ran = sandbox.heisen(&[&["check", "--json", "-"], options, &last].concat()).expect(0);
            assert!(ran.made.is_empty(), "left behind: {:?}", ran.made);
            timeless(ran.json())
        };
        assert_eq!(check("64K"), check("1G"), "{options:?}");
    }
}

#[test]
fn states_that_have_no_room_cost_executions_only() {
    let sandbox = sandbox(MANY);
    let check = |memory: &str| {
        let args = ["check", "--bound", "2", "--reduce", "--memory", memory, "--json", "-", "--", "./prog"];
        sandbox.heisen(&args).expect(0)
    };
    let (tight, free) = (check("64K"), check("1G"));
    let words = "the memory for states was full, so --reduce skipped fewer executions: no room for ";
    assert!(tight.err.contains(words) && !free.err.contains(words), "{}", tight.err);
    let (tight, free) = (tight.json(), free.json());
    let number = |json: &Value, name: &str| json[name].as_u64().expect("a number");
    assert!(number(&tight, "unnoted") > 0 && number(&free, "unnoted") == 0);
    assert!(number(&tight, "executions") > number(&free, "executions"));
    for name in ["classes", "complete", "preemption_bound", "verdict"] {
        assert_eq!(tight[name], free[name], "{name}");
    }
}

#[test]
fn invalid_sizes() {
    let sandbox = Sandbox::new();
    for (size, words) in [("1K", "64K is the least"), ("x", "not a size"), ("1T", "use K, M or G")] {
        let ran = sandbox.heisen(&["check", "--memory", size, "--", "./prog"]).expect(2);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}

/// The parent of a process.
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_killed_worker_is_replaced() {
    for how in [&[][..], &["--fork"]] {
        let sandbox = sandbox(MANY);
        let args = ["check", "--executions", "400", "--json", "result"];
        let args = [&args[..], how, &["--", "./prog", "300"]].concat();
        let result = || -> Value {
            let text = std::fs::read_to_string(sandbox.path("result")).expect("a result");
            timeless(serde_json::from_str(&text).expect("JSON"))
        };
        sandbox.heisen(&args).expect(0);
        let mut expected = result();

        let child = start(&sandbox, &args);
        let heisen = child.id() as i32;
        // A reaper is the parent of a zygote, which is the parent of the process that executes.
        let working = || -> Vec<i32> {
            let zygotes = sandbox.processes().into_iter().filter_map(parent);
            let reapers: Vec<i32> = zygotes.filter_map(parent).collect();
            let works = |pid: &i32| parent(*pid) == Some(heisen) && reapers.contains(pid);
            sandbox.processes().into_iter().filter(works).collect()
        };
        let mut killed = Vec::new();
        let start = Instant::now();
        while killed.is_empty() && start.elapsed() < Duration::from_secs(20) {
            killed = working();
        }
        killed.iter().for_each(|&pid| send("KILL", pid as u32));
        let output = child.wait_with_output().expect("heisen ends");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        sandbox.assert_tidy();
        let mut found = result();
        let lost = found["lost"].as_u64().expect("a number");
        assert!(!killed.is_empty() && (1..=killed.len() as u64).contains(&lost), "{lost} of {killed:?}");
        let sentence =
            found["not_controlled"].as_array().and_then(|all| all.last()?.as_str()).expect("a list");
        assert!(sentence.starts_with("the parked program was killed"), "{sentence}");
        let claim = found["claim"].as_str().expect("a claim");
        assert!(claim.contains(", except as listed below"), "{claim}");
        // Apart from these fields, the result is the same.
        for json in [&mut expected, &mut found] {
            let fields = json.as_object_mut().expect("an object");
            fields.remove("lost");
            fields.remove("not_controlled");
            fields.remove("claim");
        }
        assert_eq!(found, expected);
    }
}

/// An execution that someone kills has not failed, because it does not fail again.
#[test]
fn a_killed_execution_is_no_finding() {
    for how in [&[][..], &["--fork"]] {
        let sandbox = sandbox(MANY);
        let args = ["check", "--executions", "400", "--json", "result"];
        let mut child = start(&sandbox, &[&args[..], how, &["--", "./prog", "300"]].concat());
        let heisen = child.id() as i32;
        let mut killed = 0;
        let until = Instant::now() + Duration::from_secs(60);
        // Kill only once, because the execution that examines the failure must survive.
        while killed == 0 && Instant::now() < until && child.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep(Duration::from_millis(30));
            let mut processes = sandbox.processes().into_iter();
            // The process tree is heisen, a keeper, the zygote, an execution.
            let is_execution = |&pid: &i32| {
                let keeper = parent(pid).and_then(parent).and_then(parent);
                keeper == Some(heisen)
            };
            if let Some(pid) = processes.find(is_execution) {
                let mut kill = Command::new("kill");
                let kill = kill.args(["-s", "KILL", &pid.to_string()]).stderr(Stdio::null());
                killed += u32::from(kill.status().is_ok_and(|status| status.success()));
            }
        }
        let output = child.wait_with_output().expect("heisen ends");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(sandbox.path("result")).expect("a result");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&result["findings"], &result["executions"]), (&Value::Array(vec![]), &400.into()));
        assert!(killed > 0);
        sandbox.assert_tidy();
    }
}

#[test]
fn options_that_do_not_fit_together() {
    let sandbox = sandbox(MANY);
    for (options, words) in [
        (
            &["--strategy", "dfs", "--bound", "2"][..],
            "--bound is for --strategy icb, best and dpor, but the strategy is dfs",
        ),
        (&["--strategy", "random", "--reduce"], "--reduce is for --strategy icb and dfs"),
        (&["--depth", "4"], "--depth is for --strategy pct and fair-pct, but the strategy is icb"),
        (&["--strategy", "pos", "--burst", "4"], "--burst is for --strategy burst"),
        (
            &["--time", "1s", "--delays", "4"],
            "--delays is for --strategy delay, but the strategy is portfolio",
        ),
    ] {
        let ran = sandbox.heisen(&[&["check"], options, &["--", "./prog"]].concat());
        ran.fails(2, &[words, "change one of the two"]);
    }
    let ran = sandbox.heisen(&["check", "--leaks", "--heap", "off", "--", "./prog"]);
    ran.fails(2, &["--leaks needs the checked heap", "leave out"]);
}

/// The executions of this program differ under the same schedule. Systematic strategies report that and claim
/// nothing.
#[test]
fn a_nondeterministic_program_proves_nothing() {
    let text = "#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); return arg; }
int main(void) {
    int fd = open(\"count\", O_CREAT | O_APPEND | O_RDWR, 0600);
    if (write(fd, \"x\", 1) != 1) return 1;
    long size = lseek(fd, 0, SEEK_END);
    for (long i = 0; i < size % 5; i++) work(0);
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
";
    let sandbox = sandbox(text);
    for options in
        [&["--bound", "2", "--reduce"][..], &["--strategy", "dfs", "--reduce"], &["--strategy", "dfs"]]
    {
        let args = [&["check", "--json", "-", "--executions", "200"], options, &["--", "./prog"]].concat();
        let ran = sandbox.heisen(&args).expect(0);
        let json = ran.json();
        assert_eq!(
            (&json["verdict"], &json["complete"]),
            (&"incomplete".into(), &false.into()),
            "{options:?}"
        );
        assert!(json["diverged"].as_u64() > Some(0), "{json:#}");
        let told = ran.err.lines().filter(|line| line.contains("diverged from their plan"));
        assert_eq!(told.count(), 1, "{}", ran.err);
    }
}
