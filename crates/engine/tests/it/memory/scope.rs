// A thread gets a raw pointer to what its creator drops when it believes that the thread is done. With "fixed", it waits.
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

struct Job(*mut [u64; 4]);
// SAFETY: if "fixed", who gets it is done before it is dropped; if not, that is the bug that is wanted.
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
        // SAFETY: from `into_raw`, and dropped once; else as above.
        drop(unsafe { Box::from_raw(pointer) });
    }
    if let Some(worker) = joined {
        worker.join().unwrap();
    }
}
