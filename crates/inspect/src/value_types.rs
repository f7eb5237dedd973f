//! Finds the type of the value at an offset in a variable.

use super::dwarf_unit::EntryRef;
use super::types::{DEEPEST, Types, is_wrapper};
use super::value::ValueType;
use gimli::AttributeValue;

impl Types<'_, '_> {
    /// The type of the value of `size` bytes at an offset in a type. `None` if there is no such value: the access
    /// touches only a part of it, or more than one.
    pub fn value_type(&self, type_: EntryRef, offset: u64, size: u8) -> Option<ValueType> {
        self.begin();
        self.value_within(type_, offset, size.into(), DEEPEST)
    }

    fn value_within(&self, type_: EntryRef, offset: u64, size: u64, depth: usize) -> Option<ValueType> {
        let depth = depth.checked_sub(1)?;
        self.spend()?;
        let entry = self.entry(type_)?;
        let target = || self.target(type_.unit, &entry, gimli::DW_AT_type);
        let exact = || offset == 0 && self.size(type_) == Some(size);
        match entry.tag() {
            tag if is_wrapper(tag) => self.value_within(target()?, offset, size, depth),
            gimli::DW_TAG_base_type if exact() => {
                let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) else {
                    return None;
                };
                let name = self.text(type_.unit, &entry, gimli::DW_AT_name);
                Some(match encoding {
                    gimli::DW_ATE_boolean => ValueType::Bool,
                    gimli::DW_ATE_float => ValueType::Float,
                    gimli::DW_ATE_signed_char if name.as_deref() == Some("char") => ValueType::Character,
                    gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => ValueType::Signed,
                    gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char => ValueType::Unsigned,
                    _ => return None,
                })
            }
            gimli::DW_TAG_enumeration_type if exact() => {
                let children = self.children(type_);
                let constant = |child: &_| -> Option<(u64, String)> {
                    let entry: &gimli::DebuggingInformationEntry<_> = child;
                    let value = entry.attr_value(gimli::DW_AT_const_value)?;
                    let value =
                        value.sdata_value().map(|value| value as u64).or_else(|| value.udata_value())?;
                    Some((value, self.text(type_.unit, entry, gimli::DW_AT_name)?))
                };
                Some(ValueType::Enumeration(children.iter().filter_map(constant).collect()))
            }
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
                if exact() =>
            {
                Some(ValueType::Pointer)
            }
            gimli::DW_TAG_array_type => {
                let element = target()?;
                let stride = self.size(element).filter(|stride| *stride > 0)?;
                self.value_within(element, offset % stride, size, depth)
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                // An atomic of Rust holds its truth value as a number.
                let name = self.text(type_.unit, &entry, gimli::DW_AT_name).unwrap_or_default();
                if exact() && ["AtomicBool", "Atomic<bool>"].contains(&name.as_str()) {
                    return Some(ValueType::Bool);
                }
                self.variants(type_, offset, size).or_else(|| {
                    let members = self.members(type_, depth).into_iter();
                    let mut inside = members.filter(|member| member.offset <= offset);
                    inside.find_map(|member| {
                        let rest = offset - member.offset;
                        let holds = self.size(member.type_).is_some_and(|whole| rest < whole);
                        holds.then(|| self.value_within(member.type_, rest, size, depth)).flatten()
                    })
                })
            }
            _ => None,
        }
    }

    /// The names of the variants of an enum of Rust, if its discriminant lies at an offset.
    fn variants(&self, type_: EntryRef, offset: u64, size: u64) -> Option<ValueType> {
        let children = self.children(type_);
        let part = children.iter().find(|child| child.tag() == gimli::DW_TAG_variant_part)?;
        let discriminant = self.target(type_.unit, part, gimli::DW_AT_discr)?;
        let discriminant = self.member(type_.unit, &self.entry(discriminant)?)?;
        if discriminant.offset != offset || self.size(discriminant.type_) != Some(size) {
            return None;
        }
        let part = EntryRef { unit: type_.unit, entry: part.offset() };
        let variant = |child: &gimli::DebuggingInformationEntry<_>| -> Option<(u64, String)> {
            let value = child.attr_value(gimli::DW_AT_discr_value)?;
            let value = value.udata_value().or_else(|| value.sdata_value().map(|value| value as u64))?;
            let of = EntryRef { unit: type_.unit, entry: child.offset() };
            Some((value, self.members(of, 1).into_iter().find_map(|member| member.name)?))
        };
        let names = self.children(part).iter().filter_map(variant).collect();
        Some(ValueType::Enumeration(names))
    }
}
