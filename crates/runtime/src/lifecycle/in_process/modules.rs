//! The modules of the program, as the loader lists them: the executable and its libraries.

use core::ffi::c_int;

/// `Elf64_Phdr`.
#[repr(C)]
pub struct Segment {
    pub kind: u32,
    pub rights: u32,
    offset: usize,
    pub address: usize,
    physical: usize,
    file_size: usize,
    pub size: usize,
    align: usize,
}

/// `struct dl_phdr_info`, up to the last field that is used here.
#[repr(C)]
pub struct Module {
    /// Its load address, to which the addresses in the file are relative.
    pub base: usize,
    name: usize,
    segments: *const Segment,
    count: u16,
    /// How many modules the loader has added to the process so far.
    pub added: u64,
}

unsafe extern "C" {
    fn dl_iterate_phdr(
        each: extern "C" fn(*const Module, usize, *mut usize) -> c_int,
        data: *mut usize,
    ) -> c_int;
}

/// Calls `look` with each module until `look` returns true.
pub fn each(mut look: impl FnMut(&Module) -> bool) {
    extern "C" fn show<F: FnMut(&Module) -> bool>(
        module: *const Module,
        _size: usize,
        look: *mut usize,
    ) -> c_int {
        // SAFETY: `pass` passes a pointer to an `F`, and the loader passes a valid module.
        unsafe { (*look.cast::<F>())(&*module) as c_int }
    }
    fn pass<F: FnMut(&Module) -> bool>(look: &mut F) {
        // SAFETY: the callback gets the pointer that it expects. The loader does not call it after this call
        // returns.
        unsafe { dl_iterate_phdr(show::<F>, core::ptr::from_mut(look).cast()) };
    }
    pass(&mut look);
}

impl Module {
    /// Its program headers, for mapped segments and for other information.
    pub fn segments(&self) -> &[Segment] {
        // SAFETY: the loader says how many there are.
        unsafe { core::slice::from_raw_parts(self.segments, self.count.into()) }
    }

    /// The entries of its dynamic section: tag and value.
    pub fn dynamic(&self) -> impl Iterator<Item = [usize; 2]> {
        const DYNAMIC: u32 = 2;
        const END: usize = 0;
        let segment = self.segments().iter().find(|segment| segment.kind == DYNAMIC);
        let list = segment.map(|segment| (self.base + segment.address) as *const [usize; 2]);
        let entries = list.into_iter().flat_map(|list| {
            // SAFETY: the list ends with an entry of this tag, and the iterator stops there.
            (0..).map(move |index| unsafe { *list.add(index) })
        });
        entries.take_while(|[kind, _]| *kind != END)
    }

    /// The address that a value stands for. The loader has relocated most such values already.
    pub fn address(&self, value: usize) -> usize {
        if value < self.base { self.base + value } else { value }
    }
}
