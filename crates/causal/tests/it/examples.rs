//! Programs of papers.
