//! Functions that the program calls are found at their first call, as it is linked: a search by name that each execution would
//! begin anew, and that would be a good part of a small one. What an execution has found out is kept.

use super::modules;
use super::snapshot::Snapshot;
use core::cell::Cell;

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

impl Bindings {
    /// Looks at the modules of the program.
    pub fn find(&self) {
        modules::each(|module| !self.add(module));
    }

    /// Adds one; whether there is room for more.
    fn add(&self, module: &modules::Module) -> bool {
        const LOADED: u32 = 1;
        const EXECUTABLE: u32 = 1;
        let (list, count) = functions(module);
        let mut added = Module { base: module.base, code: (0, 0), list, count };
        for segment in module.segments() {
            if segment.kind == LOADED && segment.rights & EXECUTABLE != 0 {
                let at = module.base + segment.address;
                added.code = (at, at + segment.size);
            }
        }
        let count = self.count.get();
        if count == MAX_MODULES {
            return false;
        }
        self.modules[count].set(added);
        self.count.set(count + 1);
        true
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

/// The list of functions that are found when they are called: where it is and how many they are. None if all are found before
/// the program begins.
fn functions(module: &modules::Module) -> (usize, usize) {
    const SIZE: usize = 2;
    const LIST: usize = 23;
    const AT_ONCE: usize = 24;
    const FLAGS: usize = 30;
    const FLAGS_1: usize = 0x6fff_fffb;
    const BIND_NOW: usize = 8;
    const NOW: usize = 1;
    let (mut list, mut size) = (0, 0);
    for [kind, value] in module.dynamic() {
        match kind {
            LIST => list = module.address(value),
            SIZE => size = value,
            AT_ONCE => return (0, 0),
            FLAGS if value & BIND_NOW != 0 => return (0, 0),
            FLAGS_1 if value & NOW != 0 => return (0, 0),
            _ => {}
        }
    }
    (list, if list == 0 { 0 } else { size / size_of::<[usize; 3]>() })
}
