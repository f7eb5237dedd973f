//! Builds full names for entries that debug information names only in parts. Compilers give no mangled name
//! to functions and variables local to a C++ file, lambdas among them. Their enclosing scopes have to be
//! found by a walk.

use super::symbols::{demangle, is_mangled};
use gimli::{AttributeValue, DwTag, Reader, UnitOffset, UnitRef};

/// How many entries may refer to each other for one name, and how deep functions may be nested.
const DEEPEST: usize = 16;

/// A namespace, class or function that encloses the current entry of the walk.
struct Scope<R: Reader> {
    depth: isize,
    entry: UnitOffset,
    tag: DwTag,
    name: Option<AttributeValue<R>>,
}

/// The name of an entry with the names of all enclosing namespaces, classes and functions. An entry without a
/// name takes the name of the entry that it completes, if that is in the same unit. Walks the unit up to the
/// entry.
pub fn qualified<R: Reader<Offset = usize>>(unit: UnitRef<'_, R>, entry: UnitOffset) -> Option<String> {
    within(unit, entry, DEEPEST)
}

fn within<R: Reader<Offset = usize>>(
    unit: UnitRef<'_, R>,
    entry: UnitOffset,
    depth: usize,
) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let (entry, name) = match named(unit, entry)? {
        Name::Full(name) => return Some(name),
        Name::Part(entry, name) => (entry, name),
    };
    let scopes = scopes(unit, entry)?;
    let is_lambda = scopes.last().is_some_and(is_unnamed_class) && name == "operator()";
    let mut path = String::new();
    for scope in scopes {
        match (scope.name, scope.tag) {
            (Some(name), _) => path.push_str(&text(unit, name)?),
            (None, gimli::DW_TAG_namespace) => path.push_str("(anonymous namespace)"),
            // A function defined apart from its declaration is named there, from the outermost scope on.
            (None, gimli::DW_TAG_subprogram) => path = within(unit, scope.entry, depth)?,
            (None, _) => path.push_str("{lambda}"),
        }
        path.push_str("::");
    }
    if is_lambda {
        // A lambda has no name of its own; its enclosing scopes name it.
        path.truncate(path.len().saturating_sub("::".len()));
        return Some(path);
    }
    Some(path + &name)
}

fn is_unnamed_class<R: Reader>(scope: &Scope<R>) -> bool {
    scope.name.is_none() && !matches!(scope.tag, gimli::DW_TAG_namespace | gimli::DW_TAG_subprogram)
}

/// The scopes that enclose an entry, outermost first.
fn scopes<R: Reader<Offset = usize>>(unit: UnitRef<'_, R>, entry: UnitOffset) -> Option<Vec<Scope<R>>> {
    let mut scopes: Vec<Scope<R>> = Vec::new();
    let mut entries = unit.entries_raw(None).ok()?;
    while entries.next_offset().0 < entry.0 {
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
        while scopes.pop_if(|scope| scope.depth >= depth).is_some() {}
        if !abbreviation.has_children() || !is_scope(abbreviation.tag()) {
            entries.skip_attributes(abbreviation.attributes()).ok()?;
            continue;
        }
        let mut scope = Scope { depth, entry: offset, tag: abbreviation.tag(), name: None };
        for &attribute in abbreviation.attributes() {
            let attribute = entries.read_attribute(attribute).ok()?;
            if attribute.name() == gimli::DW_AT_name {
                scope.name = Some(attribute.value());
            }
        }
        scopes.push(scope);
    }
    let depth = entries.next_depth();
    scopes.retain(|scope| scope.depth < depth);
    Some(scopes)
}

fn is_scope(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_subprogram
    )
}

/// The name of an entry.
enum Name {
    /// With all enclosing scopes.
    Full(String),
    /// Without scopes, and the entry that has the name.
    Part(UnitOffset, String),
}

fn named<R: Reader<Offset = usize>>(unit: UnitRef<'_, R>, entry: UnitOffset) -> Option<Name> {
    let mut offset = entry;
    for _ in 0..DEEPEST {
        let entry = unit.entry(offset).ok()?;
        let attribute = |which| entry.attr_value(which);
        let mangled = attribute(gimli::DW_AT_linkage_name).and_then(|name| text(unit, name));
        if let Some(mangled) = mangled.filter(|name| is_mangled(name)) {
            return Some(Name::Full(demangle(&mangled)));
        }
        if let Some(name) = attribute(gimli::DW_AT_name) {
            return Some(Name::Part(offset, text(unit, name)?));
        }
        let origin =
            attribute(gimli::DW_AT_specification).or_else(|| attribute(gimli::DW_AT_abstract_origin))?;
        let AttributeValue::UnitRef(origin) = origin else { return None };
        offset = origin;
    }
    None
}

fn text<R: Reader>(unit: UnitRef<'_, R>, value: AttributeValue<R>) -> Option<String> {
    Some(unit.attr_string(value).ok()?.to_string_lossy().ok()?.into_owned())
}
