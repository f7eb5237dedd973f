//! Searches the path from variables to an address: first inside the variables, then behind their pointers.

use super::globals::GlobalVariable;
use super::local_variables::LocalVariable;
use super::location::Place;
use super::{Named, short};
use crate::dwarf_unit::EntryRef;
use crate::types::{Pointer, Types};
use crate::value::ValueType;
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// How many pointers a path may follow.
const DEEPEST: usize = 3;
/// How many pointers are read for one name.
const MOST: u32 = 6_000;

/// Something that has a name: a variable, or what a pointer points to.
#[derive(Debug)]
pub struct Root {
    name: String,
    type_: EntryRef,
    at: Place,
    rust: bool,
    /// The address of the object that has the name. What lies behind hidden pointers, such as that of an `Arc`, belongs
    /// to the object that holds the pointer.
    base: u64,
}

impl Root {
    /// A global variable of a file that was loaded with this bias.
    pub fn global(global: &GlobalVariable, bias: u64) -> Root {
        let base = global.address.wrapping_add(bias);
        let at = Place::At(base);
        Root { name: global.name.clone(), type_: global.type_, at, rust: global.rust, base }
    }

    /// A local variable.
    pub fn local(variable: &LocalVariable, at: Place, rust: bool) -> Root {
        let (Place::At(base) | Place::Is(base)) = at;
        Root { name: variable.name.clone(), type_: variable.type_, at, rust, base }
    }
}

/// What a name is wanted for.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address.
    pub address: u64,
    /// How many bytes are accessed there; 0 if it is no access.
    pub size: u8,
    /// The block of the heap that the address lies in, if it lies in one.
    pub block: Option<Range<u64>>,
}

/// A path to the target.
struct Path {
    text: String,
    value: Option<ValueType>,
}

/// The search for one address.
pub struct Search<'s, 't, 'd> {
    types: &'s Types<'t, 'd>,
    read: &'s dyn Fn(u64) -> Option<u64>,
    target: Target,
    left: Cell<u32>,
    pointers: &'s dyn Fn(EntryRef) -> Arc<Vec<Pointer>>,
}

impl<'s, 't, 'd> Search<'s, 't, 'd> {
    /// A search for `target`.
    pub fn new(
        types: &'s Types<'t, 'd>,
        pointers: &'s dyn Fn(EntryRef) -> Arc<Vec<Pointer>>,
        read: &'s dyn Fn(u64) -> Option<u64>,
        target: Target,
    ) -> Search<'s, 't, 'd> {
        Search { types, pointers, read, target, left: Cell::new(MOST) }
    }

    /// The path with the fewest pointers; of equal ones, the first.
    pub fn run(&self, roots: Vec<Root>) -> Option<Named> {
        for (order, root) in roots.iter().enumerate() {
            let Place::At(at) = root.at else { continue };
            if let Some(inside) = self.inside(root.type_, at) {
                let text = short(&(root.name.clone() + &inside.text));
                return Some(Named { text, pointers: 0, order: order + 1, base: at, value: inside.value });
            }
        }
        let mut level: Vec<(usize, Root)> = roots.into_iter().enumerate().collect();
        let mut seen = HashSet::new();
        for depth in 1..=DEEPEST {
            let mut next = Vec::new();
            for (order, thing) in &level {
                for pointer in (self.pointers)(thing.type_).iter() {
                    if let Some((path, base)) = self.follow(thing, pointer, &mut seen, &mut next, *order)? {
                        let Path { text, value } = path;
                        return Some(Named { text, pointers: depth, order: order + 1, base, value });
                    }
                }
            }
            level = next;
        }
        None
    }

    /// Follows a pointer. `None` if too many pointers were read; the inner value is the name and the address of the
    /// object if the pointer leads to the target.
    #[allow(clippy::option_option)]
    fn follow(
        &self,
        thing: &Root,
        pointer: &Pointer,
        seen: &mut HashSet<(u64, EntryRef)>,
        next: &mut Vec<(usize, Root)>,
        order: usize,
    ) -> Option<Option<(Path, u64)>> {
        self.left.set(self.left.get().checked_sub(1)?);
        let value = match thing.at {
            Place::At(at) => (self.read)(at.wrapping_add(pointer.offset)),
            Place::Is(value) if pointer.offset == 0 => Some(value),
            Place::Is(_) => None,
        };
        let Some(value) = value.filter(|value| *value >= 4096) else { return Some(None) };
        let name = thing.name.clone() + &pointer.path;
        let plain = thing.rust || pointer.reference;
        let hidden = plain && pointer.path.is_empty();
        if let Some(inside) = self.inside(pointer.target, value) {
            let counts = self.types.counts(pointer.target, self.target.address - value);
            let text = counts.unwrap_or(inside.text);
            let base = if hidden && text.is_empty() { thing.base } else { value };
            return Some(Some((Path { text: short(&join(&name, &text, plain)), ..inside }, base)));
        }
        if let Some(inside) = self.element(pointer, value) {
            let text = short(&(parenthesised(&name) + &inside.text));
            return Some(Some((Path { text, ..inside }, value)));
        }
        if seen.insert((value, pointer.target)) {
            let name = if plain { name } else { join(&name, "", false) };
            let (at, base) = (Place::At(value), if hidden { thing.base } else { value });
            next.push((order, Root { name, type_: pointer.target, at, rust: thing.rust, base }));
        }
        Some(None)
    }

    /// The path to the target inside an object, if it lies in it.
    fn inside(&self, type_: EntryRef, at: u64) -> Option<Path> {
        let offset = self.target.address.checked_sub(at)?;
        (offset < self.types.size(type_)?).then(|| self.path(type_, offset))
    }

    fn path(&self, type_: EntryRef, offset: u64) -> Path {
        let text = self.types.path(type_, offset);
        Path { text, value: self.types.value_type(type_, offset, self.target.size) }
    }

    /// The path to the target in an array of which a pointer points to an element, if both lie in one block of the
    /// heap.
    fn element(&self, pointer: &Pointer, value: u64) -> Option<Path> {
        let address = self.target.address;
        let block = self.target.block.as_ref().filter(|block| block.contains(&value))?;
        let offset = address.checked_sub(value).filter(|_| block.contains(&address))?;
        let size = self.types.size(pointer.target).filter(|size| *size > 0)?;
        let inside = self.path(pointer.target, offset % size);
        Some(Path { text: format!("[{}]{}", offset / size, inside.text), ..inside })
    }
}

/// A name that a suffix can follow.
fn parenthesised(name: &str) -> String {
    if name.starts_with('*') { format!("({name})") } else { name.to_owned() }
}

/// The name of a part of what a pointer points to. Rust and references need no operator for that.
fn join(name: &str, inside: &str, plain: bool) -> String {
    if plain {
        return format!("{name}{inside}");
    }
    match inside.strip_prefix('.') {
        // `(*p).x` is `p->x`.
        Some(rest) => match name.strip_prefix('*') {
            Some(_) => format!("({name})->{rest}"),
            None => format!("{name}->{rest}"),
        },
        None if inside.starts_with('[') => parenthesised(name) + inside,
        None => format!("*{name}{inside}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_written_as_in_the_source() {
        assert_eq!(join("q", ".done", false), "q->done");
        assert_eq!(join("q", "", false), "*q");
        assert_eq!(join("*q", ".done", false), "(*q)->done");
        assert_eq!(join("q", "[2]", false), "q[2]");
        assert_eq!(join("self", ".done", true), "self.done");
    }
}
