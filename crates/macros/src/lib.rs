//! The attribute `#[heisen::test]`; see the crate `heisen`. It parses tokens by hand, because there is little
//! to parse.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// The type of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Number,
    Text,
    /// `true` or `false`, for an option of the command line without a value.
    Flag,
}

/// The arguments of an explored test: options of `heisen check`.
const CHECK: [(&str, Takes); 13] = [
    ("strategy", Takes::Text),
    ("bound", Takes::Number),
    ("depth", Takes::Number),
    ("burst", Takes::Number),
    ("delays", Takes::Number),
    ("executions", Takes::Number),
    ("time", Takes::Text),
    ("steps", Takes::Number),
    ("hang", Takes::Text),
    ("seed", Takes::Number),
    ("jobs", Takes::Number),
    ("no_preempt", Takes::Text),
    ("focus", Takes::Text),
];

/// The arguments of a test with a script: options of `heisen script`.
const SCRIPT: [(&str, Takes); 8] = [
    ("oracle", Takes::Text),
    ("seed", Takes::Number),
    ("reduce", Takes::Flag),
    ("choices", Takes::Text),
    ("executions", Takes::Number),
    ("time", Takes::Text),
    ("steps", Takes::Number),
    ("hang", Takes::Text),
];

/// The argument that names the script.
const THE_SCRIPT: &str = "script";

/// Makes a test that explores the schedules of the function; documented in the crate `heisen`.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match options(arguments).and_then(|options| expand(options, item)) {
        Ok(tokens) => tokens,
        Err(Mistake(message, span)) => compile_error(&message, span),
    }
}

/// An error message and its location.
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

/// The arguments of the attribute.
struct Options {
    /// The words of the command line, each a literal.
    words: Vec<Literal>,
    /// The script, if there is one.
    script: Option<TokenStream>,
}

/// Parses `bound = 2, strategy = "random"`: names, each with the tokens up to the next comma.
fn named(arguments: TokenStream) -> Result<Vec<(Ident, Vec<TokenTree>)>, Mistake> {
    let mut all = Vec::new();
    let mut tokens = arguments.into_iter();
    while let Some(token) = tokens.next() {
        let TokenTree::Ident(name) = token else {
            return mistake("expected the name of an option, such as bound = 2", token.span());
        };
        if !matches!(tokens.next(), Some(TokenTree::Punct(p)) if p.as_char() == '=') {
            return mistake(format!("write {name} = and its value"), name.span());
        }
        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
        let value = tokens.by_ref().take_while(|token| !is_comma(token)).collect();
        all.push((name, value));
    }
    Ok(all)
}

fn options(arguments: TokenStream) -> Result<Options, Mistake> {
    let named = named(arguments)?;
    let scripted = named.iter().any(|(name, _)| name.to_string() == THE_SCRIPT);
    let known: &[(&str, Takes)] = if scripted { &SCRIPT } else { &CHECK };
    let mut options = Options { words: Vec::new(), script: None };
    for (name, value) in named {
        let key = name.to_string();
        if key == THE_SCRIPT {
            if value.is_empty() || options.script.is_some() {
                return mistake("script needs one function", name.span());
            }
            options.script = Some(value.into_iter().collect());
            continue;
        }
        let Some(&(_, takes)) = known.iter().find(|(option, _)| *option == key) else {
            let with = if scripted { " with a script" } else { "" };
            let known: Vec<&str> = known.iter().map(|(option, _)| *option).collect();
            return mistake(format!("no option {key}{with}; there are {}", known.join(", ")), name.span());
        };
        let mut value = value.into_iter();
        let word = match value.next() {
            Some(word @ (TokenTree::Literal(_) | TokenTree::Ident(_))) => word,
            other => {
                let span = other.map_or(name.span(), |token| token.span());
                return mistake(format!("{key} needs a literal"), span);
            }
        };
        if let Some(more) = value.next() {
            return mistake("expected a comma", more.span());
        }
        let text = word.to_string();
        let option = Literal::string(&format!("--{}", key.replace('_', "-")));
        match (takes, word) {
            (Takes::Flag, _) if text == "true" => options.words.push(option),
            (Takes::Flag, _) if text == "false" => {}
            (Takes::Flag, word) => return mistake(format!("{key} needs true or false"), word.span()),
            (Takes::Number, TokenTree::Literal(_))
                if text.bytes().all(|b| b.is_ascii_digit() || b == b'_') =>
            {
                options.words.extend([option, Literal::string(&text.replace('_', ""))]);
            }
            (Takes::Number, word) => {
                return mistake(format!("{key} needs a number, such as 10"), word.span());
            }
            (Takes::Text, TokenTree::Literal(value)) if text.starts_with('"') => {
                options.words.extend([option, value]);
            }
            (Takes::Text, word) => {
                return mistake(format!("{key} needs a string in double quotes"), word.span());
            }
        }
    }
    Ok(options)
}

/// Expands the test: the function moves into another one of its name, which runs or explores it.
fn expand(options: Options, item: TokenStream) -> Result<TokenStream, Mistake> {
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
    for word in options.words {
        words.extend([TokenTree::from(word), Punct::new(',', Spacing::Alone).into()]);
    }
    let shown = name.to_string();
    let arguments = format!(
        "::core::module_path!(), {:?}, OPTIONS, || ::heisen::__private::Outcome::check({shown}()),",
        shown.trim_start_matches("r#")
    );
    let mut arguments = code(&arguments);
    let function_called = if options.script.is_some() { "test_with" } else { "test" };
    arguments.extend(options.script);
    let mut body = function;
    body.extend(code("const OPTIONS: &[&str] = &"));
    body.extend([TokenTree::from(Group::new(Delimiter::Bracket, words))]);
    body.extend(code(";"));
    body.extend(code(&format!("::heisen::__private::{function_called}")));
    body.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, arguments))]);
    body.extend(code(";"));

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

/// Refuses attributes that would have another meaning on the outer function.
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

/// Parses text of our own into tokens.
fn code(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
