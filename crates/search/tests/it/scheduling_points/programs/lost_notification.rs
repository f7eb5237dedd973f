//! A notification without the mutex is lost if it comes between the waiter's read of the flag and its wait.
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

fn main() {
    let shared = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
    let waiter = shared.clone();
    let thread = thread::spawn(move || {
        let mut guard = waiter.0.lock().unwrap();
        while !waiter.2.load(SeqCst) {
            guard = waiter.1.wait(guard).unwrap();
        }
    });
    shared.2.store(true, SeqCst);
    shared.1.notify_one();
    thread.join().unwrap();
}
