//! Tests `heisen script` in system mode: parallel threads, several processes, programs that already run, and
//! errors.

use heisen_testkit::{Ran, Sandbox, replays, root, run, soon, usual_or_nightly};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A sandbox with a script and compiled programs.
struct Place(Sandbox);

impl Place {
    fn new(script: &str) -> Place {
        let place = Place(Sandbox::new());
        place.0.write("s.rhai", script);
        place
    }

    fn with(self, name: &str, text: &str) -> Place {
        self.0.compile(&format!("{name}.c"), text, &["-g", "-O1", "-pthread"]);
        self
    }

    /// Runs `heisen` while another `heisen run` keeps a program running, so processes may be left.
    fn heisen(&self, args: &[&str]) -> Ran {
        run(&mut self.0.command(args))
    }

    /// Runs the script. Returns the exit code, the result, and the messages.
    fn script(&self, args: &[&str]) -> (i32, Value, String) {
        let ran = self.heisen(&[&["script", "--json", "-", "s.rhai"], args].concat());
        let json = serde_json::from_str(&ran.out).unwrap_or(Value::Null);
        (ran.code, json, ran.err)
    }

    /// Runs a script `times` times. It must find nothing and explore this number of schedules.
    #[track_caller]
    fn clean(&self, schedules: u64, times: usize, args: &[&str]) {
        for _ in 0..times {
            let (code, json, said) = self.script(args);
            assert_eq!((code, &json["executions"]), (0, &schedules.into()), "{said}{json:#}");
            assert_eq!(json["infeasible"], 0, "{json:#}");
        }
        self.0.assert_tidy();
    }
}

/// Two threads, each of which appends its number to an array.
const TWO: &str = "#include <pthread.h>\n#include <stdio.h>\n\
    int order[2], count;\n\
    __attribute__((noinline)) void work(long id) { order[__atomic_fetch_add(&count, 1, 5)] = id; }\n\
    static void *run(void *id) { work((long)id); return 0; }\n\
    int main(void) {\n\
        pthread_t t[2];\n\
        for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)(i + 1));\n\
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
        printf(\"%d %d\\n\", order[0], order[1]);\n\
        return 0;\n\
    }\n";

#[test]
fn threads_are_held_in_both_orders() {
    let script = "let p = start(\"two\");\n\
        let [x, y] = wait_for_distinct_threads(2, enters(\"work\"));\n\
        let first = choose([1, 2]);\n\
        let e = select(x);\n\
        let a = if e.arg0 == first { x } else { y };\n\
        run_until(a, ends());\n\
        run_until(if a == x { y } else { x }, ends());\n\
        assert(wait_for_end(p) == 0);\n\
        assert(p.output == `${first} ${3 - first}\\n`, p.output);\n";
    // rhai has no escapes in a string in backticks.
    let script = script.replace("`${first} ${3 - first}\\n`", "`${first} ${3 - first}` + \"\\n\"");
    Place::new(&script).with("two", TWO).clean(2, replays(), &["--attach", "two=./two"]);
}

#[test]
fn one_program_is_run_to_its_end() {
    let script = "let [a, b] = wait_for_distinct_threads(2, starts());\n\
        for t in permute([a, b]) { run_until(t, ends()); }\n";
    Place::new(script).with("two", TWO).clean(2, 5, &["--system", "--", "./two"]);
    // The script does not wait for the end of a program that never ends.
    let endless = "#include <unistd.h>\n__attribute__((noinline)) void here(void) { __asm__(\"\"); }\nint main(void) { here(); for (;;) pause(); }\n";
    let place = Place::new("wait_for_thread(any, enters(\"here\"));").with("endless", endless);
    let (code, json, _) = place.script(&["--system", "--hang", "500ms", "--", "./endless"]);
    assert_eq!(code, 4, "{json:#}");
    assert!(json["why"]["what"].as_str().unwrap_or_default().contains("call end_run() last"), "{json:#}");
    let place = Place::new("wait_for_thread(any, enters(\"here\"));\nend_run();").with("endless", endless);
    place.clean(1, 1, &["--system", "--", "./endless"]);
}

#[test]
fn accesses_of_memory_are_events() {
    let text = "#include <assert.h>\n#include <pthread.h>\nint counter;\n\
        static void *add(void *arg) { (void)arg; int seen = counter; counter = seen + 1; return 0; }\n\
        int main(void) {\n\
            pthread_t t[2];\n\
            for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, add, 0);\n\
            for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
            assert(counter == 2);\n\
        }\n";
    let script = "let [a, b] = wait_for_distinct_threads(2, reads(\"counter\"));\n\
        run_until(a, writes(\"counter\"));\nrun_until(b, ends());\nrun_until(a, ends());\n";
    let place = Place::new(script);
    place.0.write("lost.c", text);
    for _ in 0..replays() {
        let (code, json, said) = place.script(&["--system", "lost.c"]);
        let found = &json["found"];
        assert_eq!(
            (code, &found["kind"], &found["repeats"]),
            (1, &"crash".into(), &true.into()),
            "{said}{json:#}"
        );
        assert!(found["message"].as_str().unwrap_or_default().contains("counter == 2"), "{json:#}");
    }
    place.0.assert_tidy();
}

#[test]
fn no_event_is_missed_and_nobody_sleeps_for_ever() {
    // Thousands of stops, at which the script and the thread alternate, and two threads at the same events.
    let [most, half] = usual_or_nightly(["2000", "1000"], ["10000", "5000"]);
    let text = "#include <pthread.h>\nlong n;\n__attribute__((noinline)) void step(long i) { n += i; }\n\
        static void *run(void *a) { for (long i = 0; i < 10000; i++) step(i); return a; }\n\
        int main(void) {\n\
            pthread_t t[2];\n\
            for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, run, 0);\n\
            for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
            return 0;\n\
        }\n";
    let alone = "let [a, b] = wait_for_distinct_threads(2, enters(\"step\"));\n\
        let last = -1;\nlet n = 0;\n\
        while n < 10000 {\n\
            let e = select(a, enters(\"step\"));\n\
            assert(e.arg0 == last + 1, `${e.arg0} after ${last}`);\n\
            last = e.arg0;\n    release(a);\n    n += 1;\n}\n\
        run_until(a, ends());\n";
    let (text, alone) = (&text.replace("10000", most), &alone.replace("10000", most));
    Place::new(alone).with("steps", text).clean(1, 2, &["--system", "--", "./steps"]);
    let both = "let all = wait_for_distinct_threads(2, enters(\"step\"));\n\
        let n = 0;\n\
        while n < 5000 { run_until(all, enters(\"step\")); n += 1; }\n";
    Place::new(&both.replace("5000", half)).with("steps", text).clean(1, 2, &["--system", "--", "./steps"]);
}

/// Calls of `memset` and similar functions are events if they come from instrumented code. Threads that look
/// up their callers in parallel get the right answer, also while another thread searches a long function.
#[test]
fn copies_are_events_while_other_threads_copy_unseen() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\n#include <string.h>\n\
        #define TEN(x) x x x x x x x x x x\n\
        char sink[64], other[2][64];\natomic_int done;\nstatic pthread_barrier_t begin;\n\
        __attribute__((noinline, no_sanitize_thread)) void unseen(char *to, long n) {\n\
            TEN(TEN(TEN(memset(to, 0, n); memset(to, 1, n); memset(to, 2, n);)))\n\
        }\n\
        __attribute__((no_sanitize_thread)) static void *looks(void *to) {\n\
            pthread_barrier_wait(&begin);\n    do unseen(to, 8); while (!done);\n    return 0;\n\
        }\n\
        __attribute__((noinline)) void seen(long n) { TEN(TEN(memset(sink, 0, n); memset(sink, 1, n);)) }\n\
        static void *copies(void *a) { pthread_barrier_wait(&begin); seen(8); done = 1; return a; }\n\
        int main(void) {\n\
            pthread_t t[3];\n    pthread_barrier_init(&begin, 0, 3);\n\
            for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, looks, other[i]);\n\
            pthread_create(&t[2], 0, copies, 0);\n\
            for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n    return 0;\n\
        }\n";
    let script = "let a = wait_for_thread(any, writes(\"sink\"));\nlet n = 1;\n\
        while n < 200 { run_until(a, writes(\"sink\")); n += 1; }\nrun_until(a, ends());\n";
    let place = Place::new(script);
    place.0.write("copies.c", text);
    place.clean(1, 3, &["--system", "copies.c"]);
}

#[test]
fn locks_and_points_and_tests_are_events() {
    let text = "#include <heisen.h>\n#include <pthread.h>\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
        static void *run(void *a) { pthread_mutex_lock(&m); heisen_point_at(42); pthread_mutex_unlock(&m); return a; }\n\
        int main(void) {\n\
            pthread_t t;\n    heisen_point_at(41); heisen_test_start();\n\
            pthread_create(&t, 0, run, 0); pthread_join(t, 0);\n\
            heisen_test_end(); heisen_point_at(43); return 0;\n\
        }\n";
    let script = "let main = wait_for_thread(any, test_start());\nrelease(main);\n\
        let t = wait_for_thread(any - main, locks());\n\
        run_until(t, at_control(42));\nrun_until(t, unlocks());\nrelease(t);\n\
        run_until(main, test_end());\n";
    let place = Place::new(script);
    let include = format!("-I{}", root().join("include").display());
    place.0.compile("points.c", text, &["-g", "-pthread", &include]);
    place.clean(1, 5, &["--system", "--", "./points"]);
}

#[test]
fn forked_processes_are_controlled_too() {
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        __attribute__((noinline)) void child(int n) { printf(\"%d\\n\", n); fflush(stdout); }\n\
        int main(void) {\n\
            for (int i = 0; i < 2; i++) if (fork() == 0) { child(i); _exit(0); }\n\
            while (wait(0) > 0);\n    return 0;\n\
        }\n";
    let script = "let p = start(\"p\");\n\
        let [x, y] = wait_for_distinct_threads(2, enters(\"child\"));\n\
        let first = permute([x, y])[0];\n\
        let number = select(first).arg0;\n\
        release(first);\n\
        wait_for_output(p, `${number}` + \"\\n\");\n\
        release(any);\n\
        assert(wait_for_end(p) == 0);\n\
        assert(p.output == `${number}` + \"\\n\" + `${1 - number}` + \"\\n\", p.output);\n";
    Place::new(script).with("p", text).clean(2, replays(), &["--attach", "p=./p"]);
}

#[test]
fn a_breakpoint_is_passed_by_threads_that_block_all_signals() {
    let text = "#include <pthread.h>\n#include <signal.h>\n\
        __attribute__((noinline)) int tiny(int x) { __asm__ volatile(\"\"); return x; }\n\
        static void *run(void *a) {\n\
            sigset_t all; sigfillset(&all); pthread_sigmask(SIG_BLOCK, &all, 0); tiny(3); return a;\n\
        }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); return 0; }\n";
    let script = "let a = wait_for_thread(any, returns(\"tiny\"));\nrun_until(a, ends());\n";
    Place::new(script).with("blocks", text).clean(1, 3, &["--system", "--", "./blocks"]);
}

#[test]
fn a_crash_is_a_finding() {
    let text = "#include <signal.h>\n__attribute__((noinline)) void go(void) { __asm__(\"\"); }\nint main(void) { go(); raise(SIGSEGV); }\n";
    let script =
        "let p = start(\"p\");\nlet a = wait_for_thread(any, enters(\"go\"));\nrun_until(a, ends());\n";
    let (code, json, _) = Place::new(script).with("p", text).script(&["--attach", "p=./p"]);
    assert_eq!((code, &json["found"]["kind"]), (1, &"crash".into()), "{json:#}");
    assert_eq!(json["found"]["message"], "p was killed by SIGSEGV", "{json:#}");
    // A program that the script itself ends is not a failure.
    let script = "let p = start(\"p\");\nlet a = wait_for_thread(any, enters(\"go\"));\nstop(p);\nassert(p.has_ended);\n";
    let endless = "#include <unistd.h>\n__attribute__((noinline)) void go(void) { __asm__(\"\"); }\nint main(void) { go(); for (;;) pause(); }\n";
    Place::new(script).with("p", endless).clean(1, 2, &["--attach", "p=./p"]);
}

#[test]
fn what_never_comes_is_not_waited_for() {
    let script = "time_limit(1);\nlet a = wait_for_thread(any, enters(\"work\"));\nlet b = wait_for_thread(a, locks());\n";
    // The program remains for a while after its threads have ended. Otherwise it might be gone before the
    // script looks.
    let stays =
        TWO.replace("printf(", "sleep(30); printf(").replace("<stdio.h>", "<stdio.h>\n#include <unistd.h>");
    let (code, json, _) = Place::new(script).with("two", &stays).script(&["--system", "--", "./two"]);
    // Either thread may be the first to enter `work`.
    let ended = ["T1 has ended before", "T2 has ended before"];
    assert!(code == 4 && ended.contains(&json["why"]["what"].as_str().unwrap_or_default()), "{json:#}");
    let script = "time_limit(2);\nlet a = wait_for_thread(any, enters(\"work\"));\nwait_for_thread(any - a, enters(\"main\"));\n";
    let (code, json, _) = Place::new(script).with("two", TWO).script(&["--system", "--", "./two"]);
    let why = json["why"]["what"].as_str().unwrap_or_default();
    assert!(
        code == 4 && why.starts_with("no such event came within 2s: T1 is held, as it enters work"),
        "{json:#}"
    );
}

/// The example with a bank.
fn bank(script: &str) -> Place {
    let text = |name: &str| {
        std::fs::read_to_string(root().join("examples/system").join(name)).expect("an example is read")
    };
    Place::new(&text(script)).with("bank", &text("bank.c")).with("customer", &text("customer.c"))
}

#[test]
fn a_server_and_its_clients() {
    let place = bank("bank.rhai");
    for _ in 0..5 {
        let (code, json, said) =
            place.script(&["--attach", "bank=./bank door", "--attach", "customer=./customer door 80"]);
        let found = &json["found"];
        assert_eq!(
            (code, &found["kind"], &found["repeats"]),
            (1, &"assertion".into(), &true.into()),
            "{said}{json:#}"
        );
    }
    place.0.assert_tidy();
}

/// A process that gets SIGTERM when this value is dropped.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// A bank under `heisen run`.
fn kept(place: &Place) -> Kept {
    let mut run = place.0.plain_command(&["run", "bank", "--", "./bank", "door"]);
    let kept = Kept(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("heisen is started"));
    assert!(soon(|| place.0.path("door").exists()), "the bank opens");
    kept
}

#[test]
fn a_script_attaches_to_a_program_that_runs() {
    let place = bank("attached.rhai");
    let kept = kept(&place);
    let args = ["--attach", "bank", "--attach", "customer=./customer door 80"];
    let (code, json, said) = place.script(&args);
    assert_eq!((code, &json["found"]["kind"]), (1, &"assertion".into()), "{said}{json:#}");
    // The bank goes on as before, and other scripts may join. The bank has no money any more.
    let ask = "let c = start(\"customer\");\nwait_for_end(c);\nassert(c.output == \"sorry\\n\", c.output);\n";
    place.0.write("s.rhai", ask);
    for _ in 0..3 {
        let (code, json, said) = place.script(&args);
        assert_eq!(code, 0, "{said}{json:#}");
    }
    // Another program with the same name cannot be run.
    place
        .heisen(&["run", "bank", "--", "./bank", "other"])
        .fails(2, &["bank is the name of a program that runs"]);
    place.0.write("s.rhai", "let b = start(\"bank\");\n");
    place.heisen(&[&["script", "s.rhai"], &args[..]].concat()).fails(2, &["line 1: bank runs already"]);
    drop(kept);
    place.0.heisen(&["script", "s.rhai", "--attach", "bank"]).fails(2, &["no program runs by the name bank"]);
    place.0.assert_tidy();
}

#[test]
fn a_script_that_is_killed_leaves_nobody_held() {
    let place = bank("attached.rhai");
    let kept = kept(&place);
    place.0.write(
        "s.rhai",
        "time_limit(60);\nlet a = wait_for_thread(any, enters(\"pay_out\"));\nwait_for_port(1);\n",
    );
    let mut script = place.0.plain_command(&["script", "s.rhai", "--attach", "bank"]);
    let mut script = script.stdout(Stdio::null()).spawn().expect("heisen is started");
    // Until the script is attached, customers are served at once. The first customer that is not served is
    // held.
    let customer = || {
        let mut customer = Command::new(place.0.path("customer"));
        customer.current_dir(place.0.path("")).args(["door", "1"]).stdout(Stdio::null());
        customer.spawn().expect("the customer is started")
    };
    let ended = |child: &mut Child| child.try_wait().expect("a child").is_some();
    let mut held = None;
    for _ in 0..90 {
        let mut child = customer();
        for _ in 0..15 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            if ended(&mut child) {
                break;
            }
        }
        if !ended(&mut child) {
            held = Some(child);
            break;
        }
    }
    let held = std::cell::RefCell::new(held.expect("a customer is held"));
    script.kill().and_then(|()| script.wait()).expect("the script is killed");
    assert!(soon(|| ended(&mut held.borrow_mut())), "the customer is served");
    drop(kept);
    place.0.assert_tidy();
}

#[test]
fn command_lines_that_are_wrong() {
    let place = Place::new("let p = start(\"other\");\n").with("two", TWO);
    let fails = |args: &[&str], words: &[&str]| {
        place.0.heisen(&[&["script", "s.rhai"], args].concat()).fails(2, words);
    };
    fails(&["--attach", "two=./two"], &["s.rhai: line 1: the command line names no program other, only two"]);
    fails(&["--attach", "two=./none"], &["none"]);
    fails(&["--attach", "two='"], &["a quote is not closed"]);
    fails(&["--attach", "=./two"], &["write NAME='PROG ARGS'"]);
    fails(&["--attach", "two=./two", "--attach", "two=./two"], &["--attach two is given twice"]);
    fails(&["--attach", "two=./two", "--", "./two"], &["cannot be used with"]);
    fails(
        &["--attach", "nobody"],
        &["no program runs by the name nobody; start it: heisen run nobody -- PROG"],
    );
    fails(&["--attach", "../x"], &["is no name for a program"]);
    fails(&["--", "./two"], &["line 1: start is for programs that are named with --attach"]);
    place.0.write("s.rhai", "wait_for_thread(any, enters(\"worl\"));\n");
    fails(&["--attach", "two=./two"], &["line 1: the program has no function worl; did you mean work?"]);
    place.0.write("s.rhai", "wait_for_port(70000);\n");
    fails(&["--attach", "two=./two"], &["line 1: a port is a number from 0 to 65535"]);
    place.0.heisen(&["run", "x", "--", "./none"]).fails(2, &["none"]);
    place.0.heisen(&["run", "a/b", "--", "./two"]).fails(2, &["is no name for a program"]);
    place.0.heisen(&["run", "x", "--", "./two"]).expect(0);
    place.0.assert_tidy();
}

/// A memcached with symbols, which `scripts/install-programs` builds, or the one of the distribution.
fn memcached(built: bool) -> Option<PathBuf> {
    let programs =
        std::env::var_os("HEISEN_PROGRAMS").map_or_else(|| root().join("target/programs"), PathBuf::from);
    let path = if built { programs.join("bin/memcached-instrumented") } else { "/usr/bin/memcached".into() };
    path.exists().then_some(path)
}

/// Holds two clients in two workers, in both orders, fifty times each.
fn memcached_in_both_orders(built: bool, script: &str) {
    let Some(server) = memcached(built) else {
        println!("skipped: there is no such memcached; run scripts/install-programs");
        return;
    };
    let example = |name: &str| {
        std::fs::read_to_string(root().join("examples/system").join(name)).expect("an example is read")
    };
    // The choice has no effect except that the rest runs once for each number.
    let numbers: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let place = Place::new(&format!("choose([{}]); {}", numbers.join(", "), example(script)));
    place.0.write("client.sh", example("client.sh"));
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let server = format!("server={} -vv -u nobody -p {port} -t 2 -l 127.0.0.1", server.display());
    let client = |name: &str, text: &str| format!("{name}=/bin/bash client.sh {port} '{text}'");
    let clients = [
        client("set", "set log 0 0 0\\r\\n\\r\\n"),
        client("one", "append log 0 0 1\\r\\n1\\r\\n"),
        client("two", "append log 0 0 1\\r\\n2\\r\\n"),
        client("get", "get log\\r\\n"),
    ];
    let mut args = vec!["--attach", &server];
    clients.iter().for_each(|client| args.extend(["--attach", client.as_str()]));
    place.clean(100, 1, &args);
}

#[test]
fn memcached_as_it_is_installed() {
    memcached_in_both_orders(false, "memcached_unmodified.rhai");
}

#[test]
fn memcached_built_with_instrumentation() {
    memcached_in_both_orders(true, "memcached.rhai");
}
