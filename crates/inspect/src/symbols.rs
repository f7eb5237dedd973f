//! Reads names from symbol tables and demangles them.

use super::elf::{Elf, section};
use std::cmp::Reverse;

const ENTRY: usize = 24;
const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;
const GLOBAL: u8 = 1;

/// How many symbols before an address are searched. A symbol that begins inside a larger one would otherwise
/// hide it.
const OVERLAP: usize = 8;

/// A named function or object.
#[derive(Debug)]
pub struct Symbol {
    /// Address, before loading.
    pub address: u64,
    /// Size in bytes; 0 if it is missing, as for some functions written in assembler.
    pub size: u64,
    name: Box<[u8]>,
    global: bool,
}

impl Symbol {
    /// The name as the compiler wrote it.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}

/// The symbols of a file.
#[derive(Debug, Default)]
pub struct SymbolTable {
    functions: Vec<Symbol>,
    objects: Vec<Symbol>,
}

impl SymbolTable {
    /// Adds the symbols of both symbol tables of a file.
    pub fn add(&mut self, elf: &Elf<'_>) {
        for (table, names) in [(".symtab", ".strtab"), (".dynsym", ".dynstr")] {
            self.add_table(&section(elf, table), &section(elf, names));
        }
    }

    /// Decodes the entries here: reading each name through the file would cost two system calls a name.
    fn add_table(&mut self, table: &[u8], names: &[u8]) {
        for entry in table.as_chunks::<ENTRY>().0 {
            let number = |from: usize, size: usize| {
                entry[from..from + size].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
            };
            let (name, info, section) = (number(0, 4) as usize, entry[4], number(6, 2));
            let (address, size) = (number(8, 8), number(16, 8));
            let name = names.get(name..).and_then(|rest| rest.split(|&b| b == 0).next()).unwrap_or_default();
            if section == 0 || name.is_empty() {
                continue;
            }
            let symbol = Symbol { address, size, name: name.into(), global: info >> 4 == GLOBAL };
            match info & 0xf {
                OBJECT if size > 0 => self.objects.push(symbol),
                FUNCTION | INDIRECT_FUNCTION => self.functions.push(symbol),
                _ => {}
            }
        }
    }

    /// Ends the adding: sorts the symbols and leaves one name for each address.
    pub fn finish(&mut self) {
        for list in [&mut self.functions, &mut self.objects] {
            // Of several names at one address, prefers the one that programs use: `nanosleep` before
            // `__nanosleep`.
            list.sort_by_cached_key(|s| {
                let underscores = s.name.iter().take_while(|&&b| b == b'_').count();
                (s.address, Reverse(s.size), underscores, !s.global, s.name.len(), s.name.clone())
            });
            list.dedup_by_key(|s| s.address);
        }
    }

    /// The function that holds an address.
    pub fn function(&self, address: u64) -> Option<&Symbol> {
        let end = self.functions.partition_point(|s| s.address <= address);
        let before = self.functions[..end].iter().rev();
        let sized = before.clone().take(OVERLAP).find(|s| address - s.address < s.size);
        sized.or_else(|| before.clone().next().filter(|s| s.size == 0))
    }

    /// All functions.
    pub fn named(&self) -> impl Iterator<Item = &Symbol> {
        self.functions.iter()
    }

    /// The functions whose size is known.
    pub fn sized(&self) -> impl Iterator<Item = &Symbol> {
        self.functions.iter().filter(|s| s.size > 0)
    }

    /// First address and end of the functions whose size is known.
    pub fn functions(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sized().map(|s| (s.address, s.address.saturating_add(s.size)))
    }

    /// The addresses at which functions begin and end.
    pub fn function_bounds(&self) -> impl Iterator<Item = u64> {
        self.functions.iter().flat_map(|s| [s.address, s.address.saturating_add(s.size)])
    }

    /// All symbols.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = &Symbol> {
        self.functions.iter().chain(&self.objects)
    }

    /// The object that holds an address.
    pub fn object(&self, address: u64) -> Option<&Symbol> {
        let end = self.objects.partition_point(|s| s.address <= address);
        self.objects[..end].iter().rev().take(OVERLAP).find(|s| address - s.address < s.size)
    }
}

/// Whether a name is mangled.
pub fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// The name as a programmer would write it: demangled, without Rust's hashes and C++'s parameters.
pub fn demangle(name: &str) -> String {
    rust(name).or_else(|| cpp(name)).unwrap_or_else(|| name.to_owned())
}

fn rust(name: &str) -> Option<String> {
    // Rust's old scheme is C++'s with a hash at the end. The hash distinguishes the two.
    let old = || {
        let (_, hash) = name.strip_prefix("_ZN")?.rsplit_once("17h")?;
        hash.get(..16)?.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())
    };
    if !name.starts_with("_R") {
        old()?;
    }
    rustc_demangle::try_demangle(name).ok().map(|name| format!("{name:#}"))
}

fn cpp(name: &str) -> Option<String> {
    // Without the prefix, the demangler would take short names of C for types.
    if !name.starts_with("_Z") {
        return None;
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(name).ok()?.demangle_with_options(&options).ok()
}

/// The name of an object as a programmer would write it. This also removes the number that C compilers append
/// to the name of a function's static variable.
pub fn demangle_object(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, number)) if !stem.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            demangle(stem)
        }
        _ => demangle(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangling() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("i"), "i");
        assert_eq!(demangle("_ZN4Pool4takeEi"), "Pool::take");
        assert_eq!(demangle("_ZN4bank7account8transfer17h0123456789abcdefE"), "bank::account::transfer");
        assert_eq!(demangle("_RNvNtCs1234_4bank7account8transfer"), "bank::account::transfer");
        assert_eq!(demangle("_ZN12_GLOBAL__N_14lockE"), "(anonymous namespace)::lock");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
        assert_eq!(demangle_object("lock.1234"), "lock");
        assert_eq!(demangle_object("lock.x"), "lock.x");
    }

    fn entry(name: u32, info: u8, address: u64, size: u64) -> Vec<u8> {
        let mut out = name.to_le_bytes().to_vec();
        out.extend([info, 0, 1, 0]);
        out.extend(address.to_le_bytes());
        out.extend(size.to_le_bytes());
        out
    }

    #[test]
    fn lookup() {
        let names = b"\0__sleep\0sleep\0inner\0data\0bare\0";
        let table = [
            entry(1, 0x12, 0x100, 0x40),
            entry(9, 0x12, 0x100, 0x40),
            entry(15, 0x02, 0x110, 8),
            entry(21, 0x11, 0x400, 0x10),
            entry(26, 0x12, 0x200, 0),
            // A name outside the string table, and half an entry.
            entry(99, 0x12, 0x300, 1),
            vec![1; 7],
        ]
        .concat();
        let mut symbols = SymbolTable::default();
        symbols.add_table(&table, names);
        symbols.finish();
        let function = |address| symbols.function(address).map(|s| s.name());
        assert_eq!(function(0x100).as_deref(), Some("sleep"));
        assert_eq!(function(0x110).as_deref(), Some("inner"));
        assert_eq!(function(0x13f).as_deref(), Some("sleep"));
        assert_eq!(function(0x140), None);
        assert_eq!(function(0x208).as_deref(), Some("bare"));
        assert_eq!(function(0x10), None);
        assert_eq!(symbols.object(0x408).map(|s| s.name()).as_deref(), Some("data"));
        assert!(symbols.object(0x410).is_none());
        assert!(symbols.object(0x100).is_none());
    }
}
