//! What is exchanged: metadata keys, enums, structs, unions, messages.
//!
//! It must not know whether types exist or ids fit together.

use super::reader::{Reader, find};
use super::{
    Enum, EnumValue, Field, Id, Message, MetadataKey, Name, Reserved, Spanned, Struct, StructField, Union, UnionMember,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::{Entry, Kind, Node, Text};
use crate::source::Span;

/// The vtable of a FlatBuffers table has room for this many slots.
const MAX_ID: i128 = 32_764;
/// FlatBuffers counts with 32 bits, one of them a sign.
const MAX_LENGTH: i128 = i32::MAX as i128;

impl Reader<'_> {
    pub(super) fn metadata_key(&mut self, Entry { key, value }: &Entry) -> Option<MetadataKey> {
        let entries = self.entries(value, "a metadata key")?;
        self.keys(entries, "a metadata key", &["doc", "type", "relay"], &[]);
        Some(MetadataKey {
            name: self.name(key, "a metadata key", &['-', '.']),
            doc: self.doc(entries),
            ty: self.needed_type(entries, key.span, "a metadata key"),
            relay: find(entries, "relay")
                .and_then(|entry| self.boolean(&entry.value, "`relay`"))
                .map(|it| it.value),
        })
    }

    /// The value of the key `type`, which must be there. A mapping that is none has been reported already.
    fn needed_type(&mut self, entries: &[Entry], owner: Span, what: &str) -> Option<super::Type> {
        let Some(entry) = find(entries, "type") else {
            let item = Diagnostic::new(Code::MissingKey, owner, format!("{what} needs a `type`"));
            let example = if what == "an enum" { "u8" } else { "string" };
            self.report(item.help(format!("write `type: {example}`, or another type")));
            return None;
        };
        self.ty(&entry.value, "a type")
    }

    pub(super) fn enumeration(&mut self, Entry { key, value }: &Entry) -> Enum {
        let name = self.name(key, "the name of an enum", &[]);
        let Some(entries) = self.entries(value, "an enum") else {
            return Enum {
                name,
                doc: None,
                ty: None,
                values: None,
                reserved: Vec::new(),
            };
        };
        self.keys(entries, "an enum", &["doc", "type", "values", "reserved"], &[]);
        let ty = self.needed_type(entries, key.span, "an enum");
        let values = match find(entries, "values") {
            Some(Entry { value, .. }) => self
                .entries(value, "`values`")
                .map(|values| values.iter().map(|entry| self.enum_value(entry)).collect()),
            None => {
                let item = Diagnostic::new(Code::MissingKey, key.span, "an enum needs `values`");
                self.report(item.help("write `values: { unspecified: 0, … }`"));
                None
            }
        };
        let mut reserved = Vec::new();
        if let Some(entry) = find(entries, "reserved") {
            for item in self.items(&entry.value, "`reserved` of an enum") {
                reserved.extend(self.value(item, "a reserved number", ENUM_NUMBERS));
            }
        }
        Enum {
            name,
            doc: self.doc(entries),
            ty,
            values,
            reserved,
        }
    }

    fn enum_value(&mut self, Entry { key, value }: &Entry) -> EnumValue {
        let name = self.name(key, "the name of an enum value", &[]);
        let Kind::Map(entries) = &value.kind else {
            return EnumValue {
                name,
                number: self.value(value, "an enum value", ENUM_NUMBERS),
                doc: None,
            };
        };
        self.keys(entries, "an enum value", &["doc", "number"], &[]);
        let number = find(entries, "number");
        if number.is_none() {
            self.report(Diagnostic::new(
                Code::MissingKey,
                key.span,
                "an enum value needs a `number`",
            ));
        }
        let number = number.and_then(|entry| self.value(&entry.value, "an enum value", ENUM_NUMBERS));
        EnumValue {
            name,
            number,
            doc: self.doc(entries),
        }
    }

    /// Short: `Vec2: { x: f32, y: f32 }`. Long, where the struct has a doc: `Vec2: { doc: …, fields: { … } }`.
    pub(super) fn structure(&mut self, Entry { key, value }: &Entry) -> Struct {
        let name = self.name(key, "the name of a struct", &[]);
        let mut entries = self.entries(value, "a struct");
        let mut doc = None;
        let long = entries
            .and_then(|entries| find(entries, "fields"))
            .filter(|entry| matches!(entry.value.kind, Kind::Map(_)));
        if let (Some(all), Some(long)) = (entries, long) {
            self.keys(all, "a struct", &["doc", "fields"], &[]);
            doc = self.doc(all);
            entries = self.entries(&long.value, "`fields`");
        }
        let fields = entries.map(|entries| entries.iter().map(|entry| self.struct_field(entry)).collect());
        Struct { name, doc, fields }
    }

    fn struct_field(&mut self, Entry { key, value }: &Entry) -> StructField {
        let name = self.name(key, "the name of a field", &[]);
        let Kind::Map(entries) = &value.kind else {
            return StructField {
                name,
                doc: None,
                ty: self.ty(value, "a field of a struct"),
            };
        };
        self.keys(entries, "a field of a struct", &["doc", "type"], &[]);
        let ty = self.needed_type(entries, key.span, "a field of a struct");
        StructField {
            name,
            doc: self.doc(entries),
            ty,
        }
    }

    pub(super) fn union(&mut self, Entry { key, value }: &Entry) -> Union {
        let name = self.name(key, "the name of a union", &[]);
        let Some(entries) = self.entries(value, "a union") else {
            return Union {
                name,
                doc: None,
                members: None,
                reserved: Vec::new(),
            };
        };
        let mut members = Some(Vec::new());
        let mut reserved = Vec::new();
        for Entry { key, value } in entries {
            match key.text.as_str() {
                "doc" => {}
                "reserved" => {
                    for item in self.items(value, "`reserved` of a union") {
                        reserved.extend(self.value(item, "a reserved tag", 1..=255));
                    }
                }
                _ => match self.member(key, value) {
                    Some(member) => members
                        .as_mut()
                        .into_iter()
                        .for_each(|members| members.push(member.clone())),
                    None => members = None,
                },
            }
        }
        Union {
            name,
            doc: self.doc(entries),
            members,
            reserved,
        }
    }

    fn member(&mut self, key: &Text, value: &Node) -> Option<UnionMember> {
        let tag = self.number(key, "the tag of a union member", 1..=255);
        let message = self.path(value, "a union member");
        let tag = Spanned {
            value: u8::try_from(tag?).ok()?,
            span: key.span,
        };
        Some(UnionMember { tag, message: message? })
    }

    pub(super) fn message(&mut self, Entry { key, value }: &Entry) -> Message {
        let name = self.name(key, "the name of a message", &[]);
        let entries = self.entries(value, "a message").unwrap_or_default();
        self.keys(entries, "a message", &["doc", "state", "fields", "reserved"], &["view"]);
        let state = find(entries, "state").and_then(|entry| self.value(&entry.value, "`state`", VERSIONS));
        let mut fields = Vec::new();
        if let Some(entry) = find(entries, "fields") {
            for entry in self.entries(&entry.value, "`fields`").unwrap_or_default() {
                fields.push(self.field(entry));
            }
        }
        let mut reserved = Vec::new();
        if let Some(entry) = find(entries, "reserved") {
            for entry in self
                .entries(&entry.value, "`reserved` of a message")
                .unwrap_or_default()
            {
                reserved.extend(self.reserved(entry));
            }
        }
        Message {
            name,
            doc: self.doc(entries),
            state,
            fields,
            reserved,
        }
    }

    fn reserved(&mut self, Entry { key, value }: &Entry) -> Option<Reserved> {
        let id = self
            .number(key, "a reserved id", 0..=MAX_ID)
            .and_then(|id| u16::try_from(id).ok());
        let name = self
            .text(value, "the name of a deleted field")
            .map(|text| self.name(text, "the name of a field", &[]));
        Some(Reserved {
            id: Spanned {
                value: id?,
                span: key.span,
            },
            name: name?,
        })
    }

    fn field(&mut self, Entry { key, value }: &Entry) -> Field {
        let name = self.name(key, "the name of a field", &[]);
        if let Kind::Text(_) = &value.kind {
            // The form of a struct: say how a message writes it, by way of the missing id.
            return bare(name, self.ty(value, "a field"));
        }
        let Some(entries) = self.entries(value, "a field") else {
            return Field {
                id: Id::Wrong,
                ..bare(name, None)
            };
        };
        self.keys(
            entries,
            "a field",
            &["doc", "id", "type", "required", "max", "since"],
            &[],
        );
        let id = match find(entries, "id") {
            None => Id::Missing,
            Some(entry) => self.value(&entry.value, "an id", 0..=MAX_ID).map_or(Id::Wrong, Id::Is),
        };
        Field {
            name,
            doc: self.doc(entries),
            id,
            ty: self.needed_type(entries, key.span, "a field"),
            required: find(entries, "required").and_then(|entry| self.boolean(&entry.value, "`required`")),
            max: find(entries, "max").and_then(|entry| self.value(&entry.value, "`max`", 1..=MAX_LENGTH)),
            since: find(entries, "since").and_then(|entry| self.value(&entry.value, "`since`", VERSIONS)),
        }
    }
}

fn bare(name: Name, ty: Option<super::Type>) -> Field {
    Field {
        name,
        doc: None,
        id: Id::Missing,
        ty,
        required: None,
        max: None,
        since: None,
    }
}

/// All numbers of all integer types; the one that an enum has is not known yet.
const ENUM_NUMBERS: std::ops::RangeInclusive<i128> = i64::MIN as i128..=u64::MAX as i128;
/// Versions of contracts and states.
pub(super) const VERSIONS: std::ops::RangeInclusive<i128> = 1..=u32::MAX as i128;
