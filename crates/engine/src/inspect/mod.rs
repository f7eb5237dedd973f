//! Looks into a process that is paused: where its threads are, and what the objects are called that they use.
//!
//! [`Symbols`] keeps what was parsed of the program's files, over any number of processes; a [`View`] is one look into
//! one process. Whatever is missing or broken in a file makes the answer poorer, never an error: a frame is at worst
//! `module+0xoffset`.

mod debug_info;
mod dwarf_unit;
mod elf;
mod frame;
pub(crate) mod maps;
pub(crate) mod memory;
mod module;
mod named;
mod origin;
mod place;
mod qualified_name;
mod symbols;
#[cfg(test)]
mod tests;
mod types;
mod unwind;
mod variables;

pub use named::{NamedFunction, NoWay, Way, nearest};

pub(crate) use frame::ProgramFrame;

use debug_info::Spot;
use heisen_trace::{Frame, Stack};
use maps::Mapping;
use memory::StackMemory;
use module::Module;
use origin::{Identity, Origin};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};
use symbols::{demangle, demangle_object, is_mangled};
use unwind::{Cpu, Step};

/// The longest stack that is shown, in frames.
const LONGEST: usize = 64;

/// The longest stack that is unwound, with the frames that are left out.
const LONGEST_UNWOUND: usize = 256;

/// Registers of a paused thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The next instruction.
    pub rip: u64,
    /// The stack pointer.
    pub rsp: u64,
    /// The frame pointer, or any value that a function must preserve, as the rest.
    pub rbp: u64,
    /// To be preserved.
    pub rbx: u64,
    /// To be preserved.
    pub r12: u64,
    /// To be preserved.
    pub r13: u64,
    /// To be preserved.
    pub r14: u64,
    /// To be preserved.
    pub r15: u64,
}

impl From<[u64; 8]> for Registers {
    /// In the order of the fields.
    fn from([rip, rsp, rbp, rbx, r12, r13, r14, r15]: [u64; 8]) -> Registers {
        Registers { rip, rsp, rbp, rbx, r12, r13, r14, r15 }
    }
}

/// The files of programs, as far as they have been parsed. To be kept over many processes of the same program, as the
/// first look at each file is the slow one.
pub struct Symbols {
    /// None for a file that is not understood.
    modules: Vec<Option<Module>>,
    numbers: HashMap<Identity, usize>,
    hidden: Vec<PathBuf>,
    here: Vec<PathBuf>,
    moved: Option<Arc<Moved>>,
}

/// Instructions that were moved elsewhere (see `patch`), and where they come from.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// In order of their addresses.
    pub pieces: Vec<MovedPiece>,
    /// The address after the last.
    pub end: u64,
}

/// Code that stands for one instruction of the program, up to the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedPiece {
    /// Its first address.
    pub start: u64,
    /// The instruction; 0 if there is none.
    pub of: u64,
    /// By how much the stack pointer is lower than the program has it.
    pub lower: u64,
}

impl Moved {
    fn find(&self, address: u64) -> Option<&MovedPiece> {
        let before = self.pieces.partition_point(|piece| piece.start <= address);
        self.pieces[..before].last().filter(|piece| address < self.end && piece.of != 0)
    }
}

impl Symbols {
    /// With nothing parsed yet. Source files below the current directory will be shown relative to it.
    pub fn new() -> Symbols {
        Symbols {
            modules: Vec::new(),
            numbers: HashMap::new(),
            hidden: Vec::new(),
            here: place::here(),
            moved: None,
        }
    }

    /// Takes these for the instructions that they stand for.
    pub fn set_moved(&mut self, moved: Option<Arc<Moved>>) {
        self.moved = moved;
    }

    /// Shows the paths of source files in full, wherever they are.
    pub fn full_paths(&mut self) {
        self.here.clear();
    }

    /// Leaves the frames of this program or library out of all stacks. The file may be gone by the time of a look: it
    /// is known by its path, which is `/memfd:NAME` for one that is only in memory.
    pub fn hide(&mut self, path: &Path) {
        // The kernel shows paths without symbolic links.
        if let Ok(path) = path.canonicalize() {
            self.hidden.push(path);
        }
        self.hidden.push(path.to_owned());
    }

    /// The number of the module behind a mapping, parsed before or now.
    fn module(&mut self, pid: i32, mapping: &Mapping, main: bool) -> Option<usize> {
        let (identity, origin) = Origin::of(pid, mapping, main)?;
        let number = *self.numbers.entry(identity).or_insert_with(|| {
            let system = !main && (mapping.inode == 0 || place::is_system(&mapping.path.to_string_lossy()));
            let module = origin.open().ok().and_then(|source| Module::new(&mapping.path, system, source));
            self.modules.push(module);
            self.modules.len() - 1
        });
        self.modules[number].as_ref().map(|_| number)
    }
}

impl Default for Symbols {
    fn default() -> Symbols {
        Symbols::new()
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modules: Vec<_> = self.modules.iter().flatten().map(|module| &module.name).collect();
        f.debug_struct("Symbols")
            .field("modules", &modules)
            .field("hidden", &self.hidden)
            .finish_non_exhaustive()
    }
}

/// A module where one process has it.
#[derive(Debug)]
struct Image {
    module: usize,
    /// What loading added to the addresses in the file.
    bias: u64,
    start: u64,
    end: u64,
    /// Whether it is the main executable.
    main: bool,
}

/// A piece of the code of a process that is one place, as far as is known.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// The file it was loaded from.
    pub module: String,
    /// Whether that is a library of the system.
    pub system: bool,
    /// Whether that has debug information.
    pub has_lines: bool,
    /// Whether that is the main executable.
    pub main: bool,
    /// The function, preceded by those that are inlined there.
    pub frames: Vec<Frame>,
}

/// A module where one process has it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The file it was loaded from.
    pub path: PathBuf,
    /// Whether that is a library of the system.
    pub system: bool,
    /// Whether that is the main executable.
    pub main: bool,
    /// Its number here.
    image: usize,
}

impl Loaded {
    /// One that no process has.
    #[cfg(test)]
    pub(crate) fn of(path: &str, system: bool, main: bool) -> Loaded {
        Loaded { path: path.into(), system, main, image: 0 }
    }
}

/// A look into a process, which must stay paused while it lasts.
pub struct View<'a> {
    symbols: &'a mut Symbols,
    pid: i32,
    mappings: Vec<Mapping>,
    images: Vec<Image>,
}

impl View<'_> {
    /// Reads what is mapped where in the process.
    pub fn new(symbols: &mut Symbols, pid: i32) -> io::Result<View<'_>> {
        let mappings = maps::read(pid)?;
        let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let exe = exe.to_string_lossy();
        let exe = Path::new(exe.strip_suffix(" (deleted)").unwrap_or(&exe));
        let mut images: Vec<Image> = Vec::new();
        // Only with code in it is a mapped file a program or library, and not something that is read.
        for mapping in mappings.iter().filter(|mapping| mapping.executable) {
            let main = mapping.path == exe;
            let Some(number) = symbols.module(pid, mapping, main) else { continue };
            let Some(module) = &symbols.modules[number] else { continue };
            let Some(bias) = module.bias(mapping.offset, mapping.start) else { continue };
            let Some((start, end)) = module.extent() else { continue };
            if images.iter().any(|image| image.module == number && image.bias == bias) {
                continue;
            }
            images.push(Image {
                module: number,
                bias,
                start: start.wrapping_add(bias),
                end: end.wrapping_add(bias),
                main,
            });
        }
        Ok(View { symbols, pid, mappings, images })
    }

    /// Reads words of the process's memory; an error if not all can be read.
    pub fn read_words(&self, address: u64, out: &mut [u64]) -> io::Result<()> {
        memory::read_words(self.pid, address, out)
    }

    /// The stack of a thread, innermost frame first, with inlined functions as frames of their own and without the
    /// frames of hidden modules; at most 64 frames.
    pub fn stack(&mut self, registers: Registers) -> Stack {
        self.stack_in(registers, StackMemory::new(self.pid))
    }

    /// The same, of a thread whose registers and memory were taken before.
    pub(crate) fn stack_in(&mut self, registers: Registers, mut memory: StackMemory) -> Stack {
        let mut cpu = Cpu::new(registers);
        // Only the innermost frame, and one that a signal interrupted, is at its next instruction. All others are
        // behind a call, which may be the last instruction of a function or line.
        let mut after_call = false;
        let mut frames = Vec::new();
        for depth in 0..LONGEST_UNWOUND {
            let Some(mut pc) = cpu.pc() else { break };
            if let Some(moved) = self.symbols.moved.as_ref().and_then(|moved| moved.find(pc)) {
                pc = moved.of;
                cpu.be_at(moved.of, moved.lower);
                after_call = false;
            }
            let call = call_of(pc, after_call);
            if depth > 0 && !self.is_code(call) {
                break;
            }
            if !self.is_hidden(call) {
                frames.extend(self.frame_at(call, false));
            }
            if frames.len() >= LONGEST {
                break;
            }
            after_call = match self.step(&mut cpu, call, &mut memory) {
                Step::Caller => true,
                Step::Interrupted => false,
                Step::Unknown if unwind::guess(&mut cpu, depth == 0, |pc| self.is_code(pc), &mut memory) => {
                    true
                }
                Step::Unknown | Step::End => break,
            };
        }
        frames.truncate(LONGEST);
        Stack(frames)
    }

    fn step(&self, cpu: &mut Cpu, pc: u64, memory: &mut StackMemory) -> Step {
        let Some(image) = self.image(pc) else { return Step::Unknown };
        match self.module(image).and_then(Module::unwind) {
            Some(tables) => tables.step(pc.wrapping_sub(image.bias), image.bias, cpu, memory),
            None => Step::Unknown,
        }
    }

    /// What is at a code address: the function, preceded by those that are inlined there, innermost first. A return
    /// address stands for the call before it. Never empty.
    pub fn frame_at(&mut self, pc: u64, is_return_address: bool) -> Vec<Frame> {
        let pc = call_of(pc, is_return_address);
        let Some((image, module)) = self.image(pc).and_then(|image| Some((image, self.module(image)?)))
        else {
            return vec![Frame { function: format!("{pc:#x}"), ..Frame::default() }];
        };
        let address = pc.wrapping_sub(image.bias);
        let mut spots = module.debug().map_or_else(Vec::new, |debug| debug.spots(address));
        if spots.is_empty() {
            spots.push(Spot::default());
        }
        // Only the outermost function has a symbol here. That is also asked where short debug information has left
        // out what is around a name.
        if let Some(spot) = spots.last_mut()
            && spot.function.as_ref().is_none_or(|name| !is_mangled(name) && !name.contains("::"))
            && let Some(symbol) = module.symbols().function(address)
            && (spot.function.is_none() || is_mangled(&symbol.name()))
        {
            spot.function = Some(symbol.name());
        }
        let frame = |spot: Spot| {
            let function =
                spot.function.map_or_else(|| format!("{}+{address:#x}", module.name), |n| demangle(&n));
            let file = spot.file.map(|file| place::shown(&file, &[]));
            let own = place::is_own(file.as_deref(), &function, module.system, image.main);
            Frame {
                function,
                file: file.map(|file| place::shown(&file, &self.symbols.here)),
                line: spot.line,
                own,
                module: module.name.clone(),
            }
        };
        spots.into_iter().map(frame).collect()
    }

    /// The modules of the process, but hidden ones.
    pub fn modules(&self) -> Vec<Loaded> {
        let loaded = |(number, image): (usize, &Image)| {
            let module = self.module(image)?;
            let hidden = self.symbols.hidden.iter().any(|hidden| hidden == module.path());
            (!hidden).then(|| Loaded {
                path: module.path().to_owned(),
                system: module.system,
                main: image.main,
                image: number,
            })
        };
        self.images.iter().enumerate().filter_map(loaded).collect()
    }

    /// The code of a module as its file has it, by the addresses where it was loaded.
    pub fn code_of(&self, loaded: &Loaded) -> Vec<(u64, Vec<u8>)> {
        let image = &self.images[loaded.image];
        let code = self.module(image).map_or_else(Vec::new, Module::code);
        code.into_iter().map(|(address, bytes)| (address.wrapping_add(image.bias), bytes)).collect()
    }

    /// Where a module keeps the addresses of functions that others may define, of those that are named here; with their
    /// number among the names.
    pub fn imports_of(&self, loaded: &Loaded, names: &[&str]) -> Vec<(usize, u64)> {
        let image = &self.images[loaded.image];
        let imports = self.module(image).map_or_else(Vec::new, |module| module.imports(names));
        imports.into_iter().map(|(number, at)| (number, at.wrapping_add(image.bias))).collect()
    }

    /// The functions of these names that a module defines for others; 0 for those it does not.
    pub fn exports_of(&self, loaded: &Loaded, names: &[&str]) -> Vec<u64> {
        let image = &self.images[loaded.image];
        let exports = self.module(image).map_or_else(Vec::new, |module| module.exports(names));
        exports.into_iter().map(|at| if at == 0 { 0 } else { at.wrapping_add(image.bias) }).collect()
    }

    /// First address and end of its functions, where they were loaded, in order.
    pub fn functions_of(&self, loaded: &Loaded) -> Vec<(u64, u64)> {
        let image = &self.images[loaded.image];
        let functions = self.module(image).map_or_else(Vec::new, Module::functions);
        let moved = |address: u64| address.wrapping_add(image.bias);
        functions.into_iter().map(|(start, end)| (moved(start), moved(end))).collect()
    }

    /// Addresses and demangled names of the functions of a module whose mangled names have one of these parts.
    pub fn functions_with(&self, loaded: &Loaded, parts: &[&str]) -> Vec<(u64, String)> {
        let image = &self.images[loaded.image];
        let functions = self.module(image).map(|module| module.symbols().named()).into_iter().flatten();
        let named = functions.map(|symbol| (symbol.address.wrapping_add(image.bias), symbol.name()));
        let named = named.filter(|(_, name)| parts.iter().any(|part| name.contains(part)));
        named.map(|(address, name)| (address, demangle(&name))).collect()
    }

    /// The name, demangled, of the function of a module that holds an address.
    pub fn function_name(&self, loaded: &Loaded, address: u64) -> Option<String> {
        let image = &self.images[loaded.image];
        let symbol = self.module(image)?.symbols().function(address.wrapping_sub(image.bias))?;
        Some(demangle(&symbol.name()))
    }

    /// All code of the process but that of hidden modules, in small pieces, by their addresses.
    pub fn code(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        for image in &self.images {
            let Some(module) = self.module(image) else { continue };
            if self.symbols.hidden.iter().any(|hidden| hidden == module.path()) {
                continue;
            }
            out.extend(module.pieces().into_iter().map(|(start, end)| Piece {
                start: start.wrapping_add(image.bias),
                end: end.wrapping_add(image.bias),
                module: module.path().to_string_lossy().into_owned(),
                system: module.system,
                has_lines: module.debug().is_some(),
                main: image.main,
                frames: Vec::new(),
            }));
        }
        for piece in &mut out {
            piece.frames = self.frame_at(piece.start, false);
        }
        out.sort_by_key(|piece| piece.start);
        out
    }

    /// The name of the global or static variable that holds this address, with the way to it inside of the variable
    /// (`forks[1]`, `queue.slots[3].lock`), as far as the debug information tells; otherwise `name+0x28`. None for
    /// addresses on the heap or on a stack.
    pub fn object_name(&mut self, address: u64) -> Option<String> {
        let image = self.image(address)?;
        let module = self.module(image)?;
        let address = address.wrapping_sub(image.bias);
        let symbol = module.symbols().object(address);
        let size = symbol.map(|symbol| symbol.size);
        module.debug().and_then(|debug| debug.variable(address, size)).or_else(|| {
            let symbol = symbol?;
            let name = demangle_object(&symbol.name());
            let offset = address - symbol.address;
            Some(if offset == 0 { name } else { format!("{name}+{offset:#x}") })
        })
    }

    fn image(&self, address: u64) -> Option<&Image> {
        self.images.iter().find(|image| (image.start..image.end).contains(&address))
    }

    fn module(&self, image: &Image) -> Option<&Module> {
        self.symbols.modules[image.module].as_ref()
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let end = self.mappings.partition_point(|mapping| mapping.start <= address);
        self.mappings[..end].last().filter(|mapping| address < mapping.end)
    }

    /// Whether two addresses are in the same mapping of memory.
    pub fn in_one_mapping(&self, one: u64, other: u64) -> bool {
        self.mapping(one).is_some_and(|mapping| (mapping.start..mapping.end).contains(&other))
    }

    /// Whether an address is in memory with code in it.
    fn is_code(&self, address: u64) -> bool {
        self.mapping(address).is_some_and(|mapping| mapping.executable)
    }

    /// Whether an address is in a hidden module, whether or not its file can be read.
    fn is_hidden(&self, address: u64) -> bool {
        self.mapping(address).is_some_and(|mapping| self.symbols.hidden.contains(&mapping.path))
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("pid", &self.pid).field("images", &self.images).finish_non_exhaustive()
    }
}

/// The address that stands for a frame: of the instruction itself, or of the last byte of the call before it.
fn call_of(pc: u64, after_call: bool) -> u64 {
    if after_call { pc.saturating_sub(1) } else { pc }
}
