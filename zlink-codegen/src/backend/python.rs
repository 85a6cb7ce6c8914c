//! Python: a package with a package of its own for each namespace.
//!
//! What is decided (names, types, literals, order) is decided here; how it looks is in the templates beside it.

mod names;
mod text;

use serde::Serialize;

use self::names::Names;
use super::tera::{BuiltIn, Error, Templates, templates};
use crate::ir::{Enum, Namespace, Schema};
use crate::output::Tree;

/// The templates of the language.
pub const TEMPLATES: BuiltIn = templates!("python": "package.py", "namespace.py");

/// `__init__.py` and `py.typed` of the package that the folder is, and a package per namespace of `schemas`.
///
/// # Errors
/// Where a template is wrong.
pub fn generate(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    tree.add("__init__.py", templates.render("package.py.tera", &Package {})?)?;
    tree.add("py.typed", "")?;
    for schema in schemas {
        let names: Vec<Names> = schema.namespaces.iter().map(Names::of).collect();
        for (namespace, names) in schema.namespaces.iter().zip(&names) {
            let text = templates.render("namespace.py.tera", &Module::of(namespace, names))?;
            let mut file = Tree::default();
            file.add(format!("{}/__init__.py", names.module), text)?;
            tree.merge(file)?;
        }
    }
    Ok(tree)
}

/// What `package.py.tera` is filled with.
#[derive(Serialize)]
struct Package {}

/// What `namespace.py.tera` is filled with.
#[derive(Serialize)]
struct Module {
    namespace: String,
    doc: Vec<String>,
    enums: Vec<Enumeration>,
}

#[derive(Serialize)]
struct Enumeration {
    name: String,
    doc: Vec<String>,
    values: Vec<EnumValue>,
}

#[derive(Serialize)]
struct EnumValue {
    name: String,
    number: String,
    doc: Vec<String>,
}

impl Module {
    fn of(namespace: &Namespace, names: &Names) -> Self {
        let enums = namespace.enums.iter().zip(&names.enums);
        Self {
            namespace: namespace.name.clone(),
            doc: text::doc(&namespace.doc, &format!("The namespace `{}`.", namespace.name)),
            enums: enums.map(|(it, name)| Enumeration::of(it, name)).collect(),
        }
    }
}

impl Enumeration {
    fn of(it: &Enum, name: &str) -> Self {
        let values = it.values.iter().zip(names::values(it));
        Self {
            name: name.to_owned(),
            doc: text::doc(&it.doc, &format!("The enum `{}`.", it.name)),
            values: values
                .map(|(value, name)| EnumValue {
                    name,
                    number: value.number.to_string(),
                    doc: text::doc(&value.doc, ""),
                })
                .collect(),
        }
    }
}
