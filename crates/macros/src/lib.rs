//! The attribute `#[heisen::test]`; see the crate `heisen`. Tokens are taken apart by hand: there is little to parse.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// The arguments, and whether each is a number.
const OPTIONS: [(&str, bool); 13] = [
    ("strategy", false),
    ("bound", true),
    ("depth", true),
    ("burst", true),
    ("delays", true),
    ("executions", true),
    ("time", false),
    ("steps", true),
    ("hang", false),
    ("seed", true),
    ("jobs", true),
    ("no_preempt", false),
    ("focus", false),
];

/// Makes a test that explores the schedules of the function; documented in the crate `heisen`.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match options(arguments).and_then(|options| expand(options, item)) {
        Ok(tokens) => tokens,
        Err(Mistake(message, span)) => compile_error(&message, span),
    }
}

/// What is wrong, and where.
struct Mistake(String, Span);

fn mistake<T>(message: impl Into<String>, span: Span) -> Result<T, Mistake> {
    Err(Mistake(message.into(), span))
}

fn compile_error(message: &str, span: Span) -> TokenStream {
    let text = TokenTree::from(Literal::string(message));
    let call = [
        TokenTree::from(Ident::new("compile_error", span)),
        Punct::new('!', Spacing::Alone).into(),
        Group::new(Delimiter::Brace, text.into()).into(),
    ];
    let spanned = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    call.into_iter().map(spanned).collect()
}

/// `bound = 2, strategy = "random"` as words of a command line, each a literal.
fn options(arguments: TokenStream) -> Result<Vec<Literal>, Mistake> {
    let mut words = Vec::new();
    let mut tokens = arguments.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let TokenTree::Ident(name) = &token else {
            return mistake("expected the name of an option, such as bound = 2", token.span());
        };
        let key = name.to_string();
        let Some(&(_, is_number)) = OPTIONS.iter().find(|(option, _)| *option == key) else {
            let known: Vec<&str> = OPTIONS.iter().map(|(option, _)| *option).collect();
            return mistake(format!("no option {key}; there are {}", known.join(", ")), name.span());
        };
        if !matches!(tokens.next(), Some(TokenTree::Punct(p)) if p.as_char() == '=') {
            return mistake(format!("write {key} = and its value"), name.span());
        }
        let value = match tokens.next() {
            Some(TokenTree::Literal(value)) => value,
            other => {
                let span = other.map_or(name.span(), |token| token.span());
                return mistake(format!("{key} needs a literal"), span);
            }
        };
        let text = value.to_string();
        let numeric = text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        if is_number && !numeric {
            return mistake(format!("{key} needs a number, such as 10"), value.span());
        }
        if !is_number && !text.starts_with('"') {
            return mistake(format!("{key} needs a string in double quotes"), value.span());
        }
        words.push(Literal::string(&format!("--{}", key.replace('_', "-"))));
        words.push(if is_number { Literal::string(&text.replace('_', "")) } else { value });
        match tokens.next() {
            None => break,
            Some(TokenTree::Punct(p)) if p.as_char() == ',' => {}
            Some(other) => return mistake("expected a comma", other.span()),
        }
    }
    Ok(words)
}

/// The test: the function, inside of another one of its name that runs or explores it.
fn expand(options: Vec<Literal>, item: TokenStream) -> Result<TokenStream, Mistake> {
    let mut attributes = TokenStream::new();
    let mut function = TokenStream::new();
    let mut name: Option<Ident> = None;
    let mut tokens = item.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match (&token, &name) {
            (TokenTree::Punct(p), None) if p.as_char() == '#' => {
                let Some(TokenTree::Group(group)) = tokens.next() else { continue };
                refuse_attribute(&group)?;
                attributes.extend([token, TokenTree::Group(group)]);
                continue;
            }
            (TokenTree::Ident(word), None) if word.to_string() == "async" => {
                return mistake(
                    "#[heisen::test] runs threads, not futures: the function must not be async",
                    word.span(),
                );
            }
            (TokenTree::Ident(word), None) if word.to_string() == "fn" => {
                function.extend([token]);
                let Some(TokenTree::Ident(ident)) = tokens.next() else { break };
                match tokens.peek() {
                    Some(TokenTree::Group(group)) if group.stream().is_empty() => {}
                    _ => return mistake("a test takes no arguments", ident.span()),
                }
                function.extend([TokenTree::from(ident.clone())]);
                name = Some(ident);
                continue;
            }
            _ => {}
        }
        function.extend([token]);
    }
    let Some(name) = name else {
        return mistake("#[heisen::test] goes before a function", Span::call_site());
    };
    let mut words = TokenStream::new();
    for word in options {
        words.extend([TokenTree::from(word), Punct::new(',', Spacing::Alone).into()]);
    }
    let shown = name.to_string();
    let call = format!(
        "::heisen::__private::test(::core::module_path!(), {:?}, OPTIONS, \
         || ::heisen::__private::Outcome::check({shown}()));",
        shown.trim_start_matches("r#")
    );
    let mut body = function;
    body.extend(code("const OPTIONS: &[&str] = &"));
    body.extend([TokenTree::from(Group::new(Delimiter::Bracket, words))]);
    body.extend(code(";"));
    body.extend(code(&call));

    let mut out = code("#[::core::prelude::v1::test]");
    out.extend(attributes);
    out.extend(code("fn"));
    out.extend([
        TokenTree::from(name),
        Group::new(Delimiter::Parenthesis, TokenStream::new()).into(),
        Group::new(Delimiter::Brace, body).into(),
    ]);
    Ok(out)
}

/// Attributes that would mean something else inside and outside.
fn refuse_attribute(group: &Group) -> Result<(), Mistake> {
    let first = group.stream().into_iter().next();
    match first.as_ref().map(ToString::to_string).as_deref() {
        Some("test") => mistake("#[heisen::test] makes it a test already: leave out #[test]", group.span()),
        Some("should_panic") => mistake(
            "#[heisen::test] cannot expect a panic: catch it in the function (std::panic::catch_unwind)",
            group.span(),
        ),
        _ => Ok(()),
    }
}

/// Text of our own as tokens.
fn code(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
