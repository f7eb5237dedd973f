//! Shows values as their types say: `true`, `READY`, `&queue`, `-1`.

use heisen_trace::explanation::signed;
use std::sync::Arc;

/// The type of a value, as far as it decides how the value is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A truth value.
    Bool,
    /// A signed number.
    Signed,
    /// An unsigned number.
    Unsigned,
    /// A `char` of C.
    Character,
    /// A floating-point number.
    Float,
    /// An address.
    Pointer,
    /// The constants of an enumeration, or the variants of an enum of Rust, with their names.
    Enumeration(Arc<[(u64, String)]>),
}

impl ValueType {
    /// A value of this type with `size` bytes. `name` names a global variable that begins at an address.
    pub fn text(&self, value: u64, size: u8, name: impl FnOnce(u64) -> Option<String>) -> String {
        let value = value & mask(size);
        match self {
            ValueType::Bool if value <= 1 => (value == 1).to_string(),
            ValueType::Character if matches!(value as u8, b' '..=b'~') => {
                format!("'{}'", value as u8 as char)
            }
            ValueType::Signed | ValueType::Character => signed(value, size).to_string(),
            ValueType::Bool | ValueType::Unsigned => value.to_string(),
            ValueType::Float if size == 4 => f32::from_bits(value as u32).to_string(),
            ValueType::Float if size == 8 => f64::from_bits(value).to_string(),
            ValueType::Float => format!("{value:#x}"),
            ValueType::Pointer if value == 0 => "NULL".to_owned(),
            ValueType::Pointer => {
                name(value).map_or_else(|| format!("{value:#x}"), |name| format!("&{name}"))
            }
            ValueType::Enumeration(names) => match names.iter().find(|(of, _)| of & mask(size) == value) {
                Some((_, name)) => name.clone(),
                None => signed(value, size).to_string(),
            },
        }
    }
}

fn mask(size: u8) -> u64 {
    if size >= 8 { u64::MAX } else { (1 << (8 * u32::from(size))) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_form() {
        let text = |of: ValueType, value, size| of.text(value, size, |_| None);
        assert_eq!(text(ValueType::Bool, 1, 1), "true");
        assert_eq!(text(ValueType::Bool, 7, 1), "7", "no truth value");
        assert_eq!(text(ValueType::Signed, 0xff, 1), "-1");
        assert_eq!(text(ValueType::Unsigned, u64::MAX, 8), "18446744073709551615");
        assert_eq!(text(ValueType::Unsigned, u64::MAX, 4), "4294967295");
        assert_eq!(text(ValueType::Character, 65, 1), "'A'");
        assert_eq!(text(ValueType::Character, 1, 1), "1");
        assert_eq!(text(ValueType::Float, 0.5f64.to_bits(), 8), "0.5");
        assert_eq!(text(ValueType::Float, 1.5f32.to_bits().into(), 4), "1.5");
        assert_eq!(text(ValueType::Pointer, 0, 8), "NULL");
        assert_eq!(text(ValueType::Pointer, 0x5000, 8), "0x5000");
        assert_eq!(ValueType::Pointer.text(0x5000, 8, |_| Some("queue".into())), "&queue");
        let states = ValueType::Enumeration([(0, "IDLE".into()), (u64::MAX, "DEAD".into())].into());
        assert_eq!(text(states.clone(), 0xffff_ffff, 4), "DEAD");
        assert_eq!(text(states, 5, 4), "5");
    }
}
