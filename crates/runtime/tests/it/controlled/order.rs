// Creates threads in the order of a hash map, which Rust seeds with random bytes. The threads differ, so
// another order is another execution.
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

fn main() {
    let fails = std::env::args().nth(1).is_some();
    let map: HashMap<usize, &str> = [(0, "zero"), (1, "one"), (2, "two")].into();
    let order: Vec<usize> = map.keys().copied().collect();
    println!("{order:?} {}", std::process::id());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let start = |number: usize| {
        let seen = seen.clone();
        std::thread::spawn(move || {
            for _ in 0..number {
                std::thread::yield_now();
            }
            seen.lock().unwrap().push(number);
        })
    };
    let threads: Vec<_> = order.iter().copied().map(start).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let seen = seen.lock().unwrap();
    println!("{seen:?}");
    if fails && seen[..] == [2, 1, 0] {
        panic!("{seen:?} of {map:?}");
    }
}
