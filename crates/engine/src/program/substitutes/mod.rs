//! Sources of functions of libc and libstdc++ that symbolic builds link in place of the library's. They are instrumented
//! as the program is, so a trace says what they read and write, and what the functions of the program do that they call.
//!
//! They have no debug information, so that a finding shows the line of the program that calls them.
//!
//! Each does what the library's function does. All are weak: a program may have a function of its own by that name.

use crate::program::libraries::Elf;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::Path;

/// A source, and the functions that it has.
pub struct Substitute {
    /// Its name, without a directory.
    pub file: &'static str,
    /// Its text.
    pub source: &'static str,
    /// The functions.
    names: &'static [&'static str],
    /// Beginnings of the names of other functions.
    beginnings: &'static [&'static str],
}

impl Substitute {
    /// Whether it is C++.
    pub fn is_cpp(&self) -> bool {
        self.file.ends_with(".cpp")
    }

    /// Whether it has the function of this name.
    fn has(&self, name: &str) -> bool {
        self.names.contains(&name) || self.beginnings.iter().any(|known| name.starts_with(known))
    }
}

/// All substitutes.
static ALL: &[Substitute] = &[
    Substitute {
        file: "threads.c",
        source: include_str!("threads.c"),
        names: &[],
        beginnings: &["_ZNSt6thread", "_ZNSt18condition_variable"],
    },
    Substitute { file: "once.c", source: include_str!("once.c"), names: &["__once_proxy"], beginnings: &[] },
    Substitute {
        file: "lists.c",
        source: include_str!("lists.c"),
        names: &[],
        beginnings: &["_ZNSt8__detail15_List_node_base"],
    },
    Substitute {
        file: "trees.c",
        source: include_str!("trees.c"),
        names: &[],
        beginnings: &["_ZSt18_Rb_tree_", "_ZSt28_Rb_tree_", "_ZSt29_Rb_tree_"],
    },
    Substitute {
        file: "tables.c",
        source: include_str!("tables.c"),
        names: &["_ZSt11_Hash_bytesPKvmm"],
        beginnings: &["_ZNKSt8__detail20_Prime_rehash_policy"],
    },
    Substitute {
        file: "sorting.c",
        source: include_str!("sorting.c"),
        names: &["qsort", "qsort_r", "bsearch"],
        beginnings: &[],
    },
    Substitute {
        file: "strings.cpp",
        source: include_str!("strings.cpp"),
        names: &[],
        beginnings: &[
            "_ZNSaIcE",
            "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE",
            "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE",
        ],
    },
];

/// What a link puts together.
#[derive(Default)]
pub struct Linked {
    /// What its objects refer to.
    undefined: BTreeSet<String>,
    /// What they have.
    defined: BTreeSet<String>,
}

impl Linked {
    /// Adds an object, or those of an archive. Other files have no effect.
    pub fn add(&mut self, file: &Path) {
        let ending = file.extension().unwrap_or_default();
        if ending != "o" && ending != "a" {
            return;
        }
        let Ok(bytes) = std::fs::read(file) else { return };
        let Ok(archive) = ArchiveFile::parse(&*bytes) else { return self.add_object(&bytes) };
        let members = archive.members().filter_map(|member| member.ok()?.data(&*bytes).ok());
        members.for_each(|member| self.add_object(member));
    }

    fn add_object(&mut self, bytes: &[u8]) {
        let Ok(elf) = Elf::parse(bytes) else { return };
        for symbol in elf.symbols().filter(|symbol| symbol.is_global()) {
            let Ok(name) = symbol.name() else { continue };
            let list = if symbol.is_undefined() { &mut self.undefined } else { &mut self.defined };
            list.insert(name.to_owned());
        }
    }

    /// The substitutes of functions that the objects do not have.
    pub fn needs(&self) -> impl Iterator<Item = &'static Substitute> {
        let missing: Vec<&str> = self.undefined.difference(&self.defined).map(String::as_str).collect();
        ALL.iter().filter(move |substitute| missing.iter().any(|name| substitute.has(name)))
    }
}
