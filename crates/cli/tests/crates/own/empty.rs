//! An empty library, because a package needs at least one target.
