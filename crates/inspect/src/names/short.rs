//! Shortens names: long template arguments say little and take a line.

/// The longest template arguments that are shown.
const LONGEST: usize = 24;

/// The name with long template arguments replaced by an ellipsis: `Pool<…>::instance`.
pub fn short(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(start) = rest.find('<') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = closing(from).filter(|_| !before.is_empty() && !before.ends_with("operator")) else {
            out.push('<');
            rest = &from[1..];
            continue;
        };
        let arguments = &from[..=end];
        match arguments.chars().count() > LONGEST {
            true => out.push_str("<…>"),
            // A comma and a space separate the names of several objects.
            false => out.push_str(&arguments.replace(", ", ",")),
        }
        rest = &from[end + 1..];
    }
    out + rest
}

/// The index of the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut last = ' ';
    for (index, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            // The arrow of a function type, or of a pointer.
            '>' if last != '-' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
        last = character;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn long_arguments_are_left_out() {
        assert_eq!(short("Pool<int>::lock"), "Pool<int>::lock");
        let long = "Pool<std::vector<int, std::allocator<int>>, 4>::instance->lock";
        assert_eq!(short(long), "Pool<…>::instance->lock");
        assert_eq!(short("Pair<int, long>::x"), "Pair<int,long>::x");
        assert_eq!(short("a->b"), "a->b");
        assert_eq!(
            short("<bank::Account as core::fmt::Display>::X"),
            "<bank::Account as core::fmt::Display>::X"
        );
        assert_eq!(short("x<y"), "x<y");
    }
}
