//! Two threads lock two mutexes in opposite orders. No other access conflicts.
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let a = Arc::new(Mutex::new(0));
    let b = Arc::new(Mutex::new(0));
    let (a2, b2) = (a.clone(), b.clone());
    let one = thread::spawn(move || {
        let _x = a2.lock().unwrap();
        let _y = b2.lock().unwrap();
    });
    let other = thread::spawn(move || {
        let _y = b.lock().unwrap();
        let _x = a.lock().unwrap();
    });
    one.join().unwrap();
    other.join().unwrap();
}
