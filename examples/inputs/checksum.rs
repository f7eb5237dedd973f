//! A message is checked by its sum, and a part of it is used as a number of a slot. The sum does not say that the number is
//! small enough, so some message writes beyond the slots.
//!
//! RUSTC="rustc --extern heisen=libheisen.rlib" heisen check --inputs checksum.rs

const SLOTS: usize = 16;

fn accept(message: [u8; 4], key: u16, slots: &mut [u8; SLOTS]) {
    let sum: u16 = message.iter().map(|&byte| u16::from(byte)).sum();
    if sum != key || message[0] != b'M' {
        return;
    }
    let slot = usize::from(message[1]);
    if slot > SLOTS {
        return;
    }
    // It must be less: the number of slots itself is too large.
    if slot == SLOTS {
        std::process::abort();
    }
    slots[slot] = message[2];
}

fn main() {
    let message = heisen::input_or("message", *b"M\x01ab");
    let key = heisen::input::<u16>("key");
    let trusted = heisen::input::<bool>("trusted");
    heisen::assume(key > 300 && trusted);
    accept(message, key, &mut [0; SLOTS]);
}
