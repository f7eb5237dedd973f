//! Finds the places that a script names: function entries, function exits, and lines. They are patched like
//! atomic instructions; the trampoline reports them to the runtime's `script`.

use super::code::Text;
use crate::error::{Error, Result};
use heisen_inspect::{NamedFunction, View, nearest};
use heisen_wire::patch::{ENTRY, LINE, RETURN};
use heisen_wire::script::MAX_NAMED;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};
use std::collections::BTreeMap;

/// A place that a script names. Its number is its index in the script's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A function.
    Function(String),
    /// A line of the source, `file.c:120`.
    Line(String),
}

impl Named {
    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Named::Function(name) | Named::Line(name) => name,
        }
    }
}

/// The addresses to be marked, each with its mark; see `heisen_wire::patch::MARK`.
pub type Marks = BTreeMap<u64, u32>;

/// Finds the places in a parked program. Also returns the numbers of missing places, and why they are
/// missing. `texts` has all code of the program.
pub fn find(named: &[Named], view: &mut View<'_>, texts: &[Text]) -> Result<(Marks, Vec<(usize, String)>)> {
    let mut marks = Marks::new();
    let mut missing = Vec::new();
    if named.len() > MAX_NAMED {
        return Err(Error::Input(format!(
            "the script names {} functions and lines, and {MAX_NAMED} is the most",
            named.len()
        )));
    }
    let functions = if named.is_empty() { Vec::new() } else { view.named_functions() };
    for (index, place) in named.iter().enumerate() {
        let number = (index as u32) << 2;
        match place {
            Named::Function(name) => {
                let exact = functions.iter().any(|function| function.name == *name);
                let end = format!("::{name}");
                let is = |f: &&NamedFunction| f.name == *name || !exact && f.name.ends_with(&end);
                let own = functions.iter().any(|function| is(&function) && !function.system);
                let meant = functions.iter().filter(|f| is(f) && f.system != own);
                let mut any = false;
                for function in meant {
                    any = true;
                    marks.insert(function.start, number | ENTRY);
                    for left in leaves(texts, function.start, function.end) {
                        marks.entry(left).or_insert(number | RETURN);
                    }
                }
                if !any {
                    missing.push((index, no_function(name, &functions)));
                }
            }
            Named::Line(name) => {
                let parts = name.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
                let Some((file, line)) = parts else {
                    return Err(Error::Input(format!("at(\"{name}\") is no line; write at(\"file.c:120\")")));
                };
                let addresses = view.line(file, line);
                if addresses.is_empty() {
                    missing.push((
                        index,
                        format!(
                            "there is no code at {name}; is the program compiled with -g, and does the line do anything?"
                        ),
                    ));
                }
                for address in addresses {
                    marks.entry(address).or_insert(number | LINE);
                }
            }
        }
    }
    Ok((marks, missing))
}

fn no_function(name: &str, all: &[NamedFunction]) -> String {
    // The script may name a function by the end of its path.
    let parts = name.matches("::").count();
    let end =
        |full: &str| full.rmatch_indices("::").nth(parts).map_or(full, |(at, _)| &full[at + 2..]).to_owned();
    let near = nearest(name, all.iter().map(|function| end(&function.name)));
    let hint = match near.as_slice() {
        _ if all.iter().all(|function| function.system) => {
            "; the program has no symbols: do not strip it".to_owned()
        }
        [] => "; if it was inlined, compile with -fno-inline or mark it __attribute__((noinline)), in Rust #[inline(never)]".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    };
    format!("the program has no function {name}{hint}")
}

/// The instructions at which a function is left: returns, and jumps to other functions.
fn leaves(texts: &[Text], start: u64, end: u64) -> Vec<u64> {
    let Some(bytes) = texts.iter().find_map(|text| text.slice(start, end)) else { return Vec::new() };
    let decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let leaves = |instruction: &iced_x86::Instruction| match instruction.flow_control() {
        FlowControl::Return => true,
        FlowControl::UnconditionalBranch if instruction.code() != Code::INVALID => {
            !(start..end).contains(&instruction.near_branch_target())
        }
        _ => false,
    };
    decoder.into_iter().filter(leaves).map(|instruction| instruction.ip()).collect()
}
