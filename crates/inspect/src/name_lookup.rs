//! Resolves a name to the code or the memory that it stands for.

use super::dwarf_unit::{EntryRef, Slice};
use super::types::Types;
use super::variables::Variables;
use super::{View, demangle};

/// A named function of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFunction {
    /// The name as in the source, as far as it is known.
    pub name: String,
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Whether it belongs to a library of the system.
    pub system: bool,
}

/// A path of pointers to a variable, or to a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariablePath {
    /// The address where the path begins.
    pub address: u64,
    /// The offset to add after following each pointer.
    pub then: Vec<u64>,
    /// Size of the variable or part, in bytes.
    pub size: u64,
}

/// Why a path to a variable could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The program has no debug information.
    NoDebugInfo,
    /// The program has no such variable. Holds the variables with the most similar names.
    NoVariable(Vec<String>),
    /// The variable has no such part. Holds the missing part and the parts that exist.
    NoField(String, Vec<String>),
}

/// The edit distance of two names.
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut left_above = row[0];
        row[0] = i + 1;
        for (j, &b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (left_above + usize::from(a != b)).min(above + 1).min(row[j] + 1);
            left_above = above;
        }
    }
    row[other.len()]
}

/// The names most similar to `name`, at most three.
pub fn nearest(name: &str, all: impl IntoIterator<Item = String>) -> Vec<String> {
    const MOST: usize = 3;
    let lower = name.to_lowercase();
    let mut near: Vec<(usize, String)> = all
        .into_iter()
        .map(|other| (distance(&lower, &other.to_lowercase()), other))
        .filter(|(distance, other)| *distance <= (name.len().max(other.len()) / 3).max(1))
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, other)| other).collect()
}

impl View<'_> {
    /// All functions that have a name and a size.
    pub fn named_functions(&self) -> Vec<NamedFunction> {
        let mut out = Vec::new();
        for image in &self.images {
            let Some(module) = self.module(image) else { continue };
            if self.symbols.hidden.iter().any(|hidden| hidden == module.path()) {
                continue;
            }
            out.extend(module.symbols().sized().map(|symbol| NamedFunction {
                name: original(demangle(&symbol.name())),
                start: symbol.address.wrapping_add(image.bias),
                end: symbol.address.wrapping_add(symbol.size).wrapping_add(image.bias),
                system: module.system,
            }));
        }
        out
    }

    /// Resolves a variable, or a field or element of one: `queue.slots[3].lock`, `rt->state`. A pointer that
    /// is not the last part of the path is followed.
    pub fn way_to(&self, path: &str) -> Result<VariablePath, PathError> {
        let mut names = Vec::new();
        let mut any = false;
        let mut worst = None;
        for image in &self.images {
            let Some(debug) = self.module(image).and_then(|module| module.debug()) else { continue };
            any |= image.main;
            let found = debug.with_variables(|dwarf, variables| variables.way_to(dwarf, path, &mut names));
            match found {
                Some(Ok(mut way)) => {
                    way.address = way.address.wrapping_add(image.bias);
                    return Ok(way);
                }
                Some(Err(why)) => worst = Some(why),
                None => {}
            }
        }
        Err(match worst {
            Some(why) => why,
            None if !any => PathError::NoDebugInfo,
            None => PathError::NoVariable(nearest(first_of(path), names)),
        })
    }

    /// Follows a path and returns the address it leads to now; `None` if a pointer on it is null or cannot be
    /// read.
    pub fn follow(&self, way: &VariablePath) -> Option<u64> {
        let mut address = way.address;
        for offset in &way.then {
            let mut word = [0];
            self.read_words(address, &mut word).ok()?;
            if word[0] == 0 {
                return None;
            }
            address = word[0].wrapping_add(*offset);
        }
        Some(address)
    }

    /// The first address of a source line, such as `file.c:120`, in each function that has code for it.
    pub fn line(&mut self, file: &str, line: u32) -> Vec<u64> {
        let mut out: Vec<(String, u64)> = Vec::new();
        for piece in self.code() {
            let Some(frame) = piece.frames.first() else { continue };
            let fits = frame.file.as_deref().is_some_and(|path| {
                path == file || path.ends_with(file) && path[..path.len() - file.len()].ends_with('/')
            });
            if fits
                && frame.line == Some(line)
                && !out.iter().any(|(function, _)| *function == frame.function)
            {
                out.push((frame.function.clone(), piece.start));
            }
        }
        out.into_iter().map(|(_, address)| address).collect()
    }
}

/// The original name of a variant that gcc made of a function: `add` for `add.constprop.0`. A split-off part
/// such as `add.part.0` keeps its name, because it is not the entire function.
fn original(name: String) -> String {
    match name.split_once('.') {
        Some((whole, variant))
            if ["constprop", "isra", "lto_priv"].iter().any(|kind| variant.starts_with(kind)) =>
        {
            whole.to_owned()
        }
        _ => name,
    }
}

/// The variable name at the beginning of a path.
fn first_of(path: &str) -> &str {
    let end = path.find(['.', '[']).into_iter().chain(path.find("->")).min();
    &path[..end.unwrap_or(path.len())]
}

/// One step of a path.
enum Step<'p> {
    Field(&'p str),
    Element(u64),
}

fn steps(mut rest: &str) -> Option<Vec<Step<'_>>> {
    let mut out = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("->").or_else(|| rest.strip_prefix('.')) {
            let name = first_of(after);
            out.push(Step::Field(name));
            rest = &after[name.len()..];
        } else {
            let (number, after) = rest.strip_prefix('[')?.split_once(']')?;
            out.push(Step::Element(number.trim().parse().ok()?));
            rest = after;
        }
    }
    Some(out)
}

impl Variables {
    /// Resolves a path in this file; `None` if the file has no such variable.
    fn way_to(
        &self,
        dwarf: &gimli::Dwarf<Slice<'_>>,
        path: &str,
        names: &mut Vec<String>,
    ) -> Option<Result<VariablePath, PathError>> {
        let first = first_of(path);
        let types = Types::new(dwarf, self.units());
        let mut found = None;
        for (address, place, name) in self.each() {
            let name =
                if name.is_empty() { types.declared_name(place).unwrap_or_default() } else { demangle(name) };
            // The last part of a qualified name suffices.
            if name == first || name.rsplit("::").next() == Some(first) {
                found = Some((address, place));
                break;
            }
            names.push(name);
        }
        let (address, place) = found?;
        let mut way = VariablePath { address, then: Vec::new(), size: 0 };
        let Some(steps) = steps(&path[first.len()..]) else {
            return Some(Err(PathError::NoField(path[first.len()..].to_owned(), Vec::new())));
        };
        let mut type_ = types.type_of(place);
        for step in steps {
            match self.take(&types, &mut way, type_, &step) {
                Ok(next) => type_ = Some(next),
                Err(why) => return Some(Err(why)),
            }
        }
        way.size = type_.and_then(|type_| types.size(type_)).unwrap_or(1);
        Some(Ok(way))
    }

    fn take(
        &self,
        types: &Types<'_, '_>,
        way: &mut VariablePath,
        type_: Option<EntryRef>,
        step: &Step<'_>,
    ) -> Result<EntryRef, PathError> {
        let wanted = match step {
            Step::Field(name) => (*name).to_owned(),
            Step::Element(number) => format!("[{number}]"),
        };
        let none = || PathError::NoField(wanted.clone(), Vec::new());
        let mut type_ = types.bare(type_.ok_or_else(none)?).ok_or_else(none)?;
        if let Some(target) = types.pointee(type_) {
            way.then.push(0);
            type_ = types.bare(target).ok_or_else(none)?;
            if let Step::Element(number) = step {
                let size = types.size(type_).ok_or_else(none)?;
                add(way, number * size);
                return Ok(type_);
            }
        }
        match step {
            Step::Field(name) => {
                let fields = types.fields(type_);
                let field = fields.iter().find(|(field, ..)| field == name);
                let Some((_, offset, type_)) = field else {
                    let names = fields.iter().map(|(name, ..)| name.clone()).collect();
                    return Err(PathError::NoField(wanted, names));
                };
                add(way, *offset);
                Ok(*type_)
            }
            Step::Element(number) => {
                let element = types.element(type_).ok_or_else(none)?;
                let size = types.size(element).ok_or_else(none)?;
                // An array without a length has no upper bound.
                let count = types.size(type_).unwrap_or(0) / size.max(1);
                if count > 0 && *number >= count {
                    return Err(PathError::NoField(wanted, vec![format!("[0] to [{}]", count - 1)]));
                }
                add(way, number * size);
                Ok(element)
            }
        }
    }
}

fn add(way: &mut VariablePath, offset: u64) {
    match way.then.last_mut() {
        Some(last) => *last += offset,
        None => way.address += offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        let all = || ["JS_NewContext", "JS_DestroyContext", "js_GC", "main"].map(String::from);
        assert_eq!(nearest("JS_newContext", all()), ["JS_NewContext"]);
        assert_eq!(nearest("js_gc", all()), ["js_GC"]);
        assert_eq!(nearest("something", all()), Vec::<String>::new());
    }

    #[test]
    fn variants() {
        let names =
            ["add", "add.constprop.0", "add.isra.0", "add.cold", "add.part.0"].map(|n| original(n.into()));
        assert_eq!(names, ["add", "add", "add", "add.cold", "add.part.0"]);
    }

    #[test]
    fn paths() {
        assert_eq!(first_of("rt->state"), "rt");
        assert_eq!(first_of("a[3].b"), "a");
        assert_eq!(first_of("plain"), "plain");
        assert_eq!(steps(".a[3]->b").map(|steps| steps.len()), Some(3));
        assert!(steps("[x]").is_none());
        assert!(steps("+1").is_none());
    }
}
