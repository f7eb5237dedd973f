//! Parses and evaluates filter expressions, such as `test(push) & !package(foo)`.
//!
//! The language is the part of cargo-nextest's `-E` that is about names and kinds of tests.
//!
//! ```text
//! or     = and { ("|" | "+" | "or") and }
//! and    = not { ("&" | "and" | "-") not }           a - b is a & !b
//! not    = ("!" | "not") not | "(" or ")" | "all()" | "none()" | FIELD "(" matcher ")"
//! FIELD  = "test" | "package" | "binary" | "kind"
//! matcher = "=" name | "~" part | "#" glob | "/" regex "/" | text
//! ```
//!
//! Text without a sign matches a part of the name for `test`, the full name for `kind`, and as a glob for the
//! other fields. In text, a backslash makes the next character literal.

use heisen_engine::platform::glob::glob;
use regex_lite::Regex;
use std::fmt;

/// The names of a test that expressions can match.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub test: &'a str,
    pub package: &'a str,
    pub binary: &'a str,
    pub kind: &'a str,
}

/// A filter expression, which matches a test or does not.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    All,
    None,
    Not(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Is(Field, Matcher),
}

/// The name of a test that a matcher applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Test,
    Package,
    Binary,
    Kind,
}

/// How a name is matched.
#[derive(Clone, Debug)]
pub enum Matcher {
    Equal(String),
    Contains(String),
    Glob(String),
    Regex(Regex),
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        match (self, other) {
            (Matcher::Equal(a), Matcher::Equal(b)) => a == b,
            (Matcher::Contains(a), Matcher::Contains(b)) => a == b,
            (Matcher::Glob(a), Matcher::Glob(b)) => a == b,
            (Matcher::Regex(a), Matcher::Regex(b)) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

const FIELDS: [(&str, Field); 4] =
    [("test", Field::Test), ("package", Field::Package), ("binary", Field::Binary), ("kind", Field::Kind)];

/// A mistake in an expression, with its byte offset.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    pub at: usize,
    pub message: String,
}

impl Mistake {
    /// The message, and the expression with a caret under the mistake.
    pub fn show(&self, text: &str) -> String {
        // Print the expression on one line, even if it has line breaks, so that the caret stands below the
        // mistake.
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let column = text[..self.at].chars().count();
        format!("{}\n  {line}\n  {:column$}^", self.message, "")
    }
}

impl Expr {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Expr, Mistake> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let expr = parser.or()?;
        match parser.peek() {
            None => Ok(expr),
            Some(')') => Err(parser.mistake("this parenthesis was not opened")),
            Some(_) => Err(parser.mistake("expected an operator (&, |, -, and, or) or the end")),
        }
    }

    /// Whether the expression matches the test.
    pub fn fits(&self, subject: &Subject<'_>) -> bool {
        match self {
            Expr::All => true,
            Expr::None => false,
            Expr::Not(a) => !a.fits(subject),
            Expr::And(a, b) => a.fits(subject) && b.fits(subject),
            Expr::Or(a, b) => a.fits(subject) || b.fits(subject),
            Expr::Is(field, matcher) => matcher.fits(match field {
                Field::Test => subject.test,
                Field::Package => subject.package,
                Field::Binary => subject.binary,
                Field::Kind => subject.kind,
            }),
        }
    }
}

impl Matcher {
    fn fits(&self, text: &str) -> bool {
        match self {
            Matcher::Equal(name) => name == text,
            Matcher::Contains(part) => text.contains(part),
            Matcher::Glob(pattern) => glob(pattern.as_bytes(), text.as_bytes()),
            Matcher::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Writes the expression so that [`Expr::parse`] can read it.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::All => f.write_str("all()"),
            Expr::None => f.write_str("none()"),
            Expr::Not(a) => write!(f, "!({a})"),
            Expr::And(a, b) => write!(f, "({a}) & ({b})"),
            Expr::Or(a, b) => write!(f, "({a}) | ({b})"),
            Expr::Is(field, matcher) => {
                let name = FIELDS.iter().find(|(_, other)| other == field).map_or("", |(name, _)| name);
                let escaped = |text: &str| text.replace('\\', r"\\").replace(')', r"\)");
                match matcher {
                    Matcher::Equal(text) => write!(f, "{name}(={})", escaped(text)),
                    Matcher::Contains(text) => write!(f, "{name}(~{})", escaped(text)),
                    Matcher::Glob(text) => write!(f, "{name}(#{})", escaped(text)),
                    Matcher::Regex(regex) => write!(f, "{name}(/{}/)", regex.as_str().replace('/', r"\/")),
                }
            }
        }
    }
}

/// The deepest nesting of expressions, so that many parentheses do not exhaust the stack.
const MAX_DEPTH: usize = 100;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips white space and returns the next character, without consuming it.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { at: self.at, message: message.into() }
    }

    /// Consumes one of these if it comes next: a sign, or a word that is not the beginning of a longer word.
    /// Returns its index.
    fn take(&mut self, words: &[&str]) -> Option<usize> {
        self.peek();
        let rest = self.rest();
        let found = words.iter().position(|word| {
            let alone = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            let is_word = word.starts_with(|c: char| c.is_alphabetic());
            rest.strip_prefix(word).is_some_and(|rest| !is_word || alone(rest))
        })?;
        self.at += words[found].len();
        Some(found)
    }

    fn or(&mut self) -> Result<Expr, Mistake> {
        let mut left = self.and()?;
        while self.take(&["|", "+", "or"]).is_some() {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Mistake> {
        const WITHOUT: usize = 2;
        let mut left = self.not()?;
        while let Some(which) = self.take(&["&", "and", "-"]) {
            let right = self.not()?;
            let right = if which == WITHOUT { Expr::Not(Box::new(right)) } else { right };
            left = Expr::And(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Mistake> {
        if self.depth == MAX_DEPTH {
            return Err(self.mistake("too many expressions in one another"));
        }
        self.depth += 1;
        let expr = self.one();
        self.depth -= 1;
        expr
    }

    fn one(&mut self) -> Result<Expr, Mistake> {
        if self.take(&["!", "not"]).is_some() {
            return Ok(Expr::Not(Box::new(self.not()?)));
        }
        let open = self.at;
        if self.take(&["("]).is_some() {
            let inner = self.or()?;
            return match self.take(&[")"]) {
                Some(_) => Ok(inner),
                None if self.rest().is_empty() => {
                    Err(Mistake { at: open, message: "this parenthesis is not closed".into() })
                }
                None => Err(self.mistake("expected an operator (&, |, -, and, or) or a closing parenthesis")),
            };
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Result<Expr, Mistake> {
        const EXPECTED: &str = "expected test(…), package(…), binary(…), kind(…), all() or none()";
        let end = self.rest().find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest().len());
        let name = self.rest()[..end].to_owned();
        if name.is_empty() {
            return Err(self.mistake(EXPECTED));
        }
        let field = FIELDS.iter().find(|(known, _)| *known == name).map(|(_, field)| *field);
        let constant = match name.as_str() {
            "all" => Expr::All,
            "none" => Expr::None,
            // A field is not a constant; this value is not used.
            _ if field.is_some() => Expr::None,
            _ => return Err(self.mistake(format!("there is no {name}(); {EXPECTED}"))),
        };
        self.at += end;
        if self.take(&["("]).is_none() {
            return Err(self.mistake(format!("expected ( after {name}")));
        }
        let expr = match field {
            Some(field) => Expr::Is(field, self.matcher(field)?),
            None => constant,
        };
        match self.take(&[")"]) {
            Some(_) => Ok(expr),
            None => Err(self.mistake("expected )")),
        }
    }

    fn matcher(&mut self, field: Field) -> Result<Matcher, Mistake> {
        let begin = self.at;
        let sign = self.take(&["=", "~", "#", "/"]);
        if sign == Some(3) {
            return self.regex();
        }
        self.peek();
        let (text, length) = self.until(')');
        let text = match length {
            Some(length) if !text.trim_end().is_empty() => {
                self.at += length;
                text.trim_end().to_owned()
            }
            Some(_) => return Err(self.mistake("expected a name")),
            None => return Err(Mistake { at: begin, message: "the closing ) is missing".into() }),
        };
        Ok(match (sign, field) {
            (Some(0), _) | (None, Field::Kind) => Matcher::Equal(text),
            (Some(1), _) | (None, Field::Test) => Matcher::Contains(text),
            _ => Matcher::Glob(text),
        })
    }

    fn regex(&mut self) -> Result<Matcher, Mistake> {
        let begin = self.at;
        // Only the escape of the closing `/` matters here. The regular expression interprets all other
        // escapes.
        let mut escaped = false;
        let end = self.rest().find(|c: char| {
            let is_end = c == '/' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        });
        let Some(end) = end else {
            return Err(Mistake { at: begin - 1, message: "the regular expression has no closing /".into() });
        };
        let text = self.rest()[..end].replace(r"\/", "/");
        let regex =
            Regex::new(&text).map_err(|error| self.mistake(format!("not a regular expression: {error}")))?;
        self.at += end + 1;
        Ok(Matcher::Regex(regex))
    }

    /// The text before the first unescaped `sign`, and its length in bytes; `None` if the sign is missing.
    fn until(&self, sign: char) -> (String, Option<usize>) {
        let mut out = String::new();
        let mut characters = self.rest().char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => out.extend(characters.next().map(|(_, c)| c)),
                c if c == sign => return (out, Some(at)),
                c => out.push(c),
            }
        }
        (out, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: [Subject<'static>; 4] = [
        Subject { test: "tests::push", package: "queue", binary: "queue", kind: "lib" },
        Subject { test: "tests::push_pop", package: "queue", binary: "queue", kind: "lib" },
        Subject { test: "serves", package: "net-server", binary: "loopback", kind: "test" },
        Subject { test: "tests::odd(name)", package: "net-client", binary: "client", kind: "bin" },
    ];

    /// The indices of the matching tests, as digits.
    fn fitting(text: &str) -> String {
        let expr = Expr::parse(text).unwrap_or_else(|mistake| panic!("{}", mistake.show(text)));
        (0..TESTS.len()).filter(|&i| expr.fits(&TESTS[i])).map(|i| i.to_string()).collect()
    }

    #[test]
    fn what_fits() {
        for (text, expected) in [
            ("all()", "0123"),
            ("none()", ""),
            ("test(push)", "01"),
            ("test(=tests::push)", "0"),
            ("test( = tests::push )", "0"),
            ("test(~pop)", "1"),
            (r"test(/^tests::push(_pop)?$/)", "01"),
            (r"test(/push\b/)", "0"),
            (r"test(/a\/b|serves/)", "2"),
            (r"test(odd(name\))", "3"),
            ("test(#*pop)", "1"),
            ("package(queue)", "01"),
            ("package(net-*)", "23"),
            ("package(net)", ""),
            ("package(~net)", "23"),
            ("binary(loopback)", "2"),
            ("kind(lib) | kind(bin)", "013"),
            ("kind(li)", ""),
            ("test(push) & !package(foo)", "01"),
            ("test(push) - test(pop)", "0"),
            ("not test(push) and package(net-server)", "2"),
            ("!test(push)&!kind(bin)", "2"),
            // `and` binds more strongly than `or`.
            ("test(pop) or test(serves) and kind(lib)", "1"),
            ("(test(pop) or test(serves)) and kind(test)", "2"),
            ("test(pop) + kind(test) - kind(test)", "1"),
            ("!!all()", "0123"),
            ("! ( test(push) )\n & all()", "23"),
        ] {
            assert_eq!(fitting(text), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        for (text, at, words) in [
            ("", 0, "expected test(…)"),
            ("   ", 3, "expected test(…)"),
            ("test", 4, "expected ( after test"),
            ("test(push", 5, "closing ) is missing"),
            ("test()", 5, "expected a name"),
            ("test(=)", 6, "expected a name"),
            ("test(push) test(pop)", 11, "expected an operator"),
            ("test(push) &", 12, "expected test(…)"),
            ("tset(push)", 0, "there is no tset()"),
            ("all() & deps(x)", 8, "there is no deps()"),
            ("(all()", 0, "is not closed"),
            ("all())", 5, "was not opened"),
            ("all(x)", 4, "expected )"),
            ("test(/a(/)", 6, "not a regular expression"),
            ("test(/ab)", 5, "no closing /"),
            ("orall()", 0, "there is no orall()"),
        ] {
            let mistake = Expr::parse(text).expect_err(text);
            assert_eq!(mistake.at, at, "{}", mistake.show(text));
            assert!(mistake.message.contains(words), "{}", mistake.show(text));
        }
        let text = "test(ü) x";
        let mistake = Expr::parse(text).expect_err(text);
        assert!(mistake.show(text).ends_with("\n  test(ü) x\n          ^"), "{}", mistake.show(text));
        assert!(Expr::parse(&"(".repeat(100_000)).is_err());
        assert!(Expr::parse(&"!".repeat(100_000)).is_err());
    }

    /// A small random number generator with a fixed seed, so that failures are repeatable.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % n
        }

        fn expr(&mut self, depth: usize) -> Expr {
            let inner = |random: &mut Random| Box::new(random.expr(depth - 1));
            match self.below(if depth == 0 { 3 } else { 6 }) {
                0 => Expr::All,
                1 => Expr::None,
                2 => {
                    let text = [r"a", "tests::push", r"odd(name)", r"back\slash", "é b"][self.below(5)];
                    let matcher = match self.below(4) {
                        0 => Matcher::Equal(text.into()),
                        1 => Matcher::Contains(text.into()),
                        2 => Matcher::Glob(text.into()),
                        _ => Matcher::Regex(Regex::new(r"a/b|\(x\)\\").expect("a regular expression")),
                    };
                    Expr::Is(FIELDS[self.below(4)].1, matcher)
                }
                3 => Expr::Not(inner(self)),
                4 => Expr::And(inner(self), inner(self)),
                _ => Expr::Or(inner(self), inner(self)),
            }
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut random = Random(7);
        for _ in 0..2_000 {
            let expr = random.expr(5);
            let text = expr.to_string();
            assert_eq!(Expr::parse(&text).as_ref(), Ok(&expr), "{text}");
        }
    }

    /// The parser returns for any damaged text, and a mistake lies within the text.
    #[test]
    fn damaged_expressions_are_no_trouble() {
        let mut random = Random(11);
        for _ in 0..5_000 {
            let mut text: Vec<char> = random.expr(3).to_string().chars().collect();
            for _ in 0..=random.below(3) {
                let at = random.below(text.len() + 1);
                match random.below(2) {
                    0 => text.truncate(at),
                    _ => text.insert(at, ['(', ')', '/', '\\', '!', '&', 'é', ' '][random.below(8)]),
                }
            }
            let text: String = text.into_iter().collect();
            if let Err(mistake) = Expr::parse(&text) {
                assert!(text.is_char_boundary(mistake.at), "{text}");
                mistake.show(&text);
            }
        }
    }
}
