//! The leaves of types: the parts of a value that have an id of their own.
//!
//! Structures, arrays and vectors are flattened. An integer of 128 bits has two leaves.

use crate::symbolic::ir::{Ir, Type, Value};
use crate::symbolic::opcode::{instruction, kind};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The largest number of leaves of a value that has ids.
pub const MAX_LEAVES: usize = heisen_abi::symbolic::RESULTS;

/// What a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// An integer, or half of one of 128 bits.
    Integer,
    /// A pointer.
    Pointer,
    /// A floating-point number.
    Float,
}

/// A part of a value.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The fields and elements on the way to it.
    path: Vec<u32>,
    /// Which half of an integer of 128 bits it is.
    half: Option<u32>,
    /// What it is.
    pub kind: LeafKind,
    /// Its bits.
    pub bits: u32,
    /// The distance of its first byte from that of the value, in bytes.
    pub offset: u64,
}

impl Leaf {
    /// The bytes that it has in memory.
    pub fn bytes(&self) -> u64 {
        u64::from(self.bits).div_ceil(8)
    }
}

/// The leaves of all types, as far as anybody has asked.
#[derive(Debug, Default)]
pub struct Layouts {
    known: RefCell<HashMap<Type, Option<Rc<[Leaf]>>>>,
}

impl Layouts {
    /// The leaves of a type. `None` if values of it have no ids: it has a part that is too wide, or too many.
    pub fn of(&self, ir: &Ir<'_>, ty: Type) -> Option<Rc<[Leaf]>> {
        if let Some(known) = self.known.borrow().get(&ty) {
            return known.clone();
        }
        let mut leaves = Vec::new();
        let fits = collect(ir, ty, &mut Vec::new(), 0, &mut leaves) && !leaves.is_empty();
        let leaves: Option<Rc<[Leaf]>> = fits.then(|| leaves.into());
        self.known.borrow_mut().insert(ty, leaves.clone());
        leaves
    }

    /// The bits of a type that has one leaf and is no structure, array or vector.
    pub fn scalar(&self, ir: &Ir<'_>, ty: Type) -> Option<(LeafKind, u32)> {
        match &*self.of(ir, ty)? {
            [leaf] if leaf.path.is_empty() => Some((leaf.kind, leaf.bits)),
            _ => None,
        }
    }

    /// The number of the first leaf in the part of a type that these indices name.
    pub fn first_leaf(&self, ir: &Ir<'_>, ty: Type, indices: &[u32]) -> Option<usize> {
        let leaves = self.of(ir, ty)?;
        leaves.iter().position(|leaf| leaf.path.starts_with(indices))
    }
}

/// Appends the leaves of a type. Returns whether it has ids.
fn collect(ir: &Ir<'_>, ty: Type, path: &mut Vec<u32>, offset: u64, leaves: &mut Vec<Leaf>) -> bool {
    let mut add = |kind, bits| {
        leaves.push(Leaf { path: path.clone(), half: None, kind, bits, offset });
        leaves.len() <= MAX_LEAVES
    };
    match ir.kind(ty) {
        kind::INTEGER if ir.int_bits(ty) <= 64 => add(LeafKind::Integer, ir.int_bits(ty)),
        kind::INTEGER if ir.int_bits(ty) == 128 => {
            for half in [0, 1] {
                let offset = offset + u64::from(half) * 8;
                let kind = LeafKind::Integer;
                leaves.push(Leaf { path: path.clone(), half: Some(half), kind, bits: 64, offset });
            }
            leaves.len() <= MAX_LEAVES
        }
        kind::POINTER => add(LeafKind::Pointer, 64),
        kind::HALF | kind::BFLOAT => add(LeafKind::Float, 16),
        kind::FLOAT => add(LeafKind::Float, 32),
        kind::DOUBLE => add(LeafKind::Float, 64),
        of @ (kind::STRUCT | kind::ARRAY | kind::VECTOR) => {
            let count = ir.elements(ty);
            if count > MAX_LEAVES as u64 {
                return false;
            }
            (0..count as u32).all(|index| {
                let element = ir.element_type(ty, index);
                // The elements of a vector have no gaps; those that do not fill bytes cannot be addressed.
                let at = match of {
                    kind::STRUCT => ir.field_offset(ty, index),
                    kind::ARRAY => u64::from(index) * ir.stride(element),
                    _ if ir.kind(element) == kind::INTEGER && !ir.int_bits(element).is_multiple_of(8) => {
                        return false;
                    }
                    _ => u64::from(index) * ir.store_size(element),
                };
                path.push(index);
                let fits = collect(ir, element, path, offset + at, leaves);
                path.pop();
                fits
            })
        }
        _ => false,
    }
}

/// Builds the value of a leaf as an integer of 64 bits.
pub fn build(ir: &Ir<'_>, of: Value, leaf: &Leaf) -> Value {
    let mut part = leaf.path.iter().fold(of, |of, &index| ir.extract(of, index));
    let word = ir.int(64);
    if let Some(half) = leaf.half {
        if half == 1 {
            part = ir.binary(instruction::LSHR, part, ir.number(ir.type_of(part), 64));
        }
        return ir.cast(instruction::TRUNC, part, word);
    }
    match leaf.kind {
        LeafKind::Pointer => return ir.cast(instruction::PTR_TO_INT, part, word),
        LeafKind::Float => part = ir.cast(instruction::BIT_CAST, part, ir.int(leaf.bits)),
        LeafKind::Integer => {}
    }
    if leaf.bits < 64 { ir.cast(instruction::ZEXT, part, word) } else { part }
}
