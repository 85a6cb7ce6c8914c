//! `generate`: the files of one language.
//!
//! It must not know what is in them.

use std::path::{Path, PathBuf};

use super::{Console, FINE, Format, Lang, TROUBLE, number, paths};
use crate::backend;
use crate::compile::{Disk, Program};
use crate::ir::Schema;
use crate::output::Tree;

pub(super) fn run(args: &[PathBuf], lang: Lang, out: &Path, runtime: String, console: &mut Console<'_>) -> u8 {
    let mut program = Program::new(&Disk);
    let files = paths::schemas(args, &mut program);
    let mut schemas = Vec::new();
    for path in &files {
        schemas.extend(program.load(path).and_then(|root| program.resolve(root)));
    }
    let findings = program.finish();
    let code = console.show(&findings, Format::Human);
    if code != FINE {
        console.summary("nothing generated", &findings);
        return code;
    }
    let options = backend::rust::Options { runtime };
    let mut all = Tree::default();
    for schema in &schemas {
        let merged =
            generate(schema, lang, &options).and_then(|tree| all.merge(tree).map_err(|error| error.to_string()));
        if let Err(error) = merged {
            console.say(format_args!("error: {}: {error}", schema.root().name));
            return TROUBLE;
        }
    }
    match all.write(out) {
        Ok(written) => {
            console.say(format_args!(
                "generated {}, {} new or changed",
                number(all.iter().count(), "file"),
                written.len()
            ));
            FINE
        }
        Err(error) => {
            console.say(format_args!("error: {error}"));
            TROUBLE
        }
    }
}

/// The files of one schema.
fn generate(schema: &Schema, lang: Lang, options: &backend::rust::Options) -> Result<Tree, String> {
    match lang {
        Lang::Rust => backend::rust::modules(schema, options).map_err(|bug| bug.to_string()),
        Lang::Fbs => backend::flatbuffers::generate(schema).map_err(|refused| refused.to_string()),
    }
}
