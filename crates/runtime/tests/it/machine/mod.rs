//! Tests that a check does no harm to the machine: it sets no clock, signals no foreign process and leaves no
//! process behind. The programs are in `programs/`. Programs that could do harm if Heisen had a bug run in
//! their own namespaces.

mod changes;
mod ends;
mod table;
