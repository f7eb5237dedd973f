//! Tests of best-first search (`--strategy best`): it runs as many executions as dfs and icb. With
//! `--changed-since` it explores changed code first.

use heisen_testkit::{Sandbox, check_json, compile, program, root, scratch, timeless, usual_or_nightly};
use serde_json::Value;
use std::path::Path;

const MUTEXES: &str =
    "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER; static int x;";
const M: &str = "pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m);";
const N: &str = "pthread_mutex_lock(&n); pthread_mutex_unlock(&n);";

/// Explores every schedule of `./p` and returns the number of executions.
#[track_caller]
fn explored(directory: &Path, options: &[&str]) -> u64 {
    let json = check_json(directory, &[options, &["--", "./p"]].concat());
    assert_eq!(
        (&json["verdict"], &json["complete"]),
        (&"clean".into(), &true.into()),
        "{options:?} {json:#}"
    );
    json["executions"].as_u64().expect("a number")
}

#[test]
fn it_explores_exactly_as_much_as_dfs_and_icb() {
    let directory = scratch();
    let twice = M.repeat(2);
    let all: [&[&str]; 4] = [&[M, N, M], &[M, M, "sched_yield();"], &[N, &twice], &[&twice, &twice]];
    for bodies in &all[..usual_or_nightly(2, 4)] {
        compile(directory.path(), "p.c", &program(MUTEXES, bodies), &[]);
        let dfs = explored(directory.path(), &["--strategy", "dfs"]);
        assert!(dfs > 10, "{dfs} executions show nothing");
        assert_eq!(explored(directory.path(), &["--strategy", "best"]), dfs);
        assert_eq!(explored(directory.path(), &["--strategy", "best", "--memory", "64K"]), dfs);
        assert_eq!(explored(directory.path(), &["--strategy", "best", "--jobs", "2"]), dfs);
        for bound in ["0", "1", "2", "3"] {
            let icb = explored(directory.path(), &["--strategy", "icb", "--bound", bound]);
            assert_eq!(explored(directory.path(), &["--strategy", "best", "--bound", bound]), icb, "{bound}");
        }
    }
}

#[test]
fn it_says_what_it_has_shown() {
    let sandbox = Sandbox::new();
    sandbox.compile("p.c", &program(MUTEXES, &[&M.repeat(2), &M.repeat(2)]), &[]);
    let says = |options: &[&str], words: &str| {
        let ran = sandbox.heisen(&[&["check", "--strategy", "best"], options, &["--", "./p"]].concat());
        assert!(ran.out.contains(words), "{}", ran.out);
    };
    says(&[], "ok: no bug in any schedule of calls; all ");
    says(&["--bound", "1"], "ok: no bug in any schedule of calls with at most 1 preemption; all ");
    says(&["--executions", "3"], "nothing found: no bug in 3 executions, not all schedules explored");
    says(&["--bound", "1", "--executions", "3"], "no bug in 3 executions, not all schedules explored");
    let ran = sandbox.heisen(&["check", "--strategy", "best", "--reduce", "--", "./p"]);
    ran.fails(2, &["--reduce is for --strategy icb and dfs, but the strategy is best"]);
}

/// Two threads write a log correctly, and each then makes a payment. One of the two payments may be lost.
const BANK: &str = r#"#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static int balance, logged;
static void log_it(void) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&log_lock);
        logged++;
        pthread_mutex_unlock(&log_lock);
    }
}
static void pay(void) {
    pthread_mutex_lock(&lock);
    int before = balance;
    pthread_mutex_unlock(&lock); // new
    pthread_mutex_lock(&lock); // new
    balance = before + 1;
    pthread_mutex_unlock(&lock);
}
static void *work(void *arg) {
    log_it();
    pay();
    log_it();
    return arg;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    assert(balance == 2);
    return 0;
}
"#;

/// The bank before the change that introduced the bug.
fn bank_before() -> String {
    BANK.lines().filter(|line| !line.ends_with("// new")).map(|line| format!("{line}\n")).collect()
}

/// A git repository in which one program was changed after the first commit.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("src/bank.c", bank_before());
    sandbox.write("README", "A bank.\n");
    git(&sandbox, "init -q . && git add . && $git commit -qm first");
    sandbox.write("src/bank.c", BANK);
    build(&sandbox, "");
    sandbox
}

fn git(sandbox: &Sandbox, what: &str) {
    let script = format!("git='git -c user.name=me -c user.email=me@here'; git {what}");
    let ran = heisen_testkit::run(&mut sandbox.shell(&script));
    assert_eq!(ran.code, 0, "{what}: {}", ran.err);
}

fn build(sandbox: &Sandbox, flags: &str) {
    let ran = heisen_testkit::run(&mut sandbox.shell(&format!("cc -g -pthread src/bank.c -o bank {flags}")));
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// The number of the execution that found the bug, and the notes that Heisen printed.
#[track_caller]
fn found(sandbox: &Sandbox, options: &[&str]) -> (u64, Vec<String>) {
    let ran = sandbox.heisen(&[&["check", "--json", "-"], options, &["--", "./bank"]].concat()).expect(1);
    let json = ran.json();
    let notes = ran.messages().into_iter().map(str::to_owned).collect();
    (json["findings"][0]["executions_to_find"].as_u64().expect("a number"), notes)
}

#[test]
fn a_regression_is_found_sooner_where_the_code_has_changed() {
    let sandbox = repository();
    let note = |since: &str| vec![format!("heisen: note: changed since {since}, and explored first: pay")];
    let (first, notes) = found(&sandbox, &["--changed-since", "HEAD"]);
    assert_eq!(notes, note("HEAD"));
    let (plain, notes) = found(&sandbox, &["--strategy", "best"]);
    assert_eq!(notes, Vec::<String>::new());
    let (icb, _) = found(&sandbox, &["--strategy", "icb"]);
    assert!(2 * first < plain && 2 * first < icb, "{first}, not by changes {plain}, icb {icb}");
    // The number is the same with an explicit strategy, a bound or other workers, and after the change was
    // committed.
    for options in [&["--strategy", "best"][..], &["--bound", "1"], &["--jobs", "1"], &["--jobs", "2"]] {
        assert_eq!(
            found(&sandbox, &[options, &["--changed-since", "HEAD"]].concat()).0,
            first,
            "{options:?}"
        );
    }
    git(&sandbox, "add src && $git commit -qm second");
    assert_eq!(found(&sandbox, &["--changed-since", "HEAD~1"]), (first, note("HEAD~1")));
    assert_eq!(found(&sandbox, &["--changed-since", "HEAD"]).0, plain);
}

#[test]
fn what_counts_as_changed() {
    let sandbox = repository();
    let changed = |since: &str| found(&sandbox, &["--changed-since", since]).1;
    let bank = sandbox.path("bank");
    let none = [format!(
        "heisen: note: no code of {} has changed since HEAD, so none is explored first",
        bank.display()
    )];
    git(&sandbox, "add src && $git commit -qm second");
    assert_eq!(changed("HEAD"), none);
    // Changes to other files and outside of functions do not count.
    sandbox.write("README", "Two banks.\n");
    sandbox.write("src/bank.c", BANK.replace("static int balance", "static int  balance"));
    assert_eq!(changed("HEAD"), none);
    // The function that a deleted line belonged to counts as changed.
    sandbox.write("src/bank.c", BANK.replace("    log_it();\n    return", "    return"));
    build(&sandbox, "");
    assert_eq!(changed("HEAD"), ["heisen: note: changed since HEAD, and explored first: work"]);
    // If git does not track the file, all its functions count as changed.
    git(&sandbox, "rm -q --cached src/bank.c && $git commit -qm third");
    let all = ["heisen: note: changed since HEAD, and explored first: log_it, main, pay, work"];
    assert_eq!(changed("HEAD"), all);
}

#[test]
fn rejected_options() {
    let sandbox = repository();
    let check = |since: &str, options: &[&str]| {
        sandbox.heisen(&[&["check", "--changed-since", since], options, &["--", "./bank"]].concat())
    };
    check("nowhere", &[])
        .fails(2, &["--changed-since nowhere: the git repository ", " has no such revision"]);
    check("", &[]).fails(2, &["has no such revision"]);
    check("--all", &[]).fails(2, &["--changed-since --all: that is not a revision"]);
    // A revision that names a file is rejected, too.
    check("HEAD:README", &[]).fails(2, &["has no such revision"]);
    for (options, by) in [(&["--strategy", "icb"][..], "icb"), (&["--strategy", "guided"], "guided")] {
        let words = format!("--changed-since is for --strategy best, but the strategy is {by}; change one");
        check("HEAD", options).fails(2, &[&words]);
    }
    check("HEAD", &["--resume", "search.json"]).fails(2, &["--changed-since", "--resume"]);
    check("HEAD", &["--depth", "3"]).fails(2, &["--depth is for --strategy pct and fair-pct"]);
    build(&sandbox, "-g0");
    check("HEAD", &[]).fails(2, &["/bank has no debug information", "build it with -g"]);
    build(&sandbox, "");
    std::fs::rename(sandbox.path("src"), sandbox.path("gone")).expect("it is renamed");
    check("HEAD", &[]).fails(2, &["none of the sources of ", "/bank is there", "src/bank.c"]);
    std::fs::rename(sandbox.path("gone"), sandbox.path("src")).expect("it is renamed");
    std::fs::rename(sandbox.path(".git"), sandbox.path("not_git")).expect("it is renamed");
    check("HEAD", &[]).fails(2, &["src/bank.c is in no git repository: not a git repository"]);
    std::fs::rename(sandbox.path("not_git"), sandbox.path(".git")).expect("it is renamed");
    let mut plain = sandbox.plain_command(&["check", "--changed-since", "HEAD", "--", "./bank"]);
    sandbox
        .run(plain.env("PATH", sandbox.path("src")))
        .fails(2, &["git cannot be started", "is it installed?"]);
    // In a hook, git passes its own directories to its children in the environment.
    let mut command = sandbox.command(&["check", "--changed-since", "HEAD", "--", "./bank"]);
    let ran = sandbox.run(command.env("GIT_DIR", "/nowhere").env("GIT_WORK_TREE", "/")).expect(1);
    assert!(ran.err.contains("explored first: pay"), "{}", ran.err);
}

#[test]
fn a_search_that_is_resumed_still_begins_with_what_has_changed() {
    let sandbox = repository();
    let options = ["check", "--keep-going", "--changed-since", "HEAD", "--json", "result"];
    let result = || -> Value {
        let text = std::fs::read_to_string(sandbox.path("result")).expect("a result");
        timeless(serde_json::from_str(&text).expect("JSON"))
    };
    sandbox.heisen(&[&options[..], &["--executions", "700", "--", "./bank"]].concat()).expect(1);
    let whole = result();
    sandbox.heisen(&[&options[..], &["--executions", "65", "--save", "saved", "--", "./bank"]].concat());
    // After 65 executions a batch ends. The saved search keeps the list of changed functions, so the commit
    // does not matter.
    git(&sandbox, "add src && $git commit -qm second");
    let ran =
        sandbox.heisen(&["check", "--resume", "saved", "--executions", "635", "--json", "result"]).expect(1);
    assert_eq!((ran.messages(), result()), (vec![], whole));
}

#[test]
fn an_example_by_its_source() {
    // The compiler gets the file name as the user typed it, and the build directory is a different one.
    let sandbox = Sandbox::new();
    let text = std::fs::read_to_string(root().join("examples/c/account.c")).expect("an example");
    sandbox.write("account.c", text.replace("deposit(", "pay_in("));
    git(&sandbox, "init -q . && git add . && $git commit -qm first");
    sandbox.write("account.c", text);
    let ran = sandbox.heisen(&["check", "--changed-since", "HEAD", "account.c"]).expect(1);
    assert!(ran.err.contains("explored first: deposit"), "{}", ran.err);
}
