//! System calls on memory: mapping it, also at given addresses, releasing it, and listing it.

use super::numbers::{
    SYS_BRK, SYS_MMAP, SYS_MPROTECT, SYS_MUNMAP, SYS_OPEN, SYS_PREAD, SYS_PRLIMIT64, SYS_PROCESS_VM_READV,
    SYS_READ,
};
use super::{call, close, exit_group, write};

const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE_ANON: usize = 0x22;
const MAP_STACK_NORESERVE: usize = 0x2_0000 | 0x4000;
const PROT_NONE: usize = 0;
const PROT_READ: usize = 1;
const PROT_READ_EXEC: usize = 5;
const MAP_NORESERVE: usize = 0x4000;
const MAP_FIXED: usize = 0x10;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;

/// The bytes at an address of the program, at most eight, as a number; 0 if there is no memory. Unlike a load, this
/// never faults.
pub fn peek(address: usize, size: usize) -> u64 {
    let mut value = 0u64;
    let to = [(&raw mut value) as usize, size.min(8)];
    let from = [address, size.min(8)];
    let pid = super::getpid() as usize;
    call(SYS_PROCESS_VM_READV, [pid, to.as_ptr() as usize, 1, from.as_ptr() as usize, 1, 0]);
    value
}

/// Maps a shared file; `None` on error.
pub fn map_shared(fd: i32, size: usize) -> Option<usize> {
    let at = call(SYS_MMAP, [0, size, PROT_READ_WRITE, MAP_SHARED, fd as usize, 0]);
    (at > 0).then_some(at as usize)
}

/// Maps all of a shared file at exactly this unused address; returns its length, or `None` on error.
pub fn map_shared_at(fd: i32, at: usize) -> Option<usize> {
    const SYS_LSEEK: usize = 8;
    const SEEK_END: usize = 2;
    let length = call(SYS_LSEEK, [fd as usize, 0, SEEK_END, 0, 0, 0]);
    if length <= 0 {
        return None;
    }
    let flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    let got = call(SYS_MMAP, [at, length as usize, PROT_READ_WRITE, flags, fd as usize, 0]);
    (got == at as isize).then_some(length as usize)
}

/// Maps new memory for a stack; `None` on error.
pub fn map_stack(size: usize) -> Option<usize> {
    let flags = MAP_PRIVATE_ANON | MAP_STACK_NORESERVE;
    let at = call(SYS_MMAP, [0, size, PROT_READ_WRITE, flags, usize::MAX, 0]);
    (at > 0).then_some(at as usize)
}

/// Reserves a range of unused addresses, without memory. Returns whether it succeeded.
pub fn reserve(at: usize, size: usize) -> bool {
    map_fixed(at, size, PROT_NONE, MAP_FIXED_NOREPLACE)
}

/// As [`reserve`], but the range can be read, as zeros.
pub fn reserve_readable(at: usize, size: usize) -> bool {
    map_fixed(at, size, PROT_READ, MAP_FIXED_NOREPLACE)
}

fn map_fixed(at: usize, size: usize, protection: usize, how: usize) -> bool {
    let flags = MAP_PRIVATE_ANON | MAP_NORESERVE | how;
    let got = call(SYS_MMAP, [at, size, protection, flags, usize::MAX, 0]);
    if got > 0 && got as usize != at {
        // A kernel before 4.17 treats the address as a hint.
        unmap(got as usize, size);
    }
    got == at as isize
}

/// As [`reserve`], but with memory.
pub fn reserve_usable(at: usize, size: usize) -> bool {
    raise_data_limit(size as isize);
    map_fixed(at, size, PROT_READ_WRITE, MAP_FIXED_NOREPLACE)
}

/// As [`reserve_usable`], but with memory that all processes share that are forked from this one.
pub fn reserve_shared(at: usize, size: usize) -> bool {
    const ANONYMOUS: usize = 0x20;
    let flags = MAP_SHARED | ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    call(SYS_MMAP, [at, size, PROT_READ_WRITE, flags, usize::MAX, 0]) == at as isize
}

/// Gives memory to a part of such a range. Returns whether it succeeded.
pub fn make_usable(at: usize, size: usize) -> bool {
    call(SYS_MPROTECT, [at, size, PROT_READ_WRITE, 0, 0, 0]) == 0
}

/// Releases the memory of a part of such a range.
pub fn make_unusable(at: usize, size: usize) {
    if size > 0 {
        map_fixed(at, size, PROT_NONE, MAP_FIXED);
    }
}

/// Maps new memory at an unused address; the process ends if that fails.
pub fn map_at(at: usize, size: usize) {
    const FIXED_NOREPLACE: usize = 0x10_0000;
    const NORESERVE: usize = 0x4000;
    // The memory is not the program's, and does not count against the program's limit.
    raise_data_limit(size as isize);
    let flags = MAP_PRIVATE_ANON | FIXED_NOREPLACE | NORESERVE;
    let got = call(SYS_MMAP, [at, size, PROT_READ_WRITE, flags, usize::MAX, 0]);
    if got as usize != at {
        write(2, b"heisen: no memory is left for what is remembered of the program's accesses\n");
        exit_group(3);
    }
}

/// Maps new memory for code at exactly this address; returns whether it succeeded.
pub fn map_code(at: usize, size: usize) -> bool {
    const MAP_FIXED_NOREPLACE: usize = 0x10_0000;
    let flags = MAP_PRIVATE_ANON | MAP_FIXED_NOREPLACE;
    let got = call(SYS_MMAP, [at, size, PROT_READ_EXEC, flags, usize::MAX, 0]);
    if got > 0 && got as usize != at {
        // An old kernel, which treats the address as a hint.
        unmap(got as usize, size);
    }
    got as usize == at
}

/// Makes memory that holds code writable, or no longer writable; returns whether it succeeded.
pub fn let_write_code(at: usize, size: usize, writable: bool) -> bool {
    let protection = if writable { PROT_READ_EXEC | PROT_READ_WRITE } else { PROT_READ_EXEC };
    call(SYS_MPROTECT, [at, size, protection, 0, 0, 0]) == 0
}

/// Makes readable memory writable or read-only; returns whether it succeeded.
pub fn set_writable(at: usize, size: usize, writable: bool) -> bool {
    let protection = if writable { PROT_READ_WRITE } else { PROT_READ };
    call(SYS_MPROTECT, [at, size, protection, 0, 0, 0]) == 0
}

/// Makes pages of code writable and not executable, or executable again; returns whether that is allowed.
pub fn set_code_writable(at: usize, size: usize, writable: bool) -> bool {
    const PROT_READ_EXECUTE: usize = 5;
    let protection = if writable { PROT_READ_WRITE } else { PROT_READ_EXECUTE };
    call(SYS_MPROTECT, [at, size, protection, 0, 0, 0]) == 0
}

pub fn protect_none(at: usize, size: usize) {
    call(SYS_MPROTECT, [at, size, 0, 0, 0, 0]);
}

/// Discards the content of full pages: they read as zeros afterwards.
pub fn drop_pages(at: usize, size: usize) {
    const SYS_MADVISE: usize = 28;
    const DONTNEED: usize = 4;
    call(SYS_MADVISE, [at, size, DONTNEED, 0, 0, 0]);
}

pub fn unmap(at: usize, size: usize) {
    call(SYS_MUNMAP, [at, size, 0, 0, 0, 0]);
}

/// Raises the limit on the program's data by this many bytes, or lowers it for a negative number, as far as
/// that is allowed.
pub fn raise_data_limit(bytes: isize) {
    const RLIMIT_DATA: usize = 2;
    let mut limit = [0u64; 2];
    let asked = call(SYS_PRLIMIT64, [0, RLIMIT_DATA, 0, &raw mut limit as usize, 0, 0]);
    let [soft, hard] = limit;
    if asked == 0 && soft != u64::MAX {
        let raised = [soft.saturating_add_signed(bytes as i64).min(hard), hard];
        call(SYS_PRLIMIT64, [0, RLIMIT_DATA, &raw const raised as usize, 0, 0, 0]);
    }
}

/// The program break.
pub fn program_break() -> usize {
    call(SYS_BRK, [0; 6]) as usize
}

/// Calls `with` for each readable mapping of the process: its start, its end, its rights as four letters, and
/// its name.
pub fn each_mapping(mut with: impl FnMut(usize, usize, &[u8], &[u8])) {
    let fd = call(SYS_OPEN, [c"/proc/self/maps".as_ptr() as usize, 0, 0, 0, 0, 0]);
    if fd < 0 {
        return;
    }
    let mut buffer = [0u8; 8192];
    let mut kept = 0;
    loop {
        let room = &mut buffer[kept..];
        let got = call(SYS_READ, [fd as usize, room.as_mut_ptr() as usize, room.len(), 0, 0, 0]);
        if got <= 0 {
            break;
        }
        let filled = kept + got as usize;
        let mut begin = 0;
        while let Some(length) = buffer[begin..filled].iter().position(|&b| b == b'\n') {
            mapping(&buffer[begin..begin + length], &mut with);
            begin += length + 1;
        }
        kept = filled - begin;
        buffer.copy_within(begin..filled, 0);
        if kept == buffer.len() {
            break;
        }
    }
    close(fd as i32);
}

/// Parses one line of that list.
fn mapping(line: &[u8], with: &mut impl FnMut(usize, usize, &[u8], &[u8])) {
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let (Some(range), Some(rights)) = (words.next(), words.next()) else { return };
    let mut ends = range.split(|&b| b == b'-').map(hexadecimal);
    let (Some(from), Some(to)) = (ends.next(), ends.next()) else { return };
    if rights.len() == 4 && rights[0] == b'r' {
        with(from, to, rights, words.nth(3).unwrap_or_default());
    }
}

fn hexadecimal(digits: &[u8]) -> usize {
    digits.iter().fold(0, |sum, &d| sum << 4 | (d as char).to_digit(16).unwrap_or(0) as usize)
}

/// Calls `with` with the start and end of each page of a range that holds data. If the kernel does not tell,
/// calls it for all pages.
pub fn each_touched_page(from: usize, to: usize, mut with: impl FnMut(usize, usize)) {
    const PAGE: usize = 4096;
    const PRESENT_OR_SWAPPED: u64 = 3 << 62;
    let fd = call(SYS_OPEN, [c"/proc/self/pagemap".as_ptr() as usize, 0, 0, 0, 0, 0]);
    let mut pages = [0u64; 512];
    let mut at = from;
    while at < to {
        let wanted = pages.len().min((to - at) / PAGE);
        let place = at / PAGE * size_of::<u64>();
        let got = call(
            SYS_PREAD,
            [fd as usize, pages.as_mut_ptr() as usize, wanted * size_of::<u64>(), place, 0, 0],
        );
        if got != (wanted * size_of::<u64>()) as isize {
            pages = [PRESENT_OR_SWAPPED; 512];
        }
        for page in &pages[..wanted] {
            if page & PRESENT_OR_SWAPPED != 0 {
                with(at, at + PAGE);
            }
            at += PAGE;
        }
    }
    if fd >= 0 {
        close(fd as i32);
    }
}
