//! Tests of the solver-driven search on C++ with threads and containers of the standard library, and on C functions that call
//! the program back: symbolic builds link [substitutes](../../../engine/src/program/substitutes/mod.rs) for them.

use crate::symbolic::{has_clang, searched};
use heisen_testkit::{Sandbox, root, usual_or_nightly};
use serde_json::{Value, json};
use std::process::Command;

/// A program with everything that one of these tests uses.
fn program(shared: &str, main: &str) -> String {
    format!(
        "#include <atomic>
        #include <cassert>
        #include <condition_variable>
        #include <functional>
        #include <list>
        #include <map>
        #include <memory>
        #include <mutex>
        #include <string>
        #include <thread>
        #include <unordered_map>
        #include <vector>
        {shared}
        int main() {{ {main} }}"
    )
}

/// Searches a program. Returns what was found.
#[track_caller]
fn search(sandbox: &Sandbox, code: i32, name: &str, text: &str) -> Value {
    sandbox.write(name, text);
    searched(sandbox, code, &["--strategy", "causal", name])
}

/// The program has a bug, which the search finds and replays.
#[track_caller]
fn finds(kind: &str, text: &str) {
    let sandbox = Sandbox::new();
    let json = search(&sandbox, 1, "bug.cpp", text);
    assert_eq!(json["findings"][0]["kind"], kind, "{json:#}");
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule file");
    sandbox.heisen(&["replay", schedule]).expect(1);
}

/// The program has no bug, which the search proves within so many executions.
#[track_caller]
fn proves(most: u64, text: &str) {
    let sandbox = Sandbox::new();
    let json = search(&sandbox, 0, "fixed.cpp", text);
    assert_eq!((&json["verdict"], &json["complete"]), (&json!("clean"), &json!(true)), "{json:#}");
    assert!(json["executions"].as_u64().is_some_and(|count| count <= most), "{json:#}");
}

#[test]
fn substitutes_do_what_the_library_does() {
    if !has_clang() {
        return;
    }
    let source = root().join("crates/cli/tests/it/symbolic_cpp/containers.cpp");
    let source = source.to_str().expect("a path");
    let sandbox = Sandbox::new();
    sandbox.heisen(&["c++", "--symbolic", "-std=c++17", "-pthread", source, "-o", "symbolic"]).expect(0);
    // Two compilers may evaluate arguments in different orders.
    let compiled = Command::new("clang++")
        .args(["-std=c++17", "-pthread", source, "-o"])
        .arg(sandbox.path("native"))
        .status();
    assert!(compiled.is_ok_and(|status| status.success()));
    let output = |name: &str| {
        let ran = Command::new(sandbox.path(name)).output().expect("it runs");
        assert!(ran.status.success(), "{name}: {ran:?}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    assert_eq!(output("symbolic"), output("native"));
}

#[test]
fn threads_and_condition_variables_of_cpp() {
    if !has_clang() {
        return;
    }
    let waits = |wait: &str| {
        program(
            "std::mutex m; std::condition_variable c; bool ready; int value;",
            &format!(
                "std::vector<std::thread> all;
                all.emplace_back([] {{ std::unique_lock<std::mutex> l(m); {wait} assert(value == 1); }});
                all.emplace_back([] {{ {{ std::lock_guard<std::mutex> l(m); value = 1; ready = true; }} c.notify_one(); }});
                for (auto &each : all) each.join();"
            ),
        )
    };
    finds("assertion", &waits(""));
    finds("deadlock", &waits("c.wait(l);"));
    proves(3, &waits("c.wait(l, [] { return ready; });"));
}

/// Clang says of a class that a library defines only that it exists.
#[test]
fn members_of_declared_classes_are_named() {
    if !has_clang() {
        return;
    }
    let text = program(
        "struct Door { std::mutex m; std::condition_variable opens; bool open; } door;",
        "std::thread t([] { std::unique_lock<std::mutex> l(door.m); door.opens.wait(l); });
        door.opens.notify_one(); t.join();",
    );
    let json = search(&Sandbox::new(), 1, "door.cpp", &text);
    let message = json["findings"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("condition variable door.opens"), "{json:#}");
}

#[test]
fn a_thread_object_is_memory() {
    if !has_clang() {
        return;
    }
    let sees = |check: &str| {
        program(
            "std::thread first; std::atomic<int> seen; std::mutex m;",
            &format!(
                "std::thread second([] {{ std::lock_guard<std::mutex> l(m); seen = first.joinable() + 1; }});
                {{ std::lock_guard<std::mutex> l(m); first = std::thread([] {{}}); }}
                {{ std::lock_guard<std::mutex> l(m); first.join(); }}
                second.join();
                {check}"
            ),
        )
    };
    finds("assertion", &sees("assert(seen != 1);"));
    finds("assertion", &sees("assert(seen != 2);"));
    proves(4, &sees("assert(seen == 1 || seen == 2);"));
}

#[test]
fn static_variables_are_initialised_once() {
    if !has_clang() {
        return;
    }
    let shared = "std::atomic<int> made;
        struct Made { int by; explicit Made(int by) : by(by) { made++; } };
        Made &get(int by) { static Made only(by); return only; }";
    let with = |check: &str| {
        program(
            shared,
            &format!(
                "int other; std::thread t([&] {{ other = get(2).by; }}); int own = get(1).by; t.join();
                assert(made == 1 && own == other); {check}"
            ),
        )
    };
    // Either thread finds it initialised by the other one, with and without a call, or initialises it.
    proves(6, &with(""));
    finds("assertion", &with("assert(own == 1);"));
    finds("assertion", &with("assert(own == 2);"));
    let throws = |check: &str| {
        program(
            "std::atomic<int> attempts, thrown;
            struct Made { Made() { if (attempts++ == 0) throw 1; } };
            void get() { try { static Made only; } catch (int) { thrown++; } }",
            &format!("std::thread t(get); get(); t.join(); {check}"),
        )
    };
    finds("assertion", &throws("assert(attempts == 1);"));
    let crosswise = program(
        "std::mutex m; struct Locks { Locks() { std::lock_guard<std::mutex> l(m); } };
        void get() { static Locks only; }",
        "std::thread t(get); { std::lock_guard<std::mutex> l(m); get(); } t.join();",
    );
    finds("deadlock", &crosswise);
}

#[test]
fn containers_are_proven_if_a_lock_guards_them() {
    if !has_clang() {
        return;
    }
    let guarded = |first: &str, second: &str, check: &str| {
        program(
            "std::mutex m; std::map<int, int> map; std::list<int> list; std::string text;
            std::unordered_map<std::string, int> table;",
            &format!(
                "std::thread t([] {{ std::lock_guard<std::mutex> l(m); {first} }});
                {{ std::lock_guard<std::mutex> l(m); {second} }} t.join(); {check}"
            ),
        )
    };
    proves(
        3,
        &guarded(
            "map[3] = 1; list.push_back(1);",
            "map[2] = 2; map.erase(3); list.push_front(2);",
            "assert(map.count(2) && list.size() == 2);",
        ),
    );
    finds("assertion", &guarded("map[3] = 1;", "map.erase(3);", "assert(map.empty());"));
    if !usual_or_nightly(false, true) {
        return;
    }
    proves(
        3,
        &guarded(
            "text += \"abc\";",
            "text.append(\"a text that is on the heap\");",
            "assert(text.size() == 29);",
        ),
    );
    finds("assertion", &guarded("text += 'a';", "text += 'b';", "assert(text == \"ab\");"));
    proves(3, &guarded("table[\"a\"]++;", "table[\"a\"]++;", "assert(table[\"a\"] == 2);"));
    let race = program("std::map<int, int> map;", "std::thread t([] { map[1] = 1; }); map[2] = 2; t.join();");
    let json = search(&Sandbox::new(), 1, "race.cpp", &race);
    assert!(json["findings"].as_array().is_some_and(|all| !all.is_empty()), "{json:#}");
}

#[test]
fn functions_that_call_the_program_back() {
    if !has_clang() {
        return;
    }
    let sorts = |check: &str| {
        format!(
            "#include <assert.h>
            #include <pthread.h>
            #include <stdlib.h>
            static _Atomic int down;
            static int by(const void *a, const void *b) {{
                int order = *(const int *)a - *(const int *)b;
                return down ? -order : order;
            }}
            static void *turns(void *a) {{ down = 1; return a; }}
            int main(void) {{
                int all[3] = {{2, 3, 1}};
                pthread_t t;
                pthread_create(&t, 0, turns, 0);
                qsort(all, 3, sizeof *all, by);
                pthread_join(t, 0);
                {check}
                return 0;
            }}"
        )
    };
    let sandbox = Sandbox::new();
    // The order changes between two comparisons.
    search(&sandbox, 1, "between.c", &sorts("assert(all[0] != 2);"));
    search(&sandbox, 1, "before.c", &sorts("assert(all[0] != 3);"));
    let json = search(&sandbox, 0, "any.c", &sorts("assert(all[0] + all[1] + all[2] == 6);"));
    assert_eq!(json["complete"], true, "{json:#}");
    sandbox.write(
        "input.c",
        "#include <assert.h>
        #include <heisen.h>
        #include <stdlib.h>
        static char text[3];
        static int compares(const void *a, const void *b) { return *(char *)a - *(char *)b; }
        int main(void) {
            heisen_input(text, 3, \"text\");
            qsort(text, 3, 1, compares);
            assert(text[0] != 'a' || text[1] != 'b' || !bsearch(\"z\", text, 3, 1, compares));
            return 0;
        }",
    );
    searched(&sandbox, 1, &["--inputs", "input.c"]);
}

#[test]
fn functions_of_libstdcpp_with_a_state_prove_nothing() {
    if !has_clang() {
        return;
    }
    for (name, header, does) in [
        ("rand", "cstdlib", "if (rand() == 1) abort();"),
        ("locale", "locale", "if (std::locale().name() == \"C.UTF-8\") abort();"),
        ("ios_base5Init", "iostream", "std::cout << 1; if (std::cout.width() == 7) abort();"),
        ("random_device", "random", "if (std::random_device()() == 1) abort();"),
        (
            "system_clock",
            "chrono",
            "if (std::chrono::system_clock::now().time_since_epoch().count() == 1) abort();",
        ),
        ("get_new_handler", "new", "if (std::get_new_handler()) abort();"),
    ] {
        let text = format!(
            "#include <{header}>\n#include <cstdlib>\n#include <thread>\nvoid f() {{ {does} }}\nint main() {{ std::thread t(f); f(); t.join(); }}"
        );
        let json = search(&Sandbox::new(), 0, "state.cpp", &text);
        assert_eq!(json["complete"], false, "{name}: {json:#}");
        assert!(
            json["not_controlled"].to_string().contains("may depend on other threads"),
            "{name}: {json:#}"
        );
    }
}
