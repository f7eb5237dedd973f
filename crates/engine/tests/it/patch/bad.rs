//! Tests of bad input to `--patch`: patterns without a match, libraries that are never patched, and unusual
//! code.

use heisen_testkit::Sandbox;

const PROGRAM: &str = "static int n; int main(void) { __atomic_fetch_add(&n, 1, __ATOMIC_SEQ_CST); }\n";

#[test]
fn patterns() {
    let sandbox = Sandbox::new();
    let path = sandbox.compile("one.c", PROGRAM, &[]);
    let path = path.to_str().unwrap();
    let check = |patch: &str| sandbox.heisen(&["check", "--patch", patch, "--", path]);
    check("nosuch*").fails(2, &["\"nosuch*\" matches no program or library", "there are one"]);
    check("default,nosuch").fails(2, &["\"nosuch\" matches no program or library"]);
    check("libc.so.6").fails(2, &["libc.so.6 is never patched"]);
    check("ld-linux*").fails(2, &["is never patched"]);
    check("").fails(2, &["--patch", "a name is missing"]);
    check("one,,two").fails(2, &["--patch", "a name is missing"]);
    check("none,one").fails(2, &["--patch", "none stands alone"]);
    check("none").expect(0);
    check("*").expect(0);
    check("on?").expect(0);
    check(path).expect(0);
}

#[test]
fn a_schedule_whose_modules_are_gone() {
    let sandbox = Sandbox::new();
    let text = PROGRAM.replace("1, __ATOMIC_SEQ_CST);", "1, __ATOMIC_SEQ_CST); return 3;");
    let path = sandbox.compile("one.c", &text, &[]);
    let finding = sandbox.finds("exit-status", &["--patch", "one", "--", path.to_str().unwrap()]);
    let schedule = sandbox.path(finding["schedule"].as_str().unwrap());
    let text = std::fs::read_to_string(&schedule).unwrap();
    assert!(text.contains("\npatch \"one\"\n"), "{text}");
    let other = sandbox.write("other.schedule", text.replace("patch \"one\"", "patch \"two\""));
    let ran = sandbox.heisen(&["replay", other.to_str().unwrap()]);
    ran.fails(2, &["\"two\" matches no program or library"]);
    let broken = sandbox.write("broken.schedule", text.replace("patch \"one\"", "patch"));
    sandbox
        .heisen(&["replay", broken.to_str().unwrap()])
        .fails(2, &["the modules to be patched must be in double quotes"]);
}

/// Code that contains data, and code that jumps into the middle of an instruction, are not patched. A caveat
/// says so.
#[test]
fn odd_code() {
    let sandbox = Sandbox::new();
    let text = "#include <pthread.h>
static int n;
__attribute__((naked, noinline)) void odd(int *p) {
    __asm__(\"lock incl (%rdi); jmp 1f; .byte 0x06, 0xf0, 0x07; 1: ret\");
}
__attribute__((naked, noinline)) void inside(int *p) {
    /* mov eax, imm32 whose last bytes are: lock inc dword ptr [rdi]; */
    __asm__(\"jmp 1f + 2; 1: .byte 0xb8, 0, 0xf0, 0xff, 0x07; ret\");
}
__attribute__((naked, noinline)) void fine(int *p) { __asm__(\"lock addl $0x1234, (%rdi); ret\"); }
static void *run(void *a) { odd(&n); inside(&n); fine(&n); return a; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, run, 0);
    run(0);
    pthread_join(t, 0);
    return n != 2 * (2 + 0x1234);
}
";
    let path = sandbox.compile("odd.c", text, &["-O1"]);
    let json = sandbox.clean(&["--patch", "default", "--strategy", "dfs", "--", path.to_str().unwrap()]);
    let said = json["not_controlled"][0].as_str().unwrap();
    assert!(said.contains(": 1 in odd, and 1 function that Heisen does not understand ("), "{said}");
    // One step of `main`, in `fine`, interleaves with two of the other thread: its start and its own step in
    // `fine`.
    assert_eq!((&json["executions"], &json["complete"]), (&3.into(), &true.into()), "{json:#}");
}

/// In a packed or modified program, the code in memory differs from the file.
#[test]
fn code_that_changed_itself() {
    let sandbox = Sandbox::new();
    let text = "#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <stdint.h>
static int n;
__attribute__((naked, noinline, aligned(4096))) void add(int *p) { __asm__(\"lock addl $0x1234, (%rdi); ret\"); }
__attribute__((aligned(4096), constructor)) void change(void) {
    mprotect((void *)add, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    ((volatile uint8_t *)add)[3] = 0x35;
    mprotect((void *)add, 4096, PROT_READ | PROT_EXEC);
}
static void *run(void *a) { add(&n); return a; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, run, 0);
    pthread_join(t, 0);
    return n != 0x1235;
}
";
    let path = sandbox.compile("changed.c", text, &["-O1"]);
    let json = sandbox.clean(&["--patch", "default", "--", path.to_str().unwrap()]);
    let said = json["not_controlled"][0].as_str().unwrap();
    assert!(said.contains("only synchronisation calls are scheduling points"), "{said}");
}
