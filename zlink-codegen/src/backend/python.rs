//! Python: a package with a package of its own for each namespace, and `zlink`, what all of them need.
//!
//! What is decided (names, types, literals, order) is decided in the rooms below; how it looks is in the templates
//! beside them.

mod codec;
mod data;
mod module;
mod names;
mod text;

use serde::Serialize;

use self::module::Module;
use self::names::Names;
use super::tera::{BuiltIn, Error, Templates, templates};
use crate::ir::Schema;
use crate::output::Tree;

/// The templates of the language.
pub const TEMPLATES: BuiltIn = templates!(
    "python":
    "package.py",
    "namespace.py",
    "zlink/__init__.py",
    "zlink/base.py",
    "zlink/call.py",
    "zlink/client.py",
    "zlink/codec.py",
    "zlink/codec/inline.py",
    "zlink/codec/value.py",
    "zlink/codec/reader.py",
    "zlink/codec/writer.py",
    "zlink/codec/message.py",
    "zlink/errors.py",
    "zlink/link.py",
    "zlink/metadata.py",
    "zlink/values.py",
    "zlink/wire.py",
);

/// What is beside the namespaces, by its name among the templates and in the package.
const SUPPORT: &[&str] = &[
    "__init__.py",
    "base.py",
    "call.py",
    "client.py",
    "codec.py",
    "errors.py",
    "link.py",
    "metadata.py",
    "values.py",
    "wire.py",
];

/// What a client needs besides, as Python: made from the schema of the wire, and checked in.
const PROTOCOL: &str = include_str!("python/zlink/protocol.py");

/// The package that the folder is: `zlink`, and a package per namespace of `schemas`.
///
/// # Errors
/// Where a template is wrong.
pub fn generate(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    tree.add("__init__.py", templates.render("package.py.tera", &Nothing {})?)?;
    // Tells type checkers that the package has its types in it.
    tree.add("py.typed", "")?;
    for name in SUPPORT {
        let text = templates.render(&format!("zlink/{name}.tera"), &Nothing {})?;
        tree.add(format!("zlink/{name}"), text)?;
    }
    tree.add("zlink/protocol.py", PROTOCOL)?;
    for schema in schemas {
        let names: Vec<Names> = schema.namespaces.iter().map(Names::of).collect();
        for (at, of) in names.iter().enumerate() {
            let text = templates.render("namespace.py.tera", &Module::of(schema, &names, at, "..zlink"))?;
            let mut file = Tree::default();
            file.add(format!("{}/__init__.py", of.module), text)?;
            tree.merge(file)?;
        }
    }
    Ok(tree)
}

/// The one module of the root of `schema`, as it is within `zlink` itself.
///
/// # Errors
/// Where a template is wrong.
pub fn protocol(schema: &Schema, templates: &Templates) -> Result<String, Error> {
    let names: Vec<Names> = schema.namespaces.iter().map(Names::of).collect();
    let root = names.len().saturating_sub(1);
    templates.render("namespace.py.tera", &Module::of(schema, &names, root, "."))
}

/// A template that says it all itself.
#[derive(Serialize)]
struct Nothing {}
