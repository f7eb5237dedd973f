//! Deadlocks of the standard library's locks, which do not record their owners, and a lost wake-up.

use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread;

fn locks_crosswise() {
    let (a, b) = (Arc::new(RwLock::new(0)), Arc::new(RwLock::new(0)));
    let (a2, b2) = (a.clone(), b.clone());
    let other = thread::spawn(move || {
        let b = b2.read().unwrap();
        *a2.write().unwrap() += *b;
    });
    {
        let a = a.read().unwrap();
        *b.write().unwrap() += *a;
    }
    other.join().unwrap();
}

fn wake_up_before_the_wait() {
    let shared = Arc::new((Mutex::new(()), Condvar::new()));
    let other = shared.clone();
    let waker = thread::spawn(move || other.1.notify_one());
    let guard = shared.0.lock().unwrap();
    drop(shared.1.wait(guard).unwrap());
    waker.join().unwrap();
}

fn nobody_wakes() {
    let (mutex, condition) = (Mutex::new(()), Condvar::new());
    drop(condition.wait(mutex.lock().unwrap()).unwrap());
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("locks_crosswise") => locks_crosswise(),
        Some("wake_up_before_the_wait") => wake_up_before_the_wait(),
        Some("nobody_wakes") => nobody_wakes(),
        _ => {}
    }
}
