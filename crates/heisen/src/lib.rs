//! What a Rust program or test may say to Heisen, which checks its schedules. It is `heisen.h` for Rust, and has
//! [`macro@test`], which makes `cargo test` explore a function.
//!
//! Without Heisen the program runs as if the calls were not there: each costs a load and a branch.
//!
//! ```
//! let level = heisen::choose(3); // 0 without Heisen; under it, the search tries 0, 1 and 2
//! heisen::point(); // other threads may run here
//! let sum = heisen::no_preempt(|| level + 1); // and here they don't
//! let sum = heisen::atomic(|| sum + 1); // and to them, this is one step
//! assert_eq!(sum, 2);
//! assert!(!heisen::running());
//! ```
//!
//! A failed `assert!` is a panic, which Heisen reports; so there is no assertion of its own.

mod runtime;
pub mod script;
mod testing;

/// Makes `cargo test` explore the schedules of a function, with Heisen.
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
/// The test runs its own executable under `heisen check` and fails with the report if there is a bug. It looks for the
/// executable `heisen` under the name in the environment variable `HEISEN`, then in `PATH`. Schedules are written to
/// `heisen` in cargo's target directory; `heisen replay` runs one again.
///
/// The arguments are options of `heisen check`, with `_` for `-`: `strategy = "random"`, `bound = 2`, `depth = 3`,
/// `burst = 16`, `delays = 2`, `executions = 1000`, `time = "30s"`, `steps = 10000`, `hang = "5s"`, `seed = 1`, `jobs = 1`,
/// `no_preempt = "…"` and `focus = "…"`, which may be given several times. The function takes no arguments and returns what a test may return.
///
/// With `script = NAME` the test is run along with a script, a function or closure in Rust, under `heisen script`: see [`script`]. The other
/// arguments are that command's options then: `oracle = "few"`, `seed = 1`, `reduce = true`, `choices = "0,1"`, `executions`, `time`, `steps` and
/// `hang`.
pub use heisen_macros::test;

/// A scheduling point: other threads may run before it returns. Put one between two accesses to shared memory.
#[inline(always)]
pub fn point() {
    if let Some(point) = runtime::POINT.get() {
        point();
    }
}

/// As [`point`], with a number that is shown with it.
#[inline(always)]
pub fn point_at(number: usize) {
    if let Some(point) = runtime::POINT_AT.get() {
        point(number);
    }
}

/// A number below `n`: the search tries each. 0 without Heisen.
///
/// # Panics
/// If `n` is 0.
#[inline(always)]
#[track_caller]
pub fn choose(n: u32) -> u32 {
    assert!(n > 0, "a choice of nothing");
    runtime::CHOOSE.get().map_or(0, |choose| choose(n))
}

/// The state of the program has this hash: with `--reduce`, what was before makes no difference from here on.
///
/// It must tell apart all that what follows may depend on: shared and local variables, and what channels and semaphores hold.
/// Where each thread is Heisen knows: what it is about to do, on what, called from where; callers further up it does not look
/// at.
#[inline(always)]
pub fn state(hash: u64) {
    if let Some(state) = runtime::STATE.get() {
        state(hash);
    }
}

/// Runs `body` without preemption: the thread goes on wherever it can. It may block.
pub fn no_preempt<R>(body: impl FnOnce() -> R) -> R {
    between(&runtime::NO_PREEMPT_BEGIN, &runtime::NO_PREEMPT_END, body)
}

/// Runs `body` as one step: under Heisen other threads see all of it or nothing, in every schedule. If the thread has to wait in it,
/// or yields, the rest is ordinary code. Without Heisen nothing is atomic.
pub fn atomic<R>(body: impl FnOnce() -> R) -> R {
    between(&runtime::ATOMIC_BEGIN, &runtime::ATOMIC_END, body)
}

/// Runs `body` between two calls of the runtime. The second is made also when `body` panics.
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

/// The part that is under test begins: [`script::test_start`].
pub fn test_start() {
    if let Some(start) = runtime::TEST_START.get() {
        start();
    }
}

/// The part that is under test ends: [`script::test_end`].
pub fn test_end() {
    if let Some(end) = runtime::TEST_END.get() {
        end();
    }
}

/// With `heisen check --at-ready`, each execution begins here instead of at `main`: what was done before is done once.
/// The program must have one thread when it calls this; so it is nothing for a test, which runs in a second one.
pub fn ready() {
    if let Some(ready) = runtime::READY.get() {
        ready();
    }
}

/// Whether the program runs under Heisen.
pub fn running() -> bool {
    runtime::RUNNING.get().is_some_and(|running| running() != 0)
}

/// What the code that [`macro@test`] writes calls.
#[doc(hidden)]
pub mod __private {
    pub use crate::testing::{Outcome, test, test_with};
}
