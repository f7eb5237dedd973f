//! Tests `heisen script` in unit mode: the meaning of the language, by counting schedules, and the scripts of
//! CONCURRIT's appendix.

mod bad;

use heisen_testkit::{heisen, root, run, scratch};
use serde_json::{Value, json};
use std::path::Path;

/// Runs a script on a C program. Returns the exit code, the result, and the messages.
fn script(script: &str, program: &str, args: &[&str]) -> (i32, Value, String) {
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), program).expect("the program is written");
    std::fs::write(directory.path().join("s.rhai"), script).expect("the script is written");
    scripted(directory.path(), &[args, &["s.rhai", "p.c"]].concat())
}

fn scripted(directory: &Path, args: &[&str]) -> (i32, Value, String) {
    let ran = run(heisen(directory).args(["script", "--json", "-"]).args(args));
    let json = serde_json::from_str(&ran.out).unwrap_or(Value::Null);
    (ran.code, json, ran.err)
}

/// Runs a script that must find nothing in all of its schedules. Returns the result.
#[track_caller]
fn clean(text: &str, program: &str, args: &[&str]) -> Value {
    let (code, json, said) = script(text, program, args);
    assert_eq!((code, &json["found"]), (0, &Value::Null), "{text}: {said}{json:#}");
    json
}

/// A program with two threads that pass `count` control points each, and a function of two arguments.
fn points(count: usize) -> String {
    format!(
        "#include <heisen.h>\n#include <pthread.h>\n\
         static struct {{ int first; struct {{ long second; }} in[2]; }} all;\nstatic int *to = &all.first;\nstatic volatile long total;\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         __attribute__((noinline)) static long add(long a, long b) {{ return a + b + (*to == 77); }}\n\
         static void *work(void *number) {{\n\
             for (int i = 0; i < {count}; i++) heisen_point_at(i);\n\
             total += add((long)number, 40);\n\
             pthread_mutex_lock(&m);\n\
             all.in[1].second += 3;\n\
             pthread_mutex_unlock(&m);\n\
             return 0;\n\
         }}\n\
         int main(void) {{\n\
             pthread_t t[2]; heisen_test_start();\n\
             for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)(i + 1));\n\
             for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
             heisen_test_end(); return 0;\n\
         }}\n"
    )
}

const BOTH: &str = "let [a, b] = wait_for_distinct_threads(2, starts());\n";
const INTERLEAVE: &str =
    "while !a.has_ended || !b.has_ended {\n    run_until(choose_thread([a, b]), UNTIL);\n}\n";

fn interleaved(until: &str) -> String {
    format!("{BOTH}{}", INTERLEAVE.replace("UNTIL", until))
}

/// The number of orders of two sequences of this many steps.
fn orders(steps: u64) -> u64 {
    (1..=steps).fold(1, |orders, i| orders * (steps + i) / i)
}

#[test]
fn schedules_are_counted() {
    // One thread after the other: 2 orders.
    assert_eq!(clean(&interleaved("ends()"), &points(2), &[])["executions"], 2);
    for count in 0..4 {
        // Each thread comes to `count` points, and to its end.
        let all = clean(&interleaved("at_control() | ends()"), &points(count), &[]);
        assert_eq!(all["executions"], orders(count as u64 + 1), "{all:#}");
        assert_eq!((&all["complete"], &all["infeasible"]), (&true.into(), &0.into()), "{all:#}");
    }
    // Only one of the points is mentioned.
    let one = clean(&interleaved("at_control(1) | ends()"), &points(3), &[]);
    assert_eq!(one["executions"], orders(2));
}

#[test]
fn every_oracle_explores_the_same() {
    for oracle in ["depth", "breadth", "few", "random"] {
        let all = clean(&interleaved("at_control() | ends()"), &points(2), &["--oracle", oracle]);
        assert_eq!(
            (&all["executions"], &all["complete"]),
            (&orders(3).into(), &true.into()),
            "{oracle}: {all:#}"
        );
        let some = clean(
            &interleaved("at_control() | ends()"),
            &points(2),
            &["--oracle", oracle, "--executions", "7"],
        );
        assert_eq!(
            (&some["executions"], &some["complete"]),
            (&7.into(), &false.into()),
            "{oracle}: {some:#}"
        );
    }
}

/// Control points are independent, so the past does not matter where a thread is chosen. Each pair of places
/// is continued only once.
#[test]
fn covered_executions_are_cut() {
    let all = clean(&interleaved("at_control() | ends()"), &points(6), &["--reduce"]);
    let (whole, cut) =
        (all["executions"].as_u64().expect("a number"), all["covered"].as_u64().expect("a number"));
    assert!(whole + cut < 200 && cut > 10 && orders(7) == 3432, "{all:#}");
}

/// The test of section 4 of the paper, with `select` and `release` only.
#[test]
fn select_and_release() {
    let text = "let e1 = select(any, starts()); let t1 = e1.thread;\n\
        let e2 = select(any - t1, starts()); let t2 = e2.tid;\n\
        while !t1.has_ended || !t2.has_ended {\n\
            let left = []; if !t1.has_ended { left.push(t1); } if !t2.has_ended { left.push(t2); }\n\
            let t = choose(left);\n\
            loop {\n\
                release(t);\n\
                let e = select(t, at_control() | ends());\n\
                if e.kind == \"control\" || e.kind == \"end\" { break; }\n\
            }\n\
        }\n";
    assert_eq!(clean(text, &points(2), &[])["executions"], orders(3));
}

#[test]
fn predicates() {
    // The event at which a thread is held satisfies the awaited predicate, also as the engine evaluates it.
    // It does not satisfy the negation.
    for until in [
        "enters(\"add\")",
        "enters(\"add\") & with_arg0(2) & with_arg1(40)",
        "returns(\"add\") & returns_value(42)",
        "returns(\"add\") & returns_value(41)",
        "in_func(\"add\") & reads(\"all.first\")",
        "in_func(\"add\", 1) & reads(\"to->first\") | reads(\"to\")",
        "reads(\"all.in[1].second\") & with_value(3)",
        "writes(\"all.in[1]\")",
        "accesses(\"all\") & !reads()",
        "locks(\"m\")",
        "unlocks(\"m\")",
        "locks() & !locks(\"all\")",
        "at_control(1)",
        "starts()",
        "test_start()",
        "test_end()",
        "at(\"p.c:12\")",
        "calls() & !at_control()",
        "operation(\"join\") | operation(\"create\")",
    ] {
        if until.contains("to->") {
            // There is no such field, because an int has none.
            let (code, _, said) = script(&format!("wait_for_thread(any, {until});"), &points(2), &[]);
            assert_eq!(code, 2, "{said}");
            continue;
        }
        let text = format!(
            "let e = select(any, {until});\nassert(e.satisfies({until}), `${{e}}`);\nassert(!e.satisfies(!({until})), `${{e}}`);\n"
        );
        clean(&text, &points(2), &[]);
    }
    // A predicate that never holds is never satisfied.
    for until in [
        "enters(\"add\") & with_arg0(3)",
        "returns(\"add\") & returns_value(43)",
        "in_func(\"add\") & locks()",
        "in_func(\"add\", 2)",
        "at_control(2)",
        "reads(\"all.in[0]\")",
        "reads(\"all.first\") & with_value(1)",
    ] {
        let (code, json, said) = script(&format!("wait_for_thread(any, {until});"), &points(2), &[]);
        assert_eq!((code, &json["infeasible"]), (4, &1.into()), "{until}: {said}{json:#}");
    }
}

#[test]
fn fields_of_events() {
    let text = "let e = select(any, enters(\"add\"));\n\
        assert(e.kind == \"enter\" && e.function == \"add\" && e.arg0 == 1 && e.arg1 == 40 && e.thread.number == 1);\n\
        assert(e.file == \"p.c\" && e.line > 5 && e.caller != 0);\n\
        release(e.thread);\n\
        e = select(e.thread, reads(\"all.in[1].second\"));\n\
        assert(e.size == 8 && e.value == 0 && e.address != 0);\n\
        run_until(e.thread, ends());\n\
        e = select(any, returns(\"add\"));\n\
        assert(e.returned == 42);\n";
    clean(text, &points(1), &[]);
}

#[test]
fn a_program_that_is_not_instrumented() {
    let directory = scratch();
    let file = directory.path().join("p.c");
    std::fs::write(&file, points(2)).expect("written");
    let include = format!("-I{}", root().join("include").display());
    let mut cc = std::process::Command::new("cc");
    let built =
        cc.args(["-O2", "-pthread", &include, "-o"]).arg(directory.path().join("p")).arg(&file).status();
    assert!(built.is_ok_and(|status| status.success()));
    // Functions are breakpoints, found by symbols alone.
    let text = "let [a, b] = wait_for_distinct_threads(2, enters(\"add\"));\nrun_until(b, returns(\"add\") & returns_value(42));\n\
        assert(!b.in_func(\"add\") && a.in_func(\"add\"));\nrun_until(b, ends());\n";
    std::fs::write(directory.path().join("s.rhai"), text).expect("written");
    let (code, json, said) = scripted(directory.path(), &["s.rhai", "--", "./p"]);
    assert_eq!((code, &json["executions"]), (0, &1.into()), "{said}{json:#}");
    std::fs::write(directory.path().join("s.rhai"), "\nwait_for_thread(any, writes());").expect("written");
    let (code, _, said) = scripted(directory.path(), &["s.rhai", "--", "./p"]);
    assert_eq!(code, 2);
    assert!(said.contains("line 2: the program is not instrumented") && said.contains("heisen cc"), "{said}");
}

/// Waits for the n-th event, of one thread or of any.
#[test]
fn events_are_counted() {
    // Each thread passes three points. It has passed the second before it is held at the third.
    let text = format!(
        "{BOTH}run_until(a, at_control(), 3);\nassert(select(a).control == 2);\nrun_until([a, b], ends());\n"
    );
    clean(&text, &points(3), &[]);
    // By default T1 passes its points before T2 comes to any.
    for (nth, thread) in [(1, 1), (2, 2)] {
        let text =
            format!("let t = wait_for_thread(any, at_control(1), {nth});\nassert(t.number == {thread});\n");
        clean(&text, &points(3), &[]);
    }
    let (code, json, _) = script("wait_for_thread(any, at_control(1), 3);", &points(3), &[]);
    assert_eq!((code, &json["infeasible"]), (4, &1.into()), "{json:#}");
}

/// A program whose exit status shows which thread was woken first, what was chosen, whether a wait ended
/// early, and whether an allocation failed.
const DECIDES: &str = "#include <heisen.h>\n#include <pthread.h>\n#include <stdlib.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
    static int first, go;\nvoid *one, *other;\n\
    static void *work(void *number) {\n\
        pthread_mutex_lock(&m);\n\
        pthread_cond_wait(&c, &m);\n\
        if (!go && !first) first = 4;\n\
        if (!first) first = (int)(long)number;\n\
        pthread_mutex_unlock(&m);\n\
        return 0;\n\
    }\n\
    int main(void) {\n\
        pthread_t t[2];\n\
        for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)(i + 1));\n\
        int chosen = heisen_choose(3) + heisen_choose(3);\n\
        one = malloc(1); other = malloc(1);\n\
        int lost = !one + 2 * !other;\n\
        heisen_point_at(1);\n\
        pthread_mutex_lock(&m); go = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);\n\
        heisen_point_at(2);\n\
        pthread_cond_broadcast(&c);\n\
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
        return first * 20 + chosen * 4 + lost;\n\
    }\n";

#[test]
fn decisions_that_are_none_of_threads() {
    // Both threads wait, and the main thread is about to signal.
    let both = "let main = wait_for_thread(any, at_control(1));\n\
                let a = wait_for_thread(any - main, operation(\"cond_wait\"), 2);\n\
                let b = wait_for_thread(any - [main, a], operation(\"cond_wait\"), 2);\n";
    let signalled = "run_until(main, at_control(2));\n";
    let cases = [
        ("", "", "run_until(a, ends());", 20),
        ("", "let_wake(main, b);", "run_until(b, ends());", 40),
        ("", "let_wake(any, b);", "run_until(b, ends());", 40),
        ("let_choose(any, 2);", "", "", 28),
        ("let_choose(any, 2); let_choose(any, 1);", "", "", 32),
        ("let_choose(any, 1, 2);", "", "", 24),
        ("let_fail(any, \"malloc\");", "", "", 21),
        ("let_fail(any, \"malloc\", 2);", "", "", 22),
        ("let_wake_early(any);", "run_until(a, ends());", "", 80),
    ];
    for (first, before, after, expected) in cases {
        let text = format!("{first}\n{both}{before}\n{signalled}{after}\n");
        let (code, json, said) = script(&text, DECIDES, &["--expect-exit", &expected.to_string()]);
        assert_eq!((code, &json["executions"]), (0, &1.into()), "{text}{said}{json:#}");
    }
    // In system mode threads are not controlled.
    let (code, _, said) = script("let_wake_early(any);", DECIDES, &["--system"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("promises need controlled threads"), "{said}");
}

#[test]
fn what_is_printed_has_its_line() {
    let (_, json, said) = script("\nprint(1 + 1);\nassert(false);", &points(1), &[]);
    assert_eq!(json["found"]["trail"][0], json!({"line": 2, "what": "2"}), "{said}{json:#}");
}

#[test]
fn tests_that_ask_for_one_execution() {
    let (code, json, _) = script("exists();\nwait_for_thread(any, at_control(1));", &points(2), &[]);
    assert_eq!((code, json["exists"].is_array()), (0, true), "{json:#}");
    let (code, json, _) = script("exists();\nwait_for_thread(any, at_control(2));", &points(2), &[]);
    assert_eq!((code, &json["exists"], &json["infeasible"]), (1, &Value::Null, &1.into()), "{json:#}");
    // `assume` leaves executions out.
    let text = format!("{BOTH}let t = choose_thread([a, b]);\nassume(t == b);\nrun_until(t, ends());");
    let all = clean(&text, &points(2), &[]);
    assert_eq!((&all["executions"], &all["assumed"]), (&1.into(), &1.into()), "{all:#}");
}

#[test]
fn a_finding_is_repeated_by_its_choices() {
    let text = format!(
        "{BOTH}for t in permute([a, b]) {{ run_until(t, ends()); }}\nassert(choose(1, 2) != 2, \"two\");"
    );
    let (code, json, said) = script(&text, &points(1), &[]);
    assert_eq!((code, &json["executions"]), (1, &2.into()), "{said}{json:#}");
    let found = &json["found"];
    assert_eq!(found["message"], "line 3 of the script: two");
    assert_eq!((&found["choices"], &found["repeats"]), (&json!([0, 1]), &true.into()), "{json:#}");
    for (choices, expected) in [("0,1", 1), ("1,1", 1), ("1,0", 0)] {
        let (code, json, _) = script(&text, &points(1), &["--choices", choices]);
        assert_eq!((code, &json["executions"]), (expected, &1.into()), "{json:#}");
    }
}

/// One thread looks up memory, and another thread frees it.
const LOOKED_UP: &str = "#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n\
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;\nstatic char *value;\n\
    __attribute__((noinline)) static char *lookup(void) {\n\
        pthread_rwlock_rdlock(&lock); char *v = value; pthread_rwlock_unlock(&lock); return v;\n\
    }\n\
    static void *reader(void *unused) { char *v = lookup(); if (v) USE; return unused; }\n\
    static void *writer(void *unused) {\n\
        pthread_rwlock_wrlock(&lock); char *v = value; value = 0; pthread_rwlock_unlock(&lock); free(v); return unused;\n\
    }\n\
    int main(void) {\n\
        value = strdup(\"one\"); pthread_t t[2];\n\
        pthread_create(&t[0], 0, reader, 0); pthread_create(&t[1], 0, writer, 0);\n\
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
    }\n";

#[test]
fn memory_errors_are_noticed_whatever_the_script_mentions() {
    let held = "let r = wait_for_thread(any, returns(\"lookup\"));\nwait_for_thread(any - r, ends());\n";
    // The wrong use is an access or a call of the C library, while the script is active or after its end.
    for wrong in ["v[0]++", "if (strcmp(v, \"one\")) abort()"] {
        for last in ["run_until(r, ends());\n", ""] {
            let text = LOOKED_UP.replace("USE", wrong);
            let (code, json, said) = script(&format!("{held}{last}"), &text, &[]);
            assert_eq!(
                (code, &json["found"]["kind"]),
                (1, &json!("use-after-free")),
                "{wrong}: {said}{json:#}"
            );
            let (code, json, said) = script(&format!("{held}{last}"), &text, &["--heap", "off"]);
            assert_ne!(json["found"]["kind"], "use-after-free", "{wrong}: {code} {said}{json:#}");
        }
    }
}

#[test]
fn patterns() {
    let counted = |text: &str, count: usize| clean(text, &points(count), &[])["executions"].clone();
    assert_eq!(counted("search_seq(2);", 2), 2);
    // Each thread has two points in `work`, and leaves it.
    assert_eq!(counted("search_in_func_large_steps(2, [\"work\"]);", 2), orders(3));
    assert_eq!(
        counted(
            "let [a, b] = wait_for_distinct_threads(2, enters(\"add\"));\nexact_schedule([[b, ends()], [a, returns(\"add\")]]);",
            2
        ),
        1
    );
    let bounded = clean("context_bounded(1, 2, [\"add\"]);", &points(0), &[]);
    assert_eq!(bounded["complete"], true);
    assert!(bounded["executions"].as_u64() > Some(4), "{bounded:#}");
}

/// The eight scripts of the paper's appendix need no more schedules to the bug than its table 1 lists.
#[test]
fn the_scripts_of_the_appendix() {
    let all = [
        ("ctrace", 1, "assertion"),
        ("streamcluster", 1, "assertion"),
        ("localtime", 4, "assertion"),
        ("interrupt", 1, "deadlock"),
        ("rwlock", 38, "assertion"),
        ("clear_context", 451, "crash"),
        ("incr", 1, "assertion"),
        ("rotate", 30, "assertion"),
    ];
    let directory = scratch();
    for (name, most, kind) in all {
        let json = example(directory.path(), name, name, &[]);
        assert_eq!(
            (&json["found"]["kind"], &json["found"]["repeats"]),
            (&kind.into(), &true.into()),
            "{name}: {json:#}"
        );
        let explored =
            json["executions"].as_u64().expect("a number") + json["infeasible"].as_u64().expect("a number");
        assert!(explored <= most, "{name}: {explored} of {most}: {json:#}");
    }
}

fn example(directory: &Path, script: &str, program: &str, args: &[&str]) -> Value {
    let examples = root().join("examples/script");
    let file = |name: &str, ending: &str| examples.join(name).with_extension(ending).display().to_string();
    let (_, json, said) =
        scripted(directory, &[args, &[&file(script, "rhai"), &file(program, "c")]].concat());
    assert_ne!(json, Value::Null, "{script}: {said}");
    json
}

/// The case study of section 2, without the search of all interleavings, which takes long.
#[test]
fn the_case_study() {
    let directory = scratch();
    let result = |script: &str| example(directory.path(), script, "spidermonkey", &[]);
    let sequential = result("spidermonkey_seq");
    assert_eq!(
        (&sequential["executions"], &sequential["found"]),
        (&6.into(), &Value::Null),
        "{sequential:#}"
    );
    let buggy = result("spidermonkey_buggy");
    let explored =
        buggy["executions"].as_u64().expect("a number") + buggy["infeasible"].as_u64().expect("a number");
    assert!(explored < 10 && buggy["found"]["repeats"] == true, "{buggy:#}");
    let exact = result("spidermonkey_exact");
    assert_eq!(
        (&exact["executions"], &exact["infeasible"], &exact["found"]["repeats"]),
        (&1.into(), &0.into(), &true.into())
    );
    // This script of the appendix finds nothing in the corrected program.
    let fixed = std::fs::read_to_string(root().join("examples/script/spidermonkey.c")).expect("the program");
    let text =
        std::fs::read_to_string(root().join("examples/script/spidermonkey_exact.rhai")).expect("the script");
    let (code, json, said) = script(&text, &format!("#define FIXED\n{fixed}"), &[]);
    assert!(code != 1 && json["found"] == Value::Null, "{said}{json:#}");
}
