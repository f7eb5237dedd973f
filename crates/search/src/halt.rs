//! Lets the caller interrupt a strategy whose own work takes long. Strategies have no clock.

use std::fmt;
use std::sync::Arc;

/// Says whether a strategy should put off its work. It does the work at the next call that does not ask for a
/// halt.
#[derive(Clone, Default)]
pub struct Halt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Halt {
    /// Calls this function to find out.
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
