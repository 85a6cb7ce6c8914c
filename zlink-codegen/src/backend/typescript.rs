//! TypeScript: an ES module per namespace, and beside them, in `zlink`, what all of them are written in.
//!
//! What is decided (names, types, literals, order) is decided here; how it looks is in the template. The files in
//! `zlink` are written as they are: they are not templates, so that they can be edited and checked as the code they are.

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
pub const TEMPLATES: BuiltIn = templates!("typescript": "namespace.ts");

/// What the generated modules are written in, by name.
macro_rules! runtime {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("typescript/zlink/", $name)))),+]
    };
}
const RUNTIME: &[(&str, &str)] = runtime!(
    "admission.ts",
    "backoff.ts",
    "call.ts",
    "channel.ts",
    "codec.ts",
    "errors.ts",
    "index.ts",
    "link.ts",
    "liveness.ts",
    "metadata.ts",
    "reader.ts",
    "record.ts",
    "select.ts",
    "wire.ts",
    "writer.ts",
);

/// A module per namespace of `schemas`, and the folder `zlink`.
///
/// # Errors
/// Where a template is wrong.
pub fn generate(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = modules(schemas, templates, "./zlink/index.js")?;
    for (name, text) in RUNTIME {
        tree.add(format!("zlink/{name}"), *text)?;
    }
    Ok(tree)
}

/// A module per namespace, over the `runtime` of that path.
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
