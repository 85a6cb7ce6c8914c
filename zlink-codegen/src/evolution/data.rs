//! Differences of metadata, enums, structs, unions and messages.
//!
//! It must not know services.

use std::collections::{BTreeMap, HashSet};

use super::compare::{Changes, pairs};
use super::contract::{Contract, Enum, Field, Message, Use};
use crate::diagnostic::Code;

pub(super) fn compare(old: &Contract, new: &Contract, changes: &mut Changes) {
    metadata(old, new, changes);
    declarations("enums", "enum", &old.enums, &new.enums, changes, enumeration);
    declarations("structs", "struct", &old.structs, &new.structs, changes, structure);
    declarations(
        "unions",
        "union",
        &old.unions,
        &new.unions,
        changes,
        |name, old, new, changes| {
            let at = ["unions", name];
            numbers(
                old,
                new,
                &at,
                "tag",
                [Code::MemberAdded, Code::MemberRemoved, Code::MemberChanged],
                changes,
            );
        },
    );
    declarations("messages", "message", &old.messages, &new.messages, changes, message);
}

fn declarations<T>(
    section: &str,
    what: &str,
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
    changes: &mut Changes,
    mut both: impl FnMut(&str, &T, &T, &mut Changes),
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

fn metadata(old: &Contract, new: &Contract, changes: &mut Changes) {
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
                    .add(Code::NameReused, message, &path, &path)
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
                    let message = format!("the type of the metadata key `{name}` was {} and is {}", old.ty, new.ty);
                    changes.add(Code::MetadataChanged, message, &["metadata", name, "type"], &path);
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
    let at = ["enums", name];
    if old.ty != new.ty {
        let message = format!("the type of the enum `{name}` was {} and is {}", old.ty, new.ty);
        changes.add(
            Code::EnumType,
            message,
            &["enums", name, "type"],
            &["enums", name, "type"],
        );
    }
    numbers(
        &old.values,
        &new.values,
        &at,
        "number",
        [Code::ValueAdded, Code::ValueRemoved, Code::ValueRenamed],
        changes,
    );
}

/// Values of an enum, members of a union: names by number.
fn numbers<K: Ord + Copy + ToString>(
    old: &BTreeMap<K, Use<String>>,
    new: &BTreeMap<K, Use<String>>,
    at: &[&str; 2],
    what: &str,
    [added, removed, changed]: [Code; 3],
    changes: &mut Changes,
) {
    let [section, owner] = *at;
    let gone = names_gone(old, new);
    let union = section == "unions";
    pairs(old, new, |number, old, new| {
        let number = number.to_string();
        let was = if union {
            vec![section, owner, &number]
        } else {
            vec![section, owner, "values", &number]
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
            (Some(Use::Now(before)), Some(Use::Now(name))) if before != name => (
                changed,
                format!("the {what} {number} of `{owner}` was `{before}` and is `{name}`"),
                place(name),
                "",
            ),
            _ => return,
        };
        let at: Vec<&str> = at.iter().map(String::as_str).collect();
        let change = changes.add(code, message, &at, if old.is_some() { &was } else { &[] });
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

fn structure(name: &str, old: &Fields, new: &Fields, changes: &mut Changes) {
    let path = ["structs", name];
    let types = |fields: &Fields| fields.iter().map(|(_, ty)| ty.clone()).collect::<Vec<_>>();
    let (before, now) = (types(old), types(new));
    if before != now {
        let message = format!(
            "the struct `{name}` held {} and holds {}",
            before.join(", "),
            now.join(", ")
        );
        changes
            .add(Code::StructLayout, message, &path, &path)
            .help("a struct is frozen for ever: declare another one");
        return;
    }
    for ((before, _), (now, _)) in old.iter().zip(new).filter(|((before, _), (now, _))| before != now) {
        let message = format!("the field `{name}.{now}` was called `{before}`");
        changes.add(
            Code::FieldRenamed,
            message,
            &["structs", name, now],
            &["structs", name, before],
        );
    }
}

fn message(name: &str, old: &Message, new: &Message, changes: &mut Changes) {
    let path = ["messages", name];
    let state = ["messages", name, "state"];
    let from = changes.list.len();
    fields(name, old, new, changes);
    let breaks = changes.list.iter().skip(from).any(|change| {
        matches!(
            change.code,
            Code::FieldType | Code::FieldRequired | Code::FieldMax | Code::RequiredRemoved | Code::FieldRemoved
        )
    });
    match (old.state, new.state) {
        (Some(old), Some(new)) if new < old => {
            let message = format!("the state version of `{name}` was {old} and is {new}");
            changes
                .add(Code::StateLowered, message, &state, &state)
                .help("state versions only rise");
        }
        (Some(old), Some(new)) if new > old => {
            let message = format!("the state version of `{name}` was {old} and is {new}");
            changes.add(Code::StateRaised, message, &state, &state);
        }
        (Some(old), Some(_)) if breaks => {
            let message = format!("the state `{name}` changed, and its version is still {old}");
            let change = changes.add(Code::StateNotRaised, message, &state, &state);
            change.help(format!("write `state: {}`", old.saturating_add(1)));
        }
        (Some(_), None) => {
            changes.add(
                Code::StateRemoved,
                format!("`{name}` is a state no more"),
                &path,
                &state,
            );
        }
        _ => {}
    }
}

fn fields(owner: &str, old: &Message, new: &Message, changes: &mut Changes) {
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
        let id = id.to_string();
        let was = ["messages", owner, "fields", &id];
        let reserved = ["messages", owner, "reserved", &id];
        let place = |name| ["messages", owner, "fields", name];
        match (old, new) {
            (None, Some(Use::Now(new))) if gone.contains(new.name.as_str()) => {
                let message = format!("the name `{owner}.{}` was that of a deleted field", new.name);
                changes
                    .add(Code::NameReused, message, &place(&new.name), &[])
                    .help("take another name");
            }
            (None, Some(Use::Now(new))) => {
                let message = format!("the field `{owner}.{}` is new", new.name);
                changes.add(Code::FieldAdded, message, &place(&new.name), &[]);
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
            (Some(Use::Now(old)), Some(Use::Now(new))) => field(owner, &was, old, new, changes),
            _ => {}
        }
    });
}

fn field(owner: &str, was: &[&str; 4], old: &Field, new: &Field, changes: &mut Changes) {
    let name = new.name.as_str();
    let place = |key| ["messages", owner, "fields", name, key];
    if old.name != new.name {
        let message = format!("the field `{owner}.{name}` was called `{}`", old.name);
        changes.add(Code::FieldRenamed, message, &["messages", owner, "fields", name], was);
    }
    if old.ty != new.ty {
        let message = format!("the type of `{owner}.{name}` was {} and is {}", old.ty, new.ty);
        changes
            .add(Code::FieldType, message, &place("type"), was)
            .help("or reserve the old field and add a new one");
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
