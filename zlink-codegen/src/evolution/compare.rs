//! Old contract against new: every difference, each with the rule it falls under.
//!
//! It must not know where either came from.

use std::collections::{BTreeMap, HashMap};

use super::contract::{Contract, Method, Service, Use};
use super::shape::Shapes;
use crate::diagnostic::{Code, Level};

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

/// Whether a raised contract version makes a change legal. What stays legal needs none, and the rest never is.
pub(crate) fn needs_version(code: Code) -> bool {
    let never = matches!(
        code,
        Code::IdReused
            | Code::NotReserved
            | Code::PacketReused
            | Code::KeyReused
            | Code::StateNotRaised
            | Code::StateLowered
    );
    matches!(code.level(), Some(Level::Wire | Level::State)) && !never
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
    super::state::compare(old, new, &mut changes);
    let shapes = Shapes { old, new };
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
        packets(
            name,
            old.unwrap_or(&nothing),
            new.unwrap_or(&nothing),
            shapes,
            &mut changes,
        );
    });
    changes.list
}

fn packets<'c>(service: &str, old: &'c Service, new: &'c Service, shapes: Shapes<'c>, changes: &mut Changes) {
    let before = now_called(&old.packets, |method| &method.name);
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
            (Some(Use::Now(old)), Some(Use::Now(new))) => {
                if old.name != new.name {
                    let at = ["services", service, "methods", new.name.as_str()];
                    if let Some(elsewhere) = before.get(new.name.as_str()) {
                        let message = format!(
                            "the method `{service}.{}` had the packet name `{elsewhere}` and has `{packet}`, which was \
                             that of `{}`",
                            new.name, old.name
                        );
                        let was = ["services", service, "packets", elsewhere.as_str()];
                        changes.add(Code::NameMoved, message, &at, &was);
                    } else {
                        let message = format!("the method `{service}.{}` was called `{}`", new.name, old.name);
                        changes.add(Code::MethodRenamed, message, &at, &was);
                    }
                }
                method(service, packet, old, new, shapes, changes);
            }
        }
    });
}

fn method<'c>(
    service: &str,
    packet: &str,
    old: &'c Method,
    new: &'c Method,
    shapes: Shapes<'c>,
    changes: &mut Changes,
) {
    let at = ["services", service, "methods", &new.name];
    let was = ["services", service, "packets", packet];
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
    let replies = match (&old.reply, &new.reply) {
        (Some(old), Some(new)) => shapes.same(old, new),
        (old, new) => old.is_none() && new.is_none(),
    };
    if !replies || !shapes.same(&old.message, &new.message) {
        changes
            .add(Code::MethodExchange, message, &at, &was)
            .help("or add a method and keep this one");
    } else if (&old.message, &old.reply) != (&new.message, &new.reply) {
        changes.add(
            Code::Retyped,
            format!("{message}, which is the same on the wire"),
            &at,
            &was,
        );
    }
}

/// The numbers of all names that are in use.
pub(super) fn now_called<'m, K, T>(
    map: &'m BTreeMap<K, Use<T>>,
    name: impl Fn(&'m T) -> &'m String,
) -> HashMap<&'m str, &'m K> {
    map.iter()
        .filter_map(|(key, it)| match it {
            Use::Now(it) => Some((name(it).as_str(), key)),
            Use::Gone(_) => None,
        })
        .collect()
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
