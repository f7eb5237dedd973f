//! Reads source lines and inlined functions from the debug information of a file. [`super::variables`] reads
//! the variables.

use super::dwarf_unit::EntryRef;
use super::dwarf_unit::Slice;
use super::elf::{Elf, Source, section};
use super::names::globals::{GlobalVariable, globals};
use super::names::local_variables::{Scope, scope};
use super::qualified_name::qualified;
use super::symbols::is_mangled;
use super::types::{Pointer, Types};
use super::value::ValueType;
use super::variables::Variables;
use addr2line::{Context, Frame, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{Dwarf, DwarfSections, EndianArcSlice, EndianSlice, LittleEndian, Reader, Section};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

type Shared = EndianArcSlice<LittleEndian>;

/// One function at a code address, by the debug information. An address has several where functions were
/// inlined.
#[derive(Debug, Default)]
pub struct Spot {
    /// Name of the function, mangled if the debug information has the mangled name.
    pub function: Option<String>,
    /// Source file, with its directory.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
}

/// Identifies a function: the id of its split debug file, if it has one; the unit; the entry.
type FunctionKey = (Option<u64>, usize, usize);

/// The debug information of a file. Each part is parsed when it is first needed.
pub struct DebugInfo {
    sections: DwarfSections<Arc<[u8]>>,
    lines: OnceCell<Option<Context<Shared>>>,
    variables: OnceCell<Variables>,
    /// Full names of functions, by unit and entry. They are cached because each name needs a walk through the
    /// unit.
    full_names: RefCell<HashMap<FunctionKey, Option<String>>>,
    /// The local variables at code addresses.
    scopes: RefCell<HashMap<u64, Option<Arc<Scope>>>>,
    pointers: RefCell<PointerCache>,
    globals: OnceCell<Vec<GlobalVariable>>,
}

/// The pointers that values of a type hold.
type PointerCache = HashMap<EntryRef, Arc<Vec<Pointer>>>;

impl DebugInfo {
    /// Reads the debug sections of a file. Returns `None` if the file has no debug information.
    pub fn new(elf: &Elf<'_>) -> Option<DebugInfo> {
        let sections = load(|id| section(elf, id.name()));
        let empty =
            sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian)).debug_info.reader().is_empty();
        (!empty).then(|| DebugInfo {
            sections,
            lines: OnceCell::new(),
            variables: OnceCell::new(),
            full_names: RefCell::default(),
            scopes: RefCell::default(),
            pointers: RefCell::default(),
            globals: OnceCell::new(),
        })
    }

    /// The functions at a code address, innermost first.
    pub fn spots(&self, address: u64) -> Vec<Spot> {
        let lines = self.lines.get_or_init(|| Context::from_dwarf(share(&self.sections)).ok());
        let Some(lines) = lines else { return Vec::new() };
        let Ok(mut frames) = with_split(lines.find_frames(address)) else { return Vec::new() };
        let mut out = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location.as_ref();
            out.push(Spot {
                function: self.function(lines, address, &frame),
                file: location.and_then(|l| l.file).map(str::to_owned),
                // Line 0 marks code that belongs to no source line.
                line: location.and_then(|l| l.line).filter(|&line| line > 0),
            });
        }
        out
    }

    /// The addresses between `start` and `end` at which a source line begins or ends.
    pub fn line_bounds(&self, start: u64, end: u64) -> Vec<u64> {
        let lines = self.lines.get_or_init(|| Context::from_dwarf(share(&self.sections)).ok());
        let rows = lines.as_ref().and_then(|lines| lines.find_location_range(start, end).ok());
        rows.into_iter().flatten().flat_map(|(at, size, _)| [at, at.saturating_add(size)]).collect()
    }

    fn function(&self, lines: &Context<Shared>, address: u64, frame: &Frame<'_, Shared>) -> Option<String> {
        let function = frame.function.as_ref()?;
        let name = function.raw_name().ok()?.into_owned();
        let is_cpp = matches!(
            function.language,
            Some(
                gimli::DW_LANG_C_plus_plus
                    | gimli::DW_LANG_C_plus_plus_03
                    | gimli::DW_LANG_C_plus_plus_11
                    | gimli::DW_LANG_C_plus_plus_14
                    | gimli::DW_LANG_C_plus_plus_17
                    | gimli::DW_LANG_C_plus_plus_20
            )
        );
        if !is_cpp || is_mangled(&name) {
            return Some(name);
        }
        let full = || {
            let entry = frame.dw_die_offset?;
            let unit = with_split(lines.find_dwarf_and_unit(address))?;
            let mut names = self.full_names.borrow_mut();
            // The units of all split debug files have the same offset, so the key needs the file's id.
            let key = (unit.dwo_id.map(|id| id.0), unit.header.debug_info_offset()?.0, entry.0);
            names.entry(key).or_insert_with(|| qualified(unit, entry)).clone()
        };
        full().or(Some(name))
    }

    /// The local variables of the function at a code address. `None` if the function is not in this file's own debug
    /// information.
    pub fn scope<'d>(
        &self,
        address: u64,
        dwarf: &Dwarf<Slice<'d>>,
        types: &Types<'_, 'd>,
    ) -> Option<Arc<Scope>> {
        if let Some(known) = self.scopes.borrow().get(&address) {
            return known.clone();
        }
        let find = || {
            let lines =
                self.lines.get_or_init(|| Context::from_dwarf(share(&self.sections)).ok()).as_ref()?;
            let mut frames = with_split(lines.find_frames(address)).ok()?;
            let mut outermost = None;
            while let Ok(Some(frame)) = frames.next() {
                outermost = frame.dw_die_offset;
            }
            let unit = with_split(lines.find_dwarf_and_unit(address))?;
            let offset = unit.header.debug_info_offset().filter(|_| unit.dwo_id.is_none())?;
            let function = EntryRef { unit: types.number_of(offset)?, entry: outermost? };
            scope(dwarf, types, function, address).map(Arc::new)
        };
        let found = find();
        self.scopes.borrow_mut().insert(address, found.clone());
        found
    }

    /// The pointers that a value of this type holds.
    pub fn pointers(&self, types: &Types<'_, '_>, type_: EntryRef) -> Arc<Vec<Pointer>> {
        let mut all = self.pointers.borrow_mut();
        all.entry(type_).or_insert_with(|| Arc::new(types.pointers(type_))).clone()
    }

    /// The global variables of the program that hold pointers.
    pub fn globals(&self, types: &Types<'_, '_>, variables: &Variables) -> &[GlobalVariable] {
        self.globals.get_or_init(|| globals(types, variables, |type_| self.pointers(types, type_)))
    }

    /// Calls `look` with all variables of the file.
    pub fn with_variables<T>(&self, look: impl FnOnce(&Dwarf<Slice<'_>>, &Variables) -> T) -> T {
        let dwarf = self.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        look(&dwarf, self.variables.get_or_init(|| Variables::new(&dwarf)))
    }

    /// The variable that holds an address, with the path to the address inside the variable:
    /// `queue.slots[3].lock`. `size` is the variable's size by the symbol table, for types that the debug
    /// information leaves out.
    pub fn variable(&self, address: u64, size: Option<u64>) -> Option<String> {
        self.with_variables(|dwarf, variables| variables.describe(dwarf, address, size))
    }

    /// The type of the value of `size` bytes at an address in a global variable.
    pub fn value_type(&self, address: u64, size: u8) -> Option<ValueType> {
        self.with_variables(|dwarf, variables| variables.value_type(dwarf, address, size))
    }
}

/// Completes a lookup: loads the split debug information that the lookup asks for.
fn with_split<L: LookupContinuation<Buf = Shared>>(mut result: LookupResult<L>) -> L::Output {
    loop {
        match result {
            LookupResult::Output(output) => return output,
            LookupResult::Load { load, continuation } => result = continuation.resume(load_split(&load)),
        }
    }
}

fn load(mut section: impl FnMut(gimli::SectionId) -> Vec<u8>) -> DwarfSections<Arc<[u8]>> {
    let Ok(sections) = DwarfSections::load(|id| Ok::<_, Infallible>(section(id).into()));
    sections
}

fn share(sections: &DwarfSections<Arc<[u8]>>) -> Dwarf<Shared> {
    sections.borrow(|bytes| Shared::new(bytes.clone(), LittleEndian))
}

/// Loads the split debug file of a unit that was compiled with `-gsplit-dwarf`.
fn load_split(wanted: &SplitDwarfLoad<Shared>) -> Option<Arc<Dwarf<Shared>>> {
    let text = |bytes: &Option<Shared>| Some(bytes.as_ref()?.to_string_lossy().ok()?.into_owned());
    let path = PathBuf::from(text(&wanted.comp_dir).unwrap_or_default()).join(text(&wanted.path)?);
    let sections = Source::open(&path)
        .ok()?
        .with(|elf| load(|id| id.dwo_name().map_or_else(Vec::new, |name| section(elf, name))))?;
    let mut dwarf = share(&sections);
    let unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
    if unit.dwo_id != Some(wanted.dwo_id) {
        return None;
    }
    dwarf.make_dwo(&wanted.parent);
    Some(Arc::new(dwarf))
}
