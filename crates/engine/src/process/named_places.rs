//! Names places in the code of a parked program, for what a symbolic trace says of them.

use heisen_inspect::{Symbols, View};
use heisen_trace::Stack;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The names of functions of one parked program, as far as anybody has asked.
#[derive(Debug, Default)]
pub(crate) struct NamedPlaces {
    functions: Mutex<HashMap<u64, Option<String>>>,
}

impl NamedPlaces {
    /// The name of the function that begins at an address, in the process of the parked program.
    pub(crate) fn function(&self, parked: i32, address: u64) -> Option<String> {
        let mut known = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let name = known.entry(address).or_insert_with(|| {
            let mut symbols = Symbols::new();
            View::new(&mut symbols, parked).ok()?.symbol_at(address)
        });
        name.clone()
    }
}

/// The function and line of the code before an address.
pub(crate) fn place(parked: i32, pc: u64) -> String {
    let mut symbols = Symbols::new();
    let stack = View::new(&mut symbols, parked).map(|mut view| Stack(view.frame_at(pc, true)));
    let place = stack.ok().and_then(|stack| {
        let frame = stack.place()?;
        Some(format!("{} ({})", frame.place(), frame.function))
    });
    place.unwrap_or_else(|| format!("{pc:#x}"))
}
