//! Reads the memory of another process. This is the only unsafe code in this folder.

use std::collections::HashMap;
use std::io;

const PAGE: u64 = 4096;

/// Pages fetched at once when a stack is read: most stacks need one or two such blocks.
const BLOCK_PAGES: usize = 4;

/// Fills `out` from `address` on. Returns an error if a part of it cannot be read.
pub fn read_words(pid: i32, address: u64, out: &mut [u64]) -> io::Result<()> {
    let mut done = 0;
    let length = size_of_val(out);
    while done < length {
        let local = libc::iovec {
            // SAFETY: `done < length`, so the pointer stays inside `out`.
            iov_base: unsafe { out.as_mut_ptr().byte_add(done) }.cast(),
            iov_len: length - done,
        };
        // SAFETY: `local` is the rest of `out`, which is borrowed mutably and for which any bytes are valid values.
        done +=
            unsafe { transfer(pid, &local, &[remote(address.wrapping_add(done as u64), length - done)]) }?;
    }
    Ok(())
}

/// Fills `out` from `address` on. Returns an error if a part of it cannot be read.
pub fn read_bytes(pid: i32, address: u64, out: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < out.len() {
        let rest = &mut out[done..];
        let local = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
        let from = remote(address.wrapping_add(done as u64), rest.len());
        // SAFETY: `local` is `rest`, which is borrowed mutably and for which any bytes are valid values.
        done += unsafe { transfer(pid, &local, &[from]) }?;
    }
    Ok(())
}

/// An address range of the other process. Only the kernel uses it as a pointer.
fn remote(address: u64, length: usize) -> libc::iovec {
    libc::iovec { iov_base: std::ptr::without_provenance_mut(address as usize), iov_len: length }
}

/// Reads the pieces of `from` in order, as far as they are readable. Returns an error if no byte was read.
unsafe fn transfer(pid: i32, into: &libc::iovec, from: &[libc::iovec]) -> io::Result<usize> {
    // SAFETY: the kernel checks the remote addresses; the local ones are the caller's promise.
    let read = unsafe { libc::process_vm_readv(pid, into, 1, from.as_ptr(), from.len() as libc::c_ulong, 0) };
    match read {
        1.. => Ok(read as usize),
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The stack of a paused thread, read in blocks. Each block is read once, so a value is good only until the
/// thread runs again.
#[derive(Debug)]
pub struct StackMemory {
    pid: i32,
    pages: HashMap<u64, Option<Box<[u8]>>>,
}

impl StackMemory {
    /// A stack of this process, with nothing read yet.
    pub fn new(pid: i32) -> StackMemory {
        StackMemory { pid, pages: HashMap::new() }
    }

    /// A stack whose block at `address`, usually its top, is read now. The thread may then go on.
    pub fn taken_at(pid: i32, address: u64) -> StackMemory {
        let mut memory = StackMemory::new(pid);
        memory.fetch(address / PAGE);
        memory
    }

    /// The word at `address`, aligned or not.
    pub fn word(&mut self, address: u64) -> Option<u64> {
        self.value(address, 8)
    }

    /// The `size` bytes at `address` as a little-endian number. `None` if they cannot be read or are more
    /// than eight.
    pub fn value(&mut self, address: u64, size: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        for (index, byte) in bytes.get_mut(..size)?.iter_mut().enumerate() {
            let at = address.checked_add(index as u64)?;
            *byte = *self.page(at / PAGE)?.get((at % PAGE) as usize)?;
        }
        Some(u64::from_le_bytes(bytes))
    }

    fn page(&mut self, number: u64) -> Option<&[u8]> {
        if !self.pages.contains_key(&number) {
            self.fetch(number);
        }
        self.pages.get(&number)?.as_deref()
    }

    fn fetch(&mut self, number: u64) {
        let mut block = vec![0; BLOCK_PAGES * PAGE as usize];
        let local = libc::iovec { iov_base: block.as_mut_ptr().cast(), iov_len: block.len() };
        // One piece per page: if a block reaches past the end of the stack, the pages before the end are
        // still read.
        let pieces: [_; BLOCK_PAGES] =
            std::array::from_fn(|i| remote(number.wrapping_add(i as u64).wrapping_mul(PAGE), PAGE as usize));
        // SAFETY: `local` is the whole of `block`.
        let read = unsafe { transfer(self.pid, &local, &pieces) }.unwrap_or(0);
        self.pages.insert(number, None);
        for (i, page) in block[..read].chunks_exact(PAGE as usize).enumerate() {
            self.pages.insert(number.wrapping_add(i as u64), Some(page.into()));
        }
    }
}
