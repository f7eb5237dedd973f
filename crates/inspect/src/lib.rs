//! Inspects a paused process: finds the stacks of its threads and the names of the objects that they use.
//!
//! [`Symbols`] caches the parsed files of a program over any number of processes. A [`View`] inspects one
//! process. A missing or damaged file never causes an error, only a less detailed answer: at worst a frame is
//! `module+0xoffset`.
//!
//! This crate only reads processes and files. It does not know the wire, plans or checks.

mod debug_info;
mod dwarf_unit;
mod elf;
mod frame;
pub mod maps;
pub mod memory;
mod module;
mod name_lookup;
pub mod names;
mod origin;
mod place;
mod qualified_name;
mod symbols;
#[cfg(test)]
mod tests;
mod types;
mod unwind;
pub mod value;
mod value_types;
mod variables;

pub use name_lookup::{NamedFunction, PathError, VariablePath, nearest};

pub use frame::ProgramFrame;

use debug_info::Spot;
use heisen_trace::{Frame, Stack};
use maps::Mapping;
use memory::StackMemory;
use module::Module;
use origin::{Identity, Origin};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};
use symbols::{demangle, demangle_object, is_mangled};
use unwind::{Cpu, Step};
use value::ValueType;

/// The longest stack that reports show, in frames.
const LONGEST: usize = 64;

/// The longest stack that is unwound, hidden frames included.
const LONGEST_UNWOUND: usize = 256;

/// Registers of a paused thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The next instruction.
    pub rip: u64,
    /// The stack pointer.
    pub rsp: u64,
    /// The frame pointer, or any other value that functions must preserve, like the registers below.
    pub rbp: u64,
    /// A register that functions must preserve.
    pub rbx: u64,
    /// A register that functions must preserve.
    pub r12: u64,
    /// A register that functions must preserve.
    pub r13: u64,
    /// A register that functions must preserve.
    pub r14: u64,
    /// A register that functions must preserve.
    pub r15: u64,
}

impl From<[u64; 8]> for Registers {
    /// In the order of the fields.
    fn from([rip, rsp, rbp, rbx, r12, r13, r14, r15]: [u64; 8]) -> Registers {
        Registers { rip, rsp, rbp, rbx, r12, r13, r14, r15 }
    }
}

/// The parsed files of programs. Reuse it for many processes of one program: only the first use of each file
/// is slow.
pub struct Symbols {
    /// `None` for a file that cannot be parsed.
    modules: Vec<Option<Module>>,
    numbers: HashMap<Identity, usize>,
    hidden: Vec<PathBuf>,
    here: Vec<PathBuf>,
    moved: Option<Arc<Moved>>,
    /// The demangled names of functions. A program has far more places than functions and files.
    names: RefCell<HashMap<String, String>>,
    /// The paths of source files: without `.` and `..`, and as they are shown.
    files: RefCell<HashMap<String, (String, String)>>,
}

/// Instructions that `patch` moved elsewhere, with their original addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// In order of their addresses.
    pub pieces: Vec<MovedPiece>,
    /// The address after the last.
    pub end: u64,
}

/// Code that replaces one instruction of the program. It extends to the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedPiece {
    /// Its first address.
    pub start: u64,
    /// The address of the replaced instruction; 0 if this piece replaces no instruction.
    pub of: u64,
    /// How much lower the stack pointer is here than in the program's own code.
    pub lower: u64,
}

impl Moved {
    fn find(&self, address: u64) -> Option<&MovedPiece> {
        let before = self.pieces.partition_point(|piece| piece.start <= address);
        self.pieces[..before].last().filter(|piece| address < self.end && piece.of != 0)
    }
}

impl Symbols {
    /// Creates an empty cache. Source files below the current directory will be shown relative to it.
    pub fn new() -> Symbols {
        Symbols {
            modules: Vec::new(),
            numbers: HashMap::new(),
            hidden: Vec::new(),
            here: place::here(),
            moved: None,
            names: RefCell::default(),
            files: RefCell::default(),
        }
    }

    fn demangled(&self, name: String) -> String {
        self.names.borrow_mut().entry(name).or_insert_with_key(|name| demangle(name)).clone()
    }

    /// The path of a source file without `.` and `..`, and as it is shown.
    fn paths(&self, file: String) -> (String, String) {
        let mut files = self.files.borrow_mut();
        let paths = files.entry(file).or_insert_with_key(|file| {
            let whole = place::shown(file, &[]);
            let shown = place::shown(&whole, &self.here);
            (whole, shown)
        });
        paths.clone()
    }

    /// From now on, treats addresses in moved code as the addresses of the original instructions.
    pub fn set_moved(&mut self, moved: Option<Arc<Moved>>) {
        self.moved = moved;
    }

    /// Shows the paths of source files in full, wherever they are.
    pub fn full_paths(&mut self) {
        self.here.clear();
        self.files.get_mut().clear();
    }

    /// Leaves the frames of this program or library out of all stacks. The file may be deleted before a
    /// process is inspected, so it is identified by its path. A file that exists only in memory has the path
    /// `/memfd:NAME`.
    pub fn hide(&mut self, path: &Path) {
        // The kernel shows paths without symbolic links.
        if let Ok(path) = path.canonicalize() {
            self.hidden.push(path);
        }
        self.hidden.push(path.to_owned());
    }

    /// The index of the module behind a mapping; parses the module if that has not happened yet.
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

/// A module as one process has loaded it.
#[derive(Debug)]
struct Image {
    module: usize,
    /// The load bias: what the loader added to the addresses in the file.
    bias: u64,
    start: u64,
    end: u64,
    /// Whether it is the main executable.
    main: bool,
}

/// A range of a process's code that belongs to one source place, as far as the debug information tells.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// The file it was loaded from.
    pub module: String,
    /// Whether the module is a library of the system.
    pub system: bool,
    /// Whether the module has debug information.
    pub has_lines: bool,
    /// Whether the module is the main executable.
    pub main: bool,
    /// The function at this place, preceded by the functions inlined into it.
    pub frames: Vec<Frame>,
}

/// A module as one process has loaded it, for users of this crate.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The file it was loaded from.
    pub path: PathBuf,
    /// Whether it is a library of the system.
    pub system: bool,
    /// Whether it is the main executable.
    pub main: bool,
    /// Its index among the images of the view.
    image: usize,
}

impl Loaded {
    /// A module that belongs to no process.
    pub fn of(path: &str, system: bool, main: bool) -> Loaded {
        Loaded { path: path.into(), system, main, image: 0 }
    }
}

/// Inspects one process, which must stay paused while the view exists.
pub struct View<'a> {
    symbols: &'a mut Symbols,
    pid: i32,
    mappings: Vec<Mapping>,
    images: Vec<Image>,
}

impl View<'_> {
    /// Reads the mappings of the process and finds its modules.
    pub fn new(symbols: &mut Symbols, pid: i32) -> io::Result<View<'_>> {
        let mappings = maps::read(pid)?;
        let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let exe = exe.to_string_lossy();
        let exe = Path::new(exe.strip_suffix(" (deleted)").unwrap_or(&exe));
        let mut images: Vec<Image> = Vec::new();
        // A mapped file without code is data, not a program or library.
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

    /// Reads words from the process's memory. Returns an error if a part cannot be read.
    pub fn read_words(&self, address: u64, out: &mut [u64]) -> io::Result<()> {
        memory::read_words(self.pid, address, out)
    }

    /// The stack of a thread, innermost frame first, at most 64 frames. Inlined functions are frames of their
    /// own; frames of hidden modules are left out.
    pub fn stack(&mut self, registers: Registers) -> Stack {
        self.stack_in(registers, StackMemory::new(self.pid))
    }

    /// The stack of a thread whose registers and memory were read earlier.
    pub fn stack_in(&mut self, registers: Registers, mut memory: StackMemory) -> Stack {
        let mut frames = Vec::new();
        for (call, _) in self.unwound(registers, &mut memory) {
            if !self.is_hidden(call) {
                frames.extend(self.frame_at(call, false));
            }
            if frames.len() >= LONGEST {
                break;
            }
        }
        frames.truncate(LONGEST);
        Stack(frames)
    }

    /// The frames of a thread, innermost first: the address of the instruction or call, and the registers.
    fn unwound(&self, registers: Registers, memory: &mut StackMemory) -> Vec<(u64, Cpu)> {
        let mut cpu = Cpu::new(registers);
        // Only the innermost frame, and a frame that a signal interrupted, point to their next instruction.
        // All others point behind a call, which may be the last instruction of a function or line.
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
            frames.push((call, cpu.clone()));
            after_call = match self.step(&mut cpu, call, memory) {
                Step::Caller => true,
                Step::Interrupted => false,
                Step::Unknown if unwind::guess(&mut cpu, depth == 0, |pc| self.is_code(pc), memory) => true,
                Step::Unknown | Step::End => break,
            };
        }
        frames
    }

    fn step(&self, cpu: &mut Cpu, pc: u64, memory: &mut StackMemory) -> Step {
        let Some(image) = self.image(pc) else { return Step::Unknown };
        match self.module(image).and_then(Module::unwind) {
            Some(tables) => tables.step(pc.wrapping_sub(image.bias), image.bias, cpu, memory),
            None => Step::Unknown,
        }
    }

    /// The functions at a code address, innermost first: inlined functions, then the function that contains
    /// them. A return address stands for the call before it. Never empty.
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
        // Only the outermost function has a symbol here. The symbol table also helps where terse debug
        // information omits the scopes of a name.
        if let Some(spot) = spots.last_mut()
            && spot.function.as_ref().is_none_or(|name| !is_mangled(name) && !name.contains("::"))
            && let Some(symbol) = module.symbols().function(address)
            && (spot.function.is_none() || is_mangled(&symbol.name()))
        {
            spot.function = Some(symbol.name());
        }
        let frame = |spot: Spot| {
            let function = spot
                .function
                .map_or_else(|| format!("{}+{address:#x}", module.name), |name| self.symbols.demangled(name));
            let (file, shown) = spot.file.map(|file| self.symbols.paths(file)).unzip();
            let own = place::is_own(file.as_deref(), &function, module.system, image.main);
            let dependency = place::is_dependency(file.as_deref(), module.system);
            Frame { function, file: shown, line: spot.line, own, dependency, module: module.name.clone() }
        };
        spots.into_iter().map(frame).collect()
    }

    /// The modules of the process, except hidden ones.
    pub fn modules(&self) -> Vec<Loaded> {
        let loaded = |(number, image): (usize, &Image)| {
            let module = self.module(image)?;
            (!self.hides(module)).then(|| Loaded {
                path: module.path().to_owned(),
                system: module.system,
                main: image.main,
                image: number,
            })
        };
        self.images.iter().enumerate().filter_map(loaded).collect()
    }

    /// The code of a module, as in its file, by the addresses to which it was loaded.
    pub fn code_of(&self, loaded: &Loaded) -> Vec<(u64, Vec<u8>)> {
        let image = &self.images[loaded.image];
        let code = self.module(image).map_or_else(Vec::new, Module::code);
        code.into_iter().map(|(address, bytes)| (address.wrapping_add(image.bias), bytes)).collect()
    }

    /// The slots in which a module holds the addresses of imported functions. Only functions in `names`
    /// count; each slot comes with its index in `names`.
    pub fn imports_of(&self, loaded: &Loaded, names: &[&str]) -> Vec<(usize, u64)> {
        let image = &self.images[loaded.image];
        let imports = self.module(image).map_or_else(Vec::new, |module| module.imports(names));
        imports.into_iter().map(|(number, at)| (number, at.wrapping_add(image.bias))).collect()
    }

    /// The addresses of the functions in `names` that a module exports; 0 for a function that it does not
    /// export.
    pub fn exports_of(&self, loaded: &Loaded, names: &[&str]) -> Vec<u64> {
        let image = &self.images[loaded.image];
        let exports = self.module(image).map_or_else(Vec::new, |module| module.exports(names));
        exports.into_iter().map(|at| if at == 0 { 0 } else { at.wrapping_add(image.bias) }).collect()
    }

    /// First address and end of each function of a module, as loaded, in order.
    pub fn functions_of(&self, loaded: &Loaded) -> Vec<(u64, u64)> {
        let image = &self.images[loaded.image];
        let functions = self.module(image).map_or_else(Vec::new, Module::functions);
        let moved = |address: u64| address.wrapping_add(image.bias);
        functions.into_iter().map(|(start, end)| (moved(start), moved(end))).collect()
    }

    /// Addresses and demangled names of the functions of a module whose mangled name contains one of `parts`.
    pub fn functions_with(&self, loaded: &Loaded, parts: &[&str]) -> Vec<(u64, String)> {
        let image = &self.images[loaded.image];
        let functions = self.module(image).map(|module| module.symbols().named()).into_iter().flatten();
        let named = functions.map(|symbol| (symbol.address.wrapping_add(image.bias), symbol.name()));
        let named = named.filter(|(_, name)| parts.iter().any(|part| name.contains(part)));
        named.map(|(address, name)| (address, demangle(&name))).collect()
    }

    /// The demangled name of the function of a module that holds an address.
    pub fn function_name(&self, loaded: &Loaded, address: u64) -> Option<String> {
        let image = &self.images[loaded.image];
        let symbol = self.module(image)?.symbols().function(address.wrapping_sub(image.bias))?;
        Some(demangle(&symbol.name()))
    }

    /// All code of the process outside hidden modules, in pieces of one place each, by address.
    pub fn code(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        for image in &self.images {
            let Some(module) = self.module(image) else { continue };
            if self.hides(module) {
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

    /// The global or static variable that holds this address, with the path to the address inside it
    /// (`forks[1]`, `queue.slots[3].lock`). Without debug information for the path it is `name+0x28`. `None`
    /// for addresses on the heap or on a stack.
    pub fn object_name(&self, address: u64) -> Option<String> {
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

    /// The type of the value of `size` bytes at an address in a global or static variable.
    pub fn global_type(&self, address: u64, size: u8) -> Option<ValueType> {
        let image = self.image(address)?;
        self.module(image)?.debug()?.value_type(address.wrapping_sub(image.bias), size)
    }

    /// The global variable or function that begins at an address.
    pub fn symbol_at(&self, address: u64) -> Option<String> {
        let image = self.image(address)?;
        let symbols = self.module(image)?.symbols();
        let at = address.wrapping_sub(image.bias);
        let symbol =
            symbols.object(at).or_else(|| symbols.function(at)).filter(|symbol| symbol.address == at)?;
        Some(names::short(&demangle_object(&symbol.name())))
    }

    fn image(&self, address: u64) -> Option<&Image> {
        self.images.iter().find(|image| (image.start..image.end).contains(&address))
    }

    fn module(&self, image: &Image) -> Option<&Module> {
        self.symbols.modules[image.module].as_ref()
    }

    /// Whether the frames of a module are left out.
    fn hides(&self, module: &Module) -> bool {
        self.symbols.hidden.iter().any(|hidden| hidden == module.path())
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let end = self.mappings.partition_point(|mapping| mapping.start <= address);
        self.mappings[..end].last().filter(|mapping| address < mapping.end)
    }

    /// Whether two addresses lie in the same mapping.
    pub fn in_one_mapping(&self, one: u64, other: u64) -> bool {
        self.mapping(one).is_some_and(|mapping| (mapping.start..mapping.end).contains(&other))
    }

    /// Whether an address lies in executable memory.
    fn is_code(&self, address: u64) -> bool {
        self.mapping(address).is_some_and(|mapping| mapping.executable)
    }

    /// Whether an address lies in a hidden module. The module's file need not be readable.
    fn is_hidden(&self, address: u64) -> bool {
        self.mapping(address).is_some_and(|mapping| self.symbols.hidden.contains(&mapping.path))
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("pid", &self.pid).field("images", &self.images).finish_non_exhaustive()
    }
}

/// The address by which a frame is looked up: the instruction itself, or the last byte of the call before a
/// return address.
fn call_of(pc: u64, after_call: bool) -> u64 {
    if after_call { pc.saturating_sub(1) } else { pc }
}
