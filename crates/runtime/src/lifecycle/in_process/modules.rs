//! The modules of the program, as the loader tells of them: the program itself and its libraries.

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

/// `struct dl_phdr_info`, as far as it is of use here.
#[repr(C)]
pub struct Module {
    /// What addresses in it are relative to.
    pub base: usize,
    name: usize,
    segments: *const Segment,
    count: u16,
    /// How often modules were added to the process.
    pub added: u64,
}

unsafe extern "C" {
    fn dl_iterate_phdr(
        each: extern "C" fn(*const Module, usize, *mut usize) -> c_int,
        data: *mut usize,
    ) -> c_int;
}

/// Shows each of them to `look`, until that has seen enough.
pub fn each(mut look: impl FnMut(&Module) -> bool) {
    extern "C" fn show<F: FnMut(&Module) -> bool>(
        module: *const Module,
        _size: usize,
        look: *mut usize,
    ) -> c_int {
        // SAFETY: what is passed below, and what the loader passes.
        unsafe { (*look.cast::<F>())(&*module) as c_int }
    }
    fn pass<F: FnMut(&Module) -> bool>(look: &mut F) {
        // SAFETY: the function gets what it expects, and is not called any more after this.
        unsafe { dl_iterate_phdr(show::<F>, core::ptr::from_mut(look).cast()) };
    }
    pass(&mut look);
}

impl Module {
    /// The parts of it that are mapped, and what else it has.
    pub fn segments(&self) -> &[Segment] {
        // SAFETY: so many of them are there.
        unsafe { core::slice::from_raw_parts(self.segments, self.count.into()) }
    }

    /// What it says of how it is linked: kinds of entries, and their values.
    pub fn dynamic(&self) -> impl Iterator<Item = [usize; 2]> {
        const DYNAMIC: u32 = 2;
        const END: usize = 0;
        let segment = self.segments().iter().find(|segment| segment.kind == DYNAMIC);
        let list = segment.map(|segment| (self.base + segment.address) as *const [usize; 2]);
        let entries = list.into_iter().flat_map(|list| {
            // SAFETY: the list ends with an entry of that kind, after which no more is asked for.
            (0..).map(move |index| unsafe { *list.add(index) })
        });
        entries.take_while(|[kind, _]| *kind != END)
    }

    /// A value that is an address: of most, the loader has made one already.
    pub fn address(&self, value: usize) -> usize {
        if value < self.base { self.base + value } else { value }
    }
}
