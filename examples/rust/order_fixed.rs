// order.rs put right: each half is kept with its position, and main sorts by that.
//
// heisen: clean
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let halves = Arc::new(Mutex::new(Vec::new()));
    let (done, all_done) = mpsc::channel();

    let workers: Vec<_> = ["heis", "enbug"]
        .into_iter()
        .enumerate()
        .map(|(position, half)| {
            let halves = Arc::clone(&halves);
            let done = done.clone();
            thread::spawn(move || {
                halves.lock().unwrap().push((position, half.to_uppercase()));
                done.send(()).unwrap();
            })
        })
        .collect();

    for _ in &workers {
        all_done.recv().unwrap();
    }
    let mut halves = halves.lock().unwrap();
    halves.sort();
    let text: String = halves.iter().map(|(_, half)| half.as_str()).collect();
    assert_eq!(text, "HEISENBUG");

    for worker in workers {
        worker.join().unwrap();
    }
}
