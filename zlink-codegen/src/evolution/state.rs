//! What changes of a state, and of all it holds, mean to those who kept one.
//!
//! It must not know single rules of data beyond which of them a stored value does not survive.

use std::collections::{HashMap, HashSet};

use super::compare::{Changes, pairs};
use super::contract::{Contract, Use};
use super::shape::inner;
use crate::diagnostic::{Code, Level};

/// To be called once the data has been compared. `elsewhere` are declarations of other namespaces, with their namespace,
/// that a value of before is not read back as; to them comes what of this one is so.
pub(super) fn compare(old: &Contract, new: &Contract, elsewhere: &mut HashSet<String>, changes: &mut Changes) {
    let own = changed(changes);
    let parts = own.union(elsewhere).cloned().collect();
    let held = holders(new, &parts);
    pairs(&old.messages, &new.messages, |name, old, new| {
        let path = ["messages", name.as_str()];
        let state = ["messages", name, "state"];
        let Some(before) = old.and_then(|old| old.state) else {
            return;
        };
        match new.map(|new| new.state) {
            Some(Some(now)) if now < before => {
                let message = format!("the state version of `{name}` was {before} and is {now}");
                changes
                    .add(Code::StateLowered, message, &state, &state)
                    .help("state versions only rise");
            }
            Some(Some(now)) if now > before => {
                let message = format!("the state version of `{name}` was {before} and is {now}");
                changes.add(Code::StateRaised, message, &state, &state);
            }
            Some(Some(_)) if held.contains(name.as_str()) => {
                let what = if own.contains(name) { "" } else { "what " };
                let holds = if own.contains(name) { "" } else { " holds" };
                let message = format!("{what}the state `{name}`{holds} changed, and its version is still {before}");
                let change = changes.add(Code::StateNotRaised, message, &state, &state);
                change.help(format!("write `state: {}`", before.saturating_add(1)));
            }
            Some(Some(_)) => {}
            Some(None) => {
                changes.add(
                    Code::StateRemoved,
                    format!("`{name}` is a state no more"),
                    &path,
                    &state,
                );
            }
            None => {
                changes.add(
                    Code::StateRemoved,
                    format!("the state `{name}` is gone"),
                    &path[..1],
                    &state,
                );
            }
        }
    });
    let here = held.iter().filter(|name| new.declares(name));
    elsewhere.extend(here.map(|name| format!("{}.{name}", new.namespace)));
}

/// The declarations that a value of before is not read back as.
fn changed(changes: &Changes) -> HashSet<String> {
    // A field or member that is gone takes its content with it, though peers get along without.
    let loses = |code| matches!(code, Code::FieldRemoved | Code::MemberRemoved);
    let data = |section: &str| matches!(section, "enums" | "structs" | "unions" | "messages");
    let breaking = changes
        .list
        .iter()
        .filter(|change| loses(change.code) || change.code.level() == Some(Level::Wire));
    breaking
        .filter_map(|change| match change.at.as_slice() {
            [section, name, ..] if data(section) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// These declarations and all that hold one, directly or through others.
fn holders<'c>(contract: &'c Contract, parts: &'c HashSet<String>) -> HashSet<&'c str> {
    let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut uses = |owner: &'c str, ty: &'c str| {
        let name = inner(ty).map_or(ty, |(_, inner)| inner);
        users.entry(name).or_default().push(owner);
    };
    for (owner, fields) in &contract.structs {
        fields.iter().for_each(|(_, ty)| uses(owner, ty));
    }
    for (owner, members) in &contract.unions {
        for member in members.values() {
            if let Use::Now(message) = member {
                uses(owner, message);
            }
        }
    }
    for (owner, message) in &contract.messages {
        for field in message.fields.values() {
            if let Use::Now(field) = field {
                uses(owner, &field.ty);
            }
        }
    }
    let mut found: HashSet<&str> = parts.iter().map(String::as_str).collect();
    let mut left: Vec<&str> = found.iter().copied().collect();
    while let Some(part) = left.pop() {
        for owner in users.get(part).into_iter().flatten() {
            if found.insert(owner) {
                left.push(owner);
            }
        }
    }
    found
}
