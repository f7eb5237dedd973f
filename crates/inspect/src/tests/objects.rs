//! Tests the names of objects.

use super::*;

/// Names the addresses that a program has put into its null-terminated array `targets`.
fn names(built: &Built) -> Vec<Option<String>> {
    let stopped = built.stop();
    let mut symbols = Symbols::new();
    let view = View::new(&mut symbols, stopped.pid()).unwrap();
    // The symbol table gives the address of the array.
    let image = view.images.iter().find(|image| image.main).unwrap();
    let (bias, table) = (image.bias, view.module(image).unwrap().symbols());
    let targets = bias + table.all().find(|s| s.name() == "targets").unwrap().address;
    let mut addresses = [0; 64];
    view.read_words(targets, &mut addresses).unwrap();
    addresses
        .into_iter()
        .take_while(|&address| address != 0)
        .map(|address| view.object_name(address))
        .collect()
}

fn check(built: &Built, expected: &[&str]) {
    let names = names(built);
    let names: Vec<_> = names.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
    assert_eq!(names, expected);
}

const C: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
struct slot { int id; pthread_mutex_t lock; };
struct pool { pthread_mutex_t lock; pthread_cond_t free; struct slot slots[4]; union { long word; sem_t sem; } u;
              struct { int x; int y; }; unsigned small : 3, bits : 20; int grid[3][5]; };
typedef struct pool pool_t;
pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t forks[5];
static struct pool pool;
pool_t pools[2];
volatile int counter;
_Atomic long flag;
int *pointer;
const volatile char text[] = "text";
struct slot unnumbered[] = { {1}, {2}, {3} };
void *targets[64];
static void *local(void) { static pthread_mutex_t lock; static int calls[3]; calls[1]++; return calls[1] > 5 ? (void *)&lock : calls + 1; }
static void *other(void) { static pthread_mutex_t lock; return &lock; }
int main(void) {
    int here;
    void *all[] = {
        &plain, (char *)&plain + 8, &forks[1], &forks[4], &pool.lock, &pool.free, &pool.slots[3].lock,
        &pool.slots[2].id, (char *)&pool.slots[2].id + 4, &pool.u.sem, &pool.y, &pool.grid[2][3], &pools[1].slots[0].lock,
        (void *)&counter, (char *)&counter + 2, (void *)&flag, &pointer, (void *)&text[2], &unnumbered[2].lock,
        local(), other(), &here, malloc(8), (void *)main, targets + 1,
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) targets[i] = all[i];
    raise(SIGSTOP);
    return pool.x + pool.bits;
}
"#;

const C_NAMES: [&str; 25] = [
    "plain",
    "plain",
    "forks[1]",
    "forks[4]",
    "pool.lock",
    "pool.free",
    "pool.slots[3].lock",
    "pool.slots[2].id",
    "pool.slots[2]+0x4",
    "pool.u.word",
    "pool.y",
    "pool.grid[2][3]",
    "pools[1].slots[0].lock",
    "counter",
    "counter+0x2",
    "flag",
    "pointer",
    "text[2]",
    "unnumbered[2].lock",
    "local::calls[1]",
    "other::lock",
    "-",
    "-",
    "-",
    "targets[1]",
];

#[test]
fn c_variables() {
    check(&Built::new("names.c", C, &["-g", "-O0"]), &C_NAMES);
    check(&Built::new("names.c", C, &["-gdwarf-4", "-O2", "-fno-toplevel-reorder", "-no-pie"]), &C_NAMES);
}

#[test]
fn c_variables_linked_as_a_whole() {
    let names = names(&Built::new("names.c", C, &["-g", "-O1", "-flto"]));
    for (name, expected) in names.iter().zip(C_NAMES) {
        // The optimiser may split a static struct into separate variables; the other objects keep their
        // names.
        if !expected.starts_with("pool.") {
            assert_eq!(name.as_deref().unwrap_or("-"), expected);
        }
    }
}

#[test]
fn c_variables_without_debug_information() {
    let names = names(&Built::new("names.c", C, &["-O0"]));
    let at = |expected: &str| {
        let index = C_NAMES.iter().position(|name| *name == expected).unwrap();
        names[index].as_deref().unwrap_or("-")
    };
    assert_eq!(at("plain"), "plain");
    assert_eq!(at("forks[1]"), "forks+0x28");
    assert_eq!(at("pool.lock"), "pool");
    assert_eq!(at("other::lock"), "lock");
    assert_eq!(at("-"), "-");
}

#[test]
fn cpp_variables() {
    let source = r#"
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
namespace bank {
struct Base { long a, b; };
struct Account : Base { std::mutex lock; int balance; static std::mutex registry; };
std::mutex Account::registry;
Account accounts[3];
namespace { std::mutex hidden; }
template <class T> struct Holder { static std::mutex lock; };
template <class T> std::mutex Holder<T>::lock;
}
using Lock = std::mutex;
Lock global;
std::condition_variable ready;
std::array<std::mutex, 4> four;
std::array<bank::Account, 2> held;
std::optional<bank::Account> perhaps;
std::atomic<int> atomic;
struct Locked : std::mutex { int n; } locked;
static void *single() { static std::mutex one; return &one; }
extern "C" { void *targets[64]; }
int main() {
    perhaps.emplace();
    void *all[] = {
        &global, (char *)&global + 4, &ready, &four[2], &held[1].lock, &perhaps->lock, &atomic, &locked, &locked.n,
        &bank::Account::registry, &bank::accounts[2].lock, &bank::accounts[1].b, &bank::hidden,
        &bank::Holder<int>::lock, single(), new std::mutex,
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) targets[i] = all[i];
    raise(SIGSTOP);
}
"#;
    let expected = [
        "global",
        "global",
        "ready",
        "four[2]",
        "held[1].lock",
        "perhaps.lock",
        "atomic",
        "locked",
        "locked.n",
        "bank::Account::registry",
        "bank::accounts[2].lock",
        "bank::accounts[1].b",
        "bank::(anonymous namespace)::hidden",
        "bank::Holder<int>::lock",
        "single::one",
        "-",
    ];
    check(&Built::new("names.cc", source, &["-g", "-std=c++17"]), &expected);
}

#[test]
fn rust_statics() {
    let source = r#"
use std::sync::{Condvar, Mutex, OnceLock, atomic::AtomicU32};
struct Pool { name: u64, lock: Mutex<u32>, ready: Condvar, pair: (u64, Mutex<u8>) }
static LOCK: Mutex<[u64; 4]> = Mutex::new([0; 4]);
static LOCKS: [Mutex<u64>; 3] = [const { Mutex::new(0) }; 3];
static COUNTER: AtomicU32 = AtomicU32::new(0);
static LATE: OnceLock<Pool> = OnceLock::new();
mod deep {
    use super::*;
    pub static POOL: Pool = pool();
    pub static HEAP: Mutex<Option<Box<u64>>> = Mutex::new(None);
}
const fn pool() -> Pool { Pool { name: 1, lock: Mutex::new(0), ready: Condvar::new(), pair: (1, Mutex::new(0)) } }
fn local() -> u64 { static LOCAL: Mutex<u64> = Mutex::new(0); &raw const LOCAL as u64 }
#[unsafe(no_mangle)]
static mut targets: [u64; 64] = [0; 64];
unsafe extern "C" { fn raise(number: i32) -> i32; }
fn main() {
    let late = LATE.get_or_init(pool);
    let _ = deep::HEAP.lock().map(|mut heap| *heap = Some(Box::new(late.name)));
    let all = [
        &raw const LOCK as u64,
        &raw const LOCKS[2] as u64,
        &raw const COUNTER as u64,
        &raw const deep::POOL.lock as u64,
        &raw const deep::POOL.ready as u64,
        &raw const deep::POOL.pair.1 as u64,
        &raw const late.lock as u64,
        &raw const deep::HEAP as u64,
        local(),
        &raw const **deep::HEAP.lock().unwrap().as_ref().unwrap() as u64,
    ];
    unsafe {
        (&raw mut targets).cast::<[u64; 10]>().write(all);
        raise(19);
    }
}
"#;
    let expected = [
        "teller::LOCK",
        "teller::LOCKS[2]",
        "teller::COUNTER",
        "teller::deep::POOL.lock",
        "teller::deep::POOL.ready",
        "teller::deep::POOL.pair.1",
        "teller::LATE.lock",
        "teller::deep::HEAP",
        "teller::local::LOCAL",
        "-",
    ];
    for flags in [&["-g"][..], &["-g", "-O"]] {
        let flags = [flags, &["--crate-name", "teller"]].concat();
        check(&Built::new("names.rs", source, &flags), &expected);
    }
}

static HERE: [u64; 4] = [1, 2, 3, 4];

#[test]
fn the_own_process() {
    let mut symbols = Symbols::new();
    let view = View::new(&mut symbols, std::process::id() as i32).unwrap();
    let name = view.object_name(&raw const HERE[2] as u64).unwrap();
    // Optimised builds of this test keep the name but not the type.
    let whole = name.ends_with("heisen_inspect::tests::objects::HERE[2]");
    assert!(
        whole || name.contains("heisen_inspect::tests::objects::HERE") && name.ends_with("+0x10"),
        "{name}"
    );
    let local = 5u64;
    assert_eq!(view.object_name(&raw const local as u64), None);
}
