//! A script: a text, or a remote one. Counting, judging and repeating executions is the same for both.

use crate::language::Shared;
use crate::remote::Remote;
use crate::source::Source;
use heisen_engine::error::{Error, Result};
use heisen_engine::patch::Named;
use rhai::{AST, Engine, EvalAltResult, Scope};

/// A script.
#[derive(Clone, Copy, Debug)]
pub enum Script<'a> {
    /// A text.
    Text(&'a Source),
    /// A remote script. Its line numbers stand for places in its source.
    Remote(&'a Remote),
}

impl Script<'_> {
    /// A line of it, for messages.
    pub fn place(&self, line: usize) -> String {
        match self {
            Script::Text(_) => format!("line {line}"),
            Script::Remote(remote) => remote.place(line),
        }
    }

    /// The functions and lines that it names, as far as they are known before it runs.
    pub(crate) fn named(&self) -> Vec<Named> {
        match self {
            Script::Text(source) => source.named.iter().map(|(named, _)| named.clone()).collect(),
            Script::Remote(_) => Vec::new(),
        }
    }

    /// The line in which something is first named.
    pub(crate) fn line_of(&self, name: &str) -> Option<usize> {
        match self {
            Script::Text(source) => source.line_of(name),
            Script::Remote(remote) => remote.place_of(name),
        }
    }

    /// Whether it may mention memory accesses.
    pub(crate) fn mentions_memory(&self) -> bool {
        match self {
            Script::Text(source) => source.mentions_memory(),
            Script::Remote(_) => true,
        }
    }

    /// Compiles it for an engine.
    pub(crate) fn compile(&self, engine: &mut Engine) -> Result<AST> {
        match self {
            Script::Text(source) => engine.compile(&source.text).map_err(|error| {
                Error::Input(match error.1.line() {
                    Some(line) => format!("line {line}: {}", error.0),
                    None => error.0.to_string(),
                })
            }),
            Script::Remote(remote) => {
                remote.register(engine);
                Ok(AST::empty())
            }
        }
    }

    /// Runs it once.
    pub(crate) fn run(
        &self,
        engine: &Engine,
        ast: &AST,
        state: &Shared,
    ) -> std::result::Result<(), Box<EvalAltResult>> {
        let mut scope = Scope::new();
        scope.push_constant("any", crate::threads::Threads::any());
        match self {
            Script::Text(_) => engine.run_ast_with_scope(&mut scope, ast),
            Script::Remote(remote) => remote.run(engine, &mut scope, state),
        }
    }
}
