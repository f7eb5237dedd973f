//! Preserves lazy bindings from one execution to the next.
//!
//! The loader resolves a function at its first call by a search by name. Each execution would repeat that
//! search, which takes a good part of the time of a small execution. So the addresses that one execution has
//! resolved are written into the snapshot.

use super::modules;
use super::snapshot::Snapshot;
use core::cell::Cell;

const MAX_MODULES: usize = 64;

/// A module that was loaded when the snapshot was taken.
#[derive(Clone, Copy)]
struct Module {
    /// Its load address, to which the addresses in the file are relative, and the range of its code.
    base: usize,
    code: (usize, usize),
    /// The address of its relocations for functions of other modules (`DT_JMPREL`), and their number.
    list: usize,
    count: usize,
}

pub struct Bindings {
    modules: [Cell<Module>; MAX_MODULES],
    count: Cell<usize>,
}

impl Bindings {
    /// Records the modules of the program.
    pub fn find(&self) {
        modules::each(|module| !self.add(module));
    }

    /// Adds a module. Returns false if there is no room.
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

    /// Called before memory is restored: writes resolved addresses into the snapshot, so that later
    /// executions find them.
    pub fn keep(&self, snapshot: &Snapshot) {
        for module in self.modules[..self.count.get()].iter().map(Cell::get) {
            for index in 0..module.count {
                // SAFETY: the entries are `Elf64_Rela` and lie in the module; each begins with the relocated
                // address.
                let slot = module.base + unsafe { *(module.list as *const [usize; 3]).add(index) }[0];
                // SAFETY: the loader has written an address there.
                let found = unsafe { (slot as *const usize).read() };
                if self.stays(found) {
                    snapshot.keep(slot, found);
                }
            }
        }
    }

    /// Whether this is code of a module that was loaded when the snapshot was taken. Libraries that an
    /// execution loads are gone when it is undone.
    pub fn stays(&self, address: usize) -> bool {
        let mut modules = self.modules[..self.count.get()].iter().map(Cell::get);
        modules.any(|module| (module.code.0..module.code.1).contains(&address))
    }
}

/// The address and the number of the relocations that the loader resolves at the first call. Both are 0 if
/// the loader resolves all functions before the program begins.
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
