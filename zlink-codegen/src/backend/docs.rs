//! Documentation: a Markdown page per namespace with an index, and the picture of who calls whom by itself.
//!
//! What is said is decided in this module and the rooms below it, how it looks in the templates, `templates/docs`. A page
//! says nothing of who imports its namespace, so that it is the same whichever schema brought it.

mod fanouts;
mod objects;
mod page;
mod picture;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use self::page::Page;
use self::picture::Picture;
use super::tera::{BuiltIn, Error, Templates, templates};
use crate::ir::{Namespace, Schema};
use crate::output::Tree;

/// The templates of the documentation.
pub const TEMPLATES: BuiltIn = templates!("docs": "index.md", "namespace.md", "services.mmd", "services.dot");

/// `README.md`, the index, and a page per namespace of `schemas`.
///
/// # Errors
/// Where a template is wrong, or two namespaces of one name are not the same.
pub fn generate(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    for schema in schemas {
        for at in 0..schema.namespaces.len() {
            let Some(page) = Page::of(schema, at) else { continue };
            let mut file = Tree::default();
            let picture = templates.render("services.mmd.tera", &Picture::of([(schema, at)]))?;
            file.add(
                page.file.clone(),
                templates.render("namespace.md.tera", &page.with(picture))?,
            )?;
            tree.merge(file)?;
        }
    }
    let namespaces: Vec<Line> = by_name(schemas)
        .into_values()
        .filter_map(|(schema, at)| Line::of(schema, at))
        .collect();
    let picture = templates.render("services.mmd.tera", &Picture::of(by_name(schemas).into_values()))?;
    tree.add(
        "README.md",
        templates.render("index.md.tera", &Index { namespaces, picture })?,
    )?;
    Ok(tree)
}

/// The picture alone, for mermaid: `services.mmd`.
///
/// # Errors
/// Where a template is wrong.
pub fn mermaid(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    picture("services.mmd", schemas, templates)
}

/// The picture alone, for graphviz: `services.dot`.
///
/// # Errors
/// Where a template is wrong.
pub fn dot(schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    picture("services.dot", schemas, templates)
}

fn picture(file: &str, schemas: &[Schema], templates: &Templates) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    let picture = Picture::of(by_name(schemas).into_values());
    tree.add(file, templates.render(&format!("{file}.tera"), &picture)?)?;
    Ok(tree)
}

/// Every namespace once, by name: the schema it stands in, and its index there.
fn by_name(schemas: &[Schema]) -> BTreeMap<&str, (&Schema, usize)> {
    let all = schemas.iter().flat_map(|schema| {
        schema
            .namespaces
            .iter()
            .enumerate()
            .map(move |(at, it)| (schema, at, it))
    });
    all.map(|(schema, at, it)| (it.name.as_str(), (schema, at))).collect()
}

/// The page of a namespace. No page takes the name of the index.
fn file_of(namespace: &Namespace) -> String {
    match crate::name::module(&namespace.name) {
        name if name == "readme" => "readme_.md".to_owned(),
        name => format!("{name}.md"),
    }
}

#[derive(Serialize)]
struct Index {
    namespaces: Vec<Line>,
    picture: String,
}

/// What the index says of a namespace.
#[derive(Serialize)]
struct Line {
    name: String,
    file: String,
    version: u32,
    doc: String,
    services: Vec<String>,
    fanouts: Vec<String>,
    objects: Vec<Object>,
}

#[derive(Serialize)]
struct Object {
    name: String,
    anchor: String,
}

impl Line {
    fn of(schema: &Schema, at: usize) -> Option<Self> {
        let it = schema.namespaces.get(at)?;
        let object = |sort: &str, name: &String| Object {
            name: name.clone(),
            anchor: format!("{sort}-{name}"),
        };
        let spots = it.spots.iter().map(|it| object("spot", &it.name));
        let actors = it.actors.iter().map(|it| object("actor", &it.name));
        Some(Self {
            name: it.name.clone(),
            file: file_of(it),
            version: it.version,
            doc: text::first(&it.doc),
            services: it.services.iter().map(|service| service.name.clone()).collect(),
            fanouts: it.fanouts.iter().map(|it| it.name.clone()).collect(),
            objects: spots.chain(actors).collect(),
        })
    }
}
