//! The text of a script, translated to rhai.
//!
//! The language is rhai with three differences: `let [a, b] = …;` takes an array apart, `event.thread` is
//! allowed although rhai reserves the word, and `print` knows its line.

use heisen_engine::patch::Named;

/// The functions whose argument names a function of the program, and the one whose argument names a line.
const FUNCTIONS: [&str; 5] = ["enters", "returns", "calls", "in_func", "search_in_func"];
const LINE: &str = "at";

/// A script.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text for rhai; each line corresponds to the same line of the script.
    pub text: String,
    /// The functions and lines that literals name, and the line of the first mention.
    pub named: Vec<(Named, usize)>,
}

/// A token of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    /// A name or a number.
    Word(&'t str),
    /// A quoted string, as it is written.
    Text(&'t str),
    /// White space and comments.
    Gap(&'t str),
    /// Any other character.
    Sign(char),
}

/// Splits the text into tokens; their concatenation is the text.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if first.is_whitespace() {
            rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if matches!(first, '"' | '`') {
            end_of_string(rest, first)
        } else {
            first.len_utf8()
        };
        let (piece, after) = rest.split_at(length);
        out.push(match first {
            _ if is_word(first) => Token::Word(piece),
            _ if first.is_whitespace() || piece.starts_with("//") || piece.starts_with("/*") => {
                Token::Gap(piece)
            }
            '"' | '`' => Token::Text(piece),
            sign => Token::Sign(sign),
        });
        rest = after;
    }
    out
}

fn end_of_string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

impl Source {
    /// Reads a script.
    pub fn new(text: &str) -> Source {
        let tokens = tokens(text);
        Source { text: rewrite(&tokens), named: named(&tokens) }
    }

    /// Whether it may mention memory accesses, or calls of functions that it does not name.
    pub fn mentions_memory(&self) -> bool {
        let words = ["reads", "writes", "accesses", "calls", "search_", "context_bounded"];
        let mentions = |word: &str| words.iter().any(|known| word.starts_with(known));
        tokens(&self.text).iter().any(|token| matches!(token, Token::Word(word) if mentions(word)))
    }

    /// The line in which something is first named.
    pub fn line_of(&self, name: &str) -> Option<usize> {
        self.named.iter().find(|(named, _)| named.name() == name).map(|(_, line)| *line)
    }
}

/// The functions and lines that literals in the text name.
fn named(tokens: &[Token<'_>]) -> Vec<(Named, usize)> {
    let mut out: Vec<(Named, usize)> = Vec::new();
    let solid: Vec<(usize, Token<'_>)> =
        tokens.iter().copied().enumerate().filter(|(_, t)| !matches!(t, Token::Gap(_))).collect();
    for (at, window) in solid.windows(3).enumerate() {
        let [(_, Token::Word(word)), (_, Token::Sign('(')), _] = window else { continue };
        let before = tokens[..window[0].0].iter().map(length_in_lines).sum::<usize>();
        // All strings up to the end of the arguments, because some functions take a list.
        let mut depth = 0;
        for (_, token) in &solid[at + 1..] {
            match token {
                Token::Sign('(' | '[') => depth += 1,
                Token::Sign(')' | ']') => depth -= 1,
                Token::Text(text) if depth <= 2 => {
                    let name = text.trim_matches(['"', '`']).to_owned();
                    let place = match *word {
                        LINE => Named::Line(name),
                        word if FUNCTIONS.iter().any(|function| word.starts_with(function)) => {
                            Named::Function(name)
                        }
                        _ => continue,
                    };
                    if !out.iter().any(|(known, _)| *known == place) {
                        out.push((place, before + 1));
                    }
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    out
}

fn length_in_lines(token: &Token<'_>) -> usize {
    match token {
        Token::Gap(text) | Token::Text(text) => text.matches('\n').count(),
        _ => 0,
    }
}

/// Rewrites each `let [a, b] = value;` to `let whole = value; let a = part(whole, 0, 2); let b = …;`.
fn rewrite(tokens: &[Token<'_>]) -> String {
    let mut out = String::new();
    // Names that are still to be set, with the bracket depth at which their statement ends.
    let mut pending: Vec<(usize, Vec<&str>, String)> = Vec::new();
    let (mut depth, mut at, mut count) = (0usize, 0, 0);
    while let Some(token) = tokens.get(at) {
        if *token == Token::Word("let")
            && let Some((names, after)) = pattern(&tokens[at + 1..])
        {
            count += 1;
            let whole = format!("whole_{count}");
            out.push_str(&format!("let {whole} "));
            // Line ends within the pattern are preserved.
            let skipped = &tokens[at + 1..at + 1 + after];
            out.extend(std::iter::repeat_n('\n', skipped.iter().map(length_in_lines).sum()));
            pending.push((depth, names, whole));
            at += 1 + after;
            continue;
        }
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        match token {
            // Rhai reserves this word.
            Token::Word("thread") if at > 0 && tokens[at - 1] == Token::Sign('.') => out.push_str("tid"),
            // Rhai's own `print` does not know its line.
            Token::Word("print") if tokens.get(at + 1) == Some(&Token::Sign('(')) => out.push_str("tell"),
            Token::Word(text) | Token::Text(text) | Token::Gap(text) => out.push_str(text),
            Token::Sign(sign) => out.push(*sign),
        }
        if *token == Token::Sign(';')
            && let Some((_, names, whole)) = pending.pop_if(|(at, ..)| *at == depth)
        {
            let length = names.len();
            for (number, name) in names.iter().enumerate() {
                out.push_str(&format!(" let {name} = part({whole}, {number}, {length});"));
            }
        }
        at += 1;
    }
    out
}

/// The names in `[a, b] ` if that pattern and a `=` follow, and how many tokens it has.
fn pattern<'t>(tokens: &[Token<'t>]) -> Option<(Vec<&'t str>, usize)> {
    let mut names = Vec::new();
    let mut solid = tokens.iter().enumerate().filter(|(_, token)| !matches!(token, Token::Gap(_)));
    if *solid.next()?.1 != Token::Sign('[') {
        return None;
    }
    loop {
        match solid.next()?.1 {
            Token::Word(name) => names.push(*name),
            Token::Sign(']') => break,
            _ => return None,
        }
        match solid.next()?.1 {
            Token::Sign(',') => {}
            Token::Sign(']') => break,
            _ => return None,
        }
    }
    let (at, equals) = solid.next()?;
    (*equals == Token::Sign('=') && !names.is_empty()).then_some((names, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_taken_apart() {
        let text = |script| Source::new(script).text;
        assert_eq!(
            text("let [a, b] = f(1, [2;3]);\ng(a);"),
            "let whole_1 = f(1, [2;3]); let a = part(whole_1, 0, 2); let b = part(whole_1, 1, 2);\ng(a);"
        );
        for same in ["let a = [1, 2];", "// let [a] = 1;", "\"let [a] = 1;\"", "let x = y[0]; x == [1];", ""]
        {
            assert_eq!(text(same), same);
        }
        assert_eq!(text("e.thread; thread()"), "e.tid; thread()");
        assert_eq!(text("print(1); printed(2); print"), "tell(1); printed(2); print");
        // Lines are preserved.
        let lines = "let [a,\n b] =\n f();\nh();";
        assert_eq!(text(lines).lines().count(), 4);
        assert_eq!(text(lines).lines().last(), Some("h();"));
    }

    #[test]
    fn what_is_named() {
        let source = Source::new(
            "let p = enters(\"f\") & !in_func( `g` );\n// enters(\"no\")\nt.in_func(\"h\"); at(\"a.c:12\"); \
             print(\"x\"); reads(\"v\"); search_in_func(2, [\"k\", \"l\"]);",
        );
        let names: Vec<(&str, usize)> =
            source.named.iter().map(|(named, line)| (named.name(), *line)).collect();
        assert_eq!(names, [("f", 1), ("g", 1), ("h", 3), ("a.c:12", 3), ("k", 3), ("l", 3)]);
        assert!(matches!(source.named[3].0, Named::Line(_)));
        assert_eq!(source.line_of("h"), Some(3));
    }

    #[test]
    fn text_that_ends_too_early() {
        for text in ["\"abc", "/* abc", "let [a", "enters(\"f\"", "let [a, b] = "] {
            Source::new(text);
        }
    }
}
