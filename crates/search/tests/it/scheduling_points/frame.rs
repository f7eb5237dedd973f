// The common beginning of all generated Rust programs: their locks and flags, and the code that runs the
// threads. It writes the final state to the file that RESULTS names.
use std::ffi::c_void;
use std::fs::OpenOptions;
use std::io::Write;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

static SHARED: Shared = Shared {
    locks: [const { Mutex::new(0) }; 2],
    flags: [const { AtomicU32::new(0) }; 2],
    noted: [const { AtomicU32::new(0) }; 3],
};

struct Shared {
    locks: [Mutex<u32>; 2],
    flags: [AtomicU32; 2],
    noted: [AtomicU32; 3],
}

impl Shared {
    /// Each thread has its own element, so this never conflicts.
    fn note(&self, thread: usize, value: u32) {
        self.noted[thread].store(self.noted[thread].load(SeqCst) * 10 + value, SeqCst);
    }
}

// C library threads, because threads of the standard library count references, and those conflicts are
// irrelevant here.
unsafe extern "C" {
    fn pthread_create(id: *mut usize, how: *const c_void, body: extern "C" fn(usize) -> usize, with: usize) -> i32;
    fn pthread_join(id: usize, result: *mut usize) -> i32;
}

extern "C" fn begin(body: usize) -> usize {
    let body: fn(&Shared) = unsafe { std::mem::transmute(body) };
    body(&SHARED);
    0
}

fn run(bodies: &[fn(&Shared)]) {
    let mut threads = [0; 3];
    for (thread, body) in threads.iter_mut().zip(bodies) {
        assert_eq!(unsafe { pthread_create(thread, null(), begin, *body as usize) }, 0);
    }
    for thread in &threads[..bodies.len()] {
        assert_eq!(unsafe { pthread_join(*thread, null_mut()) }, 0);
    }
    let locks = SHARED.locks.each_ref().map(|lock| *lock.lock().unwrap());
    let line = format!("locks {locks:?} flags {:?} noted {:?}\n", SHARED.flags, SHARED.noted);
    let path = std::env::var("RESULTS").unwrap();
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

