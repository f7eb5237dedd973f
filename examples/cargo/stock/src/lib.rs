//! A shop that may sell its last item twice.

use std::sync::Mutex;

/// What is left to be sold.
#[derive(Debug)]
pub struct Stock {
    left: Mutex<u32>,
}

impl Stock {
    /// With so many items.
    pub fn new(items: u32) -> Stock {
        Stock { left: Mutex::new(items) }
    }

    /// How many are left.
    pub fn left(&self) -> u32 {
        *self.left.lock().unwrap()
    }

    /// Sells one, if there is one. A bug: another may be sold between the look and the sale.
    pub fn sell(&self) -> bool {
        if self.left() == 0 {
            return false;
        }
        *self.left.lock().unwrap() -= 1;
        true
    }
}
