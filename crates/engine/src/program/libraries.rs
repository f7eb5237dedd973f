//! Lists the libraries of a program, as its file and the loader name them.

use object::LittleEndian;
use object::elf::DT_NEEDED;
use object::read::elf::ElfFile64;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A parsed ELF file.
pub type Elf<'a> = ElfFile64<'a, LittleEndian>;

/// Whether this is a library of the C library or the compiler. Such libraries need only each other.
pub fn is_basic(library: &str) -> bool {
    const BASIC: [&str; 8] =
        ["ld-linux-x86-64", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt", "linux-vdso"];
    library.split(".so").next().is_some_and(|stem| BASIC.contains(&stem))
}

/// Names of the libraries that a file itself asks for.
pub fn needed(elf: &Elf<'_>) -> Vec<String> {
    let Ok(table) = elf.elf_dynamic_table() else { return Vec::new() };
    let entries = table.iter().filter(|entry| entry.tag == DT_NEEDED);
    entries
        .filter_map(|entry| Some(String::from_utf8_lossy(table.string(entry).ok()?).into_owned()))
        .collect()
}

/// Names and files of all libraries that the loader would load with a program. This runs no code of the
/// program.
pub fn libraries(program: &Path) -> Vec<(String, PathBuf)> {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    let Ok(output) = Command::new(LOADER).arg("--list").arg(program).output() else { return Vec::new() };
    output.stdout.split(|&byte| byte == b'\n').filter_map(library).collect()
}

/// Parses a line such as `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f0000000000)`. The first part
/// is missing if it is a path.
fn library(line: &[u8]) -> Option<(String, PathBuf)> {
    let line = line.trim_ascii();
    let end = line.windows(4).rposition(|window| window == b" (0x").unwrap_or(line.len());
    let arrow = line.windows(4).position(|window| window == b" => ");
    let file = &line[arrow.map_or(0, |at| at + 4)..end];
    let name = Path::new(OsStr::from_bytes(&line[..arrow.unwrap_or(end)])).file_name()?;
    Some((name.to_string_lossy().into_owned(), OsStr::from_bytes(file).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_loader() {
        let of = |line: &str| library(line.as_bytes()).map(|(name, path)| (name, path.display().to_string()));
        let both = |name: &str, path: &str| Some((name.to_owned(), path.to_owned()));
        assert_eq!(
            of("\tlibm.so.6 => /lib/a b/libm.so.6 (0x00007f)"),
            both("libm.so.6", "/lib/a b/libm.so.6")
        );
        assert_eq!(of("\t./liba.so (0x00007f)"), both("liba.so", "./liba.so"));
        assert_eq!(of("\tlinux-vdso.so.1 (0x00007f)"), both("linux-vdso.so.1", "linux-vdso.so.1"));
        assert_eq!(of("\tlibz.so => not found"), both("libz.so", "not found"));
        assert_eq!(of(""), None);
    }

    #[test]
    fn basic_ones() {
        assert!(
            ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "linux-vdso.so.1"]
                .iter()
                .all(|name| is_basic(name))
        );
        assert!(
            !["libcrypto.so.3", "libstdc++.so.6", "libmine.so", "libm-mine.so"]
                .iter()
                .any(|name| is_basic(name))
        );
    }
}
