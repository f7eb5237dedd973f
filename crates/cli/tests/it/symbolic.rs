//! Tests of the solver-driven search on real programs, built symbolically by clang: which bugs it finds, what it proves,
//! and when it must not claim a proof.

use heisen_testkit::{Sandbox, root};
use serde_json::{Value, json};
use std::process::Command;

/// Whether there is a clang. Without one, nothing can be built symbolically.
pub fn has_clang() -> bool {
    let there = Command::new("clang").arg("--version").output().is_ok_and(|said| said.status.success());
    if !there {
        eprintln!("skipped: no clang (scripts/install-programs installs it)");
    }
    there
}

/// The result of a search.
#[track_caller]
pub fn searched(sandbox: &Sandbox, code: i32, args: &[&str]) -> Value {
    sandbox.heisen(&[&["check", "--json", "-", "--no-explain"][..], args].concat()).expect(code).json()
}

fn example(name: &str) -> String {
    root().join("examples/c").join(name).display().to_string()
}

#[test]
fn bugs_of_examples_are_found_within_a_few_executions() {
    if !has_clang() {
        return;
    }
    // Cortex (PPoPP'16), figure 2, must be found within six executions.
    for (name, kind, most) in [
        ("figure2.c", "assertion", 6),
        ("account.c", "assertion", 4),
        ("bounded_buffer.c", "assertion", 8),
        ("lock_order.c", "deadlock", 4),
        ("lost_wakeup.c", "deadlock", 4),
        ("philosophers4.c", "deadlock", 4),
        ("bluetooth.c", "assertion", 6),
        ("once.c", "deadlock", 3),
        ("pool.c", "exit-status", 6),
    ] {
        let sandbox = Sandbox::new();
        let json = searched(&sandbox, 1, &["--strategy", "causal", &example(name)]);
        assert_eq!(json["findings"][0]["kind"], kind, "{name}: {json:#}");
        assert!(json["executions"].as_u64().is_some_and(|count| count <= most), "{name}: {json:#}");
        let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule file");
        sandbox.heisen(&["replay", schedule]).expect(1);
    }
}

#[test]
fn examples_without_a_bug_are_proven_in_at_most_as_many_executions_as_classes() {
    if !has_clang() {
        return;
    }
    let fixed = [
        "figure2",
        "account",
        "bounded_buffer",
        "lock_order",
        "lost_wakeup",
        "philosophers",
        "bluetooth",
        "once",
        "pool",
        "retry",
    ];
    for name in fixed.map(|name| example(&format!("{name}_fixed.c"))) {
        let sandbox = Sandbox::new();
        let causal = searched(&sandbox, 0, &["--strategy", "causal", &name]);
        assert_eq!(
            (&causal["verdict"], &causal["complete"]),
            (&json!("clean"), &json!(true)),
            "{name}: {causal:#}"
        );
        let dpor = searched(&sandbox, 0, &["--strategy", "dpor", &name]);
        assert!(causal["executions"].as_u64() <= dpor["executions"].as_u64(), "{name}: {causal:#} {dpor:#}");
    }
}

/// Two threads add each other's number so often; the assertion excludes this sum.
fn fibonacci(rounds: u32, excluded: u32) -> String {
    format!(
        "#include <assert.h>
        #include <pthread.h>
        static int i = 1, j = 1;
        static void *one(void *a) {{ for (int k = 0; k < {rounds}; k++) i += j; return a; }}
        static void *other(void *a) {{ for (int k = 0; k < {rounds}; k++) j += i; return a; }}
        int main(void) {{
            pthread_t a, b;
            pthread_create(&a, 0, one, 0);
            pthread_create(&b, 0, other, 0);
            pthread_join(a, 0);
            pthread_join(b, 0);
            assert(i < {excluded} && j < {excluded});
            return 0;
        }}"
    )
}

#[test]
fn the_largest_sum_is_found_and_no_larger_one_is() {
    if !has_clang() {
        return;
    }
    // After four rounds of each thread the largest sum is the tenth Fibonacci number.
    let sandbox = Sandbox::new();
    sandbox.write("largest.c", fibonacci(4, 55));
    sandbox.write("beyond.c", fibonacci(4, 56));
    let largest = searched(&sandbox, 1, &["--strategy", "causal", "--no-minimise", "largest.c"]);
    assert_eq!((&largest["verdict"], &largest["executions"]), (&json!("bug"), &json!(2)), "{largest:#}");
    // The two race with each other; to show that to the race check would take executions of its own.
    let beyond = searched(&sandbox, 0, &["--strategy", "causal", "--races=off", "beyond.c"]);
    assert_eq!((&beyond["complete"], &beyond["executions"]), (&json!(true), &json!(1)), "{beyond:#}");
}

#[test]
fn a_lost_wake_up_of_a_futex_is_found() {
    if !has_clang() {
        return;
    }
    // A thread waits until another one has set a flag. `word` is what it compares.
    let sandbox = Sandbox::new();
    let program = |word: &str| {
        format!(
            "#include <linux/futex.h>
            #include <pthread.h>
            #include <stdatomic.h>
            #include <sys/syscall.h>
            #include <unistd.h>
            static atomic_uint flag, other;
            static void *waits(void *a) {{
                while (!flag) syscall(SYS_futex, &{word}, FUTEX_WAIT, 0, 0, 0, 0);
                return a;
            }}
            int main(void) {{
                pthread_t a;
                pthread_create(&a, 0, waits, 0);
                flag = 1;
                syscall(SYS_futex, &{word}, FUTEX_WAKE, 1, 0, 0, 0);
                pthread_join(a, 0);
                return 0;
            }}"
        )
    };
    sandbox.write("lost.c", program("other"));
    sandbox.write("kept.c", program("flag"));
    let lost = searched(&sandbox, 1, &["--strategy", "causal", "lost.c"]);
    assert_eq!(lost["findings"][0]["kind"], "deadlock", "{lost:#}");
    let kept = searched(&sandbox, 0, &["--strategy", "causal", "kept.c"]);
    assert_eq!((&kept["verdict"], &kept["complete"]), (&json!("clean"), &json!(true)), "{kept:#}");
}

#[test]
fn a_division_by_zero_is_found_although_nobody_reads_its_result() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    let program = |first: &str| {
        format!(
            "#include <pthread.h>
            static int divisor = 1, result;
            static void *sets(void *a) {{ divisor = {first}; divisor = 1; return a; }}
            static void *divides(void *a) {{ result = 10 / divisor; return a; }}
            int main(void) {{
                pthread_t a, b;
                pthread_create(&a, 0, sets, 0);
                pthread_create(&b, 0, divides, 0);
                pthread_join(a, 0);
                pthread_join(b, 0);
                return 0;
            }}"
        )
    };
    sandbox.write("zero.c", program("0"));
    sandbox.write("two.c", program("2"));
    let zero = searched(&sandbox, 1, &["--strategy", "causal", "zero.c"]);
    assert_eq!(zero["findings"][0]["kind"], "crash", "{zero:#}");
    let two = searched(&sandbox, 0, &["--strategy", "causal", "two.c"]);
    assert_eq!((&two["verdict"], &two["complete"]), (&json!("clean"), &json!(true)), "{two:#}");
}

#[test]
fn the_solver_is_an_arm_of_the_portfolio() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    // One value of four billion, and one schedule.
    sandbox.write(
        "rare.c",
        "#include \"heisen.h\"
        #include <assert.h>
        #include <pthread.h>
        static int x, seen;
        static void *sets(void *a) { x = 1; x = 0; return a; }
        static void *looks(void *a) { seen = x; return a; }
        int main(void) {
            unsigned key = 0;
            pthread_t a, b;
            heisen_input(&key, sizeof key, \"key\");
            pthread_create(&a, 0, sets, 0);
            pthread_create(&b, 0, looks, 0);
            pthread_join(a, 0);
            pthread_join(b, 0);
            assert(!(seen && key == 0xfee1dead));
            return 0;
        }",
    );
    let found =
        searched(&sandbox, 1, &["--strategy", "portfolio", "--inputs", "--executions", "200", "rare.c"]);
    assert_eq!(found["findings"][0]["kind"], "assertion", "{found:#}");
    let schedule = found["findings"][0]["schedule"].as_str().expect("a schedule file");
    sandbox.heisen(&["replay", schedule]).expect(1);
    // Without the solver nobody chooses inputs. It would not explore spurious wake-ups.
    let refused =
        sandbox.heisen(&["check", "--strategy", "portfolio", "--inputs", "--spurious", "1", "rare.c"]);
    refused.fails(2, &["--inputs cannot be combined with --spurious: "]);
    let nothing = searched(
        &sandbox,
        0,
        &["--strategy", "portfolio", "--spurious", "1", "--executions", "50", "rare.c"],
    );
    assert_eq!(nothing["verdict"], "clean", "{nothing:#}");
}

#[test]
fn loops_that_wait_are_followed_for_some_rounds() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    let peterson =
        searched(&sandbox, 0, &["--strategy", "causal", "--rounds", "3", &example("peterson_fixed.c")]);
    let claim =
        "no bug in any schedule with at most 3 rounds of a waiting loop; every path of every thread explored";
    assert!(peterson["claim"].as_str().is_some_and(|said| said.starts_with(claim)), "{peterson:#}");
    assert_eq!((&peterson["complete"], &peterson["rounds"]), (&json!(true), &json!(3)), "{peterson:#}");
    let figure =
        searched(&sandbox, 0, &["--strategy", "causal", "--rounds", "3", &example("figure2_fixed.c")]);
    assert_eq!(figure["rounds"], Value::Null, "{figure:#}");
}

/// Threads that yield between their accesses, or sleep; the assertion excludes some order of them, or none.
fn yielding(pause: &str, excluded: u32) -> String {
    format!(
        "#include <assert.h>
        #include <pthread.h>
        #include <sched.h>
        #include <unistd.h>
        static int x, y;
        static void *sets(void *a) {{ x = 1; {pause}; x = 2; {pause}; x = 3; return a; }}
        static void *looks(void *a) {{
            int first = x;
            {pause};
            {pause};
            y = first * 10 + x;
            return a;
        }}
        int main(void) {{
            pthread_t a, b;
            pthread_create(&a, 0, sets, 0);
            pthread_create(&b, 0, looks, 0);
            pthread_join(a, 0);
            pthread_join(b, 0);
            assert(y != {excluded});
            return 0;
        }}"
    )
}

#[test]
fn threads_that_yield_or_sleep_go_on_where_the_solver_wants_it() {
    if !has_clang() {
        return;
    }
    for pause in ["sched_yield()", "usleep(10)"] {
        let sandbox = Sandbox::new();
        // The second thread runs on over both of its pauses, or the first one does.
        for (name, excluded, code) in [("on.c", 11, 1), ("far.c", 13, 1), ("back.c", 31, 0)] {
            sandbox.write(name, yielding(pause, excluded));
            let json = searched(&sandbox, code, &["--strategy", "causal", name]);
            assert_eq!(json["diverged"], 0, "{pause}: {json:#}");
            assert!(code == 1 || json["complete"] == true, "{pause}: {json:#}");
        }
    }
}

/// A list that two threads use: one adds two elements, the other takes one. Each also allocates what only it uses.
fn list(excluded: u32) -> String {
    format!(
        r#"#include <assert.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        struct node {{ int value; struct node *next; }};
        static struct node *head;
        static int count;
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        static void push(int value) {{
            struct node *node = malloc(sizeof *node);
            node->value = value;
            pthread_mutex_lock(&m);
            node->next = head;
            head = node;
            count++;
            pthread_mutex_unlock(&m);
        }}
        static int pop(void) {{
            int value = -1;
            pthread_mutex_lock(&m);
            struct node *node = head;
            if (node) {{
                head = node->next;
                count--;
                value = node->value;
            }}
            pthread_mutex_unlock(&m);
            free(node);
            return value;
        }}
        static void *adds(void *a) {{ push(1); push(2); return a; }}
        static void *takes(void *a) {{
            char *name = strdup("taker");
            int value = pop();
            printf("%s took %d\n", name, value);
            assert(value == -1 || value == 1 || value == 2);
            free(name);
            return a;
        }}
        int main(void) {{
            pthread_t a, b;
            pthread_create(&a, 0, adds, 0);
            pthread_create(&b, 0, takes, 0);
            pthread_join(a, 0);
            pthread_join(b, 0);
            assert(count != {excluded});
            while (pop() >= 0) {{ }}
            return 0;
        }}"#
    )
}

#[test]
fn threads_that_allocate_are_searched_exactly() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("none.c", list(3));
    // The second thread comes first, or last.
    sandbox.write("early.c", list(2));
    sandbox.write("late.c", list(1));
    let none = searched(&sandbox, 0, &["--strategy", "causal", "none.c"]);
    assert_eq!((&none["complete"], &none["executions"]), (&json!(true), &json!(3)), "{none:#}");
    for name in ["early.c", "late.c"] {
        let json = searched(&sandbox, 1, &["--strategy", "causal", name]);
        assert_eq!(json["findings"][0]["kind"], "assertion", "{json:#}");
        let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule file");
        sandbox.heisen(&["replay", schedule]).expect(1);
    }
    // Without the checked heap all threads share one allocator.
    let shared = searched(&sandbox, 0, &["--strategy", "causal", "--heap=off", "none.c"]);
    assert_eq!(shared["complete"], false, "{shared:#}");
}

#[test]
fn races_that_the_order_of_locks_hides_are_asked_for() {
    if !has_clang() {
        return;
    }
    let program = |second: &str| {
        format!(
            "#include <pthread.h>
            static int x;
            static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
            static void *one(void *a) {{ x = 1; pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return a; }}
            static void *two(void *a) {{ pthread_mutex_lock(&m); {second}; return a; }}
            int main(void) {{
                pthread_t a, b;
                pthread_create(&a, 0, one, 0);
                pthread_create(&b, 0, two, 0);
                pthread_join(a, 0);
                pthread_join(b, 0);
                return 0;
            }}"
        )
    };
    let sandbox = Sandbox::new();
    // One path of each thread, and under the default schedule the lock orders the two writes.
    sandbox.write("race.c", program("pthread_mutex_unlock(&m); x = 2"));
    let counted = searched(&sandbox, 0, &["--strategy", "causal", "race.c"]);
    assert!(counted["claim"].as_str().is_some_and(|said| said.contains("1 data race")), "{counted:#}");
    let reported = searched(&sandbox, 1, &["--strategy", "causal", "--races=report", "race.c"]);
    assert_eq!(reported["findings"][0]["kind"], "data-race", "{reported:#}");
}

/// A parser with a bug behind four bytes of its input and a race.
const PARSER: &str = r#"#include <assert.h>
#include <heisen.h>
#include <pthread.h>
static unsigned char message[8];
static int length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int size(void) {
    pthread_mutex_lock(&lock);
    int now = length;
    pthread_mutex_unlock(&lock);
    return now;
}
static void *empties(void *a) {
    pthread_mutex_lock(&lock);
    length = 0;
    pthread_mutex_unlock(&lock);
    return a;
}
static void *parses(void *a) {
    if (message[0] != 'H' || message[1] != 'E' || message[2] != 'I' || message[3] != 'S') return a;
    if (size() >= 4) assert(size() >= 4);
    return a;
}
int main(void) {
    pthread_t a, b;
    heisen_input(message, sizeof message, "message");
    length = 8;
    pthread_create(&a, 0, parses, 0);
    pthread_create(&b, 0, empties, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#;

#[test]
fn input_and_schedule_are_found_together() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("parser.c", PARSER);
    let found = sandbox.heisen(&["check", "--no-explain", "--inputs", "parser.c"]).expect(1);
    // "HEIS", the first byte lowest.
    let inputs = "  with these inputs:\n    message = 1397310792 (0x53494548, \"HEIS\")\n";
    assert!(found.out.contains(inputs), "{}", found.out);
    let schedules = std::fs::read_dir(sandbox.path(".heisen")).expect("a directory");
    let schedule = schedules
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|ending| ending == "schedule"))
        .expect("a schedule file");
    let text = std::fs::read_to_string(&schedule).expect("a schedule");
    assert!(text.contains("\ninput 0 0 64 1397310792 \"message\"\n"), "{text}");
    let schedule = schedule.display().to_string();
    sandbox.heisen(&["replay", &schedule]).expect(1);
    // With another input the thread ends before it comes there.
    let other = text.replace("64 1397310792", "64 0");
    sandbox.write("other.schedule", other);
    sandbox.heisen(&["replay", "other.schedule"]).fails(4, &["diverged", "found the end of the execution"]);
}

/// A parser that calls functions of the C library, behind which lies a bug.
const CALLS_LIBRARY: &str = r#"#include <assert.h>
#include <ctype.h>
#include <heisen.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
static char text[12];
int main(void) {
    heisen_input(text, sizeof text - 1, "text");
    if (strncasecmp(text, "len", 3) || toupper(text[3]) != 'Q' || strlen(text) != 8) return 0;
    char *copy = strdup(text + 4);
    long number = strtol(copy, NULL, 10);
    free(copy);
    assert(number != 4711);
    return 0;
}
"#;

#[test]
fn inputs_are_found_behind_functions_of_the_c_library() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("calls.c", CALLS_LIBRARY);
    let found = searched(&sandbox, 1, &["--inputs", "calls.c"]);
    assert_eq!(found["findings"][0]["kind"], "assertion", "{found:#}");
    let schedule = found["findings"][0]["schedule"].as_str().expect("a schedule file");
    sandbox.heisen(&["replay", schedule]).expect(1);
}

/// A thread changes a shared string, and another one calls functions of the C library with it.
fn shared_string(seen: &str) -> String {
    format!(
        r#"#include <assert.h>
        #include <pthread.h>
        #include <string.h>
        static char state[16] = "idle";
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static void set(const char *to) {{
            pthread_mutex_lock(&lock);
            strcpy(state, to);
            pthread_mutex_unlock(&lock);
        }}
        static void *sets(void *a) {{ set("busy"); set("finished"); return a; }}
        static void *looks(void *a) {{
            pthread_mutex_lock(&lock);
            int is_seen = strcmp(state, "{seen}") == 0;
            /* Reads the set more often than a waiting loop may. */
            size_t span = strcspn("0123456789", state);
            pthread_mutex_unlock(&lock);
            assert(!is_seen && span == 10);
            return a;
        }}
        int main(void) {{
            pthread_t a, b;
            pthread_create(&a, 0, sets, 0);
            pthread_create(&b, 0, looks, 0);
            pthread_join(a, 0);
            pthread_join(b, 0);
            return 0;
        }}"#
    )
}

#[test]
fn shared_strings_are_read_by_functions_of_the_c_library() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    // In between, at first, in the end, and never.
    for (seen, code) in [("busy", 1), ("idle", 1), ("finished", 1), ("bust", 0), ("finishes", 0)] {
        sandbox.write("state.c", shared_string(seen));
        let json = searched(&sandbox, code, &["--strategy", "causal", "state.c"]);
        assert!(code == 1 || json["complete"] == true, "{seen}: {json:#}");
        assert_eq!(json["rounds"], Value::Null, "{seen}: {json:#}");
    }
}

#[test]
fn functions_that_take_values_are_named() {
    if !has_clang() {
        return;
    }
    let program = |call: &str| {
        format!(
            r#"#include <heisen.h>
            #include <stdio.h>
            #include <stdlib.h>
            static void ends(int code) {{ exit(code); }}
            int main(void) {{
                int x = 3;
                char text[32] = "";
                heisen_input(&x, sizeof x, "x");
                x &= 3;
                {call};
                if (x > 5) ends(x);
                return text[0] == 'a';
            }}"#
        )
    };
    let sandbox = Sandbox::new();
    for (call, name) in [
        // Fixed, any number, and both.
        ("setvbuf(stdin, text, _IOFBF, x)", Some("setvbuf")),
        ("snprintf(text, sizeof text, \"%d\", x)", Some("snprintf")),
        ("sprintf(text, \"%d\", x)", Some("sprintf")),
        ("(x ? sprintf : sprintf)(text, \"%d\", x)", Some("sprintf")),
        // What is printed, and what only says which.
        ("printf(\"%d\\n\", x)", None),
        ("free(malloc(x))", None),
    ] {
        sandbox.write("takes.c", program(call));
        let json = searched(&sandbox, 0, &["--inputs", "takes.c"]);
        let said = json["not_controlled"].to_string();
        match name {
            Some(name) => {
                let words = format!("other values of the argument of `{name}` were not explored");
                assert!(said.contains(&words), "{call}: {json:#}");
            }
            None => assert_eq!(json["complete"], true, "{call}: {json:#}"),
        }
    }
}

#[test]
fn nothing_is_proven_where_a_function_reads_without_notice() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    for (calls, name) in [
        ("strtod(text, 0) == 42", "strtod"),
        ("sscanf(text, \"%d\", &number) == 1 && number == 42", "sscanf"),
        ("(snprintf(other, 8, \"%s\", text), other[0] == 'x')", "snprintf"),
    ] {
        sandbox.write(
            "reads.c",
            format!(
                "#include <assert.h>
                #include <heisen.h>
                #include <stdio.h>
                #include <stdlib.h>
                static char text[8] = \"zz\", other[8];
                static int number;
                int main(void) {{
                    heisen_input(text, 7, \"text\");
                    assert(!({calls}));
                    (void)other, (void)number;
                    return 0;
                }}"
            ),
        );
        // The bug is out of reach, and so is a proof.
        let json = searched(&sandbox, 0, &["--inputs", "reads.c"]);
        assert_eq!(json["complete"], false, "{calls}: {json:#}");
        assert!(json["not_controlled"].to_string().contains(name), "{calls}: {json:#}");
    }
}

#[test]
fn a_wrong_expression_ends_the_check() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    // The program itself pins an expression to another value than it has.
    sandbox.write(
        "wrong.c",
        r#"#define _GNU_SOURCE
        #include <dlfcn.h>
        #include <heisen.h>
        #include <stdint.h>
        struct table { uint32_t version, length; void *frame, *callbacks[11]; };
        static int x = 7;
        int main(void) {
            heisen_input(&x, sizeof x, "x");
            struct table *table = dlsym(RTLD_DEFAULT, "heisen_symbolic_table");
            if (!table) return 0;
            uint32_t (*load)(uint64_t, uint32_t, uint32_t, uint64_t) = table->callbacks[3];
            void (*pin)(uint32_t, uint64_t, uint32_t) = table->callbacks[10];
            pin(load((uint64_t)&x, 4, 0, 7), 8, 1);
            return 0;
        }"#,
    );
    let include = format!("-I{}", root().join("include").display());
    sandbox.heisen(&["cc", "--symbolic", "-g", &include, "wrong.c", "-o", "wrong"]).expect(0);
    let args = ["check", "--inputs", "--", "./wrong"];
    let said = "an expression has 0x7, and the program had 0x8, in T0 at wrong.c:13 (main)";
    sandbox.heisen(&args).fails(5, &["HEISEN_CHECK_EXPRESSIONS", said, "a bug of Heisen"]);
    sandbox.run(sandbox.command(&args).env_remove("HEISEN_CHECK_EXPRESSIONS")).expect(0);
}

#[test]
fn inputs_that_are_kept_limit_the_claim() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("parser.c", PARSER);
    let kept = searched(&sandbox, 0, &["--strategy", "causal", "parser.c"]);
    let words = "inputs keep the values that the program gives them";
    assert!(kept["not_controlled"].to_string().contains(words), "{kept:#}");
    assert_eq!(kept["sound"], json!(false), "{kept:#}");
}

#[test]
fn nothing_is_proven_where_an_operation_is_not_modelled() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write(
        "posts.c",
        "#include <pthread.h>
        #include <semaphore.h>
        static sem_t ready;
        static void *posts(void *a) { sem_post(&ready); return a; }
        int main(void) {
            pthread_t a;
            int value;
            sem_init(&ready, 0, 0);
            pthread_create(&a, 0, posts, 0);
            sem_getvalue(&ready, &value);
            return pthread_join(a, 0);
        }",
    );
    let json = searched(&sandbox, 0, &["--strategy", "causal", "posts.c"]);
    assert_eq!((&json["verdict"], &json["complete"]), (&json!("incomplete"), &json!(false)), "{json:#}");
    assert!(json["not_controlled"].to_string().contains("sem_getvalue"), "{json:#}");
}

/// A thread that sets a variable for a moment, and another one that looks at it in some way.
fn looking(look: &str) -> String {
    format!(
        "#include <assert.h>
        #include <pthread.h>
        #include <stdio.h>
        static char text[4] = \"a\";
        static int number, seen;
        static void *sets(void *a) {{ number = 5; number = 0; text[1] = 'b'; text[1] = 0; return a; }}
        static void *looks(void *a) {{ {look}; return a; }}
        int main(void) {{
            pthread_t a, b;
            pthread_create(&a, 0, sets, 0);
            pthread_create(&b, 0, looks, 0);
            pthread_join(a, 0);
            pthread_join(b, 0);
            assert(!seen);
            return 0;
        }}"
    )
}

#[test]
fn nothing_is_proven_where_code_may_read_memory_without_notice() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    let assembly = r#"int r; __asm__ volatile("movl %1, %0" : "=r"(r) : "m"(number)); seen = r == 5"#;
    for (name, look, caveat) in [
        ("assembly.c", assembly, "inline assembly"),
        ("printed.c", r#"seen = printf("%s\n", text) == 3"#, "not instrumented"),
    ] {
        sandbox.write(name, looking(look));
        let json = searched(&sandbox, 0, &["--strategy", "causal", name]);
        assert_eq!(json["complete"], false, "{name}: {json:#}");
        assert!(json["not_controlled"].to_string().contains(caveat), "{name}: {json:#}");
    }
    // These read nothing.
    let nothing = r#"__asm__ volatile("" ::: "memory"); printf("%s\n", text); seen = 0"#;
    sandbox.write("nothing.c", looking(nothing));
    let json = searched(&sandbox, 0, &["--strategy", "causal", "--races=off", "nothing.c"]);
    assert_eq!((&json["verdict"], &json["complete"]), (&json!("clean"), &json!(true)), "{json:#}");
}

#[test]
fn nothing_is_proven_where_a_function_has_a_state_that_threads_share() {
    if !has_clang() {
        return;
    }
    // Whoever calls first gets the first number. No read of memory shows that.
    let sandbox = Sandbox::new();
    sandbox.write(
        "random.c",
        "#include <assert.h>
        #include <pthread.h>
        #include <stdlib.h>
        static int first;
        static void *draws(void *a) { first = rand(); return a; }
        static void *other(void *a) { rand(); return a; }
        int main(void) {
            pthread_t a, b;
            pthread_create(&a, 0, draws, 0);
            pthread_create(&b, 0, other, 0);
            pthread_join(a, 0);
            pthread_join(b, 0);
            assert(first == 1804289383);
            return 0;
        }",
    );
    let json = searched(&sandbox, 0, &["--strategy", "causal", "random.c"]);
    assert_eq!((&json["verdict"], &json["complete"]), (&json!("incomplete"), &json!(false)), "{json:#}");
    assert!(json["not_controlled"].to_string().contains("results of rand may depend"), "{json:#}");
}

#[test]
fn results_of_threads_and_of_main_are_not_lost() {
    if !has_clang() {
        return;
    }
    let program = |result: &str, end: &str| {
        format!(
            "#include <assert.h>
            #include <pthread.h>
            static int x;
            static void *sets(void *a) {{ x = 1; return 0; }}
            static void *takes(void *a) {{ return {result}; }}
            int main(void) {{
                pthread_t a, b;
                void *r = 0;
                pthread_create(&b, 0, takes, 0);
                pthread_create(&a, 0, sets, 0);
                {end}
            }}"
        )
    };
    let sandbox = Sandbox::new();
    let end = "pthread_join(b, &r); pthread_join(a, 0); assert(r == 0); return 0;";
    sandbox.write("thread.c", program("(void *)(long)x", end));
    sandbox.write("main.c", program("0", "int now = x; pthread_join(b, 0); pthread_join(a, 0); return now;"));
    // In another order the assertion fails.
    let thread = searched(&sandbox, 1, &["--strategy", "causal", "thread.c"]);
    assert_eq!(thread["findings"][0]["kind"], "assertion", "{thread:#}");
    let main = searched(&sandbox, 1, &["--strategy", "causal", "main.c"]);
    assert_eq!(main["findings"][0]["kind"], "exit-status", "{main:#}");
}

#[test]
fn programs_that_are_not_symbolic_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.compile("plain.c", "int main(void) { return 0; }", &[]);
    sandbox
        .heisen(&["check", "--strategy", "causal", "--", "./plain"])
        .fails(2, &["plain is not a symbolic build", "heisen cc --symbolic"]);
    sandbox.write("plain.c", "int main(void) { return 0; }");
    sandbox
        .heisen(&["check", "--strategy", "causal", "--no-instrument", "plain.c"])
        .fails(2, &["--no-instrument", "causal"]);
    sandbox.heisen(&["check", "--strategy", "icb", "--inputs", "plain.c"]).fails(2, &["--inputs", "causal"]);
    for option in [
        &["--spurious", "1"][..],
        &["--faults", "1"],
        &["--focus", "main"],
        &["--symmetry"],
        &["--real-time"],
    ] {
        let args = [&["check", "--strategy", "causal"], option, &["plain.c"]].concat();
        sandbox.heisen(&args).fails(2, &["--strategy causal cannot be combined with", option[0]]);
    }
}

#[test]
fn builds_of_ones_own_are_checked() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "extern int twice(int); int main(void) { return twice(0); }");
    sandbox.write("b.c", "int twice(int x) { return 2 * x; }");
    for args in [&["-c", "a.c"][..], &["-c", "b.c"], &["a.o", "b.o", "-o", "both", "-pthread"]] {
        sandbox.heisen(&[&["cc", "--symbolic"][..], args].concat()).expect(0);
    }
    let json = searched(&sandbox, 0, &["--strategy", "causal", "--", "./both"]);
    assert_eq!((&json["verdict"], &json["executions"]), (&json!("clean"), &json!(1)), "{json:#}");
}
