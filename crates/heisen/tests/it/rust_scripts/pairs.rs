//! Scripts in both languages, which must give the same result.

/// A script in both languages.
pub struct Pair {
    pub name: &'static str,
    /// The body of the test.
    pub program: &'static str,
    pub rust: &'static str,
    pub rhai: &'static str,
    /// The options, as arguments of the attribute and of the command.
    pub options: (&'static str, &'static [&'static str]),
    /// The beginning of the report, and the exit code of the command.
    pub report: (&'static str, i32),
}

const NONE: (&str, &[&str]) = ("", &[]);

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "permuted",
        program: "visits(3)",
        rust: "let all: [Thread; 3] = wait_for_distinct_threads(enters(\"visit\"));
               for t in permute(all) { run_until(t, returns(\"visit\")); }",
        rhai: "let all = wait_for_distinct_threads(3, enters(\"visit\"));
               for t in permute(all) { run_until(t, returns(\"visit\")); }",
        options: NONE,
        report: ("ok: no bug in all 6 schedules of the script\n", 0),
    },
    Pair {
        name: "chosen",
        program: "visits(1)",
        rust: "if choose([1, 2]) == 1 { print(\"one\") }; choose(vec![false, true]);",
        rhai: "if choose([1, 2]) == 1 { print(\"one\") }; choose([false, true]);",
        options: NONE,
        report: ("ok: no bug in all 4 schedules of the script\n", 0),
    },
    Pair {
        name: "promised",
        program: "assert_ne!(heisen::choose(3), 2, \"two was chosen\")",
        rust: "let_choose(any(), 2, 1);",
        rhai: "let_choose(any, 2, 1);",
        options: NONE,
        report: ("panic: ", 1),
    },
    Pair {
        name: "counted",
        program: "visits(2)",
        rust: "let a = wait_for_thread_nth(any(), enters(\"visit\"), 2); run_until_nth(a, at_control(..), 2);",
        rhai: "let a = wait_for_thread(any, enters(\"visit\"), 2); run_until(a, at_control(), 2);",
        options: NONE,
        report: ("ok: no bug in the only schedule of the script", 0),
    },
    // Each thread has two points and an end: (6 over 3) orders.
    Pair {
        name: "interleaved",
        program: "visits(2)",
        rust: "let [a, b] = wait_for_distinct_threads(enters(\"visit\"));
               while !a.has_ended() || !b.has_ended() { run_until(choose_thread([a, b]), at_control(..) | ends()); }",
        rhai: "let [a, b] = wait_for_distinct_threads(2, enters(\"visit\"));
               while !a.has_ended || !b.has_ended { run_until(choose_thread([a, b]), at_control() | ends()); }",
        options: NONE,
        report: ("ok: no bug in all 20 schedules of the script\n", 0),
    },
    Pair {
        name: "in_functions",
        program: "visits(2)",
        rust: "search_in_func(2, &[\"visit\"]);",
        rhai: "search_in_func(2, [\"visit\"]);",
        options: ("oracle = \"random\", seed = 3", &["--oracle", "random", "--seed", "3"]),
        report: ("ok: no bug in all 20 schedules of the script\n", 0),
    },
    Pair {
        name: "large_steps_limited",
        program: "visits(2)",
        rust: "search_in_func_large_steps(2, &[\"visit\"]);",
        rhai: "search_in_func_large_steps(2, [\"visit\"]);",
        options: ("executions = 5, steps = 1_000, hang = \"9s\", time = \"60s\"", &["--executions", "5"]),
        report: ("nothing found: no bug in 5 schedules of the script\n", 0),
    },
    Pair {
        name: "reduced",
        program: "visits(2)",
        rust: "let [a, b] = wait_for_distinct_threads(enters(\"visit\"));
               while !a.has_ended() || !b.has_ended() {
                   let t = choose_thread([a, b]);
                   run_until(t, at_control(..) | ends());
               }",
        rhai: "let [a, b] = wait_for_distinct_threads(2, enters(\"visit\"));
               while !a.has_ended || !b.has_ended {
                   let t = choose_thread([a, b]);
                   run_until(t, at_control() | ends());
               }",
        options: ("reduce = true", &["--reduce"]),
        report: ("ok: no bug in all ", 0),
    },
    Pair {
        name: "bounded",
        program: "visits(2)",
        rust: "context_bounded(2, 2, &[\"visit\"]);",
        rhai: "context_bounded(2, 2, [\"visit\"]);",
        options: NONE,
        report: ("ok: no bug in all ", 0),
    },
    // The test itself runs in a thread that starts, too.
    Pair {
        name: "in_turn",
        program: "visits(3)",
        rust: "release(wait_for_thread(any(), starts())); search_seq(3);",
        rhai: "release(wait_for_thread(any, starts())); search_seq(3);",
        options: ("reduce = false", &[]),
        report: ("ok: no bug in all 6 schedules of the script\n", 0),
    },
    Pair {
        name: "finds",
        program: "deposits()",
        rust: "search_in_func(2, &[\"deposit\"]);",
        rhai: "search_in_func(2, [\"deposit\"]);",
        options: NONE,
        report: ("panic: panicked at src/lib.rs:40:9: assertion `left == right` failed: a deposit is lost\n", 1),
    },
    Pair {
        name: "finds_with_few",
        program: "deposits()",
        rust: "release(wait_for_thread(any(), starts())); search_all(2);",
        rhai: "release(wait_for_thread(any, starts())); search_all(2);",
        options: ("oracle = \"few\", executions = 30", &["--oracle", "few", "--executions", "30"]),
        report: ("panic: ", 1),
    },
    Pair {
        name: "finds_again",
        program: "deposits()",
        rust: "search_in_func(2, &[\"deposit\"]);",
        rhai: "search_in_func(2, [\"deposit\"]);",
        options: ("choices = \"0,1,0\"", &["--choices", "0,1,0"]),
        report: ("panic: panicked at ", 1),
    },
    Pair {
        name: "exact",
        program: "deposits()",
        rust: "let [a, b] = wait_for_distinct_threads(enters(\"deposit\"));
               exact_schedule([(a, at_control(1)), (b, ends()), (a, ends())]);",
        rhai: "let [a, b] = wait_for_distinct_threads(2, enters(\"deposit\"));
               exact_schedule([[a, at_control(1)], [b, ends()], [a, ends()]]);",
        options: NONE,
        report: ("panic: panicked at ", 1),
    },
    Pair {
        name: "from_a_suspicious_state",
        program: "deposits()",
        rust: "let [a, b] = wait_for_distinct_threads(enters(\"deposit\"));
               run_until(a, at_control(1));
               search_in_buggy([b, a], &[\"deposit\"]);",
        rhai: "let [a, b] = wait_for_distinct_threads(2, enters(\"deposit\"));
               run_until(a, at_control(1));
               search_in_buggy([b, a], [\"deposit\"]);",
        options: NONE,
        report: ("panic: panicked at ", 1),
    },
    Pair {
        name: "combined",
        program: "visits(3)",
        rust: "let first = enters(\"visit\") & with_arg0(1);
               let a = wait_for_thread(any(), &first);
               let b = wait_for_thread(any() - a, enters(\"visit\") & !&first);
               run_until([a, b], at_control(2) & in_func(\"visit\") & !(at_control(1) | ends()));
               run_through(a, returns(\"visit\") & returns_value(2) | with_value(u64::MAX) & reads(..));
               release(b + b);
               wait_for_thread(any() - [a] - (a + b), enters(\"visit\") & with_arg0(3));",
        rhai: "let first = enters(\"visit\") & with_arg0(1);
               let a = wait_for_thread(any, first);
               let b = wait_for_thread(any - a, enters(\"visit\") & !first);
               run_until([a, b], at_control(2) & in_func(\"visit\") & !(at_control(1) | ends()));
               run_through(a, returns(\"visit\") & returns_value(2) | with_value(-1) & reads());
               release(b + b);
               wait_for_thread(any - [a] - (a + b), enters(\"visit\") & with_arg0(3));",
        options: NONE,
        report: ("ok: no bug in the only schedule of the script\n", 0),
    },
    Pair {
        name: "fields",
        program: "visits(1)",
        rust: "let e = select(any(), enters(\"visit\"));
               assert(e.kind == \"enter\" && e.function == \"visit\" && e.arg0 == 1 && e.caller != 0, \"an entry\");
               assert(e.satisfies(with_arg0(1)) && !e.satisfies(with_arg0(2)), \"predicates\");
               assert(e.file() == \"src/lib.rs\" && e.line() == 5, \"the place\");
               assert(e.thread.number() == 2 && e.thread.to_string() == \"T2\", \"the thread\");
               release(e.thread);
               let p = select(e.thread, ..);
               assert(p.kind == \"control\" && p.control == 1 && p.function.is_empty(), &format!(\"a {:?}\", p));
               assert(p.thread == e.thread && e.thread.in_func(\"visit\"), \"the same thread\");
               run_until(p.thread, returns(\"visit\"));
               let r = select(p.thread, ..);
               assert(r.returned == 2 && r.address == 0 && r.size == 0 && r.value == 0 && r.arg1 == 0, \"a return\");",
        rhai: "let e = select(any, enters(\"visit\"));
               assert(e.kind == \"enter\" && e.function == \"visit\" && e.arg0 == 1 && e.caller != 0, \"an entry\");
               assert(e.satisfies(with_arg0(1)) && !e.satisfies(with_arg0(2)), \"predicates\");
               assert(e.file == \"src/lib.rs\" && e.line == 5, \"the place\");
               assert(e.thread.number == 2 && e.thread.to_string() == \"T2\", \"the thread\");
               release(e.thread);
               let p = select(e.thread);
               assert(p.kind == \"control\" && p.control == 1 && p.function == \"\", p.kind);
               assert(p.thread == e.thread && e.thread.in_func(\"visit\"), \"the same thread\");
               run_until(p.thread, returns(\"visit\"));
               let r = select(p.thread);
               assert(r.returned == 2 && r.address == 0 && r.size == 0 && r.value == 0 && r.arg1 == 0, \"a return\");",
        options: NONE,
        report: ("ok: no bug in the only schedule of the script\n", 0),
    },
    Pair {
        name: "deep",
        program: "{ heisen::test_start(); down(5); heisen::test_end(); }",
        rust: "let t = wait_for_thread(any(), test_start());
               run_until(t, enters(\"down\") & in_func_times(\"down\", 3));
               assert(t.in_func_times(\"down\", 3) && !t.in_func_times(\"down\", 4), \"three deep\");
               time_limit(60);
               run_until(t, at(\"lib.rs:18\") | test_end());",
        rhai: "let t = wait_for_thread(any, test_start());
               run_until(t, enters(\"down\") & in_func(\"down\", 3));
               assert(t.in_func(\"down\", 3) && !t.in_func(\"down\", 4), \"three deep\");
               time_limit(60);
               run_until(t, at(\"lib.rs:18\") | test_end());",
        options: NONE,
        report: ("ok: no bug in the only schedule of the script\n", 0),
    },
    Pair {
        name: "assumed",
        program: "visits(1)",
        rust: "assume(choose([true, false]));
               if choose(0..2) == 1 { end_run(); }
               forall();",
        rhai: "assume(choose([true, false]));
               if choose([0, 1]) == 1 { end_run(); }
               forall();",
        options: NONE,
        report: ("ok: no bug in all 2 schedules of the script\n1 execution excluded by an assumption of the script\n", 0),
    },
    Pair {
        name: "asserted",
        program: "visits(1)",
        rust: "wait_for_thread(any(), enters(\"visit\"));
               print(format!(\"a tab\\t, a line\\nand \\\"quotes\\\" {}\", '\\\\'));
               assert(choose([true, false]), \"not so\");",
        rhai: "wait_for_thread(any, enters(\"visit\"));
               print(\"a tab\\t, a line\\nand \\\"quotes\\\" \\\\\");
               assert(choose([true, false]), \"not so\");",
        options: NONE,
        report: ("assertion: PLACE of the script: not so\nin schedule 2 of the script, while the script was in PLACE\n", 1),
    },
    Pair {
        name: "exists_one",
        program: "visits(2)",
        rust: "exists();
               let t = wait_for_thread(any(), enters(\"visit\"));
               run_until(t, choose([enters(\"visit\"), ends()]));
               print(t);",
        rhai: "exists();
               let t = wait_for_thread(any, enters(\"visit\"));
               run_until(t, choose([enters(\"visit\"), ends()]));
               print(t);",
        options: NONE,
        report: ("exists: the script was followed to its end, in schedule 1\n", 0),
    },
    Pair {
        name: "exists_in_vain",
        program: "visits(1)",
        rust: "exists(); let [_a, _b] = wait_for_distinct_threads(enters(\"visit\"));",
        rhai: "exists(); wait_for_distinct_threads(2, enters(\"visit\"));",
        options: NONE,
        report: ("no schedule follows the script to its end\n1 execution could not follow the script; the last: PLACE: ", 1),
    },
    Pair {
        name: "infeasible",
        program: "visits(2)",
        rust: "let a = wait_for_thread(any(), enters(\"visit\")); run_until(a, ends()); run_until(a, ends());",
        rhai: "let a = wait_for_thread(any, enters(\"visit\")); run_until(a, ends()); run_until(a, ends());",
        options: NONE,
        report: (
            "no schedule follows the script to its end, so nothing was tested\n\
             1 execution could not follow the script; the last: PLACE: T2 has ended\n",
            4,
        ),
    },
];
