//! Python: a package with a package of its own for each namespace, and `zlink`, what all of them need.
//!
//! What is decided (names, types, literals, order) is decided in this module and the rooms below it; how it looks is in
//! the templates, `templates/python`.

mod codec;
mod data;
mod module;
mod names;
mod text;

use self::module::Module;
use self::names::Names;
use super::tera::{BuiltIn, Error, Templates, templates};
use crate::ir::Schema;
use crate::output::Tree;

/// The templates of the language.
pub const TEMPLATES: BuiltIn = templates!(
    "python":
    "package.py",
    "py.typed",
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
    "zlink/protocol.py",
    "zlink/values.py",
    "zlink/wire.py",
);

/// The package that the folder is: `zlink`, and a package per namespace of `schemas`.
///
/// # Errors
/// Where a template is wrong.
pub fn generate(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    tree.add("__init__.py", templates.text("package.py.tera")?)?;
    // Tells type checkers that the package has its types in it.
    templates.file("py.typed", &mut tree)?;
    templates.folder("zlink", TEMPLATES, &mut tree)?;
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

/// The one module of the root of `schema`, as it is within `zlink` itself: of the wire's, it is checked in as a template.
///
/// # Errors
/// Where a template is wrong.
pub fn protocol(schema: &Schema, templates: &Templates) -> Result<String, Error> {
    let names: Vec<Names> = schema.namespaces.iter().map(Names::of).collect();
    let root = names.len().saturating_sub(1);
    templates.render("namespace.py.tera", &Module::of(schema, &names, root, "."))
}
