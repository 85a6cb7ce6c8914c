//! Old contract against new: every difference, each with the rule it falls under.
//!
//! It must not know where either came from.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::contract::{Contract, Fanout, Service, Use};
use super::objects::{self, Renamed};
use super::packets::Packets;
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

/// All differences, in the order of the language's sections and of names. `changed` are the declarations of the other
/// namespaces that are compared, with these, that a stored value of before is not read back as; those of this namespace
/// come to them. Once none does, all states are told.
pub(crate) fn compare_beside(old: &Contract, new: &Contract, changed: &mut HashSet<String>) -> Vec<Change> {
    let mut changes = Changes { list: Vec::new() };
    if new.version < old.version {
        let message = format!("the version was {} and is {}", old.version, new.version);
        changes
            .add(Code::VersionLowered, message, &["version"], &["version"])
            .help("versions only rise");
    }
    super::data::compare(old, new, &mut changes);
    super::state::compare(old, new, changed, &mut changes);
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
        let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
        Packets::of("services", name, name).compare(&old.packets, &new.packets, shapes, &mut changes);
    });
    let nothing = Fanout::default();
    pairs(&old.fanouts, &new.fanouts, |name, old, new| {
        let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
        Packets::events(name).compare(&old.packets, &new.packets, shapes, &mut changes);
    });
    let (spots, actors) = ((&old.spots, &new.spots), (&old.actors, &new.actors));
    let (of_spots, of_actors) = (Renamed::of(spots.0, spots.1), Renamed::of(actors.0, actors.1));
    objects::compare("spots", spots, (&of_spots, &of_actors), shapes, &mut changes);
    objects::compare("actors", actors, (&of_actors, &of_spots), shapes, &mut changes);
    changes.list
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
