//! `.fbs` schemas of the same wire format, for every language that flatc knows.
//!
//! What FlatBuffers cannot say itself is spelled out: a union has a table around it, a map is a list of tables with a
//! key, bytes in a list have a table each. Services are not part of it. What is said is decided in this module and the
//! rooms below it, how it looks in the templates, `templates/fbs`.

mod context;
mod names;
mod types;

use self::context::Module;
use self::names::Names;
use super::tera::{BuiltIn, Error, Templates, templates};
use crate::ir::{Namespace, Schema};
use crate::output::Tree;

/// The templates of the language.
pub const TEMPLATES: BuiltIn = templates!("fbs": "namespace.fbs", "zlink-types.fbs");

/// The file of the types that the language has and FlatBuffers has not. No namespace gives a file of that name.
const BUILT_IN: &str = "zlink-types.fbs";

/// A file per namespace of `schemas`, `billing.fbs`, and one for the built-in types where one is used.
///
/// # Errors
/// Where a template is wrong, or two namespaces of one name are not the same.
pub fn generate(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    let mut built_in = false;
    for schema in schemas {
        let names: Vec<Names> = schema.namespaces.iter().map(|it| Names::of(it, schema)).collect();
        for (at, namespace) in schema.namespaces.iter().enumerate() {
            let module = Module::of(schema, at, &names);
            built_in |= module.uses_built_in();
            let mut file = Tree::default();
            file.add(file_of(namespace), templates.render("namespace.fbs.tera", &module)?)?;
            tree.merge(file)?;
        }
    }
    if built_in {
        templates.file(BUILT_IN, &mut tree)?;
    }
    Ok(tree)
}

fn file_of(namespace: &Namespace) -> String {
    format!("{}.fbs", crate::name::module(&namespace.name))
}
