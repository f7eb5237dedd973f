//! A check does no harm to the machine: it sets no clock, signals no process of others, and leaves none behind. The programs lie in
//! `programs/`. Those that could do harm if Heisen let them run in namespaces of their own.

mod changes;
mod ends;
mod table;
