//! Tests of inputs from outside (`--input`): which ways of reading get the values that the solver chooses, what is proven,
//! and what is refused.

use crate::symbolic::{has_clang, searched};
use heisen_testkit::{Sandbox, root};
use serde_json::{Value, json};
use std::process::Command;

/// The schedule file of the first finding.
fn schedule_of(json: &Value) -> &str {
    json["findings"][0]["schedule"].as_str().unwrap_or_else(|| panic!("no schedule: {json:#}"))
}

/// The bytes of the first finding's input, as text.
fn text_of(json: &Value) -> &str {
    json["findings"][0]["input_bytes"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {json:#}"))
}

fn example(name: &str) -> String {
    root().join("examples/inputs").join(name).display().to_string()
}

#[test]
fn parser_is_found_and_its_twin_is_proven() {
    if !has_clang() {
        return;
    }
    for (input, more) in [("stdin:8", &[][..]), ("argv:1", &["--", "12345678"])] {
        let sandbox = Sandbox::new();
        let args = |file: &str| {
            let first = ["--input".to_owned(), input.to_owned(), example(file)];
            first.into_iter().chain(more.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>()
        };
        let found = args("parser.c");
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        let json = searched(&sandbox, 1, &found);
        let finding = &json["findings"][0];
        assert_eq!((&finding["kind"], &finding["preemptions"]), (&json!("assertion"), &json!(1)), "{json:#}");
        let bytes = finding["input_bytes"][0]["bytes"].as_str().expect("bytes");
        assert!(bytes.starts_with("48454953"), "{json:#}");
        sandbox.heisen(&["replay", schedule_of(&json)]).expect(1);
        let fixed = args("parser_fixed.c");
        let fixed: Vec<&str> = fixed.iter().map(String::as_str).collect();
        let json = searched(&sandbox, 0, &fixed);
        assert_eq!((&json["verdict"], &json["complete"]), (&json!("clean"), &json!(true)), "{json:#}");
    }
}

/// Reads in the way that the first argument names, and fails if it has read "HEI".
const WAYS: &str = include_str!("ways.c");

#[test]
fn each_way_of_reading_gets_the_inputs() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("ways.c", WAYS);
    for way in 0..=13 {
        let way = way.to_string();
        let json = searched(&sandbox, 1, &["--input", "stdin:3", "ways.c", "--", &way]);
        assert_eq!(json["findings"][0]["kind"], "assertion", "way {way}: {json:#}");
        assert_eq!(text_of(&json), "HEI", "way {way}: {json:#}");
        sandbox.heisen(&["replay", "-q", schedule_of(&json)]).expect(1);
    }
}

#[test]
fn everything_that_runs_a_schedule_gives_the_same_bytes() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    let parser = example("parser.c");
    // A search that was cut off goes on with its inputs.
    let first = ["--input", "stdin:8", "--executions", "2", "--save", "saved", &parser];
    searched(&sandbox, 0, &first);
    let ran = sandbox.heisen(&["check", "--json", "-", "--resume", "saved", "--executions", "100"]);
    let json = ran.expect(1).json();
    let schedule = schedule_of(&json);
    sandbox.heisen(&["replay", "-q", "--carrier", "kernel", schedule]).expect(1);
    let explained = sandbox.heisen(&["explain", "--html", "page.html", schedule]).expect(1);
    let inputs = "stdin = \"HEIS\", then 4 zero bytes";
    assert!(explained.out.contains(inputs), "{}", explained.out);
    let page = std::fs::read_to_string(sandbox.path("page.html")).expect("the page");
    assert!(page.contains("HEIS") && page.contains("then 4 zero bytes"), "no inputs on the page");
    let shown = sandbox.heisen(&["show", schedule]).expect(0);
    assert!(shown.out.contains(&format!("inputs\n  {inputs}\n")), "{}", shown.out);
    let ran = sandbox.heisen(&["replay", "--gdb", schedule, "--", "-batch", "-ex", "print message"]);
    match ran.code {
        0 => assert!(ran.out.contains("\"HEIS\\000"), "{}", ran.out),
        _ => eprintln!("skipped, as gdb cannot be used here: {}", ran.err),
    }
}

#[test]
fn the_rest_of_standard_input_follows() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("given", "abcdef\n");
    sandbox.write(
        "rest.c",
        r#"#include <assert.h>
        #include <string.h>
        #include <unistd.h>
        int main(void) {
            char b[8];
            assert(read(0, b, 8) == 7 && !memcmp(b + 2, "cdef\n", 5) && read(0, b, 8) == 0);
            assert(b[0] != 'x' || b[1] != 'b');
            return 0;
        }"#,
    );
    let json = searched(&sandbox, 1, &["--input", "stdin:2", "--stdin", "given", "rest.c"]);
    assert_eq!(text_of(&json), "xb", "{json:#}");
    // The schedule has all that a replay needs.
    std::fs::remove_file(sandbox.path("given")).expect("the file");
    sandbox.heisen(&["replay", schedule_of(&json)]).expect(1);
}

#[test]
fn files_are_read_through_any_path_and_never_changed() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    let odd = "odd \"name\" \u{1b}[2J:\n.conf";
    sandbox.write(odd, "0123456789");
    std::os::unix::fs::symlink(sandbox.path(odd), sandbox.path("link")).expect("a link");
    sandbox.write(
        "config.c",
        r#"#include <assert.h>
        #include <fcntl.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            char a[4] = "", b[12] = "";
            int one = open(argv[1], O_RDONLY);
            FILE *other = fopen(argv[2], "r");
            assert(one >= 0 && other && read(one, a, 3) == 3);
            assert(fread(b, 1, 12, other) == 10 && !memcmp(b + 4, "456789", 6));
            assert(!memcmp(a, b, 3));
            /* A child reads the same, and its descriptor has a position of its own. */
            if (fork() == 0) {
                int again = open(argv[1], O_RDONLY);
                char c[4] = "";
                _exit(read(again, c, 3) != 3 || memcmp(a, c, 3));
            }
            int status = 1;
            wait(&status);
            assert(status == 0);
            assert(a[0] != 'o' || a[2] != '=');
            return 0;
        }"#,
    );
    let mark = format!("file:{odd}:4");
    let args = ["--input", &mark, "config.c", "--", odd, "link"];
    let json = searched(&sandbox, 1, &args);
    assert!(text_of(&json).starts_with("o\0="), "{json:#}");
    assert_eq!(json["findings"][0]["input_bytes"][0]["name"], odd, "{json:#}");
    let ran = sandbox.heisen(&["replay", schedule_of(&json)]).expect(1);
    assert!(!ran.out.contains('\u{1b}') && ran.out.contains("with these inputs:"), "{}", ran.out);
    assert_eq!(std::fs::read(sandbox.path(odd)).expect("the file"), b"0123456789");
    // Without the file a replay has no bytes beyond the inputs.
    std::fs::remove_file(sandbox.path(odd)).expect("the file");
    sandbox.heisen(&["replay", schedule_of(&json)]).fails(2, &["is not there; write the file"]);
}

#[test]
fn threads_that_read_in_turn_limit_the_claim() {
    if !has_clang() {
        return;
    }
    let program = |second: &str| {
        format!(
            "#include <assert.h>
            #include <pthread.h>
            #include <unistd.h>
            static char one, two;
            static void *reads(void *a) {{ read(0, &one, 1); return a; }}
            static void *other(void *a) {{ {second}; return a; }}
            int main(void) {{
                pthread_t a, b;
                pthread_create(&a, 0, reads, 0);
                pthread_create(&b, 0, other, 0);
                pthread_join(a, 0);
                pthread_join(b, 0);
                assert(one != 'x' || two != 'y');
                return 0;
            }}"
        )
    };
    let sandbox = Sandbox::new();
    sandbox.write("both.c", program("read(0, &two, 1)"));
    sandbox.write("one.c", program("two = 'z'"));
    let both = searched(&sandbox, 1, &["--input", "stdin:2", "both.c"]);
    let text = text_of(&both);
    assert!(text == "xy" || text == "yx", "{both:#}");
    assert!(both["not_controlled"].to_string().contains("a descriptor"), "{both:#}");
    sandbox.heisen(&["replay", schedule_of(&both)]).expect(1);
    // One thread alone reads, though not the main thread.
    let one = searched(&sandbox, 0, &["--input", "stdin:2", "one.c"]);
    assert_eq!((&one["verdict"], &one["complete"]), (&json!("clean"), &json!(true)), "{one:#}");
}

#[test]
fn what_the_trace_does_not_say_is_a_caveat() {
    if !has_clang() {
        return;
    }
    let program = |body: &str| {
        format!(
            "#include <assert.h>
            #include <fcntl.h>
            #include <stdio.h>
            #include <sys/mman.h>
            #include <unistd.h>
            static char b[8];
            int main(void) {{ {body} return 0; }}"
        )
    };
    let sandbox = Sandbox::new();
    sandbox.write("conf", "12345678");
    for (name, body, caveat) in [
        ("other", "int f = open(\"conf\", O_RDONLY); read(f, b, 8); assert(b[0] == '1');", "a descriptor"),
        ("scanf", "int x; if (scanf(\"%d\", &x) == 1) assert(x != 7);", "scanf"),
        (
            "map",
            "char *m = mmap(0, 2, PROT_READ, MAP_PRIVATE, 0, 0); assert(m[0] == 0 || m[0] != 'x');",
            "mmap",
        ),
    ] {
        sandbox.write(&format!("{name}.c"), program(body));
        let json = searched(&sandbox, 0, &["--input", "stdin:2", &format!("{name}.c")]);
        assert_eq!((&json["verdict"], &json["complete"]), (&json!("incomplete"), &json!(false)), "{json:#}");
        assert!(json["not_controlled"].to_string().contains(caveat), "{json:#}");
    }
    sandbox.write("writes.c", program("int f = open(\"conf\", O_RDWR); read(f, b, 8); assert(b[0] == '1');"));
    let json = searched(&sandbox, 0, &["--input", "file:conf:2", "writes.c"]);
    assert!(json["not_controlled"].to_string().contains("a descriptor"), "{json:#}");
}

/// Random numbers below a bound, by a seed (xorshift).
pub fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed + 1);
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % bound
    }
}

/// Programs with random reads and branches. Natively they run with every input that can matter.
#[test]
fn random_programs_agree_with_all_inputs() {
    if !has_clang() {
        return;
    }
    const CONSTANTS: [u8; 3] = [10, 97, 200];
    const VALUES: [u8; 7] = [0, 10, 11, 97, 98, 200, 255];
    let (mut failing, mut clean) = (0, 0);
    for seed in 0..heisen_testkit::usual_or_nightly(8, 300) {
        let mut below = numbers(seed);
        // Up to 4 reads of 3 bytes in all, each in a way of its own, and some branches after each.
        let mut body = String::new();
        for read in 0..1 + below(4) {
            let at = 4 * read;
            body += &match below(7) {
                0 => format!("read(0, b + {at}, {});\n", 1 + below(3)),
                1 => format!("pread(0, b + {at}, {}, {});\n", 1 + below(3), below(3)),
                2 => format!("fread(b + {at}, 1, {}, stdin);\n", 1 + below(3)),
                3 => format!("fgets((char *)b + {at}, {}, stdin);\n", 2 + below(3)),
                4 => format!("{{ int c = getchar(); if (c != EOF) b[{at}] = c; }}\n"),
                5 => format!("{{ int c = fgetc(stdin); b[{at}] = c == EOF ? 1 : c; }}\n"),
                _ => format!(
                    "{{ struct iovec v[2] = {{{{b + {at}, 1}}, {{b + {at} + 2, 1}}}}; readv(0, v, 2); }}\n"
                ),
            };
            for _ in 0..below(3) {
                let (index, constant) = (below(4 * read + 4), CONSTANTS[below(3) as usize]);
                let test = ["==", "<"][below(2) as usize];
                body += &format!("if (b[{index}] {test} {constant}) s = s * 3 + {};\n", 1 + below(2));
            }
        }
        let excluded = 1 + below(4);
        let program = format!(
            "#include <assert.h>\n#include <stdio.h>\n#include <sys/uio.h>\n#include <unistd.h>
            static unsigned char b[24]; static unsigned s;
            int main(void) {{ {body} assert(s != {excluded}); return 0; }}"
        );
        let sandbox = Sandbox::new();
        sandbox.write("random.c", &program);
        let native = sandbox.compile("native.c", &program, &["-O1", "-w"]);
        let fails = |input: &[u8]| {
            let file = sandbox.write("bytes", input);
            let run = Command::new(&native)
                .stdin(std::fs::File::open(file).expect("the file"))
                .stderr(std::process::Stdio::null())
                .status();
            !run.expect("the program runs").success()
        };
        let mut any = false;
        for first in VALUES {
            for second in VALUES {
                for third in VALUES {
                    any = any || fails(&[first, second, third]);
                }
            }
        }
        let json = searched(&sandbox, any.into(), &["--input", "stdin:3", "random.c"]);
        if any {
            failing += 1;
            // Natively it fails with what was found, too.
            let bytes = json["findings"][0]["input_bytes"][0]["bytes"].as_str().expect("bytes");
            let byte = |at: usize| u8::from_str_radix(&bytes[at..at + 2], 16).expect("a byte");
            assert!(fails(&[byte(0), byte(2), byte(4)]), "{program}\n{json:#}");
            sandbox.heisen(&["replay", "-q", schedule_of(&json)]).expect(1);
        } else {
            clean += 1;
            assert_eq!(json["complete"], true, "{program}\n{json:#}");
        }
    }
    assert!(failing >= 3 && clean >= 3, "{failing} programs fail, and {clean} do not");
}

#[test]
fn inputs_that_do_not_exist_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "int main(void) { return 0; }");
    sandbox.write("three", "abc");
    std::os::unix::fs::symlink(sandbox.path("three"), sandbox.path("link")).expect("a link");
    sandbox.compile("plain.c", "int main(void) { return 0; }", &[]);
    let without_clang = |input: &[&str], what: &[&str]| {
        sandbox.heisen(&[&["check"], input, &["a.c"]].concat()).fails(2, what);
    };
    without_clang(&["--input", "stdin:0"], &["--input stdin:0: no byte is marked"]);
    without_clang(
        &["--input", "stdin:1073741824"],
        &["1073741824 bytes are too many inputs", "at most 4096"],
    );
    without_clang(
        &["--input", "stdin"],
        &["--input stdin: unknown source of bytes", "stdin:N, argv:I or file:PATH:N"],
    );
    without_clang(&["--input", "file:three"], &["the file or the number of its bytes is missing"]);
    without_clang(&["--input", "argv:0"], &["argument 0 is the name of the program"]);
    without_clang(&["--strategy", "icb", "--input", "stdin:4"], &["--input is for --strategy causal"]);
    without_clang(&["--input", "stdin:4", "--at-ready"], &["--at-ready and --input", "heisen_input"]);
    sandbox
        .heisen(&["check", "--input", "stdin:4", "--", "./plain"])
        .fails(2, &["plain is not a symbolic build", "heisen cc --symbolic"]);
    for (input, what) in [
        (
            &["--input", "stdin:4", "--input", "stdin:4"][..],
            "--input stdin:4: the same bytes are marked twice",
        ),
        (
            &["--input", "stdin:4", "--input", "stdin:2"],
            "--input stdin:2 and --input stdin:4: the same bytes",
        ),
        (&["--input", "file:three:1", "--input", "file:link:3"], "the same bytes are marked twice"),
        (&["--input", "argv:7"], "--input argv:7: the program has 1 argument;"),
        (&["--input", "file:missing:4"], "missing is not there; write the file"),
        (&["--input", "file:.:4"], "is not a regular file"),
        (&["--input", "file:three:4"], "has only 3 bytes; mark at most that many"),
        (&["--input", "stdin:4", "--stdin", "three"], "standard input (--stdin) has only 3 bytes"),
        (&["--input", "stdin:4096", "--input", "file:three:1"], "4097 bytes of 2 sources are too many"),
    ] {
        let args = [&["check"], input, &["a.c", "--", "x"]].concat();
        sandbox.heisen(&args).fails(2, &[what]);
    }
    sandbox.heisen(&["check", "--input", "argv:1", "a.c", "--", ""]).fails(2, &["the argument is empty"]);
    sandbox
        .heisen(&["check", "--input", "argv:1", "a.c"])
        .fails(2, &["the program has 0 arguments; write a value"]);
}

#[test]
fn schedules_whose_inputs_do_not_fit_are_refused() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write(
        "two.c",
        "#include <assert.h>
        extern int __VERIFIER_nondet_int(void);
        extern unsigned char __VERIFIER_nondet_uchar(void);
        int main(void) {
            int a = __VERIFIER_nondet_int();
            unsigned char b = __VERIFIER_nondet_uchar();
            assert(a != 1000 || b != 7);
            return 0;
        }",
    );
    let json = searched(&sandbox, 1, &["--inputs", "two.c"]);
    let text = std::fs::read_to_string(sandbox.path(schedule_of(&json))).expect("a schedule");
    let (a, b) =
        ("input 0 0 32 1000 \"__VERIFIER_nondet_int\"\n", "input 0 1 8 7 \"__VERIFIER_nondet_uchar\"\n");
    assert!(text.contains(a) && text.contains(b), "{text}");
    for (old, new, what) in [
        (a, "input 0 0 16 1000 \"a\"\n", "input 0 of thread 0, \"a\", has 16 bits, but the program reads 32"),
        (b, "", "the program reads an input that is missing"),
        (
            b,
            "input 0 1 8 7 \"b\"\ninput 0 2 8 7 \"c\"\n",
            "input 2 of thread 0, \"c\", is not read by the program",
        ),
        (b, "input 0.1 1 8 7 \"b\"\n", "input 1 of thread 0.1, \"b\", is not read by the program"),
    ] {
        // The outcome differs as well: an input that decides nothing is no reason to refuse.
        let changed = text.replace(old, new).replace("a != 1000", "a != 1001");
        let changed = changed.replace("outcome assertion", "outcome deadlock");
        sandbox.write("changed.schedule", changed);
        let ran = sandbox.heisen(&["replay", "changed.schedule"]);
        ran.fails(2, &["the inputs of the schedule do not fit the program", what]);
    }
    // A mark of an argument that the schedule does not have.
    let marked = text.replace("\ninput 0 0", "\nmark argv 3 1\ninput 0 0");
    sandbox.write("marked.schedule", marked);
    sandbox.heisen(&["replay", "marked.schedule"]).fails(2, &["--input argv:1: the program has 0 arguments"]);
    for (line, what) in [
        ("mark pipe 3 1", "\"pipe\" is none of stdin, argv, file"),
        ("mark stdin", "a number of bytes is missing"),
        ("mark file 3", "the path of a file must be in double quotes"),
    ] {
        sandbox.write("bad.schedule", text.replace("\ninput 0 0", &format!("\n{line}\ninput 0 0")));
        sandbox.heisen(&["replay", "bad.schedule"]).fails(2, &[what]);
    }
}

#[test]
fn contradictory_assumptions_are_said() {
    if !has_clang() {
        return;
    }
    let program = |low: i32| {
        format!(
            "#include <heisen.h>
            int main(void) {{
                int x = 5;
                heisen_input(&x, sizeof x, \"x\");
                heisen_assume(x > {low});
                heisen_assume(x < 100);
                return x == 77;
            }}"
        )
    };
    let sandbox = Sandbox::new();
    sandbox.write("never.c", program(100));
    sandbox.write("some.c", program(50));
    let words = "nothing was checked: none of";
    let ran = sandbox.heisen(&["check", "--inputs", "never.c"]).expect(2);
    assert!(ran.out.contains(words) && !ran.out.contains("ok:"), "{}", ran.out);
    let json = searched(&sandbox, 2, &["--inputs", "never.c"]);
    assert_eq!(json["verdict"], "incomplete", "{json:#}");
    // The values that the program gives do not meet them, but others do.
    let ran = sandbox.heisen(&["check", "some.c"]).expect(2);
    assert!(ran.out.contains(words) && ran.out.contains("(--inputs chooses others)"), "{}", ran.out);
    let json = searched(&sandbox, 1, &["--inputs", "some.c"]);
    assert_eq!(json["findings"][0]["inputs"][0]["value"], 77, "{json:#}");
    // An execution that ends at an assumption has no exit status.
    let json = searched(&sandbox, 2, &["--inputs", "--expect-exit", "1", "never.c"]);
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(0), "{json:#}");
}

#[test]
fn inputs_of_odd_sizes_are_seen_through() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write(
        "sizes.c",
        "#include <assert.h>
        #include <heisen.h>
        #include <stdlib.h>
        struct point { int x, y; char name[8]; };
        int main(int argc, char **argv) {
            if (argc > 1) {
                size_t bytes = (size_t)1 << 30;
                char *much = malloc(bytes);
                heisen_input(much, bytes, \"much\");
                return 0;
            }
            struct point p = {1, 2, \"one\"};
            int twice = 0;
            heisen_input(&p, 0, \"nothing\");
            heisen_input(&p, sizeof p, \"p\");
            heisen_input(&twice, sizeof twice, \"t\");
            int first = twice;
            heisen_input(&twice, sizeof twice, \"t\");
            assert(p.x != -3 || p.y != 4 || p.name[0] != 'a' || p.name[1] != 'b' || first != 5 || twice != 6);
            return 0;
        }",
    );
    let ran = sandbox.heisen(&["check", "--inputs", "--no-explain", "sizes.c"]).expect(1);
    // The same name twice is two inputs.
    let inputs = "  with these inputs:
    p = fd ff ff ff 04 00 00 00 61 62 00 00 00 00 00 00
    t = 5
    t = 6
";
    assert!(ran.out.contains(inputs), "{}", ran.out);
    let json = searched(&sandbox, 1, &["--inputs", "sizes.c", "--", "much"]);
    assert_eq!(json["findings"][0]["kind"], "misuse", "{json:#}");
    let message = json["findings"][0]["message"].as_str().expect("a message");
    assert!(message.contains("an input of more than 512 KiB"), "{json:#}");
}
