//! Finds the path from a variable to an address inside it, through the variable's type: `.slots[3].lock`.

use super::dwarf_unit::{EntryRef, Slice, UnitInfo};
use super::qualified_name::qualified;
use gimli::{AttributeValue, DebuggingInformationEntry, DwAt, Dwarf, Unit};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// How deep types are followed. Damaged debug information may contain cycles.
pub(crate) const DEEPEST: usize = 64;

/// How many types are searched for one address. Members may overlap, and in damaged debug information without
/// end.
const MOST: u32 = 10_000;

/// Lock types of C's libraries besides `pthread_..._t`.
const LOCKS: [&str; 4] = ["sem_t", "mtx_t", "cnd_t", "once_flag"];

type Entry<'d> = DebuggingInformationEntry<Slice<'d>>;

/// The types of a file.
pub struct Types<'t, 'd> {
    dwarf: &'t Dwarf<Slice<'d>>,
    infos: &'t [UnitInfo],
    units: RefCell<HashMap<usize, Rc<Unit<Slice<'d>>>>>,
    left: Cell<u32>,
}

/// How many pointers of one type are followed.
const MAX_POINTERS: usize = 64;

/// How many elements of an array are searched for pointers.
const MAX_ELEMENTS: u64 = 16;

/// A pointer inside a value.
#[derive(Debug)]
pub struct Pointer {
    /// Its offset in the value.
    pub offset: u64,
    /// The path to it, such as `.slots[3].next`.
    pub path: String,
    /// The type that it points to.
    pub target: EntryRef,
    /// Whether it is a reference of C++.
    pub reference: bool,
}

/// A part of a struct, class or union.
pub(crate) struct Member {
    /// `None` for members without a name: base classes and unnamed structs.
    pub(crate) name: Option<String>,
    pub(crate) offset: u64,
    pub(crate) type_: EntryRef,
}

impl<'t, 'd> Types<'t, 'd> {
    /// The types of these units.
    pub fn new(dwarf: &'t Dwarf<Slice<'d>>, infos: &'t [UnitInfo]) -> Types<'t, 'd> {
        Types { dwarf, infos, units: RefCell::new(HashMap::new()), left: Cell::new(0) }
    }

    /// Begins a search through types.
    pub(crate) fn begin(&self) {
        self.left.set(MOST);
    }

    /// Counts one type of a search. `None` if it has searched too many.
    pub(crate) fn spend(&self) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(())
    }

    /// A unit, by its number.
    pub fn unit(&self, number: usize) -> Option<Rc<Unit<Slice<'d>>>> {
        if let Some(unit) = self.units.borrow().get(&number) {
            return Some(unit.clone());
        }
        let header = self.dwarf.unit_header(self.infos.get(number)?.offset).ok()?;
        let unit = Rc::new(self.dwarf.unit(header).ok()?);
        self.units.borrow_mut().insert(number, unit.clone());
        Some(unit)
    }

    /// The number of the unit that begins at an offset.
    pub fn number_of(&self, offset: gimli::DebugInfoOffset) -> Option<usize> {
        self.infos.binary_search_by_key(&offset.0, |info| info.offset.0).ok()
    }

    pub(crate) fn entry(&self, place: EntryRef) -> Option<Entry<'d>> {
        self.unit(place.unit)?.entry(place.entry).ok()
    }

    /// The entry that an attribute refers to, in this or another unit.
    pub(crate) fn target(&self, unit: usize, entry: &Entry<'d>, attribute: DwAt) -> Option<EntryRef> {
        match entry.attr_value(attribute)? {
            AttributeValue::UnitRef(entry) => Some(EntryRef { unit, entry }),
            AttributeValue::DebugInfoRef(offset) => {
                let unit = self.infos.partition_point(|info| info.offset.0 <= offset.0).checked_sub(1)?;
                Some(EntryRef { unit, entry: offset.to_unit_offset(&self.unit(unit)?.header)? })
            }
            _ => None,
        }
    }

    pub(crate) fn text(&self, unit: usize, entry: &Entry<'d>, attribute: DwAt) -> Option<String> {
        let text = self.dwarf.attr_string(&*self.unit(unit)?, entry.attr_value(attribute)?).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// Calls `look` for an entry and then for the entries that it completes, until `look` returns a value.
    fn with_origins<T>(
        &self,
        place: EntryRef,
        mut look: impl FnMut(EntryRef, &Entry<'d>) -> Option<T>,
    ) -> Option<T> {
        let mut place = place;
        for _ in 0..DEEPEST {
            let entry = self.entry(place)?;
            if let Some(found) = look(place, &entry) {
                return Some(found);
            }
            place = self
                .target(place.unit, &entry, gimli::DW_AT_specification)
                .or_else(|| self.target(place.unit, &entry, gimli::DW_AT_abstract_origin))?;
        }
        None
    }

    /// The name of a variable at its declaration, with all enclosing scopes.
    pub fn declared_name(&self, variable: EntryRef) -> Option<String> {
        self.with_origins(variable, |place, entry| {
            let named = entry.has_attr(gimli::DW_AT_name) || entry.has_attr(gimli::DW_AT_linkage_name);
            if !named {
                return None;
            }
            qualified(self.unit(place.unit)?.unit_ref(self.dwarf), place.entry)
        })
    }

    /// The name of a variable without scopes.
    pub fn plain_name(&self, variable: EntryRef) -> Option<String> {
        self.with_origins(variable, |place, entry| self.text(place.unit, entry, gimli::DW_AT_name))
    }

    /// Whether a unit is written in Rust.
    pub fn is_rust(&self, unit: usize) -> bool {
        let language = || {
            let unit = self.unit(unit)?;
            let mut entries = unit.entries();
            entries.next_dfs().ok()??.attr_value(gimli::DW_AT_language)
        };
        matches!(language(), Some(AttributeValue::Language(gimli::DW_LANG_Rust)))
    }

    /// The type of a variable.
    pub fn type_of(&self, variable: EntryRef) -> Option<EntryRef> {
        self.with_origins(variable, |place, entry| self.target(place.unit, entry, gimli::DW_AT_type))
    }

    /// Size of a type in bytes.
    pub fn size(&self, type_: EntryRef) -> Option<u64> {
        self.size_within(type_, DEEPEST)
    }

    fn size_within(&self, type_: EntryRef, depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        let entry = self.entry(type_)?;
        if let Some(size) = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value()) {
            return Some(size);
        }
        let target = || self.target(type_.unit, &entry, gimli::DW_AT_type);
        match entry.tag() {
            gimli::DW_TAG_array_type => {
                let element = self.size_within(target()?, depth)?;
                self.dimensions(type_).into_iter().try_fold(element, |size, count| size.checked_mul(count?))
            }
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => Some(8),
            tag if is_wrapper(tag) => self.size_within(target()?, depth),
            _ => None,
        }
    }

    /// The number of elements of an array in each dimension; `None` for a dimension of unknown length.
    fn dimensions(&self, array: EntryRef) -> Vec<Option<u64>> {
        let count = |entry: &Entry<'d>| {
            let number = |attribute| entry.attr_value(attribute).and_then(|value| value.udata_value());
            number(gimli::DW_AT_count).or_else(|| number(gimli::DW_AT_upper_bound)?.checked_add(1))
        };
        let children = self.children(array);
        children.iter().filter(|child| child.tag() == gimli::DW_TAG_subrange_type).map(count).collect()
    }

    pub(crate) fn children(&self, place: EntryRef) -> Vec<Entry<'d>> {
        let mut out = Vec::new();
        let collect = || -> Option<()> {
            let unit = self.unit(place.unit)?;
            let mut tree = unit.entries_tree(Some(place.entry)).ok()?;
            let mut children = tree.root().ok()?.children();
            while let Some(child) = children.next().ok()? {
                out.push(child.entry().clone());
            }
            Some(())
        };
        // Entries read before an error are valid.
        let _ = { collect }();
        out
    }

    /// The type without typedefs and qualifiers.
    pub fn bare(&self, type_: EntryRef) -> Option<EntryRef> {
        let mut type_ = type_;
        for _ in 0..DEEPEST {
            let entry = self.entry(type_)?;
            if !is_wrapper(entry.tag()) {
                return Some(type_);
            }
            type_ = self.target(type_.unit, &entry, gimli::DW_AT_type)?;
        }
        None
    }

    /// The type that a pointer or reference points to; `None` for other types.
    pub fn pointee(&self, type_: EntryRef) -> Option<EntryRef> {
        let entry = self.entry(type_)?;
        let points = matches!(
            entry.tag(),
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type
        );
        points.then(|| self.target(type_.unit, &entry, gimli::DW_AT_type))?
    }

    /// The element type of a one-dimensional array.
    pub fn element(&self, type_: EntryRef) -> Option<EntryRef> {
        let entry = self.entry(type_)?;
        let is_array = entry.tag() == gimli::DW_TAG_array_type && self.dimensions(type_).len() == 1;
        is_array.then(|| self.target(type_.unit, &entry, gimli::DW_AT_type))?
    }

    /// The fields of a struct, class or union, including the fields of its unnamed members: name, offset,
    /// type.
    pub fn fields(&self, type_: EntryRef) -> Vec<(String, u64, EntryRef)> {
        self.fields_within(type_, DEEPEST)
    }

    fn fields_within(&self, type_: EntryRef, depth: usize) -> Vec<(String, u64, EntryRef)> {
        let mut out = Vec::new();
        for member in self.members(type_, depth) {
            match (member.name, depth.checked_sub(1)) {
                (Some(name), _) => out.push((name, member.offset, member.type_)),
                (None, Some(depth)) => {
                    let inner = self.bare(member.type_).map(|inner| self.fields_within(inner, depth));
                    let moved = |(name, offset, type_)| (name, offset + member.offset, type_);
                    out.extend(inner.into_iter().flatten().map(moved));
                }
                (None, None) => {}
            }
        }
        out
    }

    /// All pointers that a value of this type holds, with the paths to them. Of arrays only the first elements count.
    pub fn pointers(&self, type_: EntryRef) -> Vec<Pointer> {
        self.begin();
        let mut out = Vec::new();
        self.collect_pointers(type_, 0, String::new(), &mut out, DEEPEST);
        out
    }

    fn collect_pointers(
        &self,
        type_: EntryRef,
        offset: u64,
        path: String,
        out: &mut Vec<Pointer>,
        depth: usize,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.spend()?;
        if out.len() >= MAX_POINTERS {
            return None;
        }
        let type_ = self.bare(type_)?;
        let entry = self.entry(type_)?;
        match entry.tag() {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                let target = self.bare(self.target(type_.unit, &entry, gimli::DW_AT_type)?)?;
                let reference = entry.tag() != gimli::DW_TAG_pointer_type;
                out.push(Pointer { offset, path, target, reference });
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let name = self.text(type_.unit, &entry, gimli::DW_AT_name).unwrap_or_default();
                // Fat pointers of Rust are structs outside of all namespaces.
                let hidden = self.in_library(type_) || name.starts_with(['&', '*']);
                let before = out.len();
                for member in self.members(type_, depth) {
                    let path = match &member.name {
                        Some(name) if !hidden => format!("{path}.{name}"),
                        _ => path.clone(),
                    };
                    self.collect_pointers(member.type_, offset + member.offset, path, out, depth);
                }
                // A `Vec` holds a pointer to bytes; only its parameter says what they are.
                if hidden && name.starts_with("Vec<") {
                    let element = self.parameter(type_, "T").and_then(|element| self.bare(element));
                    for pointer in &mut out[before..] {
                        pointer.target = element.unwrap_or(pointer.target);
                    }
                }
            }
            gimli::DW_TAG_array_type => {
                let element = self.target(type_.unit, &entry, gimli::DW_AT_type)?;
                let size = self.size(element)?;
                let count = self.size(type_)? / size.max(1);
                for index in 0..count.min(MAX_ELEMENTS) {
                    let path = format!("{path}[{index}]");
                    self.collect_pointers(element, offset + index * size, path, out, depth)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// The type that a generic type has for a parameter.
    fn parameter(&self, type_: EntryRef, name: &str) -> Option<EntryRef> {
        let is_it = |child: &&Entry<'d>| {
            child.tag() == gimli::DW_TAG_template_type_parameter
                && self.text(type_.unit, child, gimli::DW_AT_name).as_deref() == Some(name)
        };
        let children = self.children(type_);
        self.target(type_.unit, children.iter().find(is_it)?, gimli::DW_AT_type)
    }

    /// The reference counts of Rust's `Arc` and `Rc`, which lie beside the data. `None` for other offsets and types.
    pub fn counts(&self, type_: EntryRef, offset: u64) -> Option<String> {
        let entry = self.entry(type_)?;
        let name = self.text(type_.unit, &entry, gimli::DW_AT_name)?;
        if !self.in_library(type_) || !["ArcInner<", "RcInner<", "RcBox<"].iter().any(|n| name.starts_with(n))
        {
            return None;
        }
        let members = self.members(type_, 1);
        let member = members.into_iter().find(|m| m.offset == offset)?.name?;
        matches!(member.as_str(), "strong" | "weak").then(|| format!(".{member}"))
    }

    /// The path to an offset in a type; empty for a type whose parts are not shown, such as a lock.
    pub fn path(&self, type_: EntryRef, offset: u64) -> String {
        self.begin();
        self.descend(type_, offset, false, DEEPEST).unwrap_or_default()
    }

    /// The path to an offset in a type. Inside a library's type (`hidden`) members are not shown until the
    /// path reaches a type of the program, as in `OnceLock<Pool>`, or the elements of an array of objects, as
    /// in `std::array<std::mutex, 4>`. `None` if the path reaches neither.
    fn descend(&self, type_: EntryRef, offset: u64, hidden: bool, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        self.spend()?;
        let entry = self.entry(type_)?;
        let tag = entry.tag();
        // A lock is recognised by the name of its typedef in C, and of its struct elsewhere.
        let named_lock =
            || self.text(type_.unit, &entry, gimli::DW_AT_name).is_some_and(|name| is_lock(&name));
        match tag {
            gimli::DW_TAG_typedef if named_lock() => None,
            tag if is_wrapper(tag) => {
                self.descend(self.target(type_.unit, &entry, gimli::DW_AT_type)?, offset, hidden, depth)
            }
            gimli::DW_TAG_array_type => {
                let element = self.target(type_.unit, &entry, gimli::DW_AT_type)?;
                if hidden && !self.is_object(element, depth) {
                    return None;
                }
                let (mut path, rest) = self.index(type_, element, offset)?;
                path.push_str(&self.descend(element, rest, hidden, depth).unwrap_or_default());
                Some(path)
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                if named_lock() {
                    return None;
                }
                let hidden = self.in_library(type_);
                let mut members = self.members(type_, depth);
                let mut ends: Vec<u64> = members.iter().map(|m| m.offset).collect();
                ends.extend(self.size(type_));
                // Clang only declares classes that a library defines. Such a member reaches to the next one.
                let to_next = |m: &Member| {
                    ends.iter().filter_map(|end| end.checked_sub(m.offset)).filter(|&size| size > 0).min()
                };
                members.retain(|m| {
                    let size = self.size(m.type_).or_else(|| to_next(m));
                    offset.checked_sub(m.offset).zip(size).is_some_and(|(rest, size)| rest < size)
                });
                if hidden {
                    return members
                        .iter()
                        .find_map(|m| self.descend(m.type_, offset - m.offset, true, depth));
                }
                let Some(member) = members.first() else { return Some(rest(offset)) };
                let mut path = member.name.as_ref().map_or_else(String::new, |name| format!(".{name}"));
                path.push_str(
                    &self.descend(member.type_, offset - member.offset, false, depth).unwrap_or_default(),
                );
                Some(path)
            }
            _ if hidden => None,
            _ => Some(rest(offset)),
        }
    }

    /// The subscripts of the array element at an offset, and the remaining offset inside the element.
    fn index(&self, array: EntryRef, element: EntryRef, offset: u64) -> Option<(String, u64)> {
        let mut stride = self.size(element).filter(|&size| size > 0)?;
        let mut subscripts = Vec::new();
        let in_element = offset % stride;
        for (number, count) in self.dimensions(array).into_iter().enumerate().rev() {
            // The first dimension may have no length. In the others, an offset past the end belongs to the
            // next outer dimension.
            let position = offset / stride;
            let count = count.filter(|&count| count > 0);
            subscripts.push(if number == 0 { position } else { position % count? });
            stride = stride.checked_mul(count.unwrap_or(1))?;
        }
        Some((subscripts.iter().rev().map(|i| format!("[{i}]")).collect(), in_element))
    }

    /// Whether values of a type have parts or are locks. Only for such types the subscript of an array
    /// element matters.
    fn is_object(&self, type_: EntryRef, depth: usize) -> bool {
        let Some(entry) = self.entry(type_) else { return false };
        match entry.tag() {
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => true,
            gimli::DW_TAG_array_type => true,
            tag if is_wrapper(tag) && depth > 0 => self
                .target(type_.unit, &entry, gimli::DW_AT_type)
                .is_some_and(|target| self.is_object(target, depth - 1)),
            _ => false,
        }
    }

    /// Whether an entry lies in a namespace of a library.
    pub fn in_library(&self, type_: EntryRef) -> bool {
        self.infos.get(type_.unit).is_some_and(|info| info.library.iter().any(|r| r.contains(&type_.entry.0)))
    }

    pub(crate) fn members(&self, type_: EntryRef, depth: usize) -> Vec<Member> {
        let mut out = Vec::new();
        for child in self.children(type_) {
            let place = EntryRef { unit: type_.unit, entry: child.offset() };
            match child.tag() {
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance => {
                    out.extend(self.member(type_.unit, &child))
                }
                // The variants of a Rust enum overlap, like the members of a union.
                gimli::DW_TAG_variant_part | gimli::DW_TAG_variant if depth > 0 => {
                    out.extend(self.members(place, depth - 1));
                }
                _ => {}
            }
        }
        out
    }

    pub(crate) fn member(&self, unit: usize, entry: &Entry<'d>) -> Option<Member> {
        // A class only declares its static members.
        if entry.has_attr(gimli::DW_AT_declaration) || entry.has_attr(gimli::DW_AT_external) {
            return None;
        }
        let number = |attribute| entry.attr_value(attribute).map(|value| value.udata_value());
        let offset = match (number(gimli::DW_AT_data_member_location), number(gimli::DW_AT_data_bit_offset)) {
            (Some(bytes), _) => bytes?,
            (None, Some(bits)) => bits? / 8,
            // All members of a union are at its beginning.
            (None, None) => 0,
        };
        let inherited = entry.tag() == gimli::DW_TAG_inheritance;
        let name = self.text(unit, entry, gimli::DW_AT_name).filter(|name| !inherited && !name.is_empty());
        // Fields of tuples in Rust are named `__0`, `__1`, ...
        let name = name.map(|name| match name.strip_prefix("__") {
            Some(number) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
                number.to_owned()
            }
            // What a closure of Rust borrows.
            _ => name.strip_prefix("_ref__").map(str::to_owned).unwrap_or(name),
        });
        Some(Member { name, offset, type_: self.target(unit, entry, gimli::DW_AT_type)? })
    }
}

fn is_lock(name: &str) -> bool {
    (name.starts_with("pthread_") && name.ends_with("_t")) || LOCKS.contains(&name)
}

/// Whether a type only renames or qualifies another one.
pub(crate) fn is_wrapper(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_restrict_type
    )
}

/// The offset that remains when the path cannot be continued.
fn rest(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!("+{offset:#x}") }
}
