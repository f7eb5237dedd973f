// Rust: the last owner of an Arc drops its content, after all accesses of the other owners.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

struct Noisy(AtomicUsize, Vec<usize>);

impl Drop for Noisy {
    fn drop(&mut self) {
        self.1.push(*self.0.get_mut());
    }
}

fn main() {
    let shared = Arc::new(Noisy(AtomicUsize::new(0), vec![1]));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.fetch_add(1, Ordering::Relaxed);
        drop(other);
    });
    shared.0.fetch_add(1, Ordering::Relaxed);
    drop(shared);
    thread.join().unwrap();
}
