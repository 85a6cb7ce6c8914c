//! Schemas of one run, beside each other: no two files may be one module of generated code.
//!
//! It must not know what a command does with them. Two versions of a schema are not beside each other.

use std::collections::HashMap;
use std::path::Path;

use super::Program;
use crate::ir;
use crate::name;
use crate::resolve;

/// The files so far, by the module that their namespace becomes.
#[derive(Default)]
pub(crate) struct Together {
    modules: HashMap<String, usize>,
}

impl Together {
    /// Loads and resolves a schema, as [`Program::load`] and [`Program::resolve`] do, and refuses it where one of its
    /// files clashes with one of a schema before.
    ///
    /// A copy does not clash: what becomes of it is the same.
    pub(crate) fn add(&mut self, program: &mut Program<'_>, path: &Path) -> Option<(usize, ir::Schema)> {
        let root = program.load(path)?;
        let schema = program.resolve(root);
        let mut clashes = Vec::new();
        for at in program.closure(root) {
            let Some(loaded) = program.get(at) else { continue };
            let Some(namespace) = &loaded.file.namespace else {
                continue;
            };
            let first = *self.modules.entry(name::module(&namespace.value)).or_insert(at);
            let Some(other) = program.get(first).filter(|_| first != at) else {
                continue;
            };
            let text = |file| program.sources.get(file).map(crate::source::Source::text);
            if let Some(taken) = &other.file.namespace
                && text(loaded.id) != text(other.id)
            {
                clashes.push(resolve::clash(namespace, taken));
            }
        }
        let apart = clashes.is_empty();
        for item in clashes {
            program.sink.report(item);
        }
        schema.filter(|_| apart).map(|schema| (root, schema))
    }
}
