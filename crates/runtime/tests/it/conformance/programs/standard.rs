//! Cases for the threads and locks of the Rust standard library.

mod results;

use results::{Case, Search, point, say, write};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use std::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, TryLockError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(2);

/// Runs two functions at the same time.
fn both(f: impl FnOnce() + Send, g: impl FnOnce()) {
    thread::scope(|scope| {
        scope.spawn(f);
        point();
        g();
    });
}

fn twice(letter: &str) {
    say(letter);
    point();
    say(letter);
}

fn mutexes_exclude() {
    let mutex = Mutex::new(());
    let work = |letter| {
        let _guard = mutex.lock().unwrap();
        twice(letter);
    };
    both(|| work("A"), || work("B"));
}

fn tries_may_meet() {
    let mutex = Mutex::new(());
    both(
        || {
            let _guard = mutex.lock();
            point();
        },
        || {
            say(match mutex.try_lock() {
                Ok(_) => "taken",
                Err(TryLockError::WouldBlock) => "busy",
                Err(TryLockError::Poisoned(_)) => "poisoned",
            })
        },
    );
}

fn panics_poison() {
    let mutex = Mutex::new(1);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = mutex.lock().unwrap();
                panic!("while locked");
            });
        })
    }));
    say(failed.is_err() as u8);
    say(mutex.is_poisoned() as u8);
    mutex.clear_poison();
    say(*mutex.lock().unwrap());
}

fn condvars_wait() {
    let (ready, changed) = (Mutex::new(false), Condvar::new());
    both(
        || {
            let mut ready = ready.lock().unwrap();
            say('r');
            *ready = true;
            changed.notify_one();
        },
        || {
            let _guard = changed.wait_while(ready.lock().unwrap(), |ready| !*ready).unwrap();
            say('w');
        },
    );
}

fn condvars_in_time_or_not() {
    let (ready, changed) = (Mutex::new(false), Condvar::new());
    both(
        || {
            *ready.lock().unwrap() = true;
            changed.notify_one();
        },
        || {
            let guard = ready.lock().unwrap();
            let (_guard, result) = changed.wait_timeout_while(guard, HOUR, |ready| !*ready).unwrap();
            say(result.timed_out() as u8);
        },
    );
}

fn a_signal_wakes_one() {
    let (state, changed) = (Mutex::new((0, 0)), Condvar::new());
    let wait = |letter: &str| {
        let mut guard = state.lock().unwrap();
        guard.0 += 1;
        while guard.1 == 0 {
            guard = changed.wait(guard).unwrap();
        }
        guard.1 -= 1;
        say(letter);
    };
    thread::scope(|scope| {
        scope.spawn(|| wait("A"));
        scope.spawn(|| wait("B"));
        for _ in 0..2 {
            state.lock().unwrap().1 += 1;
            changed.notify_one();
        }
    });
    say(state.into_inner().unwrap().0);
}

fn rwlocks_share() {
    let lock = RwLock::new(());
    let read = |letter| {
        let _guard = lock.read().unwrap();
        twice(letter);
    };
    both(|| read("A"), || read("B"));
}

fn rwlocks_exclude() {
    let lock = RwLock::new(());
    both(
        || {
            let _guard = lock.read().unwrap();
            twice("A");
        },
        || {
            let _guard = lock.write().unwrap();
            twice("B");
        },
    );
}

fn once_runs_once() {
    static ONCE: Once = Once::new();
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let call = || {
        ONCE.call_once(|| {
            point();
            RUNS.fetch_add(1, SeqCst);
        });
        say(RUNS.load(SeqCst));
    };
    both(call, call);
}

fn cells_are_set_once() {
    let cell = OnceLock::new();
    let set = |letter| {
        let got: &char = cell.get_or_init(|| {
            point();
            letter
        });
        say(got);
    };
    both(|| set('A'), || set('B'));
}

fn lazy_values_are_made_once() {
    static VALUE: LazyLock<u32> = LazyLock::new(|| {
        point();
        say("made ");
        5
    });
    both(|| say(*VALUE), || say(*VALUE));
}

fn one_leads_at_a_barrier() {
    let barrier = Barrier::new(2);
    let leaders = AtomicUsize::new(0);
    let meet = || {
        for _ in 0..2 {
            leaders.fetch_add(barrier.wait().is_leader() as usize, SeqCst);
        }
    };
    both(meet, meet);
    say(leaders.load(SeqCst));
}

fn channels_keep_the_order() {
    let (sender, receiver) = mpsc::channel();
    both(
        move || {
            sender.send('a').unwrap();
            sender.send('b').unwrap();
        },
        || receiver.iter().for_each(say),
    );
}

fn two_send() {
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    thread::scope(|scope| {
        scope.spawn(move || {
            point();
            sender.send('a').unwrap();
        });
        scope.spawn(move || {
            point();
            other.send('b').unwrap();
        });
        receiver.iter().for_each(say);
    });
}

fn a_full_channel_waits() {
    let (sender, receiver) = mpsc::sync_channel(1);
    both(
        move || {
            for letter in ['a', 'b', 'c'] {
                sender.send(letter).unwrap();
            }
        },
        || receiver.iter().for_each(say),
    );
}

fn a_meeting_in_a_channel_of_none() {
    let (sender, receiver) = mpsc::sync_channel(0);
    assert_eq!(sender.try_send('x'), Err(TrySendError::Full('x')));
    both(
        move || {
            sender.send('a').unwrap();
            sender.send('b').unwrap();
        },
        || receiver.iter().for_each(say),
    );
}

fn received_in_time_or_not() {
    let (sender, receiver) = mpsc::channel();
    let keep = sender.clone();
    both(
        move || sender.send('a').unwrap(),
        || match receiver.recv_timeout(HOUR) {
            Ok(letter) => say(letter),
            Err(RecvTimeoutError::Timeout) => say("late"),
            Err(RecvTimeoutError::Disconnected) => say("never"),
        },
    );
    drop(keep);
}

fn tried_too_early() {
    let (sender, receiver) = mpsc::channel();
    both(
        move || {
            point();
            sender.send('a').unwrap();
            point();
        },
        || match receiver.try_recv() {
            Ok(letter) => say(letter),
            Err(TryRecvError::Empty) => say("empty"),
            Err(TryRecvError::Disconnected) => say("gone"),
        },
    );
}

fn senders_notice() {
    let (sender, receiver) = mpsc::channel();
    drop(receiver);
    say(sender.send(1).is_err() as u8);
    let (sender, receiver) = mpsc::channel::<u8>();
    drop(sender);
    say(receiver.recv().is_err() as u8);
    say((receiver.try_recv() == Err(TryRecvError::Disconnected)) as u8);
}

fn unparked_before_or_after() {
    let main = thread::current();
    both(
        move || {
            say('u');
            main.unpark();
        },
        || {
            thread::park();
            say('p');
        },
    );
}

fn a_park_that_ends() {
    let before = Instant::now();
    thread::park_timeout(MOMENT);
    say((before.elapsed() >= MOMENT) as u8);
    thread::current().unpark();
    thread::current().unpark();
    thread::park();
    let before = Instant::now();
    thread::park_timeout(MOMENT);
    say((before.elapsed() >= MOMENT) as u8);
}

fn scopes_wait() {
    let mut numbers = [1, 2, 3];
    thread::scope(|scope| {
        for number in &mut numbers {
            scope.spawn(move || *number *= 2);
        }
    });
    say(numbers.iter().sum::<i32>());
}

fn results_are_joined() {
    let a = thread::spawn(|| {
        point();
        5
    });
    let b = thread::spawn(|| -> i32 { panic!("no result") });
    say(a.join().unwrap());
    say(b.join().unwrap_err().downcast_ref::<&str>().unwrap());
}

fn finished_or_not() {
    let t = thread::spawn(point);
    point();
    say(t.is_finished() as u8);
    t.join().unwrap();
}

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        point();
        say(self.0);
    }
}

thread_local! {
    static NOISY: RefCell<Noisy> = const { RefCell::new(Noisy("new")) };
}

fn variables_of_a_thread_are_dropped_with_it() {
    thread::spawn(|| {
        NOISY.with_borrow_mut(|noisy| noisy.0 = "A");
        say('s');
    })
    .join()
    .unwrap();
    say('j');
}

fn dropped_in_any_order() {
    let work = |letter| move || NOISY.with_borrow_mut(|noisy| noisy.0 = letter);
    let (a, b) = (thread::spawn(work("A")), thread::spawn(work("B")));
    a.join().unwrap();
    b.join().unwrap();
}

fn the_last_one_drops() {
    let shared = Arc::new(Noisy("dropped"));
    let other = shared.clone();
    both(move || drop(other), move || drop(shared));
}

fn names() {
    let t = Builder::new().name("worker".into()).stack_size(1 << 20).spawn(|| {
        point();
        say(thread::current().name().unwrap());
    });
    t.unwrap().join().unwrap();
    say(thread::current().name().unwrap());
}

fn sleeps_last() {
    let before = Instant::now();
    thread::sleep(MOMENT);
    say((before.elapsed() >= MOMENT) as u8);
}

fn exits_in_a_thread() {
    thread::spawn(|| {
        say('x');
        write();
        std::process::exit(0);
    });
    loop {
        thread::park();
    }
}

fn main() {
    use Search::{All, Samples};
    results::main(&[
        Case("mutexes_exclude", All, &["AABB", "BBAA"], mutexes_exclude),
        Case("tries_may_meet", All, &["taken", "busy"], tries_may_meet),
        Case("panics_poison", All, &["111"], panics_poison),
        Case("condvars_wait", All, &["rw"], condvars_wait),
        Case("condvars_in_time_or_not", All, &["0", "1"], condvars_in_time_or_not),
        Case("a_signal_wakes_one", Samples(200), &["AB2", "BA2"], a_signal_wakes_one),
        Case("rwlocks_share", All, &["AABB", "BBAA", "ABAB", "ABBA", "BABA", "BAAB"], rwlocks_share),
        Case("rwlocks_exclude", All, &["AABB", "BBAA"], rwlocks_exclude),
        Case("once_runs_once", All, &["11"], once_runs_once),
        Case("cells_are_set_once", All, &["AA", "BB"], cells_are_set_once),
        Case("lazy_values_are_made_once", All, &["made 55"], lazy_values_are_made_once),
        Case("one_leads_at_a_barrier", All, &["2"], one_leads_at_a_barrier),
        Case("channels_keep_the_order", All, &["ab"], channels_keep_the_order),
        Case("two_send", Samples(200), &["ab", "ba"], two_send),
        Case("a_full_channel_waits", All, &["abc"], a_full_channel_waits),
        Case("a_meeting_in_a_channel_of_none", All, &["ab"], a_meeting_in_a_channel_of_none),
        Case("received_in_time_or_not", All, &["a", "late"], received_in_time_or_not),
        Case("tried_too_early", All, &["a", "empty"], tried_too_early),
        Case("senders_notice", All, &["111"], senders_notice),
        Case("unparked_before_or_after", All, &["up"], unparked_before_or_after),
        Case("a_park_that_ends", All, &["11"], a_park_that_ends),
        Case("scopes_wait", Samples(50), &["12"], scopes_wait),
        Case("results_are_joined", All, &["5no result"], results_are_joined),
        Case("finished_or_not", All, &["0", "1"], finished_or_not),
        Case(
            "variables_of_a_thread_are_dropped_with_it",
            All,
            &["sAj"],
            variables_of_a_thread_are_dropped_with_it,
        ),
        Case("dropped_in_any_order", All, &["AB", "BA"], dropped_in_any_order),
        Case("the_last_one_drops", All, &["dropped"], the_last_one_drops),
        Case("names", All, &["workermain"], names),
        Case("sleeps_last", All, &["1"], sleeps_last),
        Case("exits_in_a_thread", All, &["x"], exits_in_a_thread),
    ]);
}
