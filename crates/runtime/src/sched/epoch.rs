//! Epochs: when a thread did something, and to which of 8 bytes, in one word. The idea is FastTrack's
//! (PLDI'09).
//!
//! ```text
//! 62            31 30   29        16 15      8 7       0
//! [ clock        ] [node] [ thread   ] [ older ] [ bytes ]
//! ```
//!
//! A granule may remember two accesses of the same kind by one thread: the last one, and an older one to
//! other bytes. The older epoch is stored elsewhere, and its bytes are in the word of the last one. So a
//! thread that repeatedly goes through memory in steps of less than 8 bytes is not a special case.

/// The lowest bits of the parts.
const OLDER: u32 = 8;
const THREAD: u32 = 16;
const CLOCK: u32 = 31;
/// The bit of a word that is not an epoch but refers to a node; see `memory::race::shadow`.
pub const NODE: u64 = 1 << 30;
/// The bits that all accesses of one epoch have in common.
pub const SAME: u64 = !0xffff;

const _: () = assert!(heisen_wire::MAX_THREADS == 1 << (30 - THREAD));

/// A clock value, a thread and the bytes of an access; or no access at all ([`Epoch::NONE`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    pub const NONE: Epoch = Epoch(0);

    pub fn new(clock: u32, thread: usize) -> Epoch {
        Epoch(u64::from(clock) << CLOCK | (thread as u64) << THREAD)
    }

    #[inline(always)]
    pub fn bytes(self) -> u8 {
        self.0 as u8
    }

    /// The same epoch with other bytes and no older ones; [`Epoch::NONE`] if `bytes` is 0.
    #[inline(always)]
    pub fn with_bytes(self, bytes: u8) -> Epoch {
        if bytes == 0 { Epoch::NONE } else { Epoch(self.0 & SAME | u64::from(bytes)) }
    }

    /// The bytes of an older access.
    #[inline(always)]
    pub fn older_bytes(self) -> u8 {
        (self.0 >> OLDER) as u8
    }

    /// The same epoch with these bytes of an older access.
    #[inline(always)]
    pub fn with_older_bytes(self, bytes: u8) -> Epoch {
        Epoch(self.0 & !(0xff << OLDER) | u64::from(bytes) << OLDER)
    }

    #[inline(always)]
    pub fn thread(self) -> usize {
        (self.0 >> THREAD) as usize & (heisen_wire::MAX_THREADS - 1)
    }

    #[inline(always)]
    pub fn clock(self) -> u32 {
        (self.0 >> CLOCK) as u32
    }

    /// Whether both have the same thread and clock.
    #[inline(always)]
    pub fn same(self, other: Epoch) -> bool {
        (self.0 ^ other.0) & SAME == 0
    }
}
