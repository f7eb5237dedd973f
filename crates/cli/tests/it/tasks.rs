//! Tests of verification tasks in the style of the competition SV-COMP, without any change: with a bug, and without.

use crate::inputs::numbers;
use crate::symbolic::{has_clang, searched};
use heisen_testkit::{Sandbox, root};
use serde_json::{Value, json};

/// What tasks begin with.
const HEAD: &str = "extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__noreturn__));
void reach_error() { __assert_fail(\"0\", \"task.c\", 3, \"reach_error\"); }
void assume_abort_if_not(int cond) { if (!cond) { abort(); } }
#include <pthread.h>
";

/// What old tasks begin with.
const OLD: &str = "extern void __VERIFIER_error(void);
extern void __VERIFIER_assume(int);
extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);
void __VERIFIER_assert(int cond) { if (!cond) { ERROR: __VERIFIER_error(); } }
#include <pthread.h>
";

/// The search of a task.
fn task(code: i32, head: &str, text: &str) -> Value {
    let sandbox = Sandbox::new();
    sandbox.write("task.c", format!("{head}{text}"));
    let json = searched(&sandbox, code, &["--inputs", "--races=off", "task.c"]);
    if code == 1 {
        assert_eq!(json["findings"][0]["kind"], "assertion", "{text}\n{json:#}");
        let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
        sandbox.heisen(&["replay", "-q", schedule]).expect(1);
    } else {
        assert_eq!(
            (&json["verdict"], &json["complete"]),
            (&json!("clean"), &json!(true)),
            "{text}\n{json:#}"
        );
    }
    json
}

#[test]
fn values_and_assumptions() {
    if !has_clang() {
        return;
    }
    let text = |limit: &str| {
        format!(
            "extern int __VERIFIER_nondet_int(void);
            extern unsigned char __VERIFIER_nondet_uchar(void);
            int main(void) {{
                int x = __VERIFIER_nondet_int();
                unsigned char y = __VERIFIER_nondet_uchar();
                assume_abort_if_not(x > 100 && x < 1000 && {limit});
                if (x * 3 == 7 * y) {{ reach_error(); abort(); }}
                return 0;
            }}"
        )
    };
    let json = task(1, HEAD, &text("y < 250"));
    let value = |index: usize| json["findings"][0]["inputs"][index]["value"].as_u64().expect("a value");
    assert_eq!(value(0) * 3, value(1) * 7, "{json:#}");
    task(0, HEAD, &text("y < 10"));
}

/// Two threads count; the update is one step by the name of its function, or not.
fn counter(name: &str) -> String {
    format!(
        "static int count;
        void {name}(int by) {{ int now = count; if (by == 0) return; count = now + by; }}
        void *adds(void *a) {{ {name}(1); {name}(0); {name}(2); return a; }}
        int main(void) {{
            pthread_t one, two;
            pthread_create(&one, 0, adds, 0);
            pthread_create(&two, 0, adds, 0);
            pthread_join(one, 0);
            pthread_join(two, 0);
            if (count != 6) {{ ERROR: {{ reach_error(); abort(); }} }}
            return 0;
        }}"
    )
}

#[test]
fn functions_are_atomic_by_their_names() {
    if !has_clang() {
        return;
    }
    task(0, HEAD, &counter("__VERIFIER_atomic_add"));
    task(1, HEAD, &counter("add"));
}

#[test]
fn atomic_sections_of_old_tasks() {
    if !has_clang() {
        return;
    }
    let text = |begin: &str, end: &str| {
        format!(
            "extern unsigned __VERIFIER_nondet_uint(void);
            static unsigned balance = 100, amount;
            void *withdraws(void *a) {{
                {begin};
                if (balance >= amount) balance -= amount;
                {end};
                return a;
            }}
            int main(void) {{
                pthread_t one, two;
                amount = __VERIFIER_nondet_uint();
                __VERIFIER_assume(amount < 200);
                pthread_create(&one, 0, withdraws, 0);
                pthread_create(&two, 0, withdraws, 0);
                pthread_join(one, 0);
                pthread_join(two, 0);
                __VERIFIER_assert(balance <= 100);
                return 0;
            }}"
        )
    };
    let json = task(1, OLD, &text("", ""));
    let amount = json["findings"][0]["inputs"][0]["value"].as_u64().expect("a value");
    assert!((51..=100).contains(&amount), "{json:#}");
    task(0, OLD, &text("__VERIFIER_atomic_begin()", "__VERIFIER_atomic_end()"));
}

/// Programs with random atomic sections. A search of all their schedules says which of them fail.
#[test]
fn random_atomic_sections_agree_with_all_schedules() {
    if !has_clang() {
        return;
    }
    let (mut failing, mut clean) = (0, 0);
    for seed in 0..heisen_testkit::usual_or_nightly(10, 200) {
        let mut below = numbers(seed);
        let mut body = || {
            let (mut text, mut is_open) = (String::new(), false);
            for _ in 0..5 {
                let (a, b, c) = (below(3), below(3), 1 + below(3));
                text += &match below(6) {
                    0 | 1 if is_open => "heisen_atomic_end();".to_owned(),
                    0 | 1 => "heisen_atomic_begin();".to_owned(),
                    2 => format!("v[{a}] = {c};"),
                    3 => format!("v[{a}] += v[{b}];"),
                    4 => format!("v[{a}] = v[{b}] + {c};"),
                    _ => format!("if (v[{a}] > {c}) v[{b}] = {c};"),
                };
                is_open ^= text.ends_with("begin();") || text.ends_with("end();");
            }
            text + if is_open { "heisen_atomic_end();" } else { "" }
        };
        let (one, two) = (body(), body());
        let (a, b) = (below(3), below(3));
        let text = format!(
            "#include <assert.h>\n#include <heisen.h>\n#include <pthread.h>
            static int v[3] = {{0, 1, 2}};
            static void *one(void *a) {{ {one} return a; }}
            static void *two(void *a) {{ {two} return a; }}
            int main(void) {{
                pthread_t a, b;
                pthread_create(&a, 0, one, 0);
                pthread_create(&b, 0, two, 0);
                pthread_join(a, 0);
                pthread_join(b, 0);
                assert(v[{a}] + v[{b}] != {});
                return 0;
            }}",
            1 + below(6)
        );
        let sandbox = Sandbox::new();
        sandbox.write("random.c", &text);
        // The same executable: compilers may read memory once where the source reads it twice.
        let header = format!("-I{}", root().join("include").display());
        let build = ["cc", "--symbolic", "-g", "-pthread", &header, "random.c", "-o", "random"];
        sandbox.heisen(&build).expect(0);
        let run = |options: &[&str]| {
            let all = ["check", "--json", "-", "--no-explain", "--races=off"];
            sandbox.heisen(&[&all[..], options, &["--", "./random"]].concat())
        };
        let all = run(&["--strategy", "dpor", "--accesses=all"]);
        let fails = all.code == 1;
        let json = run(&["--strategy", "causal"]).expect(fails.into()).json();
        if fails {
            failing += 1;
        } else {
            clean += 1;
            let all = all.expect(0).json();
            assert_eq!(all["complete"], true, "{text}\n{all:#}");
            assert_eq!(json["complete"], true, "{text}\n{json:#}");
        }
    }
    assert!(failing >= 2 && clean >= 2, "{failing} programs fail, and {clean} do not");
}
