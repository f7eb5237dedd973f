//! The functions by which a Rust program or test talks to Heisen, the counterpart of `heisen.h`.
//!
//! [`macro@test`] makes `cargo test` explore the schedules of a function.
//!
//! Without Heisen the calls do nothing, and each costs a load and a branch.
//!
//! ```
//! let level = heisen::choose(3); // 0 without Heisen; with it, the search tries 0, 1 and 2
//! heisen::point(); // a scheduling point: other threads may run here
//! let sum = heisen::no_preempt(|| level + 1); // no thread preempts this closure
//! let sum = heisen::atomic(|| sum + 1); // this closure is one step
//! assert_eq!(sum, 2);
//! assert!(!heisen::running());
//! ```
//!
//! The crate has no assertion of its own: Heisen reports a panic, and so a failed `assert!`.

mod input;
mod runtime;
pub mod script;
mod testing;

/// Makes `cargo test` explore the schedules of a function with Heisen.
///
/// ```
/// #[heisen::test(bound = 1)]
/// fn deposits_add_up() {
///     let balance = std::sync::Mutex::new(0);
///     std::thread::scope(|scope| {
///         scope.spawn(|| *balance.lock().unwrap() += 1);
///         *balance.lock().unwrap() += 1;
///     });
///     assert_eq!(balance.into_inner().unwrap(), 2);
/// }
/// ```
///
/// The test runs its own executable under `heisen check`. If Heisen finds a bug, the test fails and shows the
/// report. The environment variable `HEISEN` names the executable of Heisen. Without it the test looks for
/// `heisen` in `PATH`. Schedule files are written to the folder `heisen` in cargo's target directory;
/// `heisen replay` replays one.
///
/// The arguments are options of `heisen check`, with `_` for `-`: `strategy = "random"`, `bound = 2`,
/// `depth = 3`, `burst = 16`, `delays = 2`, `executions = 1000`, `time = "30s"`, `steps = 10000`,
/// `hang = "5s"`, `seed = 1`, `jobs = 1`, `no_preempt = "…"` and `focus = "…"`. The last two may be given
/// several times. The function takes no arguments. It may return whatever an ordinary test may return.
///
/// With `script = NAME` the test runs under `heisen script` instead, together with a script: a Rust function
/// or closure, see [`script`]. The other arguments are then options of that command: `oracle = "few"`,
/// `seed = 1`, `reduce = true`, `choices = "0,1"`, `executions`, `time`, `steps` and `hang`.
pub use heisen_macros::test;
pub use input::{Input, assume, input, input_bytes, input_or};

/// A scheduling point: other threads may run before this call returns.
///
/// Put one between two accesses to shared memory that Heisen cannot see.
#[inline(always)]
pub fn point() {
    if let Some(point) = runtime::POINT.get() {
        point();
    }
}

/// A scheduling point with a number, which reports and traces show.
#[inline(always)]
pub fn point_at(number: usize) {
    if let Some(point) = runtime::POINT_AT.get() {
        point(number);
    }
}

/// Returns a number below `n`; the search tries each of them. Without Heisen it returns 0.
///
/// # Panics
/// If `n` is 0.
#[inline(always)]
#[track_caller]
pub fn choose(n: u32) -> u32 {
    assert!(n > 0, "a choice of nothing");
    runtime::CHOOSE.get().map_or(0, |choose| choose(n))
}

/// Tells the search that the state of the program has this hash.
///
/// With `--reduce`, the search treats two executions as equal from here on if they report the same hash while
/// their threads are at the same places.
///
/// The hash must therefore cover everything that the rest of the program depends on: shared and local
/// variables, and the contents of channels and semaphores. Heisen itself knows for each thread its next
/// operation, the object of that operation and the place of the call. It does not look at callers further up
/// the stack.
#[inline(always)]
pub fn state(hash: u64) {
    if let Some(state) = runtime::STATE.get() {
        state(hash);
    }
}

/// Runs `body` without preemption: the thread continues as long as it is enabled. It may block.
pub fn no_preempt<R>(body: impl FnOnce() -> R) -> R {
    between(&runtime::NO_PREEMPT_BEGIN, &runtime::NO_PREEMPT_END, body)
}

/// Runs `body` as an atomic section: in every schedule, other threads see all of it or nothing.
///
/// If the thread blocks or yields inside, the atomic section ends there and the rest is ordinary code.
/// Without Heisen, `body` is not atomic.
pub fn atomic<R>(body: impl FnOnce() -> R) -> R {
    between(&runtime::ATOMIC_BEGIN, &runtime::ATOMIC_END, body)
}

/// Calls `begin`, then `body`, then `end`; `end` also if `body` panics.
fn between<R>(begin: &Call, end: &'static Call, body: impl FnOnce() -> R) -> R {
    struct End(&'static Call);
    impl Drop for End {
        fn drop(&mut self) {
            if let Some(end) = self.0.get() {
                end();
            }
        }
    }
    if let Some(begin) = begin.get() {
        begin();
    }
    let _end = End(end);
    body()
}

/// A function of the runtime that takes and returns nothing.
type Call = runtime::Function<extern "C" fn()>;

/// Marks the start of the code under test, an event that scripts can name: [`script::test_start`].
pub fn test_start() {
    if let Some(start) = runtime::TEST_START.get() {
        start();
    }
}

/// Marks the end of the code under test, an event that scripts can name: [`script::test_end`].
pub fn test_end() {
    if let Some(end) = runtime::TEST_END.get() {
        end();
    }
}

/// With `heisen check --at-ready`, each execution begins here instead of at `main`.
///
/// The program runs the code before this call only once. It must have a single thread at this call, so tests
/// cannot use it: the test harness runs them in a second thread.
pub fn ready() {
    if let Some(ready) = runtime::READY.get() {
        ready();
    }
}

/// Returns whether the program runs under Heisen.
pub fn running() -> bool {
    runtime::RUNNING.get().is_some_and(|running| running() != 0)
}

/// The functions that the code generated by [`macro@test`] calls.
#[doc(hidden)]
pub mod __private {
    pub use crate::testing::{Outcome, test, test_with};
}
