// A thread uses a raw pointer to data that its creator drops too early. With "fixed", it waits first.
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

struct Job(*mut [u64; 4]);
// SAFETY: with "fixed", the user of the pointer is done before the drop. Without, the bug is intended.
unsafe impl Send for Job {}

fn main() {
    let fixed = std::env::args().nth(1).as_deref() == Some("fixed");
    let job = Job(Box::into_raw(Box::new([1, 2, 3, 4])));
    let started = Arc::new(AtomicBool::new(false));
    let pointer = job.0;
    let worker = {
        let started = started.clone();
        std::thread::spawn(move || {
            let job = job;
            started.store(true, SeqCst);
            // SAFETY: as above.
            unsafe { (*job.0)[2] += 1 };
        })
    };
    let mut joined = None;
    if fixed {
        worker.join().unwrap();
    } else {
        joined = Some(worker);
    }
    if started.load(SeqCst) {
        // SAFETY: the pointer is from `into_raw` and dropped once; else as above.
        drop(unsafe { Box::from_raw(pointer) });
    }
    if let Some(worker) = joined {
        worker.join().unwrap();
    }
}
