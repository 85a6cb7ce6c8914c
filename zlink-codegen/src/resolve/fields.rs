//! Messages: their fields, and that the ids fit together.
//!
//! It must not know how fields are written to the wire, except that a table has 64 KiB.

use std::collections::{BTreeMap, HashMap};

use super::layout::Sizes;
use super::lookup::Lookup;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Doc, Scalar, Slot, Type};
use crate::source::Span;
use crate::syntax::{self, Id};

/// The inline part of a FlatBuffers table, whose size has 16 bits.
const MAX_TABLE: u32 = u16::MAX as u32;

/// What an id belongs to.
struct Held<'a> {
    name: &'a str,
    span: Span,
    reserved: bool,
    /// Nothing for a field whose type is wrong: it keeps its id in use, so that no more is said of it.
    slot: Option<Slot>,
}

type Slots<'a> = BTreeMap<u16, Held<'a>>;

pub(super) fn message(
    it: &syntax::Message,
    version: u32,
    lookup: &mut Lookup<'_, '_>,
    sizes: &Sizes<'_>,
) -> ir::Message {
    let mut slots = Slots::new();
    reserve(it, &mut slots, lookup);
    let mut next = next_id(it);
    let mut whole = true;
    let mut inline = 4u32;
    for field in &it.fields {
        let ty = field.ty.as_ref().and_then(|ty| lookup.ty(ty));
        let id = match &field.id {
            Id::Is(id) => Some(id),
            Id::Wrong => None,
            Id::Missing => {
                let item = Diagnostic::new(
                    Code::MissingId,
                    field.name.span,
                    format!("the field `{}` has no id", field.name.value),
                );
                lookup.report(item.help(format!(
                    "write `{}: {{ id: {next}, … }}`: {next} is free",
                    field.name.value
                )));
                next = next.saturating_add(1);
                None
            }
        };
        if let Some(ty) = &ty {
            rules(field, ty, version, lookup);
            let (size, align) = sizes.inline(ty);
            inline = inline.saturating_add(size + align - 1);
        }
        let Some(id) = id else {
            whole = false;
            continue;
        };
        if let Some(holder) = slots.get(&id.value) {
            taken(field, id, holder, lookup);
            continue;
        }
        let slot = ty.map(|ty| {
            Slot::Field(ir::Field {
                name: field.name.value.clone(),
                doc: Doc(field.doc.clone()),
                id: id.value,
                ty,
                required: field.required.as_ref().is_some_and(|required| required.value),
                max: field.max.as_ref().map(|max| max.value),
                since: field.since.as_ref().map(|since| since.value),
            })
        });
        slots.insert(
            id.value,
            Held {
                name: &field.name.value,
                span: field.name.span,
                reserved: false,
                slot,
            },
        );
    }
    if inline > MAX_TABLE {
        let message = format!(
            "the fields of `{}` take {inline} bytes in one table, and there is room for {MAX_TABLE}",
            it.name.value
        );
        lookup.report(
            Diagnostic::new(Code::MessageTooLarge, it.name.span, message).help("split it into several messages"),
        );
    }
    if whole {
        gap(it, &slots, lookup);
    }
    ir::Message {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        state: it.state.as_ref().map(|state| state.value),
        slots: slots.into_values().filter_map(|it| it.slot).collect(),
    }
}

fn reserve<'a>(it: &'a syntax::Message, slots: &mut Slots<'a>, lookup: &mut Lookup<'_, '_>) {
    let mut names: HashMap<&str, Span> = HashMap::new();
    for reserved in &it.reserved {
        let name = reserved.name.value.as_str();
        if let Some(first) = names.insert(name, reserved.name.span) {
            let item = Diagnostic::new(
                Code::ReservedName,
                reserved.name.span,
                format!("the name `{name}` is reserved twice"),
            );
            lookup.report(
                item.at(first, "first here")
                    .help("a name belongs to one id for ever; give one of them another"),
            );
        }
        let slot = Some(Slot::Reserved { name: name.to_owned() });
        slots.insert(
            reserved.id.value,
            Held {
                name,
                span: reserved.id.span,
                reserved: true,
                slot,
            },
        );
    }
    for field in &it.fields {
        if let Some(reserved) = names.get(field.name.value.as_str()) {
            let message = format!("the name `{}` is reserved: a deleted field had it", field.name.value);
            let item = Diagnostic::new(Code::ReservedName, field.name.span, message).at(*reserved, "reserved here");
            lookup.report(item.help("give the field another name"));
        }
    }
}

fn next_id(it: &syntax::Message) -> u16 {
    let used = it.fields.iter().filter_map(|field| match &field.id {
        Id::Is(id) => Some(id.value),
        Id::Missing | Id::Wrong => None,
    });
    let last = used.chain(it.reserved.iter().map(|reserved| reserved.id.value)).max();
    last.map_or(0, |last| last.saturating_add(1))
}

fn taken(field: &syntax::Field, id: &syntax::Spanned<u16>, holder: &Held<'_>, lookup: &mut Lookup<'_, '_>) {
    let (code, what, whose) = if holder.reserved {
        (
            Code::ReservedId,
            "reserved",
            format!("for the deleted field `{}`", holder.name),
        )
    } else {
        (Code::DuplicateId, "in use", format!("by `{}`", holder.name))
    };
    let message = format!("the id {} of `{}` is {what}", id.value, field.name.value);
    let item = Diagnostic::new(code, id.span, message).at(holder.span, whose);
    lookup.report(item.help("take the next free id; ids are never used again"));
}

fn gap(it: &syntax::Message, slots: &Slots<'_>, lookup: &mut Lookup<'_, '_>) {
    // The first id that does not follow the one before it.
    let Some((expected, (id, Held { span, .. }))) = (0u16..).zip(slots).find(|(expected, (id, _))| expected != *id)
    else {
        return;
    };
    let missing = if *id - expected == 1 {
        format!("{expected}")
    } else {
        format!("{expected} to {}", *id - 1)
    };
    let message = format!("the ids of `{}` leave a gap before {id}: {missing}", it.name.value);
    let item = Diagnostic::new(Code::IdGap, *span, message).label(format!("has the id {id}"));
    lookup.report(item.help(format!(
        "number on without gaps; where a field was deleted, write `reserved: {{ {expected}: its_name }}`"
    )));
}

/// What the keys of a field demand of its type.
fn rules(field: &syntax::Field, ty: &Type, version: u32, lookup: &mut Lookup<'_, '_>) {
    let has_length = matches!(
        ty,
        Type::List(_) | Type::Map(_) | Type::Scalar(Scalar::String | Scalar::Bytes)
    );
    if let Some(max) = field.max.as_ref().filter(|_| !has_length) {
        let item = Diagnostic::new(
            Code::MaxNotAllowed,
            max.span,
            format!("`max` bounds a length, and `{}` has none", field.name.value),
        );
        lookup.report(item.help("remove it; it fits `string`, `bytes`, lists and maps"));
    }
    // Only what is stored by reference or as a struct can be missing on the wire.
    let always = match ty {
        Type::Scalar(scalar) => matches!(
            scalar,
            Scalar::Bool | Scalar::Int(_) | Scalar::F32 | Scalar::F64 | Scalar::Timestamp | Scalar::Duration
        ),
        Type::Enum(_) | Type::Optional(_) => true,
        Type::List(_) | Type::Map(_) | Type::Struct(_) | Type::Union(_) | Type::Message(_) => false,
    };
    if let Some(required) = field.required.as_ref().filter(|required| required.value && always) {
        let optional = matches!(ty, Type::Optional(_));
        let message = if optional {
            format!("`{}` cannot be optional and required", field.name.value)
        } else {
            format!(
                "`required` says nothing of `{}`: a number that is absent is 0",
                field.name.value
            )
        };
        let help = if optional {
            "remove one of them"
        } else {
            "remove it, or use `optional<…>` to tell 0 from nothing"
        };
        lookup.report(Diagnostic::new(Code::RequiredNotAllowed, required.span, message).help(help));
    }
    if let Some(since) = field.since.as_ref().filter(|since| since.value > version) {
        let message = format!(
            "`{}` is since version {}, and the contract has version {version}",
            field.name.value, since.value
        );
        lookup
            .report(Diagnostic::new(Code::SinceAfterVersion, since.span, message).help("raise `version:` of the file"));
    }
}
