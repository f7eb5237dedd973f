//! What a search stores: waiting plans, plans that are out, states already explored.

pub(crate) mod hb_cache;
pub(crate) mod ledger;
pub(crate) mod pool;
pub(crate) mod spill;
