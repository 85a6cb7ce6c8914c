//! Differences of metadata, enums, structs and unions.
//!
//! It must not know services, nor what is in a message.

use std::collections::{BTreeMap, HashSet};

use super::compare::{Changes, now_called, pairs};
use super::contract::{Contract, Enum, Use};
use super::shape::Shapes;
use crate::diagnostic::Code;

pub(super) fn compare(old: &Contract, new: &Contract, changes: &mut Changes) {
    let shapes = Shapes { old, new };
    metadata(old, new, shapes, changes);
    declarations("enums", "enum", &old.enums, &new.enums, changes, enumeration);
    declarations(
        "structs",
        "struct",
        &old.structs,
        &new.structs,
        changes,
        |name, old, new, changes| {
            structure(name, old, new, shapes, changes);
        },
    );
    declarations(
        "unions",
        "union",
        &old.unions,
        &new.unions,
        changes,
        |name, old, new, changes| {
            let codes = [Code::MemberAdded, Code::MemberRemoved, Code::MemberChanged];
            numbers(old, new, &["unions", name], "tag", codes, Some(shapes), changes);
        },
    );
    declarations(
        "messages",
        "message",
        &old.messages,
        &new.messages,
        changes,
        |name, old, new, changes| {
            super::fields::compare(name, old, new, shapes, changes);
        },
    );
}

fn declarations<'c, T>(
    section: &str,
    what: &str,
    old: &'c BTreeMap<String, T>,
    new: &'c BTreeMap<String, T>,
    changes: &mut Changes,
    mut both: impl FnMut(&str, &'c T, &'c T, &mut Changes),
) {
    pairs(old, new, |name, old, new| match (old, new) {
        (Some(old), Some(new)) => both(name, old, new, changes),
        (Some(_), None) => {
            changes.add(
                Code::DeclarationRemoved,
                format!("the {what} `{name}` is gone"),
                &[section],
                &[section, name],
            );
        }
        _ => {
            changes.add(
                Code::DeclarationAdded,
                format!("the {what} `{name}` is new"),
                &[section, name],
                &[],
            );
        }
    });
}

fn metadata(old: &Contract, new: &Contract, shapes: Shapes<'_>, changes: &mut Changes) {
    pairs(&old.metadata, &new.metadata, |name, old, new| {
        let path = ["metadata", name.as_str()];
        match (old, new) {
            (None, Some(_)) => {
                changes.add(
                    Code::DeclarationAdded,
                    format!("the metadata key `{name}` is new"),
                    &path,
                    &[],
                );
            }
            (Some(Use::Gone(_)), Some(_)) => {
                let message = format!("the name `{name}` was that of a deleted metadata key");
                changes
                    .add(Code::KeyReused, message, &path, &path)
                    .help("a peer may still send the old one: take another name");
            }
            (Some(Use::Now(_)), None) => {
                changes.add(
                    Code::DeclarationRemoved,
                    format!("the metadata key `{name}` is gone"),
                    &path,
                    &path,
                );
            }
            (Some(Use::Now(old)), Some(Use::Now(new))) => {
                if old.ty != new.ty {
                    let same = shapes.same(&old.ty, &new.ty);
                    let code = if same { Code::Retyped } else { Code::MetadataChanged };
                    let tail = if same { ", which is the same on the wire" } else { "" };
                    let message = format!(
                        "the type of the metadata key `{name}` was {} and is {}{tail}",
                        old.ty, new.ty
                    );
                    changes.add(code, message, &["metadata", name, "type"], &path);
                }
                match (old.relay, new.relay) {
                    (true, false) => {
                        let message = format!("the metadata key `{name}` crosses relays no more");
                        changes.add(Code::MetadataChanged, message, &path, &path);
                    }
                    (false, true) => {
                        let message = format!("the metadata key `{name}` crosses relays now");
                        changes.add(Code::RelayOpened, message, &["metadata", name, "relay"], &path);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    });
}

fn enumeration(name: &str, old: &Enum, new: &Enum, changes: &mut Changes) {
    if old.ty != new.ty {
        let message = format!("the type of the enum `{name}` was {} and is {}", old.ty, new.ty);
        changes.add(
            Code::EnumType,
            message,
            &["enums", name, "type"],
            &["enums", name, "type"],
        );
    }
    let codes = [Code::ValueAdded, Code::ValueRemoved, Code::ValueRenamed];
    numbers(
        &old.values,
        &new.values,
        &["enums", name],
        "number",
        codes,
        None,
        changes,
    );
}

/// Values of an enum; or members of a union, where there are shapes to compare them by. Names by number.
fn numbers<'c, K: Ord + Copy + ToString>(
    old: &'c BTreeMap<K, Use<String>>,
    new: &'c BTreeMap<K, Use<String>>,
    at: &[&str; 2],
    what: &str,
    [added, removed, changed]: [Code; 3],
    shapes: Option<Shapes<'c>>,
    changes: &mut Changes,
) {
    let [section, owner] = *at;
    let gone = names_gone(old, new);
    let before = now_called(old, |name| name);
    let union = shapes.is_some();
    pairs(old, new, |number, old, new| {
        let moved = |name: &String| before.get(name.as_str()).copied().filter(|at| *at != number);
        let other = match new {
            Some(Use::Now(name)) if !union => moved(name).map(K::to_string),
            _ => None,
        };
        let number = number.to_string();
        let was = if union {
            vec![section, owner, &number]
        } else {
            vec![section, owner, "values", other.as_ref().unwrap_or(&number)]
        };
        let place = |name: &str| -> Vec<String> {
            let path: &[&str] = if union {
                &[section, owner, &number]
            } else {
                &[section, owner, "values", name]
            };
            path.iter().map(|part| (*part).to_owned()).collect()
        };
        let (code, message, at, help) = match (old, new) {
            // A value that is known by another number is read as another; a member of two tags is only another way.
            (None | Some(Use::Now(_)), Some(Use::Now(name))) if other.is_some() => {
                let other = other.as_deref().unwrap_or_default();
                let message = format!("`{owner}.{name}` had the {what} {other} and has {number}");
                (Code::NameMoved, message, place(name), "give it back its number")
            }
            (None, Some(Use::Now(name))) if !union && gone.contains(name.as_str()) => {
                let message = format!("the name `{owner}.{name}` was that of a deleted value");
                (Code::NameReused, message, place(name), "take another name")
            }
            (None, Some(Use::Now(name))) => (
                added,
                format!("`{owner}.{name}` with the {what} {number} is new"),
                place(name),
                "",
            ),
            (Some(Use::Gone(gone)), Some(Use::Now(name))) => {
                let deleted = if gone.is_empty() {
                    "something deleted".to_owned()
                } else {
                    format!("the deleted `{gone}`")
                };
                let message = format!("the {what} {number} of `{owner}.{name}` was that of {deleted}");
                (Code::IdReused, message, place(name), "take one that was never used")
            }
            (Some(Use::Now(name)), Some(Use::Gone(_))) => {
                (removed, format!("`{owner}.{name}` is gone"), place(name), "")
            }
            (Some(Use::Now(name) | Use::Gone(name)), None) => {
                let message = if name.is_empty() {
                    format!("the {what} {number} of `{owner}` was reserved and is not")
                } else {
                    format!("the {what} {number} of the deleted `{owner}.{name}` is not reserved")
                };
                let path = vec![section.to_owned(), owner.to_owned(), "reserved".to_owned()];
                (Code::NotReserved, message, path, "list it under `reserved`")
            }
            (Some(Use::Now(before)), Some(Use::Now(name))) => {
                let same = shapes.is_some_and(|shapes| shapes.same(before, name));
                if before == name && (same || !union) {
                    return;
                }
                let message = format!("the {what} {number} of `{owner}` was `{before}` and is `{name}`");
                if same {
                    (
                        Code::Retyped,
                        format!("{message}, which is the same on the wire"),
                        place(name),
                        "",
                    )
                } else {
                    (changed, message, place(name), "")
                }
            }
            _ => return,
        };
        let at: Vec<&str> = at.iter().map(String::as_str).collect();
        let known = old.is_some() || other.is_some();
        let change = changes.add(code, message, &at, if known { &was } else { &[] });
        if !help.is_empty() {
            change.help(help);
        }
    });
}

/// Names that were deleted before, or are now.
fn names_gone<'m, K: Ord>(old: &'m BTreeMap<K, Use<String>>, new: &BTreeMap<K, Use<String>>) -> HashSet<&'m str> {
    let gone = old
        .iter()
        .filter(|(number, it)| matches!(it, Use::Gone(_)) || !matches!(new.get(number), Some(Use::Now(_))));
    gone.map(|(_, Use::Now(name) | Use::Gone(name))| name.as_str())
        .collect()
}

type Fields = Vec<(String, String)>;

fn structure<'c>(name: &str, old: &'c Fields, new: &'c Fields, shapes: Shapes<'c>, changes: &mut Changes) {
    let path = ["structs", name];
    let pairs = || old.iter().zip(new);
    if old.len() != new.len() || !pairs().all(|((_, old), (_, new))| shapes.same(old, new)) {
        let types = |fields: &Fields| fields.iter().map(|(_, ty)| ty.clone()).collect::<Vec<_>>().join(", ");
        let message = format!("the struct `{name}` held {} and holds {}", types(old), types(new));
        changes
            .add(Code::StructLayout, message, &path, &path)
            .help("a struct is frozen for ever: declare another one");
        return;
    }
    for ((before, was), (now, is)) in pairs() {
        let (at, from) = (["structs", name, now], ["structs", name, before]);
        if before != now && old.iter().any(|(other, _)| other == now) {
            let message = format!("the field `{name}.{now}` stands where `{before}` stood");
            changes
                .add(Code::NameMoved, message, &at, &at)
                .help("a struct is frozen for ever: declare another one");
        } else if before != now {
            let message = format!("the field `{name}.{now}` was called `{before}`");
            changes.add(Code::FieldRenamed, message, &at, &from);
        }
        if was != is {
            let message = format!("the type of `{name}.{now}` was {was} and is {is}, which is the same on the wire");
            changes.add(Code::Retyped, message, &at, &from);
        }
    }
}
