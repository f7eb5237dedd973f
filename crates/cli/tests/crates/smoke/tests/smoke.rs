//! Tests the main operations of each crate with two threads. The tests are ordinary ones: `cargo test` runs
//! them, too.

use std::sync::Arc;
use std::thread;

#[test]
fn std_mpsc() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let producer = thread::spawn(move || {
        sender.send(1).unwrap();
        sender.send(2).unwrap();
    });
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(receiver.recv(), Ok(2));
    assert!(receiver.recv().is_err());
    producer.join().unwrap();
}

#[test]
fn crossbeam_channel() {
    let (sender, receiver) = crossbeam_channel::bounded(1);
    let producer = thread::spawn(move || sender.send(1).unwrap());
    assert_eq!(receiver.recv(), Ok(1));
    assert!(receiver.recv().is_err());
    producer.join().unwrap();
}

#[test]
fn crossbeam_deque() {
    use crossbeam_deque::{Steal, Worker};

    let worker = Worker::new_fifo();
    worker.push(Box::new(1));
    worker.push(Box::new(2));
    let stealer = worker.stealer();
    let thief = thread::spawn(move || match stealer.steal() {
        Steal::Success(task) => *task,
        Steal::Empty | Steal::Retry => 0,
    });
    let mut sum = 0;
    while let Some(task) = worker.pop() {
        sum += *task;
    }
    assert_eq!(sum + thief.join().unwrap(), 3);
}

#[test]
fn crossbeam_epoch() {
    use crossbeam_epoch::{Atomic, Owned, pin};
    use std::sync::atomic::Ordering::{AcqRel, Acquire};

    let shared = Arc::new(Atomic::new(1));
    let writer = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            let guard = pin();
            let old = shared.swap(Owned::new(2), AcqRel, &guard);
            // SAFETY: no thread can reach the old value any more.
            unsafe { guard.defer_destroy(old) };
            guard.flush();
        }
    });
    {
        let guard = pin();
        // SAFETY: the pointer is never null, and the value lives as long as the guard.
        let value = unsafe { *shared.load(Acquire, &guard).deref() };
        assert!(value == 1 || value == 2);
    }
    writer.join().unwrap();
    // SAFETY: no other thread is left.
    drop(unsafe { Arc::into_inner(shared).unwrap().into_owned() });
}

#[test]
fn parking_lot() {
    use parking_lot::{Condvar, Mutex};

    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            *shared.0.lock() += 1;
            shared.1.notify_one();
        }
    });
    let mut count = shared.0.lock();
    while *count == 0 {
        shared.1.wait(&mut count);
    }
    assert_eq!(*count, 1);
    drop(count);
    other.join().unwrap();
}

#[test]
fn dashmap() {
    let map = Arc::new(dashmap::DashMap::with_shard_amount(2));
    let other = thread::spawn({
        let map = Arc::clone(&map);
        move || {
            *map.entry(1).or_insert(0) += 1;
            map.insert(2, 2);
        }
    });
    *map.entry(1).or_insert(0) += 1;
    assert!(map.remove(&2).is_none_or(|(_, value)| value == 2));
    other.join().unwrap();
    assert_eq!(*map.get(&1).unwrap(), 2);
}

#[test]
fn flume() {
    let (sender, receiver) = flume::bounded(1);
    let producer = thread::spawn(move || {
        sender.send(1).unwrap();
        sender.send(2).unwrap();
    });
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(receiver.recv(), Ok(2));
    assert!(receiver.recv().is_err());
    producer.join().unwrap();
}

#[test]
fn once_cell() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    let cell = Arc::new(once_cell::sync::OnceCell::new());
    let calls = Arc::new(AtomicUsize::new(0));
    let initialise = {
        let cell = Arc::clone(&cell);
        let calls = Arc::clone(&calls);
        move || {
            *cell.get_or_init(|| {
                calls.fetch_add(1, Relaxed);
                Box::new(5)
            })
            .as_ref()
        }
    };
    let other = thread::spawn(initialise.clone());
    assert_eq!(initialise(), 5);
    assert_eq!(other.join().unwrap(), 5);
    assert_eq!(calls.load(Relaxed), 1);
}

#[test]
fn arc_swap() {
    let shared = Arc::new(arc_swap::ArcSwap::from_pointee(1));
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || shared.store(Arc::new(2))
    });
    let value = **shared.load();
    assert!(value == 1 || value == 2);
    other.join().unwrap();
    assert_eq!(**shared.load(), 2);
}

#[test]
fn rayon() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let (left, right) = pool.install(|| rayon::join(|| 1, || 2));
    assert_eq!((left, right), (1, 2));
}

#[test]
fn tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sum = runtime.block_on(async {
        let task = tokio::spawn(async move { receiver.await.unwrap() + 1 });
        tokio::spawn(async move { sender.send(1).unwrap() });
        task.await.unwrap()
    });
    assert_eq!(sum, 2);
}

#[test]
fn async_channel() {
    let (sender, receiver) = async_channel::bounded(1);
    let producer = thread::spawn(move || sender.send_blocking(1).unwrap());
    assert_eq!(receiver.recv_blocking(), Ok(1));
    assert!(receiver.recv_blocking().is_err());
    producer.join().unwrap();
}

#[test]
fn event_listener() {
    use event_listener::{Event, Listener, listener};
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    let shared = Arc::new((AtomicBool::new(false), Event::new()));
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            shared.0.store(true, SeqCst);
            shared.1.notify(1);
        }
    });
    while !shared.0.load(SeqCst) {
        listener!(shared.1 => listener);
        if shared.0.load(SeqCst) {
            break;
        }
        listener.wait();
    }
    other.join().unwrap();
}
