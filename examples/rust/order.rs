// Two workers each convert one half of a text and add it to a shared list; main waits for two messages on a channel and
// joins the halves.
//
// main takes the list to be in the order in which the workers were spawned, but it is in the order in which they
// finished.
//
// No preemption is needed. main blocks in its first recv(), and of the two workers either may then be chosen for free:
// if it is the second, the halves come out the wrong way round. Nor need the lock be contended, so it does not matter
// that an uncontended Mutex makes no call that could be a scheduling point.
//
// heisen: bug=panic preemptions=0 class=order-violation
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let halves = Arc::new(Mutex::new(Vec::new()));
    let (done, all_done) = mpsc::channel();

    let workers: Vec<_> = ["heis", "enbug"]
        .into_iter()
        .map(|half| {
            let halves = Arc::clone(&halves);
            let done = done.clone();
            thread::spawn(move || {
                halves.lock().unwrap().push(half.to_uppercase());
                done.send(()).unwrap();
            })
        })
        .collect();

    for _ in &workers {
        all_done.recv().unwrap();
    }
    assert_eq!(halves.lock().unwrap().concat(), "HEISENBUG");

    for worker in workers {
        worker.join().unwrap();
    }
}
