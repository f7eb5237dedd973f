//! The threads of Rust's standard library. Without an argument the program lists its cases, else it runs one.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock, TryLockError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant, SystemTime};

const MOMENT: Duration = Duration::from_millis(20);
const HOUR: Duration = Duration::from_secs(3600);

fn pause_here() {
    static M: Mutex<()> = Mutex::new(());
    drop(M.lock().unwrap());
    thread::yield_now();
}

fn join_gives_the_result() {
    let a = thread::spawn(|| {
        pause_here();
        "a".to_string()
    });
    let b = thread::spawn(|| vec![1, 2]);
    assert_eq!(b.join().unwrap(), [1, 2]);
    assert_eq!(a.join().unwrap(), "a");
    let c = thread::spawn(pause_here);
    while !c.is_finished() {
        thread::yield_now();
    }
    c.join().unwrap();
}

fn mutexes_exclude() {
    let counter = Arc::new(Mutex::new(0));
    let inside = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (counter, inside) = (counter.clone(), inside.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut n = counter.lock().unwrap();
                    assert_eq!(inside.fetch_add(1, SeqCst), 0);
                    thread::yield_now();
                    *n += 1;
                    assert_eq!(inside.fetch_sub(1, SeqCst), 1);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(*counter.lock().unwrap(), 6);
    assert_eq!(Arc::strong_count(&counter), 1);
}

fn trylock_and_poison() {
    let mutex = Arc::new(Mutex::new(1));
    let guard = mutex.lock().unwrap();
    let other = mutex.clone();
    thread::spawn(move || assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)))).join().unwrap();
    drop(guard);
    let other = mutex.clone();
    let result = thread::spawn(move || {
        let _guard = other.lock().unwrap();
        pause_here();
        panic!("poison");
    })
    .join();
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"poison"));
    assert!(mutex.is_poisoned() && mutex.lock().is_err());
    assert_eq!(*mutex.lock().unwrap_or_else(|e| e.into_inner()), 1);
}

fn condvars() {
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let pair = pair.clone();
            thread::spawn(move || {
                let (mutex, condvar) = &*pair;
                let mut n = condvar.wait_while(mutex.lock().unwrap(), |n| *n == 0).unwrap();
                *n += 1;
            })
        })
        .collect();
    *pair.0.lock().unwrap() = 1;
    pair.1.notify_all();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(*pair.0.lock().unwrap(), 3);
}

fn condvar_timeouts() {
    let (mutex, condvar) = (Mutex::new(false), Condvar::new());
    condvar.notify_one();
    let before = Instant::now();
    let (guard, result) = condvar.wait_timeout(mutex.lock().unwrap(), MOMENT).unwrap();
    assert!(result.timed_out() && before.elapsed() >= MOMENT);
    let (guard, result) = condvar.wait_timeout_while(guard, MOMENT, |ready| !*ready).unwrap();
    assert!(result.timed_out());
    drop(guard);
    thread::scope(|scope| {
        scope.spawn(|| {
            *mutex.lock().unwrap() = true;
            condvar.notify_one();
        });
        let before = Instant::now();
        let (ready, result) =
            condvar.wait_timeout_while(mutex.lock().unwrap(), HOUR, |ready| !*ready).unwrap();
        assert_ne!(*ready, result.timed_out());
        assert!(*ready || before.elapsed() >= HOUR);
    });
}

fn rwlocks() {
    let lock = RwLock::new(0);
    let (readers, writers) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _value = lock.read().unwrap();
                readers.fetch_add(1, SeqCst);
                thread::yield_now();
                assert_eq!(writers.load(SeqCst), 0);
                readers.fetch_sub(1, SeqCst);
            });
            scope.spawn(|| {
                let mut value = lock.write().unwrap();
                assert_eq!(writers.fetch_add(1, SeqCst), 0);
                thread::yield_now();
                assert_eq!(readers.load(SeqCst), 0);
                *value += 1;
                writers.fetch_sub(1, SeqCst);
            });
        }
    });
    assert_eq!(*lock.read().unwrap(), 2);
    let _reading = lock.read().unwrap();
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
}

fn once_and_oncelock() {
    static ONCE: Once = Once::new();
    static CELL: OnceLock<usize> = OnceLock::new();
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let work = || {
        ONCE.call_once(|| {
            pause_here();
            RUNS.fetch_add(1, SeqCst);
        });
        assert!(ONCE.is_completed());
        assert_eq!(RUNS.load(SeqCst) % 10, 1);
        let value = CELL.get_or_init(|| {
            pause_here();
            RUNS.fetch_add(10, SeqCst);
            5
        });
        assert_eq!(*value, 5);
    };
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(work)).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(RUNS.load(SeqCst), 11);
    let poisoned = Once::new();
    assert!(catch_unwind(AssertUnwindSafe(|| poisoned.call_once(|| panic!("in once")))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| poisoned.call_once(|| ()))).is_err());
    poisoned.call_once_force(|state| assert!(state.is_poisoned()));
    assert!(poisoned.is_completed());
}

fn unbounded_channels() {
    let (sender, receiver) = mpsc::channel();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    let threads: Vec<_> = (0..2)
        .map(|n| {
            let sender = sender.clone();
            thread::spawn(move || {
                for i in 0..3 {
                    sender.send(n * 10 + i).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let got: Vec<i32> = receiver.iter().collect();
    assert_eq!(got.len(), 6);
    for n in 0..2 {
        let of_one: Vec<i32> = got.iter().copied().filter(|x| x / 10 == n).collect();
        assert_eq!(of_one, [n * 10, n * 10 + 1, n * 10 + 2]);
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    threads.into_iter().for_each(|t| t.join().unwrap());
}

fn bounded_channels() {
    for bound in [0, 1, 2] {
        let (sender, receiver) = mpsc::sync_channel(bound);
        let t = thread::spawn(move || {
            for i in 0..4 {
                sender.send(i).unwrap();
            }
        });
        for i in 0..4 {
            assert_eq!(receiver.recv(), Ok(i));
        }
        assert!(receiver.recv().is_err());
        t.join().unwrap();
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    sender.try_send(1).unwrap();
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    drop(receiver);
    assert_eq!(sender.try_send(3), Err(TrySendError::Disconnected(3)));
    assert!(sender.send(4).is_err());
}

fn recv_timeouts() {
    let (sender, receiver) = mpsc::channel();
    let before = Instant::now();
    assert_eq!(receiver.recv_timeout(MOMENT), Err(RecvTimeoutError::Timeout));
    assert!(before.elapsed() >= MOMENT);
    let t = thread::spawn(move || {
        pause_here();
        sender.send(1).unwrap();
    });
    let before = Instant::now();
    match receiver.recv_timeout(HOUR) {
        Ok(value) => assert_eq!(value, 1),
        Err(error) => assert!(error == RecvTimeoutError::Timeout && before.elapsed() >= HOUR),
    }
    t.join().unwrap();
}

fn park_and_unpark() {
    let main = thread::current();
    let flag = Arc::new(AtomicBool::new(false));
    let theirs = flag.clone();
    let t = thread::spawn(move || {
        pause_here();
        theirs.store(true, SeqCst);
        main.unpark();
    });
    while !flag.load(SeqCst) {
        thread::park();
    }
    t.join().unwrap();
    thread::current().unpark();
    thread::park();
    let before = Instant::now();
    thread::park_timeout(MOMENT);
    // An unpark from above may still be pending.
    thread::park_timeout(MOMENT);
    assert!(before.elapsed() >= MOMENT);
    let sleeper = thread::spawn(thread::park);
    sleeper.thread().unpark();
    sleeper.join().unwrap();
}

fn scopes() {
    let mut numbers = vec![1, 2, 3, 4];
    let sum = thread::scope(|scope| {
        let (left, right) = numbers.split_at_mut(2);
        let a = scope.spawn(move || {
            pause_here();
            left.iter_mut().for_each(|n| *n *= 2);
            left.iter().sum::<i32>()
        });
        scope.spawn(move || right[0] = 0);
        a.join().unwrap()
    });
    assert_eq!((sum, numbers), (6, vec![2, 4, 0, 4]));
    let failed = catch_unwind(|| {
        thread::scope(|scope| {
            scope.spawn(|| panic!("inside"));
        });
    });
    assert!(failed.is_err());
}

fn barriers() {
    let barrier = Barrier::new(3);
    let (arrived, leaders) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 1..=2 {
                    arrived.fetch_add(1, SeqCst);
                    if barrier.wait().is_leader() {
                        leaders.fetch_add(1, SeqCst);
                    }
                    assert!(arrived.load(SeqCst) >= 3 * round);
                }
            });
        }
    });
    assert_eq!(leaders.load(SeqCst), 2);
}

fn panics_are_caught_by_join() {
    let threads: Vec<_> = (0..3)
        .map(|n| {
            thread::spawn(move || {
                pause_here();
                if n != 1 {
                    panic!("number {n}");
                }
                n
            })
        })
        .collect();
    let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
    assert_eq!(*results[1].as_ref().unwrap(), 1);
    for n in [0, 2] {
        let words = results[n].as_ref().unwrap_err().downcast_ref::<String>().unwrap();
        assert_eq!(*words, format!("number {n}"));
    }
    // The panic unwinds through frames with destructors that wait.
    struct Waits<'a>(&'a AtomicUsize);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            assert!(thread::panicking());
            pause_here();
            self.0.fetch_add(1, SeqCst);
        }
    }
    let dropped = AtomicUsize::new(0);
    let result = thread::scope(|scope| {
        let work = || {
            let _a = Waits(&dropped);
            let _b = Waits(&dropped);
            std::panic::resume_unwind(Box::new(7))
        };
        let a = scope.spawn(work);
        let b = scope.spawn(work);
        (a.join().is_err(), b.join().is_err())
    });
    assert_eq!((result, dropped.load(SeqCst)), ((true, true), 4));
    assert!(!thread::panicking());
}

fn names_and_ids() {
    assert_eq!(thread::current().name(), Some("main"));
    let t = Builder::new().name("worker".into()).spawn(|| {
        pause_here();
        assert_eq!(thread::current().name(), Some("worker"));
        let comm = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(comm.starts_with("Name:"));
        thread::current().id()
    });
    let t = t.unwrap();
    assert_eq!(t.thread().name(), Some("worker"));
    let id = t.thread().id();
    assert_eq!(t.join().unwrap(), id);
    assert_ne!(id, thread::current().id());
    thread::spawn(|| assert_eq!(thread::current().name(), None)).join().unwrap();
    assert!(thread::available_parallelism().unwrap().get() >= 1);
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        pause_here();
        DROPPED.fetch_add(self.0.len(), SeqCst);
        // The other variable may still be usable or already be gone, but never half destroyed.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
    }
}

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static NOISY: RefCell<Vec<Noisy>> = const { RefCell::new(Vec::new()) };
    static LAZY: Noisy = Noisy("lazy");
}

fn thread_locals() {
    let work = |n: usize| {
        for i in 0..n {
            COUNT.set(COUNT.get() + 1);
            NOISY.with_borrow_mut(|all| all.push(Noisy("one")));
            pause_here();
            assert_eq!(COUNT.get(), i + 1);
        }
        LAZY.with(|lazy| assert_eq!(lazy.0, "lazy"));
    };
    let (a, b) = (thread::spawn(move || work(1)), thread::spawn(move || work(2)));
    a.join().unwrap();
    b.join().unwrap();
    assert_eq!(COUNT.get(), 0);
    assert_eq!(DROPPED.load(SeqCst), 3 * 3 + 2 * 4);
}

fn stack_sizes() {
    fn deep(n: usize) -> usize {
        let room = std::hint::black_box([n as u8; 4096]);
        if n == 0 { 0 } else { deep(n - 1) + room[17] as usize - n % 256 + 1 }
    }
    let big = Builder::new().stack_size(32 << 20).spawn(|| {
        pause_here();
        deep(4000)
    });
    let small = Builder::new().stack_size(16 << 10).spawn(|| {
        pause_here();
        1
    });
    assert_eq!((big.unwrap().join().unwrap(), small.unwrap().join().unwrap()), (4000, 1));
}

fn time_passes() {
    let (before, system) = (Instant::now(), SystemTime::now());
    thread::sleep(MOMENT);
    assert!(before.elapsed() >= MOMENT && system.elapsed().unwrap() >= MOMENT / 2);
    thread::sleep(Duration::ZERO);
    let later = Instant::now();
    assert!(later >= before && later.duration_since(before) >= MOMENT);
    let until = Instant::now() + MOMENT;
    while Instant::now() < until {
        thread::yield_now();
    }
}

fn arcs() {
    let shared = Arc::new(Noisy("shared"));
    let weak = Arc::downgrade(&shared);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let mine = shared.clone();
            thread::spawn(move || {
                pause_here();
                drop(mine);
            })
        })
        .collect();
    drop(shared);
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert!(weak.upgrade().is_none());
    assert_eq!(DROPPED.load(SeqCst), 6);
}

fn main_returns_while_others_wait() {
    let (_sender, receiver) = mpsc::channel::<()>();
    std::mem::forget(_sender);
    thread::spawn(move || receiver.recv());
    thread::spawn(thread::park);
    pause_here();
}

fn exits_in_a_thread() {
    thread::spawn(|| {
        pause_here();
        std::process::exit(0);
    });
    loop {
        thread::park();
    }
}

fn panics_in_main() {
    pause_here();
    panic!("main gives up");
}

fn unwraps_what_a_thread_panicked() {
    thread::spawn(|| panic!("thread gives up")).join().unwrap();
}

fn aborts() {
    std::process::abort();
}

fn overflows() {
    fn deeper(n: u64) -> u64 {
        let room = std::hint::black_box([n; 64]);
        if n == u64::MAX { 0 } else { deeper(n + 1) + room[7] }
    }
    let t = thread::spawn(|| deeper(0));
    t.join().unwrap();
}

fn main() {
    let cases: &[(&str, fn())] = &[
        ("join_gives_the_result", join_gives_the_result),
        ("mutexes_exclude", mutexes_exclude),
        ("trylock_and_poison", trylock_and_poison),
        ("condvars", condvars),
        ("condvar_timeouts", condvar_timeouts),
        ("rwlocks", rwlocks),
        ("once_and_oncelock", once_and_oncelock),
        ("unbounded_channels", unbounded_channels),
        ("bounded_channels", bounded_channels),
        ("recv_timeouts", recv_timeouts),
        ("park_and_unpark", park_and_unpark),
        ("scopes", scopes),
        ("barriers", barriers),
        ("panics_are_caught_by_join", panics_are_caught_by_join),
        ("names_and_ids", names_and_ids),
        ("thread_locals", thread_locals),
        ("stack_sizes", stack_sizes),
        ("time_passes", time_passes),
        ("arcs", arcs),
        ("main_returns_while_others_wait", main_returns_while_others_wait),
        ("exits_in_a_thread", exits_in_a_thread),
        ("panics_in_main", panics_in_main),
        ("unwraps_what_a_thread_panicked", unwraps_what_a_thread_panicked),
        ("aborts", aborts),
        ("overflows", overflows),
    ];
    match std::env::args().nth(1) {
        None => cases.iter().for_each(|(name, _)| println!("{name}")),
        Some(wanted) => cases.iter().find(|(name, _)| *name == wanted).expect("a case").1(),
    }
}
