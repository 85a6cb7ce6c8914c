//! `generate`: the files of one language.
//!
//! It must not know what is in them.

use std::path::PathBuf;

use super::{Console, FINE, Format, Lang, TROUBLE, number, paths, templates};
use crate::backend::{docs, flatbuffers, python, rust, tera, typescript};
use crate::compile::{Disk, Program, Together};
use crate::ir::Schema;
use crate::output::{Refused, Tree};

/// What is wanted.
pub(super) struct Request {
    pub(super) paths: Vec<PathBuf>,
    pub(super) lang: Lang,
    pub(super) out: PathBuf,
    pub(super) runtime: String,
    pub(super) templates: Option<PathBuf>,
}

pub(super) fn run(request: Request, console: &mut Console<'_>) -> u8 {
    let mut program = Program::new(&Disk);
    let mut together = Together::default();
    let files = paths::schemas(&request.paths, &mut program);
    let mut schemas = Vec::new();
    for path in &files {
        schemas.extend(together.add(&mut program, path).map(|(_, schema)| schema));
    }
    let findings = program.finish();
    let code = console.show(&findings, Format::Human);
    if code != FINE {
        console.summary("nothing generated", &findings);
        return code;
    }
    let out = request.out.clone();
    let written = generate(&schemas, request).and_then(|tree| {
        let written = tree.write(&out).map_err(|error| error.to_string())?;
        Ok((tree, written))
    });
    match written {
        Ok((tree, written)) => {
            console.say(format_args!(
                "generated {}, {} new or changed",
                number(tree.iter().count(), "file"),
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

/// The files of all schemas.
fn generate(schemas: &[Schema], request: Request) -> Result<Tree, String> {
    let from_templates = |built_in, generate: fn(&[Schema], &tera::Templates) -> Result<Tree, tera::Error>| {
        let own = match &request.templates {
            None => Vec::new(),
            Some(folder) => templates::read(folder, built_in)?,
        };
        let tree = tera::Templates::new(built_in, &own).and_then(|templates| generate(schemas, &templates));
        tree.map_err(|error| error.to_string())
    };
    match request.lang {
        Lang::Rust if request.templates.is_some() => Err("rust is not made from templates".to_owned()),
        Lang::Rust => {
            let options = rust::Options {
                runtime: request.runtime,
            };
            rust_modules(schemas, &options)
        }
        Lang::Fbs => from_templates(flatbuffers::TEMPLATES, flatbuffers::generate),
        Lang::Python => from_templates(python::TEMPLATES, python::generate),
        Lang::Typescript => from_templates(typescript::TEMPLATES, typescript::generate),
        Lang::Docs => from_templates(docs::TEMPLATES, docs::generate),
        Lang::Mermaid => from_templates(docs::TEMPLATES, docs::mermaid),
        Lang::Dot => from_templates(docs::TEMPLATES, docs::dot),
    }
}

/// The modules that each schema gives by itself: a namespace that several import is the same in each.
fn rust_modules(schemas: &[Schema], options: &rust::Options) -> Result<Tree, String> {
    let mut all = Tree::default();
    for schema in schemas {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", schema.root().name);
        let tree = rust::modules(schema, options).map_err(|error| named(&error))?;
        all.merge(tree).map_err(|error: Refused| named(&error))?;
    }
    Ok(all)
}
