// Rust: a race that `unsafe` allows, and the synchronisation in std, which orders threads.
// race: read count | write count
// race: write count | write count
use std::sync::{Arc, Mutex};
use std::thread;

#[cfg(not(clean))]
static mut COUNTER: u32 = 0;

fn main() {
    let lock = Arc::new(Mutex::new(0u32));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let lock = lock.clone();
            thread::spawn(move || {
                *lock.lock().unwrap() += 1;
                // SAFETY: none; the race is intended.
                #[cfg(not(clean))]
                unsafe {
                    COUNTER += 1; // @count
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*lock.lock().unwrap(), 2);
}
