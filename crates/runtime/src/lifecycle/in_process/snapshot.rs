//! The snapshot: the memory of the program, saved where executions begin and restored after each.
//!
//! Taking a snapshot write-protects all memory. The first write to a page raises a signal. Its handler calls
//! [`Snapshot::written`], which makes the page writable and marks it dirty (*hot* in the code). Dirty pages
//! are restored after each execution. So once the pages are known that a program writes to, no system call is
//! needed. A page that remains unchanged for some executions is protected again: many pages are written by
//! the first execution only.
//!
//! Most of a dirty page does not change, and executions mostly write to the same places. So for some
//! executions each dirty page is compared line by line, and its changed lines are restored. From then on only
//! the [`lines`](Snapshot::lines) that were ever seen to change are restored. That is a prediction, which
//! [`Snapshot::verify`] checks now and then.
//!
//! One case escapes the check: an execution changes a line that no execution changed before, and the next
//! execution reads the stale line and changes it back. So nothing is predicted for systematic strategies,
//! which make claims. The exception is the unused part of a stack, which no program may read. Samplers use
//! predictions because a small program would take three times as long without.
//!
//! The kernel refuses to write to a protected page on behalf of the program. So [`calls`](super::calls),
//! which sees every system call, makes the buffers of a call dirty before it is made.

use crate::carrier::fibers;
use crate::memory::symbolic;
use crate::platform::glibc;
use crate::platform::sys;
use crate::sched::{me, thread, threads};
use crate::wire_log;
use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_store_si128};
use core::cell::Cell;
use heisen_wire::runner;

pub const PAGE: usize = 4096;

/// The largest number of saved pages.
const MAX_PAGES: usize = 1 << 15;
/// The size of the table of saved pages, a power of two.
const TABLE: usize = 2 * MAX_PAGES;
const MAX_REGIONS: usize = 256;
const MAX_HIDDEN: usize = 16;
const MAX_UNUSED: usize = 256;
/// The number of bytes below its stack pointer that a function may use.
const RED_ZONE: usize = 128;
/// The largest number of dirty pages. Restoring more is not worthwhile.
const MAX_HOT: usize = 2048;
/// The size of the largest region. Ordinary programs have no larger ones.
const MAX_REGION: usize = 1 << 34;
/// A dirty page is protected again after it was found unchanged this many times in a row.
const IDLE: u8 = 3;
const NEVER: u8 = u8::MAX;
/// For this many executions a page is compared completely before its lines are predicted.
const LEARNT: u8 = 32;
/// The number of bytes of a line. A page has 64 lines, one for each bit of a word.
const LINE: usize = PAGE / 64;
/// How far the stack of the main thread may grow below its end at the time of the snapshot.
const GROWTH: usize = 8 << 20;

/// The number of bytes from [`PAGES`](super::PAGES) on: the table, then the saved pages.
pub const SIZE: usize = TABLE * size_of::<u64>() + MAX_PAGES * PAGE;

/// A range of writable memory.
struct Region {
    from: Cell<usize>,
    to: Cell<usize>,
    /// Whether a file is mapped there, and whether any page of it is saved.
    file: Cell<bool>,
    saved: Cell<bool>,
}

pub struct Snapshot {
    regions: [Region; MAX_REGIONS],
    count: Cell<usize>,
    /// The lowest address of the main thread's stack, which may grow below.
    stack: Cell<usize>,
    saved: Cell<usize>,
    /// Dirty pages, and the addresses of their saved copies; 0 if the page was zeros.
    hot: [Cell<(usize, usize)>; MAX_HOT],
    /// How often in a row each dirty page was found unchanged; [`NEVER`] if it cannot be protected.
    idle: [Cell<u8>; MAX_HOT],
    /// Whether each dirty page lies in the unused part of a stack.
    unused: [Cell<bool>; MAX_HOT],
    /// The lines of each dirty page that were ever seen to change.
    lines: [Cell<u64>; MAX_HOT],
    /// In how many executions each dirty page was compared completely, up to [`LEARNT`].
    compared: [Cell<u8>; MAX_HOT],
    hot_count: Cell<usize>,
    /// The parts of stacks that are unused at the start of an execution: start and end.
    stacks: [Cell<(usize, usize)>; MAX_UNUSED],
    stacks_count: Cell<usize>,
    /// The memory that the program has unmapped since: start and end.
    hidden: [Cell<(usize, usize)>; MAX_HIDDEN],
    hidden_count: Cell<usize>,
}

/// The table of saved pages. An entry holds the number of a page and, in the upper bits, the index of its
/// copy plus 1.
fn table() -> &'static [Cell<u64>; TABLE] {
    // SAFETY: as for `super::control`.
    unsafe { &*(super::PAGES as *const [Cell<u64>; TABLE]) }
}

const NUMBER_BITS: u32 = 36;

fn place(index: usize) -> usize {
    super::PAGES + TABLE * size_of::<u64>() + index * PAGE
}

fn slot_of(number: usize) -> usize {
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 40
}

impl Snapshot {
    /// Saves and protects all writable memory except that of the runner. The stack of the running thread ends
    /// at `end`.
    pub fn take(&self, end: usize) -> Result<(), u32> {
        let mut error = None;
        sys::each_mapping(|from, to, rights, name| {
            let ours = from >= super::BASE && to <= super::HANDLERS + super::HANDLERS_SIZE;
            if rights[1] == b'w' && !ours && !symbolic::owns(from) && error.is_none() {
                error = self.add(from, to, rights, name).err();
            }
        });
        if let Some(error) = error {
            return Err(error);
        }
        // Must come before anything is saved, because it writes to the stack itself.
        self.note_unused(end);
        for region in &self.regions[..self.count.get()] {
            let mut room = true;
            sys::each_touched_page(region.from.get(), region.to.get(), |from, _| {
                region.saved.set(true);
                room &= self.save(from);
            });
            if !room {
                return Err(runner::TOO_LARGE);
            }
        }
        let kernels = glibc::rseq_area(thread(0).fs.get()).map_or(0, |at| at & !(PAGE - 1));
        if kernels != 0 {
            self.make_hot(kernels, false);
        }
        for region in &self.regions[..self.count.get()] {
            let (from, to) = (region.from.get(), region.to.get());
            if (from..to).contains(&kernels) {
                // The kernel may write to the page of `rseq` at any time, and ends the process if it cannot.
                sys::set_writable(from, kernels - from, false);
                sys::set_writable(kernels + PAGE, to - kernels - PAGE, false);
            } else {
                sys::set_writable(from, to - from, false);
            }
        }
        Ok(())
    }

    /// Records the unused parts of stacks: below the stack pointers of threads, and all of the spare stacks.
    fn note_unused(&self, end: usize) {
        let main =
            self.regions[..self.count.get()].iter().find(|region| region.from.get() == self.stack.get());
        let main_end = main.map_or(0, |region| region.to.get());
        let used = threads().filter(|(_, t)| !t.ended.get() && !t.stack_foreign.get());
        let used = used.filter_map(|(number, t)| {
            let at = if number == me() { end } else { t.sp.get() };
            let stack = match number {
                0 => self.stack.get().saturating_sub(GROWTH)..main_end,
                _ => t.stack.get()..t.stack.get() + t.guard_size.get() + t.stack_size.get(),
            };
            stack.contains(&at).then(|| (stack.start, (at - RED_ZONE) & !(PAGE - 1)))
        });
        self.stacks_count.set(0);
        for (place, part) in self.stacks.iter().zip(used.chain(fibers::spare_stacks())) {
            place.set(part);
            self.stacks_count.set(self.stacks_count.get() + 1);
        }
    }

    fn is_unused(&self, page: usize) -> bool {
        let mut stacks = self.stacks[..self.stacks_count.get()].iter();
        stacks.any(|part| (part.get().0..part.get().1).contains(&page))
    }

    fn add(&self, from: usize, to: usize, rights: &[u8], name: &[u8]) -> Result<(), u32> {
        let count = self.count.get();
        let shared = rights[3] == b's';
        if shared && from == core::ptr::from_ref(wire_log::wire()) as usize {
            return Ok(());
        }
        if shared || count == MAX_REGIONS || to - from > MAX_REGION || rights[2] == b'x' {
            return Err(runner::TOO_LARGE);
        }
        if name.first() == Some(&b'/') {
            // Reads each page of a file once. Untouched pages of files are not mapped yet, and only mapped
            // pages are saved.
            for page in (from..to).step_by(PAGE) {
                // SAFETY: the page is mapped and readable.
                unsafe { (page as *const u8).read_volatile() };
            }
        }
        if name == b"[stack]" {
            self.stack.set(from);
        }
        self.regions[count].file.set(name.first() == Some(&b'/'));
        self.regions[count].from.set(from);
        self.regions[count].to.set(to);
        self.count.set(count + 1);
        Ok(())
    }

    /// Discards the snapshot.
    pub fn forget(&self) {
        self.unprotect();
        table().iter().for_each(|entry| entry.set(0));
        self.regions.iter().for_each(|region| region.saved.set(false));
        for count in [&self.count, &self.saved, &self.hot_count] {
            count.set(0);
        }
    }

    /// Makes memory inaccessible that the program unmaps, so that it can be restored. Returns false if there
    /// is no room to record it.
    pub fn hide(&self, from: usize, size: usize) -> bool {
        let count = self.hidden_count.get();
        if count == MAX_HIDDEN || size == 0 {
            return false;
        }
        sys::protect_none(from, size);
        self.hidden[count].set((from, from + size));
        self.hidden_count.set(count + 1);
        true
    }

    fn hides(&self, address: usize) -> bool {
        let mut hidden = self.hidden[..self.hidden_count.get()].iter();
        hidden.any(|range| (range.get().0..range.get().1).contains(&address))
    }

    /// Makes all memory accessible again that was hidden.
    pub fn show(&self) {
        for range in &self.hidden[..self.hidden_count.replace(0)] {
            let (from, to) = range.get();
            for region in &self.regions[..self.count.get()] {
                let (first, last) = (from.max(region.from.get()), to.min(region.to.get()));
                if first < last {
                    sys::set_writable(first, last - first, false);
                }
            }
            for page in self.hot[..self.hot_count.get()].iter().map(|hot| hot.get().0) {
                if (from..to).contains(&page) {
                    sys::set_writable(page, PAGE, true);
                }
            }
        }
    }

    /// Makes all saved memory writable again, and unmaps the memory that the program has unmapped.
    pub fn unprotect(&self) {
        for region in &self.regions[..self.count.get()] {
            sys::set_writable(region.from.get(), region.to.get() - region.from.get(), true);
        }
        // The part by which the stack has grown since the snapshot.
        let (mut end, lowest) = (self.stack.get(), self.stack.get().saturating_sub(GROWTH));
        while end > lowest && sys::set_writable(end - PAGE, PAGE, true) {
            end -= PAGE;
        }
        for range in &self.hidden[..self.hidden_count.replace(0)] {
            sys::unmap(range.get().0, range.get().1 - range.get().0);
        }
    }

    /// Whether the address lies in saved memory, or where the main thread's stack has grown since.
    fn covers(&self, address: usize) -> bool {
        if self.hides(address) {
            return false;
        }
        let grown = self.stack.get().saturating_sub(GROWTH)..self.stack.get();
        let mut regions = self.regions[..self.count.get()].iter();
        grown.contains(&address)
            || regions.any(|region| (region.from.get()..region.to.get()).contains(&address))
    }

    /// Whether the snapshot protects this address, but there is no room for another dirty page.
    pub fn covers_more(&self, address: usize) -> bool {
        self.hot_count.get() == MAX_HOT && !self.is_hot(address & !(PAGE - 1)) && self.covers(address)
    }

    fn is_hot(&self, page: usize) -> bool {
        self.hot[..self.hot_count.get()].iter().any(|hot| hot.get().0 == page)
    }

    /// Called after a write to this address failed. Returns true if the snapshot had protected the page; it
    /// is writable now.
    pub fn written(&self, address: usize) -> bool {
        let page = address & !(PAGE - 1);
        self.covers(address) && !self.is_hot(page) && self.make_hot(page, true)
    }

    fn make_hot(&self, page: usize, writable: bool) -> bool {
        let count = self.hot_count.get();
        if count == MAX_HOT {
            return false;
        }
        self.hot[count].set((page, self.find(page).unwrap_or(0)));
        self.idle[count].set(if writable { 0 } else { NEVER });
        // The page that the kernel writes is not part of a stack. While the snapshot is taken, stacks must
        // not be changed.
        self.unused[count].set(writable && self.is_unused(page));
        self.lines[count].set(0);
        self.compared[count].set(0);
        self.hot_count.set(count + 1);
        if writable {
            sys::set_writable(page, PAGE, true);
        }
        true
    }

    /// Called before the kernel writes to this range. Returns whether any page of it was protected.
    pub fn will_write(&self, address: usize, size: usize) -> bool {
        let (mut page, mut any) = (address & !(PAGE - 1), false);
        while page < address.saturating_add(size) {
            any |= self.written(page.max(address));
            page += PAGE;
        }
        any
    }

    fn save(&self, page: usize) -> bool {
        let entered = self.enter(page);
        entered.inspect(|&saved| copy(saved, page)).is_some()
    }

    /// Enters a page in the table. Returns where to save it, or `None` if there is no room.
    fn enter(&self, page: usize) -> Option<usize> {
        let index = self.saved.get();
        if index == MAX_PAGES {
            return None;
        }
        let number = page / PAGE;
        let mut slot = slot_of(number);
        while table()[slot % TABLE].get() != 0 {
            slot += 1;
        }
        table()[slot % TABLE].set((index as u64 + 1) << NUMBER_BITS | number as u64);
        self.saved.set(index + 1);
        Some(place(index))
    }

    /// Adds a saved copy for a dirty page that was zeros. Returns `None` if there is no room.
    fn save_clear(&self, page: usize) -> Option<usize> {
        let mut pages = self.hot[..self.hot_count.get()].iter();
        let hot = pages.find(|hot| hot.get().0 == page)?;
        let saved = self.enter(page)?;
        clear(saved);
        hot.set((page, saved));
        Some(saved)
    }

    /// Where a page is saved; `None` if it is not.
    fn find(&self, page: usize) -> Option<usize> {
        let number = (page / PAGE) as u64;
        let mut slot = slot_of(page / PAGE);
        loop {
            let entry = table()[slot % TABLE].get();
            if entry == 0 {
                return None;
            }
            if entry & ((1 << NUMBER_BITS) - 1) == number {
                return Some(place((entry >> NUMBER_BITS) as usize - 1));
            }
            slot += 1;
        }
    }

    /// Changes a word in the snapshot: it is restored to this value from now on. The caller has just written
    /// it.
    pub fn keep(&self, address: usize, value: usize) {
        let page = address & !(PAGE - 1);
        if let Some(saved) = self.find(page).or_else(|| self.save_clear(page)) {
            // SAFETY: a complete page is saved there, and the word does not cross its end.
            unsafe { ((saved + address % PAGE) as *mut usize).write(value) };
        }
    }

    /// Fills pages with zeros, as if they had been given back to the kernel. Returns false unless all of them
    /// are saved memory and not mapped from a file.
    pub fn drop_pages(&self, from: usize, size: usize) -> bool {
        let range = from..from + size;
        let of = |region: &Region| range.start.max(region.from.get())..range.end.min(region.to.get());
        let parts = || self.regions[..self.count.get()].iter().filter(|region| !of(region).is_empty());
        let (mut covered, mut is_file) = (0, false);
        for region in parts() {
            covered += of(region).len();
            is_file |= region.file.get();
        }
        if covered != size || is_file {
            return false;
        }
        for region in parts().filter(|region| region.saved.get()) {
            for page in of(region).step_by(PAGE).filter(|&page| self.find(page).is_some()) {
                self.written(page);
            }
        }
        for hot in &self.hot[..self.hot_count.get()] {
            if range.contains(&hot.get().0) {
                clear(hot.get().0);
            }
        }
        self.hot_count.get() < MAX_HOT
    }

    /// Restores all dirty pages; see the head of this file. With `exact` it predicts only for unused parts of
    /// stacks. With `careful` it compares each page that `exact` does not copy. Returns whether anything was
    /// predicted.
    pub fn put_back(&self, careful: bool, exact: bool) -> bool {
        let mut guessed = false;
        self.each_dirty_except_rseq(|index| {
            let (page, saved) = self.hot[index].get();
            if exact && !self.unused[index].get() {
                copy(page, or_zeros(saved));
            } else if careful || self.compared[index].get() < LEARNT {
                self.compared[index].set(self.compared[index].get().saturating_add(1).min(LEARNT));
                self.lines[index].set(self.lines[index].get() | put_back_changes(page, saved));
            } else {
                guessed = true;
                put_back_lines(page, saved, self.lines[index].get());
            }
        });
        guessed
    }

    /// Called after [`put_back`](Snapshot::put_back): restores the lines that a prediction missed and records
    /// them. Returns false if there were any.
    pub fn verify(&self) -> bool {
        let mut good = true;
        self.each_dirty_except_rseq(|index| {
            let (page, saved) = self.hot[index].get();
            let missed = put_back_changes(page, saved);
            if missed != 0 {
                good = false;
                self.lines[index].set(self.lines[index].get() | missed);
                self.compared[index].set(0);
            }
        });
        good
    }

    /// Calls `put_back` for each dirty page, but preserves the area that the kernel writes (`rseq`) and that
    /// nobody else may change.
    fn each_dirty_except_rseq(&self, mut put_back: impl FnMut(usize)) {
        let rseq = glibc::rseq_area(thread(0).fs.get());
        let kept = rseq.map(read_words);
        if let Some(at) = rseq {
            // Sets the area to its saved value, so that it does not count as a change.
            let saved = self.find(at & !(PAGE - 1)).unwrap_or(ZEROS.0.as_ptr() as usize);
            write_words(at, read_words(saved + at % PAGE));
        }
        (0..self.hot_count.get()).for_each(&mut put_back);
        if let (Some(at), Some(words)) = (rseq, kept) {
            write_words(at, words);
        }
    }

    /// Whether there is room for more dirty pages.
    pub fn has_room(&self) -> bool {
        self.hot_count.get() < MAX_HOT
    }

    /// Called after a careful [`put_back`](Snapshot::put_back): whether all memory equals the snapshot, dirty
    /// or not.
    pub fn equals_memory(&self) -> bool {
        self.is_as_it_was(glibc::rseq_area(thread(0).fs.get()).unwrap_or(0))
    }

    /// Called after an execution, before memory is restored: protects pages again that have not changed for
    /// some executions.
    pub fn protect_unchanged(&self) {
        let mut index = 0;
        while index < self.hot_count.get() {
            let (page, saved) = self.hot[index].get();
            let idle = &self.idle[index];
            let region = |region: &Region| (region.from.get()..region.to.get()).contains(&page);
            let as_it_was = if saved == 0 { is_clear(page) } else { is_same(page, saved, 0) };
            let stays = !as_it_was || !self.regions[..self.count.get()].iter().any(region);
            if idle.get() != NEVER {
                idle.set(if stays { 0 } else { idle.get() + 1 });
            }
            if idle.get() == NEVER || idle.get() < IDLE {
                index += 1;
            } else {
                sys::set_writable(page, PAGE, false);
                let last = self.hot_count.get() - 1;
                self.hot_count.set(last);
                self.hot[index].set(self.hot[last].get());
                idle.set(self.idle[last].get());
                self.unused[index].set(self.unused[last].get());
                self.lines[index].set(self.lines[last].get());
                self.compared[index].set(self.compared[last].get());
            }
        }
    }

    /// Compares all memory with the snapshot, except the words at `but`.
    fn is_as_it_was(&self, but: usize) -> bool {
        let saved = table().iter().map(Cell::get).filter(|entry| *entry != 0);
        let mut pages = saved.map(|entry| {
            let page = (entry & ((1 << NUMBER_BITS) - 1)) as usize * PAGE;
            (page, place((entry >> NUMBER_BITS) as usize - 1))
        });
        pages.all(|(page, saved)| is_same(page, saved, but))
    }
}

fn word(at: usize) -> u64 {
    // SAFETY: callers pass words of readable pages.
    unsafe { (at as *const u64).read_volatile() }
}

/// Compares two pages, except the words at `but`.
fn is_same(page: usize, saved: usize, but: usize) -> bool {
    (0..PAGE)
        .step_by(8)
        .all(|at| word(page + at) == word(saved + at) || (but..but + RSEQ).contains(&(page + at)))
}

fn is_clear(page: usize) -> bool {
    (0..PAGE).step_by(8).all(|at| word(page + at) == 0)
}

/// The number of bytes of `struct rseq` that the kernel updates.
const RSEQ: usize = 32;

fn read_words(at: usize) -> [u64; RSEQ / 8] {
    // SAFETY: callers pass the area that glibc registered with the kernel.
    unsafe { (at as *const [u64; RSEQ / 8]).read_volatile() }
}

fn write_words(at: usize, words: [u64; RSEQ / 8]) {
    // SAFETY: as above.
    unsafe { (at as *mut [u64; RSEQ / 8]).write_volatile(words) };
}

/// Copies a page. Does not use a function of the C library, because the program may have replaced it.
fn copy(to: usize, from: usize) {
    // SAFETY: both are complete pages, and callers make sure that they are mapped.
    unsafe {
        asm!("rep movsq", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") PAGE / 8 => _,
             options(nostack, preserves_flags));
    }
}

/// A page of zeros: the snapshot of every page that is not saved because it was zeros.
#[repr(C, align(4096))]
struct Zeros([u8; PAGE]);

static ZEROS: Zeros = Zeros([0; PAGE]);

fn or_zeros(saved: usize) -> usize {
    if saved == 0 { ZEROS.0.as_ptr() as usize } else { saved }
}

/// Restores the lines of a page that have changed, and returns them.
fn put_back_changes(page: usize, saved: usize) -> u64 {
    let saved = or_zeros(saved);
    let changed = (0..64).filter(|line| !is_same_line(page + line * LINE, saved + line * LINE));
    let changed = changed.fold(0, |bits, line| bits | 1 << line);
    put_back_lines(page, saved, changed);
    changed
}

fn put_back_lines(page: usize, saved: usize, lines: u64) {
    /// With more lines than this, copying the complete page takes less time.
    const MANY: u32 = 40;
    let saved = or_zeros(saved);
    if lines.count_ones() > MANY {
        return copy(page, saved);
    }
    let mut left = lines;
    while left != 0 {
        let line = left.trailing_zeros() as usize * LINE;
        copy_line(page + line, saved + line);
        left &= left - 1;
    }
}

fn is_same_line(one: usize, other: usize) -> bool {
    (0..LINE / 16).all(|part| {
        let at = |line: usize| (line + part * 16) as *const __m128i;
        // SAFETY: callers pass lines of readable pages.
        unsafe {
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(at(one)), _mm_load_si128(at(other)))) == 0xffff
        }
    })
}

fn copy_line(to: usize, from: usize) {
    for part in (0..LINE).step_by(16) {
        // SAFETY: callers pass lines of mapped pages; `to` is writable.
        unsafe {
            _mm_store_si128((to + part) as *mut __m128i, _mm_load_si128((from + part) as *const __m128i))
        };
    }
}

fn clear(page: usize) {
    // SAFETY: as above.
    unsafe {
        asm!("rep stosq", inout("rdi") page => _, in("rax") 0, inout("rcx") PAGE / 8 => _,
             options(nostack, preserves_flags));
    }
}
