//! Finds the local variables of a function at one of its instructions: parameters, and variables of the blocks and
//! inlined functions that hold the instruction.

use crate::dwarf_unit::{EntryRef, Slice};
use crate::types::Types;
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EntriesTreeNode, Unit, UnitOffset};

/// How deep blocks may be nested.
const DEEPEST: usize = 32;

/// The variables at one instruction.
#[derive(Debug)]
pub struct Scope {
    /// The expression for the frame base, from which locations are counted.
    pub frame_base: Vec<u8>,
    /// How expressions are encoded.
    pub encoding: gimli::Encoding,
    /// Whether the function is written in Rust.
    pub rust: bool,
    /// Parameters first, inner variables last.
    pub variables: Vec<LocalVariable>,
}

/// A parameter or local variable.
#[derive(Debug)]
pub struct LocalVariable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: EntryRef,
    /// The expression for its location.
    pub expression: Vec<u8>,
}

/// The variables of the function with this entry at an address before loading.
pub fn scope<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    types: &Types<'_, 'd>,
    function: EntryRef,
    address: u64,
) -> Option<Scope> {
    let unit = types.unit(function.unit)?;
    let mut tree = unit.entries_tree(Some(function.entry)).ok()?;
    let root = tree.root().ok()?;
    let walk = Walk { dwarf, unit: &unit, types, number: function.unit, address };
    let frame_base = walk.expression(root.entry(), gimli::DW_AT_frame_base).unwrap_or_default();
    let mut variables = Vec::new();
    // Entries read before an error are valid.
    let _ = walk.collect(root, &mut variables, DEEPEST);
    Some(Scope { frame_base, encoding: unit.encoding(), rust: types.is_rust(function.unit), variables })
}

struct Walk<'w, 't, 'd> {
    dwarf: &'w Dwarf<Slice<'d>>,
    unit: &'w Unit<Slice<'d>>,
    types: &'w Types<'t, 'd>,
    number: usize,
    address: u64,
}

impl<'d> Walk<'_, '_, 'd> {
    fn collect(
        &self,
        node: EntriesTreeNode<'_, '_, Slice<'d>>,
        out: &mut Vec<LocalVariable>,
        depth: usize,
    ) -> gimli::Result<()> {
        let mut children = node.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => {
                    out.extend(self.variable(entry.offset(), entry));
                }
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine
                    if depth > 0 && self.holds(entry) =>
                {
                    self.collect(child, out, depth - 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn holds(&self, entry: &DebuggingInformationEntry<Slice<'d>>) -> bool {
        let Ok(mut ranges) = self.dwarf.die_ranges(self.unit, entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&self.address) {
                return true;
            }
        }
        false
    }

    fn variable(
        &self,
        offset: UnitOffset,
        entry: &DebuggingInformationEntry<Slice<'d>>,
    ) -> Option<LocalVariable> {
        let place = EntryRef { unit: self.number, entry: offset };
        let expression = self.expression(entry, gimli::DW_AT_location)?;
        let name = self.types.plain_name(place)?;
        Some(LocalVariable { name, type_: self.types.type_of(place)?, expression })
    }

    /// The expression of an attribute that applies at the address.
    fn expression(
        &self,
        entry: &DebuggingInformationEntry<Slice<'d>>,
        attribute: gimli::DwAt,
    ) -> Option<Vec<u8>> {
        let value = entry.attr_value(attribute)?;
        if let AttributeValue::Exprloc(expression) = value {
            return Some(expression.0.slice().to_vec());
        }
        let mut list = self.dwarf.attr_locations(self.unit, value).ok()??;
        while let Some(location) = list.next().ok()? {
            if (location.range.begin..location.range.end).contains(&self.address) {
                return Some(location.data.0.slice().to_vec());
            }
        }
        None
    }
}
