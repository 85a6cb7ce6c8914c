//! Differences of the fields of one message.
//!
//! It must not know other declarations than through their shapes.

use std::collections::HashSet;

use super::compare::{Changes, now_called, pairs};
use super::contract::{Field, Message, Use};
use super::shape::Shapes;
use crate::diagnostic::Code;

pub(super) fn compare<'c>(owner: &str, old: &'c Message, new: &'c Message, shapes: Shapes<'c>, changes: &mut Changes) {
    let before = now_called(&old.fields, |field| &field.name);
    let gone: HashSet<&str> = old
        .fields
        .values()
        .filter_map(|it| {
            if let Use::Gone(name) = it {
                Some(name.as_str())
            } else {
                None
            }
        })
        .collect();
    pairs(&old.fields, &new.fields, |id, old, new| {
        let moved = |field: &Field| before.get(field.name.as_str()).copied().filter(|other| *other != id);
        let id = id.to_string();
        let was = ["messages", owner, "fields", &id];
        let reserved = ["messages", owner, "reserved", &id];
        let place = |name| ["messages", owner, "fields", name];
        if let (None | Some(Use::Now(_)), Some(Use::Now(new))) = (old, new)
            && let Some(other) = moved(new)
        {
            let message = format!("the field `{owner}.{}` had the id {other} and has {id}", new.name);
            let other = other.to_string();
            changes
                .add(
                    Code::NameMoved,
                    message,
                    &place(&new.name),
                    &["messages", owner, "fields", &other],
                )
                .help("give it back its id");
        }
        match (old, new) {
            (None, Some(Use::Now(new))) if gone.contains(new.name.as_str()) => {
                let message = format!("the name `{owner}.{}` was that of a deleted field", new.name);
                changes
                    .add(Code::NameReused, message, &place(&new.name), &[])
                    .help("take another name");
            }
            (None, Some(Use::Now(new))) => {
                if moved(new).is_none() {
                    let message = format!("the field `{owner}.{}` is new", new.name);
                    changes.add(Code::FieldAdded, message, &place(&new.name), &[]);
                }
                if new.required {
                    let message = format!(
                        "the new field `{owner}.{}` is required, and older peers do not send it",
                        new.name
                    );
                    changes
                        .add(Code::FieldRequired, message, &place(&new.name), &[])
                        .help("remove `required`");
                }
            }
            (Some(Use::Gone(name)), Some(Use::Now(new))) => {
                let message = format!(
                    "the id {id} of `{owner}.{}` was that of the deleted field `{name}`",
                    new.name
                );
                let change = changes.add(Code::IdReused, message, &place(&new.name), &was);
                change.help(format!(
                    "write `reserved: {{ {id}: {name} }}`, and take the next free id"
                ));
            }
            (Some(Use::Now(Field { name, .. }) | Use::Gone(name)), None) => {
                let message = format!("the id {id} of the deleted field `{owner}.{name}` is not reserved");
                let change = changes.add(Code::NotReserved, message, &reserved, &was);
                change.help(format!("write `reserved: {{ {id}: {name} }}`"));
            }
            (Some(Use::Gone(before)), Some(Use::Gone(now))) if before != now => {
                let message =
                    format!("the id {id} of `{owner}` is reserved for `{now}`, and the deleted field was `{before}`");
                let change = changes.add(Code::NotReserved, message, &reserved, &was);
                change.help(format!("write `reserved: {{ {id}: {before} }}`"));
            }
            (Some(Use::Now(old)), Some(Use::Gone(name))) => {
                if *name == old.name {
                    let (code, more) = if old.required {
                        (Code::RequiredRemoved, ", and older peers require it")
                    } else {
                        (Code::FieldRemoved, "")
                    };
                    changes.add(
                        code,
                        format!("the field `{owner}.{name}` is gone{more}"),
                        &reserved,
                        &was,
                    );
                } else {
                    let message = format!(
                        "the id {id} of `{owner}` is reserved for `{name}`, and the deleted field was `{}`",
                        old.name
                    );
                    let change = changes.add(Code::NotReserved, message, &reserved, &was);
                    change.help(format!("write `reserved: {{ {id}: {} }}`", old.name));
                }
            }
            (Some(Use::Now(old)), Some(Use::Now(new))) => {
                if old.name != new.name && moved(new).is_none() {
                    let message = format!("the field `{owner}.{}` was called `{}`", new.name, old.name);
                    changes.add(Code::FieldRenamed, message, &place(&new.name), &was);
                }
                field(owner, &was, old, new, shapes, changes);
            }
            _ => {}
        }
    });
}

fn field<'c>(owner: &str, was: &[&str; 4], old: &'c Field, new: &'c Field, shapes: Shapes<'c>, changes: &mut Changes) {
    let name = new.name.as_str();
    let place = |key| ["messages", owner, "fields", name, key];
    let message = format!("the type of `{owner}.{name}` was {} and is {}", old.ty, new.ty);
    if !shapes.same(&old.ty, &new.ty) {
        changes
            .add(Code::FieldType, message, &place("type"), was)
            .help("or reserve the old field and add a new one");
    } else if old.ty != new.ty {
        let message = format!("{message}, which is the same on the wire");
        changes.add(Code::Retyped, message, &place("type"), was);
    }
    if old.required != new.required {
        let (before, now) = if new.required {
            ("may be absent", "is required")
        } else {
            ("was required", "may be absent")
        };
        let message = format!("`{owner}.{name}` {before} for older peers and {now}");
        changes.add(Code::FieldRequired, message, &place("required"), was);
    }
    if old.max != new.max {
        let bound = |max: Option<u32>| max.map_or("no bound".to_owned(), |max| format!("the bound {max}"));
        let message = format!("`{owner}.{name}` had {} and has {}", bound(old.max), bound(new.max));
        changes.add(Code::FieldMax, message, &place("max"), was);
    }
}
