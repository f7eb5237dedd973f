//! The end of patience, told from outside: strategies have no clock, but may be asked to leave the rest of their work for later.

use std::fmt;
use std::sync::Arc;

/// Whether a strategy should put off what it can. What is put off is not lost: it is done at the next call that may.
#[derive(Clone, Default)]
pub struct Halt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Halt {
    /// Asks this function.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Halt {
        Halt(Some(Arc::new(asked)))
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked())
    }
}

impl fmt::Debug for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Halt")
    }
}
