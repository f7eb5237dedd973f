//! Lists the global variables of the program that hold pointers, from which the search for names begins.

use crate::dwarf_unit::EntryRef;
use crate::symbols::demangle;
use crate::types::{Pointer, Types};
use crate::value::ValueType;
use crate::variables::Variables;
use std::sync::Arc;

/// The largest number of global variables whose types are read.
const MOST: usize = 4_000;

/// A global variable that holds pointers.
#[derive(Debug)]
pub struct GlobalVariable {
    /// Its name with all scopes.
    pub name: String,
    /// Its type.
    pub type_: EntryRef,
    /// Its address before loading.
    pub address: u64,
    /// Whether it is written in Rust.
    pub rust: bool,
}

/// The variables of the program that hold pointers. Those of the language's libraries are left out.
pub fn globals(
    types: &Types<'_, '_>,
    variables: &Variables,
    pointers: impl Fn(EntryRef) -> Arc<Vec<Pointer>>,
) -> Vec<GlobalVariable> {
    let own = variables.each().filter(|(_, place, name)| !types.in_library(*place) && is_program(name));
    own.take(MOST)
        .filter_map(|(address, place, name)| {
            let type_ = types.type_of(place)?;
            (!pointers(type_).is_empty()).then(|| GlobalVariable {
                name: demangle(name),
                type_,
                address,
                rust: types.is_rust(place.unit),
            })
        })
        .collect()
}

/// A global variable with a single value, or a field of one.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Its name with all scopes.
    pub name: String,
    /// Its address; before loading, as the debug information has it.
    pub address: u64,
    /// Its size in bytes, at most 8.
    pub size: u8,
    /// How its value is shown.
    pub value: ValueType,
}

/// The largest number of such variables.
const MOST_SCALARS: usize = 200;

/// The variables of the program that have a single value, and the fields of its global structures.
pub fn scalars(types: &Types<'_, '_>, variables: &Variables) -> Vec<Scalar> {
    let own = variables.each().filter(|(_, place, name)| !types.in_library(*place) && is_program(name));
    let scalar = |name: String, address: u64, type_: EntryRef| {
        let size = u8::try_from(types.size(type_)?).ok().filter(|size| (1..=8).contains(size))?;
        Some(Scalar { name, address, size, value: types.value_type(type_, 0, size)? })
    };
    let of = |(address, place, name): (u64, EntryRef, &str)| -> Vec<Scalar> {
        let Some(type_) = types.type_of(place) else { return Vec::new() };
        let name = demangle(name);
        if let Some(whole) = scalar(name.clone(), address, type_) {
            return vec![whole];
        }
        // What begins with underscores belongs to a library, such as the parts of a mutex.
        let fields = types.fields(type_).into_iter().filter(|(field, ..)| !field.starts_with("__"));
        fields
            .filter_map(|(field, at, type_)| scalar(format!("{name}.{field}"), address + at, type_))
            .collect()
    };
    own.take(MOST).flat_map(of).take(MOST_SCALARS).collect()
}

/// Whether a variable belongs to the program, by its mangled or full name. Tables of functions are no variables.
fn is_program(name: &str) -> bool {
    let language = ["std::", "core::", "alloc::", "_ZN3std", "_ZN4core", "_ZN5alloc"];
    let in_crate = ["_3std", "_4core", "_5alloc"];
    !(name.is_empty()
        || name.contains("{vtable")
        || name.starts_with("_ZTV")
        || language.iter().any(|prefix| name.starts_with(prefix))
        || name.starts_with("_R") && in_crate.iter().any(|part| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::is_program;

    #[test]
    fn globals_of_the_language_are_left_out() {
        for name in ["std::thread::COUNT", "_ZN3std6thread5COUNTE", "_RNvNtCs12_3std6thread5COUNT", ""] {
            assert!(!is_program(name), "{name}");
        }
        assert!(!is_program("<bank::Account as core::fmt::Display>::{vtable}"));
        assert!(is_program("bank::COUNT") && is_program("standard"));
    }
}
