//! Old contract against new: every difference, each with the rule it falls under.
//!
//! It must not know where either came from.

use std::collections::BTreeMap;

use super::contract::{Contract, Method, Service, Use};
use crate::diagnostic::Code;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The rule. Its number tells what breaks: 11xx source, 12xx wire, 13xx state; 14xx is never allowed.
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Where in the schema: keys from the top, as far as they exist.
    pub(crate) at: Vec<String>,
    /// Where in the lock.
    pub(crate) was: Vec<String>,
}

/// Whether a change that a raised contract version makes legal.
pub(crate) fn needs_version(code: Code) -> bool {
    matches!(
        code,
        Code::FieldType
            | Code::FieldRequired
            | Code::FieldMax
            | Code::RequiredRemoved
            | Code::EnumType
            | Code::StructLayout
            | Code::MemberChanged
            | Code::MethodRemoved
            | Code::MethodExchange
            | Code::ServiceTarget
            | Code::MetadataChanged
            | Code::StateRaised
            | Code::StateRemoved
    )
}

/// Collects changes at one place.
pub(super) struct Changes {
    pub(super) list: Vec<Change>,
}

impl Changes {
    pub(super) fn add(&mut self, code: Code, message: String, at: &[&str], was: &[&str]) -> &mut Change {
        let own = |path: &[&str]| path.iter().map(|part| (*part).to_owned()).collect();
        self.list.push(Change {
            code,
            message,
            help: None,
            at: own(at),
            was: own(was),
        });
        let last = self.list.len() - 1;
        &mut self.list[last]
    }
}

impl Change {
    pub(super) fn help(&mut self, text: impl Into<String>) {
        self.help = Some(text.into());
    }
}

/// All differences, in the order of the language's sections and of names.
pub(crate) fn compare(old: &Contract, new: &Contract) -> Vec<Change> {
    let mut changes = Changes { list: Vec::new() };
    if new.version < old.version {
        let message = format!("the version was {} and is {}", old.version, new.version);
        changes
            .add(Code::VersionLowered, message, &["version"], &["version"])
            .help("versions only rise");
    }
    super::data::compare(old, new, &mut changes);
    let nothing = Service::default();
    pairs(&old.services, &new.services, |name, old, new| {
        if let (Some(old), Some(new)) = (old, new)
            && old.node != new.node
        {
            let word = |node| if node { "node" } else { "channel" };
            let message = format!(
                "the service `{name}` was addressed by {} and is by {}",
                word(old.node),
                word(new.node)
            );
            changes.add(
                Code::ServiceTarget,
                message,
                &["services", name, "target"],
                &["services", name, "target"],
            );
        }
        packets(name, old.unwrap_or(&nothing), new.unwrap_or(&nothing), &mut changes);
    });
    changes.list
}

fn packets(service: &str, old: &Service, new: &Service, changes: &mut Changes) {
    pairs(&old.packets, &new.packets, |packet, old, new| {
        let was = ["services", service, "packets", packet];
        match (old, new) {
            (None | Some(Use::Gone(_)), None | Some(Use::Gone(_))) => {}
            (None, Some(Use::Now(new))) => {
                let message = format!("the method `{service}.{}` is new", new.name);
                changes.add(
                    Code::MethodAdded,
                    message,
                    &["services", service, "methods", &new.name],
                    &[],
                );
            }
            (Some(Use::Gone(name)), Some(Use::Now(new))) => {
                let message = format!("the packet name `{packet}` was that of the deleted method `{service}.{name}`");
                let change = changes.add(
                    Code::PacketReused,
                    message,
                    &["services", service, "methods", &new.name],
                    &was,
                );
                change
                    .help("a peer may still send the old one: give the method another name, or a `packet` of its own");
            }
            (Some(Use::Now(old)), None | Some(Use::Gone(_))) => {
                let message = format!(
                    "the method `{service}.{}` with the packet name `{packet}` is gone",
                    old.name
                );
                let change = changes.add(Code::MethodRemoved, message, &["services", service, "methods"], &was);
                change.help(format!(
                    "if it was renamed, write `was: {}` at the method; the packet name stays",
                    old.name
                ));
            }
            (Some(Use::Now(old)), Some(Use::Now(new))) => method(service, packet, old, new, changes),
        }
    });
}

fn method(service: &str, packet: &str, old: &Method, new: &Method, changes: &mut Changes) {
    let at = ["services", service, "methods", &new.name];
    let was = ["services", service, "packets", packet];
    if old.name != new.name {
        let message = format!("the method `{service}.{}` was called `{}`", new.name, old.name);
        changes.add(Code::MethodRenamed, message, &at, &was);
    }
    if (&old.message, &old.reply) != (&new.message, &new.reply) {
        let shape = |it: &Method| match &it.reply {
            Some(reply) => format!("request {} and reply {reply}", it.message),
            None => format!("send {}", it.message),
        };
        let message = format!(
            "the method `{service}.{}` did {} and does {}",
            new.name,
            shape(old),
            shape(new)
        );
        changes
            .add(Code::MethodExchange, message, &at, &was)
            .help("or add a method and keep this one");
    }
}

/// Calls `each` for every key of either map, in order.
pub(super) fn pairs<'m, K: Ord, V>(
    old: &'m BTreeMap<K, V>,
    new: &'m BTreeMap<K, V>,
    mut each: impl FnMut(&'m K, Option<&'m V>, Option<&'m V>),
) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let mut keys: Vec<&K> = old.keys().chain(added).collect();
    keys.sort_unstable();
    for key in keys {
        each(key, old.get(key), new.get(key));
    }
}
