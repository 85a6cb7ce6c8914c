//! Ids for the fields that have none.
//!
//! It must not know whether the result is right: `check` tells.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::Known;
use super::tree::{Entry, Node, Shape};

/// Gives every field of a message without an id one: that which the lock file knows it by, or the lowest that nobody
/// uses or used. Tells whether there were any.
pub(super) fn assign(root: &mut Node<'_>, known: &Known) -> bool {
    let mut any = false;
    for message in section(root, "messages").into_iter().flatten() {
        let name = text(&message.key).to_owned();
        let remembered = known.get(&name).map_or(&[][..], Vec::as_slice);
        let mut used: BTreeSet<u16> = remembered.iter().map(|(id, _)| *id).collect();
        for reserved in section(&mut message.value, "reserved").into_iter().flatten() {
            used.extend(text(&reserved.key).parse::<u16>());
        }
        let Some(fields) = section(&mut message.value, "fields") else {
            continue;
        };
        used.extend(fields.iter().filter_map(|field| id(&field.value)?.parse::<u16>().ok()));
        let mut free = (0u16..).filter(|id| !used.contains(id));
        for field in fields.iter_mut().filter(|field| id(&field.value).is_none()) {
            let before = remembered.iter().find(|(_, name)| name == text(&field.key));
            let Some(id) = before.map(|(id, _)| *id).or_else(|| free.next()) else {
                return any;
            };
            any |= add(&mut field.value, id);
        }
    }
    any
}

/// The entries of a mapping that is the value of a key.
fn section<'n, 's>(node: &'n mut Node<'s>, key: &str) -> Option<&'n mut Vec<Entry<'s>>> {
    let Shape::Map { entries, .. } = &mut node.shape else {
        return None;
    };
    let entry = entries.iter_mut().find(|entry| text(&entry.key) == key)?;
    match &mut entry.value.shape {
        Shape::Map { entries, .. } => Some(entries),
        _ => None,
    }
}

/// A scalar without its quotes; names need none.
fn text<'n>(node: &'n Node<'_>) -> &'n str {
    match &node.shape {
        Shape::Word(text) => text.trim_matches(['"', '\'']),
        _ => "",
    }
}

fn id<'n>(field: &'n Node<'_>) -> Option<&'n str> {
    let Shape::Map { entries, .. } = &field.shape else {
        return None;
    };
    entries
        .iter()
        .find(|entry| text(&entry.key) == "id")
        .map(|entry| text(&entry.value))
}

/// Puts the id first. A field that is written as its type alone becomes a mapping.
fn add(field: &mut Node<'_>, id: u16) -> bool {
    let (start, end) = (field.start, field.start);
    let word = |text: Cow<'static, str>| Node {
        start,
        end,
        prefix: "",
        shape: Shape::Word(text),
    };
    let entry = Entry {
        key: word("id".into()),
        value: word(id.to_string().into()),
    };
    match &mut field.shape {
        Shape::Map { entries, .. } => entries.insert(0, entry),
        Shape::Word(ty) if !ty.is_empty() => {
            let ty = Entry {
                key: word("type".into()),
                value: Node {
                    start,
                    end: field.end,
                    prefix: "",
                    shape: Shape::Word(ty.clone()),
                },
            };
            let entries = vec![entry, ty];
            field.shape = Shape::Map { flow: true, entries };
        }
        _ => return false,
    }
    true
}
