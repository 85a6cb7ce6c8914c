//! What the template of a namespace is filled with.

use serde::Serialize;

use super::names::{self, Names};
use super::types::{self, Scene};
use super::{BUILT_IN, file_of};
use crate::ir::{Doc, Enum, Field, Message, Scalar, Schema, Slot, Struct, Type, Union};

/// A namespace.
#[derive(Serialize)]
pub(super) struct Module {
    /// Lines of comments begin with the space behind the slashes.
    doc: Vec<String>,
    includes: Vec<String>,
    namespace: String,
    enums: Vec<EnumContext>,
    structs: Vec<StructContext>,
    unions: Vec<UnionContext>,
    entries: Vec<Entry>,
    messages: Vec<Table>,
}

#[derive(Serialize)]
struct EnumContext {
    doc: Vec<String>,
    name: String,
    ty: &'static str,
    values: Vec<Value>,
}

#[derive(Serialize)]
struct Value {
    doc: Vec<String>,
    name: String,
    number: String,
}

#[derive(Serialize)]
struct StructContext {
    doc: Vec<String>,
    name: String,
    fields: Vec<StructField>,
}

#[derive(Serialize)]
struct StructField {
    doc: Vec<String>,
    name: String,
    ty: String,
}

#[derive(Serialize)]
struct UnionContext {
    doc: Vec<String>,
    name: String,
    /// The table around it.
    holder: String,
    members: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    name: String,
    ty: String,
    number: u8,
}

/// The table of a map's entry.
#[derive(Serialize)]
struct Entry {
    name: String,
    ty: String,
    required: bool,
}

/// A message.
#[derive(Serialize)]
struct Table {
    doc: Vec<String>,
    name: String,
    fields: Vec<TableField>,
}

#[derive(Serialize)]
struct TableField {
    doc: Vec<String>,
    name: String,
    id: usize,
    /// What kept its number and name; it has nothing of what follows.
    deprecated: bool,
    ty: String,
    required: bool,
    /// Whether absence must be asked for.
    nullable: bool,
    max: Option<u32>,
    /// What `max` counts.
    counted: &'static str,
}

impl Module {
    /// The namespace at that place of `schema`; `names` are the identifiers of each.
    pub(super) fn of(schema: &Schema, at: usize, names: &[Names]) -> Self {
        let namespace = &schema.namespaces[at];
        let scene = Scene::of(schema, names, at);
        let own = &names[at];
        let enums = namespace.enums.iter().zip(&own.enums);
        let structs = namespace.structs.iter().zip(&own.structs);
        let unions = namespace.unions.iter().zip(&own.unions).zip(&own.boxes);
        let messages = namespace.messages.iter().zip(&own.messages);
        let mut module = Self {
            doc: lines(&namespace.doc),
            includes: namespace
                .imports
                .iter()
                .map(|it| file_of(&schema.namespaces[*it]))
                .collect(),
            namespace: namespace.name.clone(),
            enums: enums.map(|(it, name)| EnumContext::of(it, name)).collect(),
            structs: structs.map(|(it, name)| StructContext::of(&scene, it, name)).collect(),
            unions: unions
                .map(|((it, name), holder)| UnionContext::of(&scene, it, name, holder))
                .collect(),
            entries: own
                .entries
                .iter()
                .map(|(value, name)| Entry::of(&scene, value, name))
                .collect(),
            messages: messages.map(|(it, name)| Table::of(&scene, it, name)).collect(),
        };
        if scene.uses_built_in() {
            module.includes.push(BUILT_IN.to_owned());
        }
        module
    }

    /// Whether it needs the file of the built-in types.
    pub(super) fn uses_built_in(&self) -> bool {
        self.includes.last().is_some_and(|it| it == BUILT_IN)
    }
}

impl EnumContext {
    fn of(it: &Enum, name: &str) -> Self {
        let names: Vec<&str> = it.values.iter().map(|value| value.name.as_str()).collect();
        let values = it.values.iter().zip(names::idents(&names));
        Self {
            doc: lines(&it.doc),
            name: name.to_owned(),
            ty: types::int(it.repr),
            values: values
                .map(|(value, name)| Value {
                    doc: lines(&value.doc),
                    name,
                    number: value.number.to_string(),
                })
                .collect(),
        }
    }
}

impl StructContext {
    fn of(scene: &Scene<'_>, it: &Struct, name: &str) -> Self {
        let names: Vec<&str> = it.fields.iter().map(|field| field.name.as_str()).collect();
        let fields = it.fields.iter().zip(scene.own().fields(&names));
        Self {
            doc: lines(&it.doc),
            name: name.to_owned(),
            fields: fields
                .map(|(field, name)| StructField {
                    doc: lines(&field.doc),
                    name,
                    ty: scene.ty(&field.ty),
                })
                .collect(),
        }
    }
}

impl UnionContext {
    fn of(scene: &Scene<'_>, it: &Union, name: &str, holder: &str) -> Self {
        let names: Vec<&str> = it.members.iter().map(|member| scene.name_of(member.message)).collect();
        // Each member has a name of its own, since two namespaces may have a message of one name.
        let members = it.members.iter().zip(names::idents(&names));
        Self {
            doc: lines(&it.doc),
            name: name.to_owned(),
            holder: holder.to_owned(),
            members: members
                .map(|(member, name)| Member {
                    name,
                    ty: scene.ty(&Type::Message(member.message)),
                    number: member.tag,
                })
                .collect(),
        }
    }
}

impl Entry {
    fn of(scene: &Scene<'_>, value: &Type, name: &str) -> Self {
        let required = match value {
            Type::Scalar(Scalar::String | Scalar::Bytes | Scalar::SpotId | Scalar::ActorId) => true,
            Type::Scalar(Scalar::SpotRef | Scalar::ActorRef) | Type::Union(_) | Type::Message(_) => true,
            Type::Scalar(_) | Type::Enum(_) | Type::Struct(_) => false,
            Type::List(_) | Type::Map(_) | Type::Optional(_) => false,
        };
        Self {
            name: name.to_owned(),
            ty: scene.ty(value),
            required,
        }
    }
}

impl Table {
    fn of(scene: &Scene<'_>, it: &Message, name: &str) -> Self {
        let names: Vec<&str> = it
            .slots
            .iter()
            .map(|slot| match slot {
                Slot::Field(field) => field.name.as_str(),
                Slot::Reserved { name } => name.as_str(),
            })
            .collect();
        let slots = it.slots.iter().enumerate().zip(scene.own().fields(&names));
        Self {
            doc: lines(&it.doc),
            name: name.to_owned(),
            fields: slots
                .map(|((id, slot), name)| match slot {
                    Slot::Reserved { .. } => TableField::deprecated(id, name),
                    Slot::Field(field) => TableField::of(scene, field, id, name),
                })
                .collect(),
        }
    }
}

impl TableField {
    fn deprecated(id: usize, name: String) -> Self {
        Self {
            doc: Vec::new(),
            name,
            id,
            deprecated: true,
            ty: String::new(),
            required: false,
            nullable: false,
            max: None,
            counted: "",
        }
    }

    fn of(scene: &Scene<'_>, it: &Field, id: usize, name: String) -> Self {
        Self {
            doc: lines(&it.doc),
            name,
            id,
            deprecated: false,
            ty: scene.ty(&it.ty),
            required: it.required,
            // A number is 0 where it is absent, unless its default is null; a UUID is a struct, and those are absent anyway.
            nullable: matches!(&it.ty, Type::Optional(inner) if **inner != Type::Scalar(Scalar::Uuid)),
            max: it.max,
            counted: match it.ty {
                Type::Scalar(_) => "bytes",
                _ => "items",
            },
        }
    }
}

/// The lines of a comment, each with the space before it where it is not empty: nothing in a line may end it, or be
/// refused as a control character.
fn lines(doc: &Doc) -> Vec<String> {
    let line = |line: &str| {
        let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!(" {clean}").trim_end().to_owned()
    };
    doc.0
        .as_deref()
        .unwrap_or_default()
        .trim_end()
        .lines()
        .map(line)
        .collect()
}
