//! Functions that the program calls are found at their first call, as it is linked: a search by name that each execution would
//! begin anew, and that would be a good part of a small one. What an execution has found out is kept.

use super::snapshot::Snapshot;
use core::cell::Cell;
use core::ffi::c_int;

const MAX_MODULES: usize = 64;

/// A module of the program that was there when it was saved.
#[derive(Clone, Copy)]
struct Module {
    /// What addresses in it are relative to, and where its code is.
    base: usize,
    code: (usize, usize),
    /// Where its list of functions of others is, and how many they are.
    list: usize,
    count: usize,
}

pub struct Bindings {
    modules: [Cell<Module>; MAX_MODULES],
    count: Cell<usize>,
}

/// `Elf64_Phdr`.
#[repr(C)]
pub(super) struct Segment {
    kind: u32,
    rights: u32,
    offset: usize,
    address: usize,
    physical: usize,
    file_size: usize,
    size: usize,
    align: usize,
}

/// The beginning of `struct dl_phdr_info`.
#[repr(C)]
pub(super) struct Info {
    pub(super) base: usize,
    name: usize,
    segments: *const Segment,
    count: u16,
    /// How often modules were added.
    pub(super) added: u64,
}

unsafe extern "C" {
    pub(super) fn dl_iterate_phdr(
        each: extern "C" fn(*const Info, usize, *mut usize) -> c_int,
        data: *mut usize,
    ) -> c_int;
}

impl Bindings {
    /// Looks at the modules of the program.
    pub fn find(&self) {
        let at = core::ptr::from_ref(self) as *mut usize;
        // SAFETY: the function gets what it expects.
        unsafe { dl_iterate_phdr(add, at) };
    }

    /// Before memory is put back: what has been found is kept, so that it is there in later executions.
    pub fn keep(&self, snapshot: &Snapshot) {
        for module in self.modules[..self.count.get()].iter().map(Cell::get) {
            for index in 0..module.count {
                // SAFETY: entries of `Elf64_Rela`, which lie in the module; each begins with the place.
                let slot = module.base + unsafe { *(module.list as *const [usize; 3]).add(index) }[0];
                // SAFETY: the loader has put an address there.
                let found = unsafe { (slot as *const usize).read() };
                if self.stays(found) {
                    snapshot.keep(slot, found);
                }
            }
        }
    }

    /// Whether this is code that was there when the program was saved: other libraries are gone when an execution is undone.
    pub fn stays(&self, address: usize) -> bool {
        let mut modules = self.modules[..self.count.get()].iter().map(Cell::get);
        modules.any(|module| (module.code.0..module.code.1).contains(&address))
    }
}

fn segments(info: &Info) -> &[Segment] {
    // SAFETY: so many of them are there.
    unsafe { core::slice::from_raw_parts(info.segments, info.count.into()) }
}

const DYNAMIC: u32 = 2;

/// Where a module says what it is linked with.
pub(super) fn dynamic_of(info: &Info) -> Option<usize> {
    let segment = segments(info).iter().find(|segment| segment.kind == DYNAMIC)?;
    Some(info.base + segment.address)
}

extern "C" fn add(info: *const Info, _size: usize, bindings: *mut usize) -> c_int {
    const LOADED: u32 = 1;
    const EXECUTABLE: u32 = 1;
    // SAFETY: what `find` passes, and what the loader does.
    let (info, bindings) = unsafe { (&*info, &*(bindings as *const Bindings)) };
    let mut module = Module { base: info.base, code: (0, 0), list: 0, count: 0 };
    for segment in segments(info) {
        let at = info.base + segment.address;
        match segment.kind {
            LOADED if segment.rights & EXECUTABLE != 0 => module.code = (at, at + segment.size),
            DYNAMIC => (module.list, module.count) = functions(at, info.base),
            _ => {}
        }
    }
    let count = bindings.count.get();
    if count == MAX_MODULES {
        return 1;
    }
    bindings.modules[count].set(module);
    bindings.count.set(count + 1);
    0
}

/// The list of functions that are found when they are called: where it is and how many they are. None if all are found before
/// the program begins.
fn functions(dynamic: usize, base: usize) -> (usize, usize) {
    const END: usize = 0;
    const SIZE: usize = 2;
    const LIST: usize = 23;
    const AT_ONCE: usize = 24;
    const FLAGS: usize = 30;
    const FLAGS_1: usize = 0x6fff_fffb;
    const BIND_NOW: usize = 8;
    const NOW: usize = 1;
    let (mut list, mut size) = (0, 0);
    for index in 0.. {
        // SAFETY: the list ends with an entry of kind 0.
        let [kind, value] = unsafe { *(dynamic as *const [usize; 2]).add(index) };
        match kind {
            END => break,
            // The loader has made addresses of them, mostly.
            LIST => list = if value < base { base + value } else { value },
            SIZE => size = value,
            AT_ONCE => return (0, 0),
            FLAGS if value & BIND_NOW != 0 => return (0, 0),
            FLAGS_1 if value & NOW != 0 => return (0, 0),
            _ => {}
        }
    }
    (list, if list == 0 { 0 } else { size / size_of::<[usize; 3]>() })
}
