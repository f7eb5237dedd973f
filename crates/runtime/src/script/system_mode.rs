//! System mode: real threads run in parallel, in a server or in several processes. They stop only at events
//! that a script mentions.
//!
//! CONCURRIT (Elmas, Burnim, Necula, Sen, PLDI'13), section 4. As there, the script and the threads share
//! memory; [`heisen_wire::system`] explains how a thread answers a command. The rest of the runtime is off,
//! as in a child of `fork`, and every intercepted function is the real one.
//!
//! A signal handler may interrupt a thread anywhere in this code. If the thread was at an event of its own,
//! events in the handler are ignored. This code holds no lock.

use crate::platform::baton;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::script::unit_mode;
use crate::script::unit_mode::Event;
use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use heisen_trace::Op;
use heisen_wire::script::{MAX_SCRIPTED, kind};
use heisen_wire::system::{self, Few, MAGIC, System, Thread, state};

/// The address of the mapping; 0 while there is none.
static SYSTEM: AtomicUsize = AtomicUsize::new(0);
/// Whether the program runs in system mode, with or without a script.
static ON: AtomicU32 = AtomicU32::new(0);
/// The number of this program among the programs of the script.
static PROGRAM: AtomicU32 = AtomicU32::new(0);
/// How many scripts have joined so far.
static JOINS: AtomicU32 = AtomicU32::new(0);
/// The process id.
static PID: AtomicU32 = AtomicU32::new(0);
/// The key whose destructor is called when a thread ends, plus 1.
static KEY: AtomicU32 = AtomicU32::new(0);

/// The thread-local data of a thread.
#[repr(C)]
struct Own {
    /// Its number in the table of threads, plus 1; 0 if it has none yet.
    number: Cell<u32>,
    /// Whether it is at an event.
    busy: Cell<u32>,
    /// The script and its execution for which the number is valid.
    generation: Cell<u64>,
}

global_asm!(
    // Static thread-local storage, which a preloaded library can use.
    ".section .tbss.heisen_free, \"awT\", @nobits",
    ".balign 8",
    "heisen_free_own:",
    ".zero 16",
    ".text",
);

/// The data of the calling thread.
fn own() -> &'static Own {
    let at: usize;
    // SAFETY: the address is that of a thread-local variable, which lives as long as the thread and begins as
    // zeros.
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + heisen_free_own@GOTTPOFF]",
            "add {at}, qword ptr fs:[0]",
            at = out(reg) at,
            options(nostack, readonly),
        );
        &*(at as *const Own)
    }
}

/// Whether the program runs in system mode.
#[inline]
pub fn is_on() -> bool {
    ON.load(Relaxed) != 0
}

fn system() -> Option<&'static System> {
    match SYSTEM.load(Relaxed) {
        0 => None,
        // SAFETY: `join` has checked the mapping, which is never unmapped.
        at => Some(unsafe { &*(at as *const System) }),
    }
}

/// Called when the program is loaded. Nothing controls the program yet.
pub fn init() {
    ON.store(1, Relaxed);
    PID.store(sys::getpid() as u32, Relaxed);
    baton::abolish();
}

/// Lets a script hold threads of this program from now on. `program` is its number in the script, and `fd`
/// the descriptor of the memory that the script shares.
pub fn join(program: u32, fd: i32) {
    PROGRAM.store(program, Relaxed);
    JOINS.fetch_add(1, SeqCst);
    let Some(at) = sys::map_shared(fd, system::SIZE) else { return };
    sys::close(fd);
    // SAFETY: the mapping has this size. The check of its first word rejects a foreign one.
    if unsafe { &*(at as *const System) }.magic.load(Relaxed) == MAGIC {
        SYSTEM.store(at, Relaxed);
    }
}

/// From now on no script holds threads.
pub fn leave() {
    SYSTEM.store(0, SeqCst);
}

/// Whether there is a script that may hold threads.
pub fn has_joined() -> bool {
    SYSTEM.load(SeqCst) != 0
}

/// The number of the calling thread; `None` if there is no room for it or no script. Assigns a number if
/// needed.
pub fn number() -> Option<usize> {
    let own = own();
    let generation = generation(system()?);
    if own.number.get() == 0 || own.generation.get() != generation {
        own.number.set(0);
        own.number.set(take_number()? as u32 + 1);
        own.generation.set(generation);
        unit_mode::forget_frames(own.number.get() as usize - 1);
        watch_end();
    }
    Some(own.number.get() as usize - 1)
}

/// A number that differs between all executions of all scripts.
fn generation(system: &System) -> u64 {
    u64::from(JOINS.load(Relaxed)) << 32 | u64::from(system.generation.load(Relaxed))
}

/// The number of the calling thread. Threads without a number share the last one.
pub fn current() -> usize {
    number().unwrap_or(MAX_SCRIPTED - 1)
}

fn take_number() -> Option<usize> {
    let system = system()?;
    let tid = sys::gettid() as u32;
    let free = |thread: &Thread| thread.tid.compare_exchange(0, tid, SeqCst, Relaxed).is_ok();
    let Some(number) = system.threads.iter().position(free) else {
        system.left_out.fetch_add(1, Relaxed);
        return None;
    };
    let thread = &system.threads[number];
    thread.pid.store(PID.load(Relaxed), Relaxed);
    thread.program.store(PROGRAM.load(Relaxed), Relaxed);
    thread.state.store(state::RUNS, SeqCst);
    Some(number)
}

/// Makes the C library call [`ended`] when the calling thread ends, in whatever way.
fn watch_end() {
    if KEY.load(Relaxed) == 0 {
        let mut key = 0u32;
        let destructor = ended as *const () as usize;
        if real!(pthread_key_create, fn(&raw mut key => *mut u32, destructor => usize) -> c_int) != 0 {
            return;
        }
        if KEY.compare_exchange(0, key + 1, SeqCst, Relaxed).is_err() {
            real!(pthread_key_delete, fn(key => u32) -> c_int);
        }
    }
    real!(pthread_setspecific, fn(KEY.load(Relaxed) - 1 => u32, 1 => usize) -> c_int);
}

/// Called in the child of a `fork`: its thread is not the thread of the parent and needs a number of its own.
pub fn forked() {
    let own = own();
    let before = own.number.replace(0) as usize;
    PID.store(sys::getpid() as u32, Relaxed);
    own.busy.set(0);
    if let (Some(number), 1..) = (number(), before) {
        unit_mode::copy_frames(before - 1, number);
    }
}

/// The argument of [`starts`], which a created thread calls instead of the program's function.
#[repr(C)]
struct Start {
    function: usize,
    arg: usize,
}

/// Replaces `pthread_create`, so that the start of the thread is an event.
pub fn create(out: *mut usize, attributes: usize, function: usize, arg: usize) -> c_int {
    let real_create = |function: usize, arg: usize| real!(pthread_create, fn(out => *mut usize, attributes => usize, function => usize, arg => usize) -> c_int);
    let block = real!(malloc, fn(size_of::<Start>() => usize) -> usize);
    if block == 0 || system().is_none() {
        real!(free, fn(block => usize) -> ());
        return real_create(function, arg);
    }
    // SAFETY: the block has this size, and nobody else knows of it.
    unsafe { (block as *mut Start).write(Start { function, arg }) };
    let failed = real_create(starts as *const () as usize, block);
    if failed != 0 {
        real!(free, fn(block => usize) -> ());
    }
    failed
}

extern "C" fn starts(block: usize) -> usize {
    // SAFETY: `create` made the block for this thread.
    let Start { function, arg } = unsafe { (block as *const Start).read() };
    real!(free, fn(block => usize) -> ());
    number();
    happens(Event { kind: kind::START, args: [arg as u64, 0], address: function, ..Event::default() });
    // SAFETY: this is the function that the program gave to `pthread_create`.
    let function: extern "C" fn(usize) -> usize = unsafe { core::mem::transmute(function) };
    function(arg)
}

fn has(set: &Few, number: usize) -> bool {
    set[number / 64].load(Relaxed) >> (number % 64) & 1 != 0
}

fn ring(system: &System) {
    system.bell.fetch_add(1, SeqCst);
    sys::futex_wake(&system.bell);
}

/// Whether this is the number of the program of the calling thread.
pub fn is_of_program(number: u64) -> bool {
    u64::from(PROGRAM.load(Relaxed)) == number
}

/// Whether this is the process of the calling thread.
pub fn is_of_process(number: u64) -> bool {
    u64::from(PID.load(Relaxed)) == number
}

/// Whether a command is out that is not about events of this kind. While the script thinks, the answer is not
/// known, so all threads wait.
#[inline]
fn passes(system: &System, kind: u8) -> bool {
    let round = system.round.load(SeqCst);
    let mentioned = system.kinds.load(Relaxed) >> kind & 1 != 0;
    // If the command is still unclaimed, it was out all the time, and `kinds` belongs to it.
    round % 2 == 1 && !mentioned && system.claim.load(SeqCst) == u64::from(round) << 32
}

/// Whether a script may be interested in events of this kind.
#[inline]
fn is_of_interest(kind: u8) -> bool {
    system().is_some_and(|system| system.on.load(Relaxed) != 0 && !passes(system, kind))
}

/// Called when the calling thread comes to an event. Returns when the script lets the thread go on.
pub fn happens(event: Event) {
    let Some(system) = system().filter(|_| is_of_interest(event.kind)) else { return };
    let own = own();
    if own.busy.replace(1) != 0 {
        return;
    }
    if let Some(number) = number() {
        system.threads[number].events.fetch_add(1, Relaxed);
        attend(system, number, &event);
    }
    own.busy.set(0);
}

/// How often a thread polls before it waits in the kernel. Most answers come at once.
const LOOKS: u32 = 2000;

/// Waits until a command is out. Returns its round and the value of an unclaimed `claim`; `None` if the
/// script is over.
fn command(system: &System) -> Option<(u32, u64)> {
    let mut looks = 0;
    loop {
        let round = system.round.load(SeqCst);
        if system.on.load(SeqCst) == 0 {
            return None;
        }
        let open = u64::from(round) << 32;
        if round % 2 == 1 && system.claim.load(SeqCst) == open {
            return Some((round, open));
        }
        looks += 1;
        if looks > LOOKS && round.is_multiple_of(2) {
            sys::futex_wait_a_second(&system.round, round);
            if !sys::exists(system.script.load(Relaxed) as i32) {
                return None;
            }
        }
        core::hint::spin_loop();
    }
}

/// Claims the command. If that succeeds, the script thinks from then on.
fn claims(system: &System, round: u32, open: u64, number: usize) -> bool {
    let mine = open | (number as u64 + 1);
    let claimed = system.claim.compare_exchange(open, mine, SeqCst, SeqCst).is_ok();
    if claimed {
        // This fails if the script has noticed the claim and has moved on already.
        let _ = system.round.compare_exchange(round, round.wrapping_add(1), SeqCst, SeqCst);
        ring(system);
    }
    claimed
}

fn attend(system: &System, number: usize, event: &Event) {
    let thread = &system.threads[number];
    loop {
        let Some((round, open)) = command(system) else { return };
        let selected = has(&system.select, number);
        let wanted = selected && unit_mode::satisfies(&system.until, event);
        let stops = wanted
            || !selected && has(&system.known, number) && unit_mode::satisfies(&system.mentioned, event);
        if !stops {
            if system.claim.load(SeqCst) == open {
                return;
            }
            continue;
        }
        unit_mode::tell(&thread.at, number, event);
        let stopping = state::STOPS | round << state::SHIFT;
        thread.state.store(stopping, SeqCst);
        let held = match wanted {
            true => claims(system, round, open, number),
            false => system.claim.load(SeqCst) == open,
        };
        let runs = || thread.state.compare_exchange(stopping, state::RUNS, SeqCst, SeqCst).is_ok();
        // Otherwise another thread has claimed the command: try again, unless the script has seen this thread
        // stop.
        if held || !runs() {
            wait(system, thread);
            return;
        }
    }
}

/// Waits until the script lets the thread go on, or until the script's process is gone.
fn wait(system: &System, thread: &Thread) {
    let mut looks = 0;
    loop {
        match thread.state.load(SeqCst) {
            state::RUNS => return,
            _ if looks > LOOKS && !sys::exists(system.script.load(Relaxed) as i32) => return,
            now if looks > LOOKS => sys::futex_wait_a_second(&thread.state, now),
            _ => looks += 1,
        }
        core::hint::spin_loop();
    }
}

/// Called when the calling thread ends. From here on it cannot be held.
extern "C" fn ended(_value: usize) {
    let own = own();
    let (Some(system), number @ 1..) = (system(), own.number.get() as usize) else { return };
    if own.generation.get() != generation(system) {
        return;
    }
    let number = number - 1;
    let thread = &system.threads[number];
    let event = Event { kind: kind::END, ..Event::default() };
    // What other destructors do from here on is not an event.
    own.busy.set(1);
    let mut claimed = false;
    while !passes(system, kind::END) {
        let Some((round, open)) = command(system) else { break };
        if has(&system.select, number) && unit_mode::satisfies(&system.until, &event) {
            unit_mode::tell(&thread.at, number, &event);
            thread.state.store(state::ENDED, SeqCst);
            claimed = claims(system, round, open, number);
            if claimed {
                break;
            }
        } else if system.claim.load(SeqCst) == open {
            break;
        }
    }
    thread.state.store(state::ENDED, SeqCst);
    if !claimed && !has(&system.known, number) {
        // The script does not know the thread, so its entry can be reused.
        thread.tid.store(0, SeqCst);
    }
    ring(system);
}

/// Called when the thread calls an intercepted function of the C library, with this first argument.
#[inline]
pub fn calls(op: Op, object: usize, pc: usize) {
    let (kind, number) = unit_mode::kind_of(op, object);
    if is_of_interest(kind) {
        comes_to(op, object, pc, kind, number);
    }
}

#[cold]
fn comes_to(op: Op, object: usize, pc: usize, kind: u8, number: u64) {
    happens(Event { kind, number, address: object, pc, op: op as u8, ..Event::default() });
}

/// The operation of an intercepted function, if it can be an event for a script.
pub const fn op_of(name: &str) -> Option<Op> {
    /// Compares strings at compile time.
    const fn same(one: &str, other: &str) -> bool {
        let (one, other) = (one.as_bytes(), other.as_bytes());
        if one.len() != other.len() {
            return false;
        }
        let mut at = 0;
        while at < one.len() {
            if one[at] != other[at] {
                return false;
            }
            at += 1;
        }
        true
    }
    const OPS: &[(&str, Op)] = &[
        ("pthread_mutex_lock", Op::Lock),
        ("pthread_mutex_trylock", Op::TryLock),
        ("pthread_mutex_timedlock", Op::TimedLock),
        ("pthread_mutex_clocklock", Op::TimedLock),
        ("pthread_mutex_unlock", Op::Unlock),
        ("pthread_rwlock_rdlock", Op::ReadLock),
        ("pthread_rwlock_wrlock", Op::WriteLock),
        ("pthread_rwlock_unlock", Op::RwUnlock),
        ("pthread_spin_lock", Op::Lock),
        ("pthread_spin_unlock", Op::Unlock),
        ("sem_wait", Op::SemWait),
        ("sem_trywait", Op::SemTryWait),
        ("sem_timedwait", Op::SemTimedWait),
        ("sem_post", Op::SemPost),
        ("pthread_cond_wait", Op::CondWait),
        ("pthread_cond_timedwait", Op::CondTimedWait),
        ("pthread_cond_signal", Op::CondSignal),
        ("pthread_cond_broadcast", Op::CondBroadcast),
        ("pthread_barrier_wait", Op::Barrier),
        ("pthread_join", Op::Join),
    ];
    let mut at = 0;
    while at < OPS.len() {
        if same(OPS[at].0, name) {
            return Some(OPS[at].1);
        }
        at += 1;
    }
    None
}
