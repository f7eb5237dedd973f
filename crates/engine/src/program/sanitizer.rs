//! Refuses programs that were built for another sanitizer, by name: its library takes over the memory, and
//! the same functions as Heisen's runtime.

use crate::error::{Error, Result};
use crate::program::libraries::{Elf, is_basic, libraries, needed};
use object::read::elf::ElfSymbolIterator;
use object::{Object, ObjectSymbol};
use std::path::Path;

/// A sanitizer: its option, the names of its libraries, and functions that only they define or export.
/// (Heisen's stub defines the callbacks of code instrumented for `thread`, but does not export them.)
struct Sanitizer {
    option: &'static str,
    library: &'static str,
    defined: &'static str,
    exported: &'static str,
}

const SANITIZERS: [Sanitizer; 5] = [
    Sanitizer {
        option: "thread",
        library: "tsan",
        defined: "__tsan_get_report_data",
        exported: "__tsan_init",
    },
    Sanitizer { option: "hwaddress", library: "hwasan", defined: "__hwasan_init", exported: "__hwasan_init" },
    Sanitizer { option: "address", library: "asan", defined: "__asan_init", exported: "__asan_init" },
    Sanitizer { option: "memory", library: "msan", defined: "__msan_init", exported: "__msan_init" },
    Sanitizer { option: "leak", library: "lsan", defined: "__lsan_init", exported: "__lsan_init" },
];

/// Refuses a program if it, or a library linked to it, was built for a sanitizer.
pub(crate) fn refuse(path: &Path, bytes: &[u8]) -> Result<()> {
    let Ok(elf) = Elf::parse(bytes) else { return Ok(()) };
    let mut names = needed(&elf);
    // Libraries have libraries of their own.
    if names.iter().any(|name| !is_basic(name)) {
        names.extend(libraries(path).into_iter().map(|(name, _)| name));
    }
    let linked = names.iter().find_map(|name| {
        let runtime = |s: &&Sanitizer| {
            let rest = name.strip_prefix("lib").map(|rest| rest.strip_prefix("clang_rt.").unwrap_or(rest));
            rest.and_then(|rest| rest.strip_prefix(s.library))
                .is_some_and(|rest| rest.starts_with(['.', '-', '_']))
        };
        Some((SANITIZERS.iter().find(runtime)?, format!("linked with {name}")))
    });
    let contained = || {
        let has = |mut symbols: ElfSymbolIterator<'_, '_, _>, name: &str| {
            symbols.any(|symbol| symbol.is_definition() && symbol.name_bytes() == Ok(name.as_bytes()))
        };
        let runtime =
            |s: &&Sanitizer| has(elf.dynamic_symbols(), s.exported) || has(elf.symbols(), s.defined);
        Some((SANITIZERS.iter().find(runtime)?, "linked with its library".to_owned()))
    };
    let Some((sanitizer, how)) = linked.or_else(contained) else { return Ok(()) };
    let (shown, option) = (path.display(), sanitizer.option);
    let instead = match option {
        "thread" => "build it with heisen cc or heisen c++ instead (CC=\"heisen cc\")",
        _ => "build it without",
    };
    Err(Error::Uncontrolled(format!(
        "{shown} is built with -fsanitize={option} ({how}), which replaces the same functions as Heisen; {instead}"
    )))
}
