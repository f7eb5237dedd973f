//! Parses the command line of a C or C++ compiler: as much of gcc's and clang's syntax as is needed to know
//! whether a call compiles, links, or does neither.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Options whose value may be the next argument.
#[rustfmt::skip]
const WITH_VALUE: &[&str] = &[
    "-A", "-B", "-D", "-G", "-I", "-L", "-MF", "-MQ", "-MT", "-T", "-U", "-Xanalyzer", "-Xassembler",
    "-Xclang", "-Xlinker", "-Xpreprocessor", "-arch", "-aux-info", "-dumpbase", "-dumpbase-ext", "-dumpdir",
    "-e", "-h", "-idirafter", "-imacros", "-imultilib", "-include", "-include-pch", "-iprefix", "-iquote",
    "-isysroot", "-isystem", "-iwithprefix", "-iwithprefixbefore", "-l", "-mllvm", "-o", "-rpath", "-target",
    "-u", "-wrapper", "-x", "-z", "--output", "--param", "--sysroot", "--language", "--include-directory",
    "--serialize-diagnostics",
];

/// Options that turn linking off.
#[rustfmt::skip]
const NO_LINK: &[&str] = &[
    "-c", "-S", "-E", "-M", "-MM", "-r", "-fsyntax-only", "-emit-ast", "--analyze", "--precompile",
    "--compile", "--assemble", "--preprocess", "--dependencies", "--user-dependencies", "--relocatable",
];

/// Suffixes of files that are compiled; all other files go to the linker.
#[rustfmt::skip]
const SOURCES: &[&str] = &[
    "c", "i", "ii", "m", "mi", "mm", "M", "mii", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "cppm", "s",
    "S", "sx", "f", "for", "ftn", "F", "f90", "f95", "f03", "f08", "F90", "bc", "ll",
];

/// Suffixes of files that are precompiled and never linked.
const HEADERS: &[&str] = &["h", "H", "hh", "hp", "hxx", "hpp", "HPP", "h++", "tcc"];

/// Sanitizers whose runtime takes over the program, and that cannot be combined with the thread sanitizer.
#[rustfmt::skip]
const SANITIZERS: &[&str] = &[
    "address", "kernel-address", "hwaddress", "kernel-hwaddress", "memory", "kernel-memory", "leak",
    "dataflow", "fuzzer",
];

/// How many argument files are read; such a file may name itself.
const MAX_FILES: usize = 2000;

/// A part of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A file that is compiled, with the language that an option before it names.
    Source(OsString, Option<OsString>),
    /// A file for the linker.
    Input(OsString),
    /// The file that is made.
    Output(OsString),
    /// An option, with its value if that is the next argument.
    Option(Vec<OsString>),
}

/// What a compiler call asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Whether it compiles a file.
    pub compiles: bool,
    /// Whether it makes an executable or a library.
    pub links: bool,
    /// Whether it asks for link-time optimisation.
    pub lto: bool,
    /// Whether it makes a program without shared libraries.
    pub is_static: bool,
    /// Whether the command itself switches the thread sanitizer on or off.
    pub thread: Option<bool>,
    /// A sanitizer that cannot be combined with Heisen.
    pub sanitizer: Option<&'static str>,
    /// Everything, in order, without the options that name languages.
    pub parts: Vec<Part>,
}

impl Call {
    /// Parses a command line.
    pub fn of(args: &[OsString]) -> Call {
        // An internal call of the compiler proper by its driver.
        if args.first().is_some_and(|first| first == "-cc1" || first == "-cc1as") {
            return Call::default();
        }
        let mut all = Vec::new();
        expand(args, &mut { MAX_FILES }, &mut all);
        let mut call = Call { links: true, ..Call::default() };
        let mut sanitizers: Vec<&'static str> = Vec::new();
        let (mut for_linker, mut language) = (false, None::<OsString>);
        let mut args = all.into_iter();
        while let Some(arg) = args.next() {
            let text = arg.to_string_lossy().into_owned();
            call.parts.push(Part::Option(vec![arg.clone()]));
            if NO_LINK.contains(&&*text) {
                call.links = false;
            } else if text == "-x" || text == "--language" {
                language = args.next().filter(|language| language != "none");
                call.parts.pop();
            } else if let Some(joined) = text.strip_prefix("-x") {
                language = (joined != "none").then(|| joined.into());
                call.parts.pop();
            } else if let Some(list) = text.strip_prefix("-fsanitize=") {
                if list.split(',').any(|s| s == "thread") {
                    call.thread = Some(true);
                }
                sanitizers
                    .extend(list.split(',').filter_map(|s| SANITIZERS.iter().find(|known| **known == s)));
            } else if let Some(list) = text.strip_prefix("-fno-sanitize=") {
                if list.split(',').any(|s| s == "thread" || s == "all") {
                    call.thread = Some(false);
                }
                sanitizers.retain(|known| !list.split(',').any(|s| s == *known || s == "all"));
            } else if text.starts_with("-flto") || text == "-fno-lto" {
                call.lto = text != "-fno-lto";
            } else if text == "-static" || text == "--static" || text == "-static-pie" {
                call.is_static = true;
            } else if let Some(list) = text.strip_prefix("-Wl,") {
                let partial = |option: &str| ["-r", "-i", "--relocatable"].contains(&option);
                call.links &= !list.split(',').any(partial);
            } else if text == "-Xlinker" {
                let option = args.next();
                call.parts.pop();
                call.parts.push(Part::Option([arg].into_iter().chain(option.clone()).collect()));
                call.links &= !option.is_some_and(|option| option == "-r" || option == "--relocatable");
            } else if let Some(joined) = joined_output(&text) {
                let output = if joined.is_empty() { args.next() } else { Some(joined.into()) };
                call.parts.pop();
                call.parts.extend(output.map(Part::Output));
            } else if WITH_VALUE.contains(&&*text) {
                call.parts.pop();
                call.parts.push(Part::Option([arg].into_iter().chain(args.next()).collect()));
            } else if text == "-" || !text.starts_with('-') {
                let ending = Path::new(&arg).extension().and_then(OsStr::to_str).unwrap_or_default();
                let header = match &language {
                    Some(language) => language.to_string_lossy().ends_with("-header"),
                    None => HEADERS.contains(&ending),
                };
                let source = language.is_some() || SOURCES.contains(&ending) || text == "-";
                call.compiles |= header || source;
                for_linker |= !header;
                call.parts.pop();
                call.parts.push(match header || source {
                    true => Part::Source(arg, language.clone()),
                    false => Part::Input(arg),
                });
            }
        }
        call.links &= for_linker;
        call.sanitizer = sanitizers.first().copied();
        call
    }
}

/// What follows an option that names the output, in the same argument.
fn joined_output(text: &str) -> Option<&str> {
    let is_other = text.starts_with("-ob");
    if text == "--output" { Some("") } else { text.strip_prefix("-o").filter(|_| !is_other) }
}

/// Replaces each `@FILE` by the arguments in the file, as the compiler does.
fn expand(args: &[OsString], files: &mut usize, out: &mut Vec<OsString>) {
    for arg in args {
        let file = arg.as_bytes().strip_prefix(b"@").filter(|_| *files > 0);
        match file.and_then(|file| fs::read(OsStr::from_bytes(file)).ok()) {
            Some(text) => {
                *files -= 1;
                expand(&words(&text), files, out);
            }
            None => out.push(arg.clone()),
        }
    }
}

/// Splits such a file at spaces; quotes and backslashes join words.
fn words(text: &[u8]) -> Vec<OsString> {
    let mut out = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (byte, Some(end)) if byte == end => quote = None,
            (byte, None) if byte.is_ascii_whitespace() => out.extend(word.take().map(OsString::from_vec)),
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    out.extend(word.map(OsString::from_vec));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Call {
        Call::of(&words(line.as_bytes()))
    }

    /// Whether it compiles, and whether it links.
    fn does(line: &str) -> (bool, bool) {
        (call(line).compiles, call(line).links)
    }

    #[test]
    fn modes() {
        for line in
            ["a.c", "a.c -o a", "-x c - -o a", "a.c b.o -lm", "-xc++ a", "-o a a.c -MD -MF a.d", "-v a.c"]
        {
            assert_eq!(does(line), (true, true), "{line}");
        }
        for line in [
            "-c a.c",
            "-S a.cpp -o -",
            "-E -",
            "-MM a.c",
            "-fsyntax-only a.c",
            "a.h",
            "-x c++-header a",
            "a.c -r",
        ] {
            assert_eq!(does(line), (true, false), "{line}");
        }
        for line in ["a.o", "-shared -o liba.so a.o", "-o a main.o liba.a libb.so.1", "a.o -Wl,-rpath,x"] {
            assert_eq!(does(line), (false, true), "{line}");
        }
        for line in [
            "",
            "--version",
            "-v",
            "-print-file-name=libc.so",
            "-dumpmachine",
            "-o a",
            "-Wl,--version",
            "-r -o c.o a.o b.o",
            "-Wl,-r a.o",
            "-Xlinker -r a.o",
            "-cc1 -emit-obj a.c",
            "-I include -L lib",
            "-include a.h",
        ] {
            assert_eq!(does(line), (false, false), "{line}");
        }
        assert_eq!(does("-x c a -x none b.o"), (true, true));
    }

    #[test]
    fn sanitizers_in_the_way() {
        assert_eq!(call("-fsanitize=address a.c").sanitizer, Some("address"));
        assert_eq!(call("-fsanitize=undefined,leak a.o").sanitizer, Some("leak"));
        assert_eq!(call("-fsanitize=memory -fno-sanitize=all a.c").sanitizer, None);
        assert_eq!(call("-fsanitize=thread,undefined a.c").sanitizer, None);
        assert_eq!(call("-fsanitize=thread,undefined a.c").thread, Some(true));
        assert_eq!(call("-fsanitize=thread a.c -fno-sanitize=all").thread, Some(false));
    }

    #[test]
    fn files_with_arguments() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("args");
        fs::write(&file, "-c 'a b.c'\n -DX=\\\"y\\\" \"\"").expect("a file");
        let line = format!("@{}", file.display());
        assert_eq!(does(&line), (true, false));
        assert_eq!(words(b"-c 'a b.c'\n -DX=\\\"y\\\" \"\""), ["-c", "a b.c", "-DX=\"y\"", ""]);
        // A file that names itself, and a missing one.
        fs::write(&file, format!("a.c {line}")).expect("a file");
        assert_eq!(does(&line), (true, true));
        assert_eq!(does("@missing -c"), (false, false));
    }
}
