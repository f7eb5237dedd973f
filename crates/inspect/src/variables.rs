//! Lists the variables of a file that have one fixed address: globals, and statics of classes and functions.
//! Debug information has no index of them, so this walks the units once and skips entries that cannot hold
//! one.

use super::dwarf_unit::{EntryRef, Slice, UnitInfo};
use super::symbols::{demangle, is_mangled};
use super::types::Types;
use super::value::ValueType;
use gimli::{Attribute, AttributeValue, DwTag, Dwarf, Operation, Unit, UnitOffset, UnitRef};
use std::ops::Range;

/// Outermost namespaces whose types are shown without their parts: a reader knows `LOCK`, not
/// `LOCK.inner.futex.v.value`.
const LIBRARIES: [&str; 14] = [
    "std",
    "core",
    "alloc",
    "__gnu_cxx",
    "__cxxabiv1",
    "boost",
    "absl",
    "folly",
    "lock_api",
    "parking_lot",
    "parking_lot_core",
    "once_cell",
    "lazy_static",
    "spin",
];

/// How many variables before an address are searched. Variables of size 0 share their address with others.
const OVERLAP: usize = 8;

#[derive(Debug)]
struct Variable {
    address: u64,
    place: EntryRef,
    /// Mangled, or with all scopes; empty if another entry has the name.
    name: String,
}

/// All variables of a file, by address.
#[derive(Debug, Default)]
pub struct Variables {
    units: Vec<UnitInfo>,
    list: Vec<Variable>,
    /// Thread-local variables, by their offset in the file's thread-local memory.
    thread_locals: Vec<Variable>,
}

impl Variables {
    /// Walks all units. Entries that cannot be read are left out.
    pub fn new(dwarf: &Dwarf<Slice<'_>>) -> Variables {
        let mut out = Variables::default();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(offset) = header.debug_info_offset() else { continue };
            // An unreadable unit takes an index too, so that references between units resolve to the right
            // one.
            out.units.push(UnitInfo { offset, library: Vec::new() });
            if let Ok(unit) = dwarf.unit(header) {
                let number = out.units.len() - 1;
                let mut walk = Walk { unit: unit.unit_ref(dwarf), number, scopes: Vec::new(), out: &mut out };
                // An error ends the walk of this unit; variables found before it remain.
                let _ = walk.run(&unit);
            }
        }
        // The sort is stable: of two entries for one variable the first wins.
        out.list.sort_by_key(|variable| variable.address);
        out.thread_locals.sort_by_key(|variable| variable.address);
        out
    }

    /// The units of the variables.
    pub fn units(&self) -> &[UnitInfo] {
        &self.units
    }

    /// Address, entry and name of each variable. The name is empty if another entry has it.
    pub fn each(&self) -> impl Iterator<Item = (u64, EntryRef, &str)> {
        self.list.iter().map(|variable| (variable.address, variable.place, variable.name.as_str()))
    }

    /// The thread-local variable that holds an offset, with the path to the offset inside it.
    pub fn thread_local(&self, types: &Types<'_, '_>, offset: u64) -> Option<String> {
        let name = find(&self.thread_locals, types, offset, None)?.name;
        // What Rust's macro `thread_local!` puts around the variable.
        let (name, rest) = name.split_once("::{constant#0}").unwrap_or((&name, ""));
        let rest = rest.find(['.', '[']).map_or("", |at| &rest[at..]);
        Some(format!("{name}{rest}"))
    }

    /// The variable that holds an address, with the path to the address inside it.
    pub fn describe(&self, dwarf: &Dwarf<Slice<'_>>, address: u64, size: Option<u64>) -> Option<String> {
        Some(find(&self.list, &Types::new(dwarf, &self.units), address, size)?.name)
    }

    /// The type of the value of `size` bytes at an address.
    pub fn value_type(&self, dwarf: &Dwarf<Slice<'_>>, address: u64, size: u8) -> Option<ValueType> {
        value_type(&self.list, &Types::new(dwarf, &self.units), address, size)
    }

    /// The type of the value of `size` bytes at an offset in thread-local memory.
    pub fn thread_local_type(&self, types: &Types<'_, '_>, offset: u64, size: u8) -> Option<ValueType> {
        value_type(&self.thread_locals, types, offset, size)
    }
}

/// A place in a variable.
struct Part {
    /// The path to it.
    name: String,
    /// The type of the variable.
    type_: Option<EntryRef>,
    offset: u64,
}

fn value_type(list: &[Variable], types: &Types<'_, '_>, address: u64, size: u8) -> Option<ValueType> {
    let part = find(list, types, address, None)?;
    types.value_type(part.type_?, part.offset, size)
}

/// The variable of a sorted list that holds an address, with the path to the address inside it.
fn find(list: &[Variable], types: &Types<'_, '_>, address: u64, size: Option<u64>) -> Option<Part> {
    let end = list.partition_point(|v| v.address <= address);
    list[..end].iter().rev().take(OVERLAP).find_map(|variable| {
        let offset = address - variable.address;
        let type_ = types.type_of(variable.place);
        let size = type_.and_then(|t| types.size(t)).or(size)?;
        if offset >= size {
            return None;
        }
        let inside = type_.map_or_else(String::new, |t| types.path(t, offset));
        // A definition apart from its declaration is named by the declaration, possibly in another unit.
        let name = if variable.name.is_empty() {
            types.declared_name(variable.place)?
        } else {
            variable.name.clone()
        };
        Some(Part { name: demangle(&name) + &inside, type_, offset })
    })
}

/// The walk through one unit.
struct Walk<'w, 'd> {
    unit: UnitRef<'w, Slice<'d>>,
    number: usize,
    /// The enclosing namespaces and functions, with their depth.
    scopes: Vec<(isize, String)>,
    out: &'w mut Variables,
}

impl<'d> Walk<'_, 'd> {
    fn run(&mut self, unit: &Unit<Slice<'d>>) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        let mut attributes = Vec::new();
        // Depth and start of the library namespace that the walk is in.
        let mut library: Option<(isize, usize)> = None;
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while self.scopes.pop_if(|scope| scope.0 >= depth).is_some() {}
            if let Some((_, start)) = library.take_if(|library| library.0 >= depth) {
                self.close(start..offset.0);
            }
            let tag = abbreviation.tag();
            if !matches!(tag, gimli::DW_TAG_namespace | gimli::DW_TAG_subprogram | gimli::DW_TAG_variable) {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            entries.read_attributes(abbreviation.attributes(), &mut attributes)?;
            if tag == gimli::DW_TAG_variable {
                self.variable(offset, &attributes);
                continue;
            }
            let name = self.name(gimli::DW_AT_name, &attributes);
            if tag == gimli::DW_TAG_namespace && depth == 1 && LIBRARIES.contains(&name.as_str()) {
                library = Some((depth, offset.0));
            }
            self.enter(tag, depth, name);
        }
        if let Some((_, start)) = library {
            self.close(start..entries.next_offset().0);
        }
        Ok(())
    }

    fn close(&mut self, range: Range<usize>) {
        self.out.units[self.number].library.push(range);
    }

    fn enter(&mut self, tag: DwTag, depth: isize, name: String) {
        let name = if name.is_empty() && tag == gimli::DW_TAG_namespace {
            "(anonymous namespace)".to_owned()
        } else {
            name
        };
        // A function without a name is defined apart from its declaration. Only C++ does this, and the
        // variables of such a function have mangled names with all scopes.
        if !name.is_empty() {
            self.scopes.push((depth, name));
        }
    }

    fn variable(&mut self, entry: UnitOffset, attributes: &[Attribute<Slice<'d>>]) {
        let (address, is_local) = match self.address(attributes) {
            Some(address) => (address, false),
            None => match self.thread_local_offset(attributes) {
                Some(offset) => (offset, true),
                None => return,
            },
        };
        let linkage = self.name(gimli::DW_AT_linkage_name, attributes);
        let name = self.name(gimli::DW_AT_name, attributes);
        let name = if is_mangled(&linkage) || name.is_empty() {
            linkage
        } else {
            let mut path: String = self.scopes.iter().flat_map(|(_, scope)| [scope, "::"]).collect();
            path.push_str(&name);
            path
        };
        let list = if is_local { &mut self.out.thread_locals } else { &mut self.out.list };
        list.push(Variable { address, place: EntryRef { unit: self.number, entry }, name });
    }

    fn name(&self, which: gimli::DwAt, attributes: &[Attribute<Slice<'d>>]) -> String {
        let attribute = attributes.iter().find(|a| a.name() == which);
        let text = attribute.and_then(|a| self.unit.attr_string(a.value()).ok());
        text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    }

    /// The offset of a variable in thread-local memory, if it lies there.
    fn thread_local_offset(&self, attributes: &[Attribute<Slice<'d>>]) -> Option<u64> {
        let location = attributes.iter().find(|a| a.name() == gimli::DW_AT_location)?;
        let AttributeValue::Exprloc(expression) = location.value() else { return None };
        let mut operations = expression.operations(self.unit.encoding());
        let offset = match operations.next().ok()?? {
            Operation::UnsignedConstant { value } => value,
            Operation::SignedConstant { value } => u64::try_from(value).ok()?,
            Operation::ConstantIndex { index } => self.unit.address(index).ok()?,
            _ => return None,
        };
        matches!(operations.next().ok()??, Operation::TLS).then_some(offset)
    }

    /// The address of a variable, if it is fixed.
    fn address(&self, attributes: &[Attribute<Slice<'d>>]) -> Option<u64> {
        let location = attributes.iter().find(|a| a.name() == gimli::DW_AT_location)?;
        let AttributeValue::Exprloc(expression) = location.value() else { return None };
        let mut operations = expression.operations(self.unit.encoding());
        let mut address = match operations.next().ok()?? {
            Operation::Address { address } => address,
            Operation::AddressIndex { index } => self.unit.address(index).ok()?,
            _ => return None,
        };
        while let Some(operation) = operations.next().ok()? {
            match operation {
                Operation::PlusConstant { value } => address = address.checked_add(value)?,
                _ => return None,
            }
        }
        // The linker leaves removed variables at address 0 or -1.
        (address != 0 && !self.unit.header.is_tombstone_address(address)).then_some(address)
    }
}
