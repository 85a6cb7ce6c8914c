//! TypeScript: an ES module per namespace, and beside them, in `zlink`, what all of them are written in.
//!
//! What is decided (names, types, literals, order) is decided in this module and the rooms below it; how it looks is in
//! the templates, `templates/typescript`.

mod context;
mod names;
mod text;
mod types;

use self::context::Module;
use self::names::Names;
use super::tera::{BuiltIn, Error, Templates, templates};
use crate::ir::Schema;
use crate::output::Tree;

/// The templates of the language.
pub const TEMPLATES: BuiltIn = templates!(
    "typescript":
    "namespace.ts",
    "zlink/admission.ts",
    "zlink/backoff.ts",
    "zlink/call.ts",
    "zlink/channel.ts",
    "zlink/codec.ts",
    "zlink/errors.ts",
    "zlink/index.ts",
    "zlink/link.ts",
    "zlink/liveness.ts",
    "zlink/metadata.ts",
    "zlink/reader.ts",
    "zlink/record.ts",
    "zlink/select.ts",
    "zlink/wire.ts",
    "zlink/writer.ts",
);

/// A module per namespace of `schemas`, and the folder `zlink`.
///
/// # Errors
/// Where a template is wrong.
pub fn generate(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = modules(schemas, templates, "./zlink/index.js")?;
    templates.folder("zlink", TEMPLATES, &mut tree)?;
    Ok(tree)
}

/// A module per namespace, over the `runtime` of that path: the wire's, over `./codec.js`, is checked in as a template.
///
/// # Errors
/// Where a template is wrong.
pub fn modules(schemas: &[Schema], templates: &Templates, runtime: &str) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    for schema in schemas {
        let names: Vec<Names> = schema.namespaces.iter().map(Names::of).collect();
        for (at, own) in names.iter().enumerate() {
            let module = Module::of(schema, at, &names, runtime);
            let mut file = Tree::default();
            file.add(
                format!("{}.ts", own.module),
                templates.render("namespace.ts.tera", &module)?,
            )?;
            tree.merge(file)?;
        }
    }
    Ok(tree)
}
