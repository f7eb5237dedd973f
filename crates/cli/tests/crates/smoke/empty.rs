//! A package needs one.
