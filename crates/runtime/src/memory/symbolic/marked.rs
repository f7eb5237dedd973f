//! Bytes from outside that are inputs (`--input`): of standard input, of arguments and of files.
//!
//! The main thread reads all of them when an execution begins, as inputs of 8 bits, into memory of the runtime. Their
//! values then take the place of the real bytes: in the memory of an argument, and in a file in memory that stands for
//! standard input or for the file that the program opens. So whatever way the program reads them, it gets these values;
//! and where it reads them by a function that the shim knows, the expressions are copied as well. A byte that is read
//! twice, or by several threads, is one input.
//!
//! A descriptor has a position, which the trace does not show. One thread alone decides where it is; if several threads
//! use descriptors, the trace counts that as a loss.

use super::traffic::Access;
use super::{block_traffic, callbacks::FRAME, inputs, is_on, terms};
use crate::memory::tsan::{Part, touch};
use crate::platform::baton::Guarded;
use crate::platform::program_memory;
use crate::platform::sys::{self, Piece};
use crate::sched::access_mode::MODE;
use crate::sched::me;
use crate::wire_log::symbolic_log::{self, count, header};
use core::cell::Cell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use heisen_trace::ValueOp;
use heisen_wire::symbolic::{MAX_MARKED, MAX_MARKED_BYTES, Marked, kind, reason, source};

/// The beginning of the names of the files in memory that stand for sources; the number of the source follows.
const NAME: &[u8; 13] = b"heisen-input-";
/// What the kernel puts before the name of such a file.
const PREFIX: &[u8] = b"/memfd:";
/// Room for a name with its number, and with the kernel's prefix.
const LINK: usize = 32;

/// What is known of a source.
struct Source {
    /// Where its bytes begin in [`CONTENT`].
    start: Cell<usize>,
    bytes: Cell<usize>,
    /// The device and the number of the file.
    file: Cell<Option<[u64; 2]>>,
}

struct Sources {
    /// The number of arguments and the address of their array.
    arguments: Cell<(usize, usize)>,
    /// How many sources there are.
    count: Cell<usize>,
    all: [Source; MAX_MARKED],
    /// The first thread that has used a descriptor, plus 1.
    user: Cell<usize>,
}

static SOURCES: Guarded<Sources> = Guarded::new(Sources {
    arguments: Cell::new((0, 0)),
    count: Cell::new(0),
    all: [const { Source { start: Cell::new(0), bytes: Cell::new(0), file: Cell::new(None) } }; MAX_MARKED],
    user: Cell::new(0),
});

/// The bytes of all sources. Each source begins at a multiple of 8, so that no granule belongs to two.
#[repr(align(8))]
struct Content([Cell<u8>; MAX_MARKED_BYTES + 8 * MAX_MARKED]);

static CONTENT: Guarded<Content> =
    Guarded::new(Content([const { Cell::new(0) }; MAX_MARKED_BYTES + 8 * MAX_MARKED]));

/// The program has these arguments.
pub fn arguments(number: usize, array: usize) {
    SOURCES.arguments.set((number, array));
}

/// The sources, as the engine lists them.
fn listed() -> &'static [Marked] {
    if !symbolic_log::is_attached() {
        return &[];
    }
    let count = header().marked_count.load(Relaxed) as usize;
    &header().marked[..count.min(MAX_MARKED)]
}

/// Whether bytes from outside are inputs.
pub fn is_wanted() -> bool {
    !listed().is_empty()
}

/// The address of a byte of a source.
fn content(of: &Source, index: usize) -> usize {
    core::ptr::from_ref(&CONTENT.0[of.start.get() + index]) as usize
}

/// A name or a path among the texts of the engine.
fn text(at: u32, length: usize) -> &'static [u8] {
    let texts: &[AtomicU8] = header().marked_text.get(at as usize..).unwrap_or_default();
    let length = length.min(texts.len());
    // SAFETY: the engine has written them before the program started, and changes them no more.
    unsafe { core::slice::from_raw_parts(texts.as_ptr().cast(), length) }
}

/// An execution begins: the main thread reads the inputs, and their values take their places.
pub fn begin() {
    SOURCES.user.set(0);
    SOURCES.count.set(listed().len());
    let mut start = 0;
    for (number, mark) in listed().iter().enumerate() {
        let of = &SOURCES.all[number];
        of.start.set(start);
        of.bytes.set((mark.bytes.load(Relaxed) as usize).min(MAX_MARKED_BYTES.saturating_sub(start)));
        start += of.bytes.get().next_multiple_of(8);
        let (kind, index) = (mark.source.load(Relaxed), mark.index.load(Relaxed) as usize);
        take_defaults(of, kind, index, mark);
        let name = text(mark.name.load(Relaxed), mark.name_length.load(Relaxed) as usize);
        for index in 0..of.bytes.get() {
            inputs::read_byte(content(of, index), name, index as u32);
        }
        match kind {
            source::STDIN => stand_in(0, number),
            source::ARGUMENT => {
                let (at, from, bytes) = (argument(index), content(of, 0), of.bytes.get());
                if at != 0 && bytes > 0 {
                    // SAFETY: the engine has marked as many bytes as the argument has.
                    unsafe { core::ptr::copy_nonoverlapping(from as *const u8, at as *mut u8, bytes) };
                    super::moved(at, from, bytes, 0);
                }
            }
            _ => {}
        }
    }
}

/// The address of an argument; 0 if there is none.
fn argument(index: usize) -> usize {
    let (number, array) = SOURCES.arguments.get();
    // SAFETY: the C library passes that many arguments.
    if index < number { unsafe { *(array as *const usize).add(index) } } else { 0 }
}

/// Fills in the bytes that a source has.
fn take_defaults(of: &Source, kind: u32, index: usize, mark: &Marked) {
    let (at, bytes) = (content(of, 0), of.bytes.get());
    match kind {
        source::STDIN => {
            sys::read_at(0, at, bytes, 0);
        }
        source::ARGUMENT => {
            let from = argument(index);
            if from != 0 && bytes > 0 {
                // SAFETY: as in `begin`.
                unsafe { core::ptr::copy_nonoverlapping(from as *const u8, at as *mut u8, bytes) };
            }
        }
        _ => {
            let path = text(mark.path.load(Relaxed), usize::MAX);
            let fd = CStr::from_bytes_until_nul(path).map_or(-1, sys::open_to_read);
            of.file.set(sys::file_identity(fd));
            sys::read_at(fd, at, bytes, 0);
            if fd >= 0 {
                sys::close(fd);
            }
        }
    }
}

/// The program has opened a descriptor: if it reads a file with inputs, a file in memory stands for that.
pub fn opened(fd: i32) {
    if !is_wanted() {
        return;
    }
    uses();
    let identity = sys::file_identity(fd);
    let is_it = |of: &Source| of.file.get().is_some() && of.file.get() == identity;
    if let Some(number) = SOURCES.all[..SOURCES.count.get()].iter().position(is_it) {
        if sys::is_read_only(fd) {
            stand_in(fd, number);
        } else {
            loses();
        }
    }
}

/// Puts a file in memory in the place of a descriptor: with the inputs of a source, and otherwise the same bytes.
fn stand_in(fd: i32, number: usize) {
    let mut name = [0u8; LINK];
    name[..NAME.len()].copy_from_slice(NAME);
    name[NAME.len()] = b'0' + (number / 10) as u8;
    name[NAME.len() + 1] = b'0' + (number % 10) as u8;
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let file = sys::memory_file(name, true, 0);
    if file < 0 {
        sys::write(2, b"heisen: no memory for a file with inputs\n");
        sys::exit_group(5);
    }
    let of = &SOURCES.all[number];
    sys::send_whole_file(file, fd);
    sys::write_at(file, content(of, 0), of.bytes.get(), 0);
    sys::rewind(file);
    sys::replace(fd, file);
}

/// The source for which the file of a descriptor stands.
fn source_of(fd: i32) -> Option<usize> {
    let mut link = [0u8; LINK];
    let length = sys::link_of_descriptor(fd, &mut link);
    let digits = link[..length].strip_prefix(PREFIX)?.strip_prefix(NAME)?;
    let &[tens @ b'0'..=b'9', ones @ b'0'..=b'9', ..] = digits else { return None };
    Some(usize::from(tens - b'0') * 10 + usize::from(ones - b'0'))
        .filter(|&number| number < SOURCES.count.get())
}

/// The running thread uses descriptors. If several do, their order decides what they read.
pub fn uses() {
    if !is_wanted() {
        return;
    }
    let thread = me() + 1;
    match SOURCES.user.get() {
        0 => SOURCES.user.set(thread),
        user if user == thread => {}
        _ => loses(),
    }
}

/// What the program reads depends on something that the trace does not say.
pub fn loses() {
    if is_on() {
        count(&header().pinned[reason::DESCRIPTOR as usize]);
    }
}

/// The place in a source from which the program is about to read.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    source: usize,
    /// How many bytes lie before it.
    pub position: usize,
}

impl Place {
    /// The place at which a descriptor is; `None` if it has no inputs.
    pub fn of(fd: i32) -> Option<Place> {
        uses();
        let Some(source) = source_of(fd) else {
            loses();
            return None;
        };
        Some(Place { source, position: sys::position(fd) })
    }

    /// The place of a stream that has read so many bytes ahead.
    pub fn before(self, ahead: usize) -> Place {
        Place { position: self.position.saturating_sub(ahead), ..self }
    }

    /// How many bytes follow in the file.
    fn left(self, fd: i32) -> usize {
        sys::file_size(fd).saturating_sub(self.position)
    }

    /// The address of the next byte, if it is an input.
    fn next(self) -> Option<usize> {
        let of = &SOURCES.all[self.source];
        (self.position < of.bytes.get()).then(|| content(of, self.position))
    }

    /// The thread has read so many bytes into memory, from here on.
    pub fn gave(self, to: usize, bytes: usize, pc: usize) {
        let of = &SOURCES.all[self.source];
        let inputs = of.bytes.get().saturating_sub(self.position).min(bytes);
        if inputs > 0 {
            super::moved(to, content(of, self.position), inputs, pc);
        }
        if is_on() && bytes > inputs {
            block_traffic::stored(to + inputs, bytes - inputs, pc);
        }
    }

    /// The thread has read a line up to this byte into memory. Each byte decided whether the line ended there.
    pub fn gave_line(self, to: usize, bytes: usize, end: u8, pc: usize) {
        for index in 0..bytes {
            let place = Place { position: self.position + index, ..self };
            let id = place.byte(pc);
            let value = place.next().map_or(0, |at| program_memory::load(at, 1));
            let (byte, end_of_line) = (terms::Operand::of(id, value), terms::Operand::constant(end.into()));
            let ends = terms::binary(ValueOp::Eq, 8, 1, byte, end_of_line);
            terms::asserts(kind::BRANCH, ends, value == u64::from(end), pc);
        }
        self.gave(to, bytes, pc);
    }

    /// The expression of the next byte.
    fn byte(self, pc: usize) -> u32 {
        match self.next() {
            Some(at) if is_on() => Access { address: at, size: 1, pc }.loads(program_memory::load(at, 1)),
            _ => terms::CONCRETE,
        }
    }

    /// The function at this address returns the next byte as an `int`.
    pub fn returned(self, function: usize, pc: usize) {
        let id = match self.byte(pc) {
            terms::CONCRETE => terms::CONCRETE,
            id => terms::unary(ValueOp::ZExt, 8, 32, id),
        };
        FRAME.returns(function, id);
    }

    /// The thread is about to read into memory, at most so many bytes: other threads may run before.
    pub fn announce(self, fd: i32, to: usize, most: usize, pc: usize) {
        let bytes = most.min(self.left(fd));
        if bytes > 0 && MODE.load(Relaxed) != 0 {
            touch(pc, &[Part::write(to, bytes)], || [Part::write(to, bytes)]);
        }
    }
}

/// Reads from a plain descriptor by `call`, into pieces of memory; `position` is where, if the call says so.
pub fn reads(
    fd: i32,
    pieces: &[Piece],
    position: Option<usize>,
    pc: usize,
    call: impl FnOnce() -> isize,
) -> isize {
    if !is_wanted() {
        return call();
    }
    let place = || Place::of(fd).map(|place| Place { position: position.unwrap_or(place.position), ..place });
    let Some(mut at) = place() else { return call() };
    for piece in pieces {
        at.announce(fd, piece.base, piece.length, pc);
        at.position += piece.length;
    }
    // Another thread may have read in between.
    let Some(mut at) = place() else { return call() };
    let got = call();
    let mut left = got.max(0) as usize;
    for piece in pieces {
        let bytes = piece.length.min(left);
        at.gave(piece.base, bytes, pc);
        at.position += bytes;
        left -= bytes;
    }
    got
}
