//! Expressions: nodes, and the memory that holds them.
