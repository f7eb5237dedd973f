//! What a script is: a text, or one that is run elsewhere. All that counts, judges and repeats executions is the same for both.

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
    /// One that is run elsewhere. What is called a line of it has a number that only stands for a place in its source.
    Remote(&'a Remote),
}

impl Script<'_> {
    /// A line of it in words.
    pub fn place(&self, line: usize) -> String {
        match self {
            Script::Text(_) => format!("line {line}"),
            Script::Remote(remote) => remote.place(line),
        }
    }

    /// What it names, as far as that is known before it is run.
    pub(crate) fn named(&self) -> Vec<Named> {
        match self {
            Script::Text(source) => source.named.iter().map(|(named, _)| named.clone()).collect(),
            Script::Remote(_) => Vec::new(),
        }
    }

    /// The line in which something is named first.
    pub(crate) fn line_of(&self, name: &str) -> Option<usize> {
        match self {
            Script::Text(source) => source.line_of(name),
            Script::Remote(remote) => remote.place_of(name),
        }
    }

    /// Whether it may mention accesses of memory.
    pub(crate) fn mentions_memory(&self) -> bool {
        match self {
            Script::Text(source) => source.mentions_memory(),
            Script::Remote(_) => true,
        }
    }

    /// Makes it ready to be run by an engine.
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
