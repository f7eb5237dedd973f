//! Tests the stacks of threads.

use super::*;

const NESTED: &str = r#"
#include <signal.h>
int depth;
__attribute__((noinline)) int inner(int n) {
    raise(SIGSTOP); // here
    return n + depth;
}
__attribute__((noinline)) int middle(int n) {
    int below = inner(n + 1); // calls inner
    return below + 1;
}
__attribute__((noinline)) int outer(int n) {
    int below = middle(n + 1); // calls middle
    return below + 1;
}
int main(void) {
    return outer(0) == 0; // calls outer
}
"#;

fn check_nested(built: &Built) {
    let stack = built.stop().stack(&mut Symbols::new());
    assert_eq!(own(&stack), ["inner", "middle", "outer", "main"], "{stack:#?}");
    for (function, text) in [
        ("inner", "// here"),
        ("middle", "// calls inner"),
        ("outer", "// calls middle"),
        ("main", "// calls outer"),
    ] {
        let frame = frame(&stack, function);
        assert_eq!(frame.line, built.line(text), "{function}");
        assert_eq!(frame.file.as_deref(), built.path("nested.c").to_str(), "{function}");
    }
    assert_eq!(stack.place().map(|frame| frame.function.as_str()), Some("inner"));
    // Below it is the C library's `raise`, without names of its internal functions.
    let below = &stack.0[..stack.0.iter().position(|f| f.function == "inner").unwrap()];
    assert!(!below.is_empty() && below.iter().all(|f| !f.own && f.file.is_none()), "{below:?}");
    assert!(below.iter().any(|f| f.function == "raise"), "{below:?}");
}

#[test]
fn names_and_lines() {
    check_nested(&Built::new("nested.c", NESTED, &["-g", "-O0"]));
}

#[test]
fn without_frame_pointers() {
    check_nested(&Built::new("nested.c", NESTED, &["-g", "-O2", "-fomit-frame-pointer"]));
}

#[test]
fn at_a_fixed_address() {
    check_nested(&Built::new("nested.c", NESTED, &["-g", "-no-pie", "-fno-pie"]));
}

#[test]
fn with_compressed_sections_and_old_formats() {
    check_nested(&Built::new("nested.c", NESTED, &["-gdwarf-4", "-gz=zlib"]));
    check_nested(&Built::new("nested.c", NESTED, &["-gdwarf-3", "-O2"]));
}

#[test]
fn with_tables_for_debuggers_only() {
    let flags =
        ["-g", "-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    check_nested(&Built::new("nested.c", NESTED, &flags));
}

#[test]
fn with_split_debug_information() {
    check_nested(&Built::new("nested.c", NESTED, &["-gdwarf-5", "-gsplit-dwarf"]));
}

#[test]
fn with_a_separate_debug_file() {
    let built = Built::new("nested.c", NESTED, &["-g"]);
    built.run("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    built.run("strip", &["program"]);
    built.run("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    check_nested(&built);
    // The debug file of another build is ignored.
    let other = Built::new("nested.c", &format!("int other;\n{NESTED}"), &["-g"]);
    built.run("objcopy", &["--only-keep-debug", other.program.to_str().unwrap(), "program.debug"]);
    let stack = built.stop().stack(&mut Symbols::new());
    assert!(stack.0.iter().all(|f| f.file.is_none()), "{stack:#?}");
}

#[test]
fn of_a_deleted_program() {
    let built = Built::new("nested.c", NESTED, &["-g"]);
    let stopped = built.stop();
    fs::remove_file(&built.program).unwrap();
    let stack = stopped.stack(&mut Symbols::new());
    assert_eq!(own(&stack), ["inner", "middle", "outer", "main"]);
}

#[test]
fn stripped_with_exported_names() {
    let built = Built::new("nested.c", NESTED, &["-O1", "-rdynamic", "-s"]);
    let stack = built.stop().stack(&mut Symbols::new());
    assert_eq!(own(&stack), ["inner", "middle", "outer", "main"]);
    assert!(stack.0.iter().all(|f| f.file.is_none() && f.line.is_none()));
}

#[test]
fn stripped_of_all_names() {
    let built = Built::new("nested.c", NESTED, &["-O1", "-s"]);
    let stack = built.stop().stack(&mut Symbols::new());
    let own = own(&stack);
    assert!(own.len() >= 4 && own.iter().all(|name| name.starts_with("program+0x")), "{own:?}");
}

#[test]
fn functions_that_were_inlined() {
    let source = r#"
#include <signal.h>
int depth;
static inline __attribute__((always_inline)) void inlined_most(void) {
    raise(SIGSTOP); // here
    depth++;
}
static inline __attribute__((always_inline)) void inlined(void) {
    inlined_most(); // calls most
    depth++;
}
__attribute__((noinline)) void real(void) {
    inlined(); // calls inlined
    depth++;
}
int main(void) {
    real(); // calls real
    return depth;
}
"#;
    let built = Built::new("inline.c", source, &["-g", "-O2"]);
    let stack = built.stop().stack(&mut Symbols::new());
    assert_eq!(own(&stack), ["inlined_most", "inlined", "real", "main"]);
    assert_eq!(frame(&stack, "inlined_most").line, built.line("// here"));
    assert_eq!(frame(&stack, "inlined").line, built.line("// calls most"));
    assert_eq!(frame(&stack, "real").line, built.line("// calls inlined"));
    assert_eq!(frame(&stack, "main").line, built.line("// calls real"));
}

#[test]
fn through_an_aligned_frame() {
    // The frame of `aligned` is found through memory, and the frames above it have no frame pointer.
    let source = r#"
#include <signal.h>
int depth;
void use(char *p) { depth += *p; raise(SIGSTOP); }
__attribute__((noinline)) int aligned(int n) {
    char buffer[64 + n] __attribute__((aligned(64)));
    _Alignas(64) char fixed[64];
    buffer[0] = fixed[0] = n;
    use(buffer);
    use(fixed);
    return buffer[0] + 1;
}
__attribute__((noinline)) int above(int n) { int r = aligned(n + 1); return r + depth; }
__attribute__((noinline)) int higher(int n) { int r = above(n + 1); return r + depth; }
int main(void) { return higher(1) + depth; }
"#;
    let built = Built::new("aligned.c", source, &["-g", "-O2", "-fomit-frame-pointer"]);
    let stack = built.stop().stack(&mut Symbols::new());
    assert_eq!(own(&stack), ["use", "aligned", "above", "higher", "main"]);
}

#[test]
fn through_a_signal_handler() {
    let source = r#"
#include <signal.h>
volatile int depth;
static char other[1 << 16];
void handler(int number) { depth += number; raise(SIGSTOP); depth++; }
__attribute__((noinline)) int interrupted(volatile int *p) {
    int r = *p; // faults
    return r + depth;
}
int main(void) {
    stack_t stack = { .ss_sp = other, .ss_size = sizeof other };
    sigaltstack(&stack, 0);
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    sigaction(SIGSEGV, &action, 0);
    return interrupted(0) + depth;
}
"#;
    let built = Built::new("signal.c", source, &["-g", "-O2", "-fomit-frame-pointer"]);
    let mut stopped = built.stop();
    let check = |stack: &Stack, expected: &[&str]| {
        assert_eq!(own(stack), expected, "{stack:#?}");
        assert_eq!(frame(stack, "interrupted").line, built.line("// faults"));
    };
    check(&stopped.stack(&mut Symbols::new()), &["interrupted", "main"]);
    stopped.go_on(libc::SIGSEGV);
    check(&stopped.stack(&mut Symbols::new()), &["handler", "interrupted", "main"]);
}

#[test]
fn after_a_jump_to_nowhere() {
    let source = r#"
int depth;
__attribute__((noinline)) int caller(int (*volatile f)(void)) {
    int r = f(); // jumps
    return r + depth;
}
int main(void) { return caller(0) + depth; }
"#;
    let built = Built::new("wild.c", source, &["-g", "-O2"]);
    let stack = built.stop().stack(&mut Symbols::new());
    assert_eq!(stack.0[0].function, "0x0");
    assert_eq!(own(&stack), ["caller", "main"]);
    assert_eq!(frame(&stack, "caller").line, built.line("// jumps"));
}

#[test]
fn without_any_tables_by_frame_pointers() {
    let flags = [
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-rdynamic",
    ];
    let built = Built::new("nested.c", NESTED, &flags);
    let stack = built.stop().stack(&mut Symbols::new());
    assert_eq!(own(&stack), ["inner", "middle", "outer", "main"]);
}

#[test]
fn hidden_modules_are_left_out() {
    let library = r#"
#include <signal.h>
__attribute__((noinline)) int hidden_inner(void) { raise(SIGSTOP); return 1; }
int hidden_entry(int (*back)(void)) { int r = back ? back() : hidden_inner(); return r + 1; }
"#;
    let program = r#"
int hidden_entry(int (*)(void));
int between(void) { int r = hidden_entry(0); return r + 1; }
int main(void) { int r = hidden_entry(between); return r + 1; }
"#;
    let built = Built::new("hidden.c", library, &["-g", "-O1", "-shared", "-fPIC"]);
    let so = built.path("libhidden.so");
    fs::rename(&built.program, &so).unwrap();
    fs::write(built.path("main.c"), program).unwrap();
    built.run("gcc", &["main.c", "-o", "program", "-g", "-L.", "-lhidden", "-Wl,-rpath,$ORIGIN"]);
    let stopped = built.stop();
    let shown = stopped.stack(&mut Symbols::new());
    assert_eq!(own(&shown), ["hidden_inner", "hidden_entry", "between", "hidden_entry", "main"]);
    // The hidden path may be another name of the same file.
    std::os::unix::fs::symlink(&so, built.path("link.so")).unwrap();
    let mut symbols = Symbols::new();
    symbols.hide(&built.path("link.so"));
    let stack = stopped.stack(&mut symbols);
    assert_eq!(own(&stack), ["between", "main"]);
    assert!(stack.0.iter().all(|f| !f.function.contains("hidden")));
    // The file may also be deleted.
    fs::remove_file(&so).unwrap();
    let mut symbols = Symbols::new();
    symbols.hide(&so);
    assert_eq!(own(&stopped.stack(&mut symbols)), ["between", "main"]);
}

#[test]
fn demangled_cpp() {
    let source = r#"
#include <csignal>
#include <functional>
namespace bank {
struct Account {
    int balance = 0;
    __attribute__((noinline)) int withdraw(int amount) { raise(SIGSTOP); return balance -= amount; } // here
};
template <class T> __attribute__((noinline)) int apply(T f, int n) { int r = f(n); return r + 1; }
namespace { __attribute__((noinline)) int local(Account &a) { return apply([&](int n) { return a.withdraw(n); }, 3) + 1; } }
}
int main() {
    bank::Account account;
    std::function<int()> f = [&] { return bank::local(account) + 1; };
    return f() + 1;
}
"#;
    // The optimiser inlines most of these functions; their names remain.
    for flags in [["-g", "-O0"], ["-g", "-O2"]] {
        let built = Built::new("bank.cc", source, &flags);
        let stack = built.stop().stack(&mut Symbols::new());
        let own = own(&stack);
        assert_eq!(own[0], "bank::Account::withdraw");
        assert_eq!(frame(&stack, "bank::Account::withdraw").line, built.line("// here"));
        assert!(own.contains(&"bank::(anonymous namespace)::local"), "{own:?}");
        assert!(own.iter().any(|name| name.starts_with("bank::apply<")), "{own:?}");
        assert!(own.contains(&"main::{lambda}"), "{own:?}");
        assert_eq!(own.last(), Some(&"main"));
        // The frames of the standard library in between do not belong to the program.
        let library: Vec<_> = stack.0.iter().filter(|f| f.function.starts_with("std::")).collect();
        assert!(!library.is_empty() && library.iter().all(|f| !f.own), "{stack:#?}");
    }
}

const RUST: &str = r#"
mod bank {
    pub struct Account(pub i32);
    impl Account {
        #[inline(never)]
        pub fn withdraw(&mut self, n: i32) -> i32 {
            unsafe { raise(19) }; // here
            self.0 -= n;
            self.0
        }
    }
    unsafe extern "C" { fn raise(number: i32) -> i32; }
}
trait Customer {
    fn pay(&mut self) -> i32;
}
impl Customer for bank::Account {
    #[inline(never)]
    fn pay(&mut self) -> i32 { self.withdraw(3) + 1 } // calls withdraw
}
fn main() {
    let mut account = bank::Account(5);
    let paid = std::panic::catch_unwind(move || { account.pay() + 1 }); // calls pay
    std::process::exit(paid.unwrap_or(0))
}
"#;

#[test]
fn demangled_rust() {
    for flags in
        [&["-g"][..], &["-g", "-O"], &["-Cdebuginfo=line-tables-only", "-O"], &["-g", "-Cpanic=abort"]]
    {
        let flags = [flags, &["--crate-name", "teller"]].concat();
        let built = Built::new("teller.rs", RUST, &flags);
        let stack = built.stop().stack(&mut Symbols::new());
        let own = own(&stack);
        // rustc's two mangling schemes write this name with and without angle brackets.
        assert_eq!(own[0].replace(['<', '>'], ""), "teller::bank::Account::withdraw", "{flags:?}");
        assert_eq!(frame(&stack, own[0]).line, built.line("// here"), "{flags:?}");
        assert!(own.contains(&"<teller::bank::Account as teller::Customer>::pay"), "{own:?}");
        assert!(own.contains(&"teller::main"), "{own:?}");
        let library: Vec<_> = stack.0.iter().filter(|f| f.function.starts_with("std::")).collect();
        assert!(!library.is_empty() && library.iter().all(|f| !f.own), "{stack:#?}");
    }
}

#[test]
fn files_are_parsed_once() {
    let built = Built::new("nested.c", NESTED, &["-g"]);
    let mut symbols = Symbols::new();
    let first = built.stop().stack(&mut symbols);
    let parsed = symbols.modules.len();
    assert!(parsed >= 3, "program, C library and loader: {symbols:?}");
    assert_eq!(built.stop().stack(&mut symbols), first);
    assert_eq!(symbols.modules.len(), parsed);
    // A new version of the program is a new file.
    fs::write(built.path("nested.c"), format!("\n{NESTED}")).unwrap();
    built.run("gcc", &["nested.c", "-o", "program", "-g"]);
    let stack = built.stop().stack(&mut symbols);
    assert_eq!(symbols.modules.len(), parsed + 1);
    assert_eq!(frame(&stack, "main").line, frame(&first, "main").line.map(|line| line + 1));
}

#[test]
fn can_be_handed_to_another_thread() {
    fn check<T: Send>() {}
    check::<Symbols>();
    check::<View<'_>>();
}

#[test]
fn long_stacks_are_cut() {
    let source = r#"
#include <signal.h>
int depth;
int down(int n) { if (n == 0) raise(SIGSTOP); else depth += down(n - 1); return depth + 1; }
int main(void) { return down(1000); }
"#;
    let built = Built::new("deep.c", source, &["-g", "-O0"]);
    let stack = built.stop().stack(&mut Symbols::new());
    assert_eq!(stack.0.len(), 64);
    assert_eq!(stack.0.last().map(|f| f.function.as_str()), Some("down"));
}

#[test]
fn the_own_process() {
    let mut symbols = Symbols::new();
    let mut view = View::new(&mut symbols, std::process::id() as i32).unwrap();
    let frames = view.frame_at(the_own_process as *const () as u64, false);
    let frame = frames.last().unwrap();
    assert!(frame.function.ends_with("heisen_inspect::tests::stacks::the_own_process"), "{frame:?}");
    assert!(frame.own);
    let words = [1, 2, 3];
    let mut read = [0; 3];
    view.read_words(words.as_ptr() as u64, &mut read).unwrap();
    assert_eq!(read, words);
    assert!(view.read_words(8, &mut read).is_err());
    // An address without code has no line.
    assert_eq!(view.frame_at(words.as_ptr() as u64, false)[0].line, None);
    assert!(View::new(&mut symbols, -1).is_err());
}
