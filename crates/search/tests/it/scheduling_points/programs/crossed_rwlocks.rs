//! Two threads and two read-write locks: each thread reads one lock and writes the other, in opposite orders.
use std::sync::{Arc, RwLock};
use std::thread;

fn main() {
    let a = Arc::new(RwLock::new(0));
    let b = Arc::new(RwLock::new(0));
    let (a2, b2) = (a.clone(), b.clone());
    let one = thread::spawn(move || {
        let _x = a2.read().unwrap();
        let _y = b2.write().unwrap();
    });
    let other = thread::spawn(move || {
        let _y = b.read().unwrap();
        let _x = a.write().unwrap();
    });
    one.join().unwrap();
    other.join().unwrap();
}
