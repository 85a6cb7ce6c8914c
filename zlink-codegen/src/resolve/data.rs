//! Metadata keys, enums and unions.
//!
//! It must not know messages beyond their names.

use std::collections::HashMap;

use super::lookup::Lookup;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Doc, Int, Scalar, Type};
use crate::source::Span;
use crate::syntax;

/// The one name and number every enum starts with.
const UNSPECIFIED: &str = "unspecified";

pub(super) fn metadata_key(key: &syntax::MetadataKey, lookup: &mut Lookup<'_, '_>) -> Option<ir::MetadataKey> {
    let written = key.ty.as_ref()?;
    let ty = match lookup.ty(written)? {
        Type::Scalar(ty) if !matches!(ty, Scalar::Bytes | Scalar::SpotRef | Scalar::ActorRef) => ty,
        _ => {
            let item = Diagnostic::new(
                Code::TypeNotAllowed,
                written.span,
                "metadata is text: a key cannot have this type",
            );
            lookup.report(
                item.help("use a number, `bool`, `string`, `uuid`, `timestamp`, `duration`, `spot_id` or `actor_id`"),
            );
            return None;
        }
    };
    let relay = key.relay.unwrap_or(false);
    Some(ir::MetadataKey {
        name: key.name.value.clone(),
        doc: Doc(key.doc.clone()),
        ty,
        relay,
    })
}

/// The numbers an integer type has.
fn range(int: Int) -> (i128, i128) {
    match int {
        Int::I8 => (i8::MIN.into(), i8::MAX.into()),
        Int::I16 => (i16::MIN.into(), i16::MAX.into()),
        Int::I32 => (i32::MIN.into(), i32::MAX.into()),
        Int::I64 => (i64::MIN.into(), i64::MAX.into()),
        Int::U8 => (0, u8::MAX.into()),
        Int::U16 => (0, u16::MAX.into()),
        Int::U32 => (0, u32::MAX.into()),
        Int::U64 => (0, u64::MAX.into()),
    }
}

pub(super) fn enumeration(it: &syntax::Enum, lookup: &mut Lookup<'_, '_>) -> ir::Enum {
    let repr = it.ty.as_ref().and_then(|ty| match lookup.ty(ty)? {
        Type::Scalar(Scalar::Int(int)) => Some(int),
        _ => {
            let item = Diagnostic::new(Code::TypeNotAllowed, ty.span, "the type of an enum is an integer");
            lookup.report(item.help("use `u8` unless it has more than 256 values"));
            None
        }
    });
    let mut seen: HashMap<i128, Span> = HashMap::new();
    let mut values = Vec::new();
    for value in it.values.iter().flatten() {
        let Some(number) = &value.number else { continue };
        fits(number, repr, lookup);
        if let Some(first) = seen.insert(number.value, value.name.span) {
            let item = Diagnostic::new(
                Code::DuplicateNumber,
                number.span,
                format!("the number {} is in use", number.value),
            );
            lookup.report(item.label("again here").at(first, "first here"));
        }
        values.push(ir::EnumValue {
            name: value.name.value.clone(),
            number: number.value,
            doc: Doc(value.doc.clone()),
        });
    }
    let mut reserved = Vec::new();
    for number in &it.reserved {
        fits(number, repr, lookup);
        if let Some(value) = seen.get(&number.value) {
            let item = Diagnostic::new(
                Code::ReservedNumber,
                *value,
                format!("the number {} is reserved", number.value),
            );
            lookup.report(
                item.at(number.span, "reserved here")
                    .help("give the value a number that was never used"),
            );
        }
        reserved.push(number.value);
    }
    if let Some(values) = &it.values {
        unspecified(&it.name, values, lookup);
    }
    values.sort_by_key(|value| value.number);
    reserved.sort_unstable();
    reserved.dedup();
    ir::Enum {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        repr: repr.unwrap_or(Int::I64),
        values,
        reserved,
    }
}

fn fits(number: &syntax::Spanned<i128>, repr: Option<Int>, lookup: &mut Lookup<'_, '_>) {
    let Some((low, high)) = repr.map(range) else { return };
    if !(low..=high).contains(&number.value) {
        let message = format!(
            "the number {} is not in {low}..={high}, the range of the enum's type",
            number.value
        );
        lookup.report(
            Diagnostic::new(Code::NumberOutOfRange, number.span, message)
                .help("take a wider type: it cannot be changed later"),
        );
    }
}

/// What an absent field and an old peer mean must be the same everywhere.
fn unspecified(name: &syntax::Name, values: &[syntax::EnumValue], lookup: &mut Lookup<'_, '_>) {
    let is_zero = |value: &syntax::EnumValue| value.number.as_ref().is_none_or(|number| number.value == 0);
    let named = values.iter().find(|value| value.name.value == UNSPECIFIED);
    let zero = values
        .iter()
        .find(|value| value.number.as_ref().is_some_and(|number| number.value == 0));
    let wrong = match (named, zero) {
        (Some(named), _) if is_zero(named) => return,
        (Some(named), _) => named.name.span,
        (None, Some(zero)) => zero.name.span,
        // Missing altogether; where a value has no number, that has been reported and may be the one.
        (None, None) => name.span,
    };
    let item = Diagnostic::new(Code::NoUnspecified, wrong, "the value 0 of an enum is `unspecified`");
    lookup.report(item.help("write `unspecified: 0` first: it is what an absent field means"));
}

pub(super) fn union(it: &syntax::Union, lookup: &mut Lookup<'_, '_>) -> ir::Union {
    if it.members.as_ref().is_some_and(Vec::is_empty) {
        let item = Diagnostic::new(Code::EmptyUnion, it.name.span, "a union needs a member");
        lookup.report(item.help("write `{ 1: ChatLine, 2: Move }`"));
    }
    let mut seen = HashMap::new();
    let mut members = Vec::new();
    for member in it.members.iter().flatten() {
        let path = &member.message;
        let Some(message) = lookup.message(path, "a member of a union") else {
            continue;
        };
        if let Some(first) = seen.insert(message, path.span) {
            let item = Diagnostic::new(
                Code::MemberTwice,
                path.span,
                format!("`{}` is a member already", path.name.value),
            );
            lookup.report(
                item.label("again here")
                    .at(first, "first here")
                    .help("wrap one of them in a message of its own"),
            );
        }
        members.push(ir::UnionMember {
            tag: member.tag.value,
            message,
        });
    }
    let mut reserved = Vec::new();
    for tag in &it.reserved {
        if let Some(member) = it.members.iter().flatten().find(|member| member.tag.value == tag.value) {
            let item = Diagnostic::new(
                Code::ReservedNumber,
                member.tag.span,
                format!("the tag {} is reserved", tag.value),
            );
            lookup.report(
                item.at(tag.span, "reserved here")
                    .help("give the member a tag that was never used"),
            );
        }
        reserved.push(tag.value);
    }
    members.sort_by_key(|member| member.tag);
    reserved.sort_unstable();
    reserved.dedup();
    ir::Union {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        members,
        reserved,
    }
}
