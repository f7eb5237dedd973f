//! Reads of shared memory: each has the value of the last write before it.
//!
//! A read has one literal for each write that it may see. Such a literal implies that the write comes before the read, that
//! no other write comes between, and that both values are equal. Most of these consequences never matter, and there are as
//! many as triples of a read and two writes: of reads with many writes, only those are added that a solution without them
//! violates.

use crate::Formula;
use crate::order::Event;
use crate::sat::Lit;
use crate::term::Term;

/// A write that a read may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// When it happens; `None` for the value that the memory has in the beginning.
    pub event: Option<Event>,
    /// Whether it happens.
    pub guard: Formula,
    /// What is written.
    pub value: Term,
}

/// A write as a read sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub event: Option<Event>,
    pub value: Term,
    /// Implies that the write does not happen.
    pub absent: Lit,
    /// Implies that the read has the value of this write.
    pub seen: Lit,
    /// Whether clauses say that the values are equal.
    pub is_equal: bool,
}

/// A read, and the writes that it may see.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub event: Event,
    pub value: Term,
    pub choices: Vec<Choice>,
}
