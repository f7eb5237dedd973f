//! Reproduces published bugs of old crate versions. The tests are ordinary ones: with `cargo test` they
//! nearly always pass, with the old versions and with the fixed ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// RUSTSEC-2025-0024: two threads send the first messages while the receiver is dropped; a block is freed
/// twice.
#[test]
fn crossbeam_channel() {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let producers = [sender.clone(), sender].map(|sender| thread::spawn(move || sender.send(1).is_ok()));
    drop(receiver);
    for producer in producers {
        producer.join().unwrap();
    }
}

/// Issue 78 of flume: the only sender sends a message and is dropped; the receiver notices only the drop.
#[test]
fn flume() {
    let (first_sender, first) = flume::bounded(1);
    let (second_sender, second) = flume::bounded(1);
    let producer = thread::spawn(move || {
        first_sender.send(1).unwrap();
        second_sender.send(2).unwrap();
    });
    let both = futures_lite::future::zip(first.recv_async(), second.recv_async());
    assert_eq!(futures_lite::future::block_on(both), (Ok(1), Ok(2)));
    producer.join().unwrap();
}

/// RUSTSEC-2020-0017: one thread drops the last reference to a value while another thread takes a new one.
#[test]
fn internment() {
    use internment::ArcIntern;

    let name = ArcIntern::new(String::from("name"));
    let other = thread::spawn(|| {
        let name = ArcIntern::new(String::from("name"));
        assert_eq!(*name, "name");
    });
    drop(name);
    other.join().unwrap();
}

/// RUSTSEC-2023-0031: one thread fails to initialise a value that another thread waits for.
#[test]
fn spin() {
    let once = Arc::new(spin::Once::new());
    let attempts = Arc::new(AtomicUsize::new(0));
    let initialise = {
        let once = Arc::clone(&once);
        let attempts = Arc::clone(&attempts);
        move || {
            let first = |attempt| if attempt == 0 { Err("not yet") } else { Ok(5) };
            once.try_call_once(|| first(attempts.fetch_add(1, Relaxed))).copied()
        }
    };
    let other = thread::spawn(initialise.clone());
    let results = [initialise(), other.join().unwrap()];
    assert!(results.contains(&Ok(5)) && results.contains(&Err("not yet")), "{results:?}");
}

/// RUSTSEC-2022-0006: a thread sees that another thread has a value, but not the value. This is a data race
/// without a visible effect on this machine.
#[test]
fn thread_local() {
    let values = Arc::new(thread_local::ThreadLocal::with_capacity(0));
    let other = thread::spawn({
        let values = Arc::clone(&values);
        move || {
            values.get_or(|| 1);
        }
    });
    assert!(values.iter().all(|value| *value == 1));
    other.join().unwrap();
}

/// RUSTSEC-2021-0124: the receiver closes the channel and checks for a message while one is being sent.
#[test]
fn tokio() {
    let (sender, mut receiver) = tokio::sync::oneshot::channel();
    let producer = thread::spawn(move || sender.send(Box::new(1)).is_ok());
    receiver.close();
    let received = receiver.try_recv().is_ok();
    assert_eq!(producer.join().unwrap(), received);
}
