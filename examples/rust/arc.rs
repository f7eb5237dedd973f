// A reference counter like that of std's Arc: who lets go of the last reference frees the object.
//
// drop() decrements the counter and then looks at it in a second step, to see whether it was the last. One preemption
// is enough, in between: the other thread decrements, too, finds 0, and frees the object; the first also finds 0. None
// is not, as one after the other they find 1 and 0.
//
// heisen: bug=panic preemptions=1 class=atomicity-violation
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

struct Inner {
    count: AtomicUsize,
    /// Freed memory is marked rather than given back, so that its use is seen.
    freed: AtomicBool,
    value: u32,
}

struct Counted(&'static Inner);

impl Counted {
    fn new(value: u32) -> Counted {
        let inner = Inner { count: AtomicUsize::new(1), freed: AtomicBool::new(false), value };
        Counted(Box::leak(Box::new(inner)))
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        self.0.count.fetch_add(1, SeqCst);
        Counted(self.0)
    }
}

impl Deref for Counted {
    type Target = u32;

    fn deref(&self) -> &u32 {
        assert!(!self.0.freed.load(SeqCst), "used after it was freed");
        &self.0.value
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, SeqCst);
        let last = self.0.count.load(SeqCst) == 0; // preempt here
        if last {
            assert!(!self.0.freed.swap(true, SeqCst), "freed twice");
        }
    }
}

fn main() {
    let mine = Counted::new(42);
    let theirs = mine.clone();
    let other = thread::spawn(move || assert_eq!(*theirs, 42));
    assert_eq!(*mine, 42);
    drop(mine);
    other.join().unwrap();
}
