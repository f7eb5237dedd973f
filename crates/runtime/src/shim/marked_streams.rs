//! Functions of the C library that read bytes of a stream which are inputs (`--input`): each calls the real function, and
//! then says which of the inputs the program has got.
//!
//! The program enters them through [`stdio`](super::stdio), so registers and stack are as for the real function. Which
//! bytes a call gives follows from the position of the stream before it: that of its descriptor, without what the stream
//! has read ahead.

use super::stdio;
use crate::memory::symbolic::marked::{self, Place};
use crate::platform::baton::Guarded;
use crate::platform::glibc::{Real, real};
use core::cell::Cell;
use core::ffi::c_int;

/// Offsets in `FILE`, which are ABI: the flags, the next byte that was read ahead and their end, and the descriptor.
const FLAGS: usize = 0;
const READ_NEXT: usize = 8;
const READ_END: usize = 16;
const DESCRIPTOR: usize = 112;
/// The flag of a stream that gives back what `ungetc` took.
const IN_BACKUP: u32 = 0x100;

/// The place of the call that is made.
static CALLER: Guarded<Cell<usize>> = Guarded::new(Cell::new(0));

unsafe extern "C" {
    static stdin: usize;
}

/// The function to be called in place of a real one, from this place; `None` if it may be called itself.
pub fn instead(function: &Real, pc: usize) -> Option<usize> {
    if !marked::is_wanted() {
        return None;
    }
    let at = match function.name().to_bytes() {
        b"fread" => fread as *const () as usize,
        b"__fread_chk" => fread_checked as *const () as usize,
        b"fgets" => fgets as *const () as usize,
        b"__fgets_chk" => fgets_checked as *const () as usize,
        b"getline" => getline as *const () as usize,
        b"getdelim" | b"__getdelim" => getdelim as *const () as usize,
        b"getc" => getc as *const () as usize,
        b"_IO_getc" => io_getc as *const () as usize,
        b"fgetc" => fgetc as *const () as usize,
        b"getchar" => getchar as *const () as usize,
        b"fclose" => {
            marked::uses();
            return None;
        }
        _ => return None,
    };
    CALLER.set(pc);
    Some(at)
}

/// A word of a stream.
fn field<T: Copy>(stream: usize, offset: usize) -> T {
    // SAFETY: the program passes a stream, which has this field.
    unsafe { *((stream + offset) as *const T) }
}

fn descriptor(stream: usize) -> c_int {
    field(stream, DESCRIPTOR)
}

/// Where a stream is, if its bytes are inputs.
fn place(stream: usize) -> Option<Place> {
    let place = Place::of(descriptor(stream))?;
    if field::<u32>(stream, FLAGS) & IN_BACKUP != 0 {
        marked::loses();
        return None;
    }
    let ahead = field::<usize>(stream, READ_END).saturating_sub(field(stream, READ_NEXT));
    Some(place.before(ahead))
}

/// Reads into memory by `call`, at most so many bytes. Returns its result, and where the stream was before.
fn read<R>(stream: usize, to: usize, most: usize, call: impl FnOnce() -> R) -> (R, Option<Place>) {
    if let Some(at) = place(stream) {
        at.announce(descriptor(stream), to, most, CALLER.get());
    }
    // Another thread may have read in between.
    let at = place(stream);
    (call(), at)
}

/// How many bytes a stream has given since it was at this place.
fn given(stream: usize, since: Place) -> usize {
    place(stream).map_or(0, |now| now.position.saturating_sub(since.position))
}

fn block(stream: usize, to: usize, most: usize, call: impl FnOnce() -> usize) -> usize {
    let (got, at) = read(stream, to, most, call);
    if let Some(at) = at {
        at.gave(to, given(stream, at).min(most), CALLER.get());
    }
    got
}

extern "C" fn fread(to: usize, size: usize, count: usize, stream: usize) -> usize {
    block(
        stream,
        to,
        size.saturating_mul(count),
        || real!(fread, fn(to => usize, size => usize, count => usize, stream => usize) -> usize),
    )
}

extern "C" fn fread_checked(to: usize, room: usize, size: usize, count: usize, stream: usize) -> usize {
    block(stream, to, size.saturating_mul(count), || {
        real!(__fread_chk, fn(
            to => usize, room => usize, size => usize, count => usize, stream => usize
        ) -> usize)
    })
}

fn line(stream: usize, to: usize, most: usize, call: impl FnOnce() -> usize) -> usize {
    let (got, at) = read(stream, to, most, call);
    if let Some(at) = at.filter(|_| got != 0) {
        at.gave_line(to, given(stream, at).min(most), b'\n', CALLER.get());
    }
    got
}

extern "C" fn fgets(to: usize, size: c_int, stream: usize) -> usize {
    line(
        stream,
        to,
        size.saturating_sub(1).max(0) as usize,
        || real!(fgets, fn(to => usize, size => c_int, stream => usize) -> usize),
    )
}

extern "C" fn fgets_checked(to: usize, room: usize, size: c_int, stream: usize) -> usize {
    line(
        stream,
        to,
        size.saturating_sub(1).max(0) as usize,
        || real!(__fgets_chk, fn(to => usize, room => usize, size => c_int, stream => usize) -> usize),
    )
}

/// The lines of these two lie in blocks that only the C library sees before.
fn grown(line: *const usize, end: u8, stream: usize, call: impl FnOnce() -> isize) -> isize {
    let at = place(stream);
    let got = call();
    if let (Some(at), 1..) = (at, got) {
        // SAFETY: the real function has stored a line there.
        at.gave_line(unsafe { *line }, got as usize, end, CALLER.get());
    }
    got
}

extern "C" fn getline(line: *mut usize, size: *mut usize, stream: usize) -> isize {
    grown(
        line,
        b'\n',
        stream,
        || real!(getline, fn(line => *mut usize, size => *mut usize, stream => usize) -> isize),
    )
}

extern "C" fn getdelim(line: *mut usize, size: *mut usize, end: c_int, stream: usize) -> isize {
    grown(
        line,
        end as u8,
        stream,
        || real!(getdelim, fn(line => *mut usize, size => *mut usize, end => c_int, stream => usize) -> isize),
    )
}

/// Reads one byte, on behalf of the function at this address.
fn byte(function: usize, stream: usize) -> c_int {
    let at = place(stream);
    let got = real!(fgetc, fn(stream => usize) -> c_int);
    if let (Some(at), 0..) = (at, got) {
        at.returned(function, CALLER.get());
    }
    got
}

extern "C" fn getc(stream: usize) -> c_int {
    byte(stdio::getc as *const () as usize, stream)
}

extern "C" fn io_getc(stream: usize) -> c_int {
    byte(stdio::_IO_getc as *const () as usize, stream)
}

extern "C" fn fgetc(stream: usize) -> c_int {
    byte(stdio::fgetc as *const () as usize, stream)
}

extern "C" fn getchar() -> c_int {
    // SAFETY: the C library's variable.
    byte(stdio::getchar as *const () as usize, unsafe { stdin })
}
