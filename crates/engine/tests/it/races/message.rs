// Rust: a message that a flag announces, with and without the memory orders that it needs.
// race: write data | read data_seen
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct Slot(UnsafeCell<u64>);
// SAFETY: in the clean version a flag orders all accesses. The other version has an intended race.
unsafe impl Sync for Slot {}

static DATA: Slot = Slot(UnsafeCell::new(0));
static FLAG: AtomicBool = AtomicBool::new(false);

#[cfg(clean)]
const ORDERS: (Ordering, Ordering) = (Ordering::Release, Ordering::Acquire);
#[cfg(not(clean))]
const ORDERS: (Ordering, Ordering) = (Ordering::Relaxed, Ordering::Relaxed);

fn main() {
    let thread = thread::spawn(|| {
        // SAFETY: as above.
        unsafe { *DATA.0.get() = 1 }; // @data
        FLAG.store(true, ORDERS.0);
    });
    if FLAG.load(ORDERS.1) {
        // SAFETY: as above.
        let seen = unsafe { *DATA.0.get() }; // @data_seen
        assert_eq!(seen, 1);
    }
    thread.join().unwrap();
}
