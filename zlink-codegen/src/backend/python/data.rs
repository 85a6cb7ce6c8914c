//! Enums, structs, unions and messages, as the template of a namespace is told them.

use std::cmp::Reverse;

use serde::Serialize;

use super::codec::{Scene, int_codec, kind};
use super::names;
use super::text::{doc, literal};
use crate::ir::{DeclRef, Enum, Field, Message, Struct, Type, Union};

#[derive(Serialize)]
pub(super) struct Enumeration {
    name: String,
    doc: Vec<String>,
    number: &'static str,
    values: Vec<EnumValue>,
}

#[derive(Serialize)]
struct EnumValue {
    name: String,
    number: String,
    doc: Vec<String>,
}

impl Enumeration {
    pub(super) fn of(it: &Enum, name: &str) -> Self {
        let values = it.values.iter().zip(names::values(it));
        Self {
            name: name.to_owned(),
            doc: doc(&it.doc, &format!("The enum `{}`.", it.name)),
            number: int_codec(it.repr),
            values: values
                .map(|(value, name)| EnumValue {
                    name,
                    number: value.number.to_string(),
                    doc: doc(&value.doc, ""),
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Structure {
    name: String,
    doc: Vec<String>,
    size: u32,
    align: u32,
    fields: Vec<StructField>,
}

#[derive(Serialize)]
struct StructField {
    name: String,
    literal: String,
    doc: Vec<String>,
    ty: String,
    default: String,
    codec: String,
    offset: u32,
}

impl Structure {
    /// All structs of a namespace, each after those that it holds.
    pub(super) fn all(scene: &Scene<'_>) -> Vec<Self> {
        let structs = &scene.schema.namespaces[scene.at].structs;
        let mut done = vec![false; structs.len()];
        let mut order = Vec::new();
        // Structs hold each other without cycles, so as many rounds as there are structs end it.
        for _ in 0..structs.len() {
            for (index, it) in structs.iter().enumerate() {
                let waits = it.fields.iter().any(|field| match field.ty {
                    Type::Struct(at) => at.namespace == scene.at && !done[at.index],
                    _ => false,
                });
                if !done[index] && !waits {
                    done[index] = true;
                    order.push(index);
                }
            }
            if order.len() == structs.len() {
                break;
            }
        }
        order
            .into_iter()
            .map(|index| Self::of(scene, &structs[index], index))
            .collect()
    }

    fn of(scene: &Scene<'_>, it: &Struct, index: usize) -> Self {
        let field_names: Vec<&str> = it.fields.iter().map(|field| field.name.as_str()).collect();
        let fields = it.fields.iter().zip(names::fields(&field_names));
        Self {
            name: scene.names[scene.at].structs[index].clone(),
            doc: doc(&it.doc, &format!("The struct `{}`.", it.name)),
            size: it.size,
            align: it.align,
            fields: fields
                .map(|(field, name)| StructField {
                    name,
                    literal: literal(&field.name),
                    doc: doc(&field.doc, ""),
                    ty: scene.value_type(&field.ty),
                    default: scene.default(&field.ty),
                    codec: scene.codec(&field.ty),
                    offset: field.offset,
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Either {
    name: String,
    doc: Vec<String>,
    members: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    tag: u8,
    of: String,
}

impl Either {
    pub(super) fn of(scene: &Scene<'_>, it: &Union, name: &str) -> Self {
        let members = it.members.iter().map(|member| Member {
            tag: member.tag,
            of: scene.path(&Type::Message(member.message)),
        });
        Self {
            name: name.to_owned(),
            doc: doc(&it.doc, &format!("The union `{}`.", it.name)),
            members: members.collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Class {
    name: String,
    doc: Vec<String>,
    /// Its name on the wire, with its namespace.
    literal: String,
    fields: Vec<ClassField>,
    /// The indexes of the fields in the order in which they stand in their table.
    slots: Vec<usize>,
}

#[derive(Serialize)]
struct ClassField {
    name: String,
    id: u16,
    literal: String,
    doc: Vec<String>,
    ty: String,
    default: Option<String>,
    /// The pair of functions that writes and reads it.
    kind: &'static str,
    inline: bool,
    /// Empty for those that `kind` names.
    codec: String,
    /// What the functions are told besides.
    rules: String,
}

impl Class {
    pub(super) fn of(scene: &Scene<'_>, it: &Message, at: DeclRef) -> Self {
        let namespace = &scene.schema.namespaces[scene.at];
        let fields: Vec<&Field> = it.fields().collect();
        let field_names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let idents = names::fields(&field_names);
        let mut slots: Vec<usize> = (0..fields.len()).collect();
        // Wide before narrow leaves no padding between them.
        slots.sort_by_key(|index| Reverse(scene.schema.align(&fields[*index].ty)));
        Self {
            name: scene.path(&Type::Message(at)),
            doc: doc(&it.doc, &format!("The message `{}`.", it.name)),
            literal: literal(&format!("{}.{}", namespace.name, it.name)),
            fields: fields
                .iter()
                .zip(idents)
                .map(|(field, name)| ClassField::of(scene, field, name))
                .collect(),
            slots,
        }
    }
}

impl ClassField {
    fn of(scene: &Scene<'_>, field: &Field, name: String) -> Self {
        let (kind, inline) = kind(field);
        let codec = match (&field.ty, kind) {
            (_, "string" | "blob") => String::new(),
            (Type::List(inner) | Type::Map(inner), _) => scene.codec(inner),
            (ty, _) => scene.codec(ty),
        };
        let mut rules = String::new();
        if field.required && kind != "required" {
            rules.push_str(", required=True");
        }
        if let Some(max) = field.max {
            rules.push_str(&format!(", most={max}"));
        }
        Self {
            name,
            id: field.id,
            literal: literal(&field.name),
            doc: doc(&field.doc, ""),
            ty: scene.field_type(field),
            default: scene.field_default(field),
            kind,
            inline,
            codec,
            rules,
        }
    }
}
