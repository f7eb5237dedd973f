// A ring for one producer and one consumer, with two counters that only ever grow: that many were put in, that many
// were taken out.
//
// push() is off by one when it looks whether there is room, so it puts a third item into a ring for two, over the
// first. No preemption is needed: the consumer need only come late. Under any schedule where it keeps up, nothing is
// wrong.
//
// heisen: bug=panic preemptions=0 class=order-violation
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::thread;

const SIZE: usize = 2;
const ITEMS: u32 = 3;

struct Ring {
    slots: [UnsafeCell<u32>; SIZE],
    put: AtomicUsize,
    taken: AtomicUsize,
}

// A slot is the producer's until it is counted as put in, and the consumer's until it is counted as taken out.
unsafe impl Sync for Ring {}

impl Ring {
    fn push(&self, item: u32) -> bool {
        let put = self.put.load(Relaxed);
        if put - self.taken.load(Acquire) > SIZE {
            return false;
        }
        // SAFETY: there is room, so the consumer is done with this slot.
        unsafe { *self.slots[put % SIZE].get() = item };
        self.put.store(put + 1, Release);
        true
    }

    fn pop(&self) -> Option<u32> {
        let taken = self.taken.load(Relaxed);
        if self.put.load(Acquire) == taken {
            return None;
        }
        // SAFETY: it was put in, and the producer does not touch it before it is taken out.
        let item = unsafe { *self.slots[taken % SIZE].get() };
        self.taken.store(taken + 1, Release);
        Some(item)
    }
}

static RING: Ring = Ring {
    slots: [const { UnsafeCell::new(0) }; SIZE],
    put: AtomicUsize::new(0),
    taken: AtomicUsize::new(0),
};

fn main() {
    let producer = thread::spawn(|| {
        for item in 0..ITEMS {
            while !RING.push(item) {
                thread::yield_now();
            }
        }
    });
    let consumer = thread::spawn(|| {
        for expected in 0..ITEMS {
            let item = loop {
                if let Some(item) = RING.pop() {
                    break item;
                }
                thread::yield_now();
            };
            assert_eq!(item, expected);
        }
    });
    producer.join().unwrap();
    consumer.join().unwrap();
}
