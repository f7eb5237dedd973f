//! A limit on requests in flight. The Rust tutorial (docs/tutorial/rust.md) finds its bug.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Lets at most `limit` requests in at a time.
pub struct Limiter {
    limit: usize,
    in_flight: AtomicUsize,
}

impl Limiter {
    pub fn new(limit: usize) -> Limiter {
        Limiter { limit, in_flight: AtomicUsize::new(0) }
    }

    /// Lets a request in, unless the limit is reached.
    pub fn enter(&self) -> bool {
        if self.in_flight.load(Ordering::SeqCst) >= self.limit {
            return false;
        }
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        true
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let limiter = Limiter::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| limiter.enter());
            limiter.enter();
        });
        assert_eq!(limiter.in_flight(), 1);
    }
}
