//! Spots and Actors: who is a member of whom, what moves along, and the names that stores and peers remember.
//!
//! It must not know what messages hold beyond whether they are a state. A Spot and the Actors that live in it are of
//! one file: each names the other, and files do not import each other.

use std::collections::{HashMap, HashSet};

use super::lookup::Lookup;
use super::services::{Packets, method, packet};
use crate::diagnostic::{Code, Diagnostic, shorten};
use crate::ir::{self, Admission, Boundary, DeclRef, Doc, Execution, Relocation, SpotKind};
use crate::source::Span;
use crate::syntax::{self, File, Name, Policy, Spanned, suggest};

/// Stable types and topics have 1 to this many bytes.
const MAX_TEXT: usize = 255;

/// The objects of one file by name.
struct Objects<'a> {
    file: &'a File,
    namespace: &'a str,
    spots: HashMap<&'a str, usize>,
    actors: HashMap<&'a str, usize>,
    /// Each Spot with each of its members.
    members: HashSet<(&'a str, &'a str)>,
}

pub(super) fn objects(file: &File, namespace: &str, lookup: &mut Lookup<'_, '_>) -> (Vec<ir::Spot>, Vec<ir::Actor>) {
    let spots = file.spots.iter().map(|it| it.name.value.as_str());
    let actors = file.actors.iter().map(|it| it.name.value.as_str());
    let members = file.spots.iter().flat_map(|spot| {
        let members = spot.members.iter();
        members.map(|member| (spot.name.value.as_str(), member.value.as_str()))
    });
    let objects = Objects {
        file,
        namespace,
        spots: spots.zip(0..).collect(),
        actors: actors.zip(0..).collect(),
        members: members.collect(),
    };
    let mut types = HashMap::new();
    let spots = file.spots.iter().filter_map(|it| {
        let stable_type = objects.stable_type(&it.name, it.ty.as_ref(), &mut types, lookup);
        objects.spot(it, stable_type, lookup)
    });
    let spots = spots.collect();
    types.clear();
    let actors = file.actors.iter().filter_map(|it| {
        let stable_type = objects.stable_type(&it.name, it.ty.as_ref(), &mut types, lookup);
        objects.actor(it, stable_type, lookup)
    });
    (spots, actors.collect())
}

impl Objects<'_> {
    /// The stable type, which no two objects of one sort share: it selects the factory.
    fn stable_type(
        &self,
        name: &Name,
        written: Option<&Name>,
        types: &mut HashMap<String, Span>,
        lookup: &mut Lookup<'_, '_>,
    ) -> String {
        let ty = match written {
            Some(written) => {
                text(written, "a stable type", lookup);
                written.value.clone()
            }
            None => format!("{}.{}", self.namespace, name.value),
        };
        let span = written.map_or(name.span, |written| written.span);
        if let Some(first) = types.insert(ty.clone(), span) {
            let message = format!("the stable type `{}` is in use", shorten(&ty));
            let item = Diagnostic::new(Code::DuplicateType, span, message)
                .label("again here")
                .at(first, "first here");
            lookup.report(item.help("it selects the factory, so each needs its own; change `type`"));
        }
        ty
    }

    fn spot(&self, it: &syntax::Spot, stable_type: String, lookup: &mut Lookup<'_, '_>) -> Option<ir::Spot> {
        let members = self.members(it, lookup);
        let mut packets = self.packets(&it.name, "this Spot");
        let methods: Vec<ir::SpotMethod> = it
            .methods
            .iter()
            .filter_map(|it| {
                Some(ir::SpotMethod {
                    method: method(&it.method, &mut packets, lookup)?,
                    yields: it.yields,
                    activates: it.activates,
                    closes: it.closes,
                })
            })
            .collect();
        let subscriptions = self.subscriptions(it, lookup);
        let timers = timers(&it.timers, lookup);
        let create = it.create.as_ref().map(|create| admission(create, lookup));
        let relocation = it.relocation.as_ref().map(|it| relocation(it, lookup));
        let per_actor = it.execution == Some(syntax::Execution::PerActor);
        if per_actor && let Some(policy) = it.relocation.as_ref().and_then(|it| it.policy.as_ref()) {
            only_recreate(policy, lookup);
        }
        let kind = match it.kind? {
            syntax::SpotKind::Entry => SpotKind::Entry,
            syntax::SpotKind::Instance => SpotKind::Instance {
                relocation: relocation??,
            },
            syntax::SpotKind::User => SpotKind::User {
                create: create??,
                execution: if per_actor {
                    Execution::PerActor
                } else {
                    Execution::SpotWide {
                        boundary: match it.boundary {
                            Some(syntax::Boundary::Application) => Boundary::Application,
                            Some(syntax::Boundary::Framework) | None => Boundary::Framework,
                        },
                    }
                },
                relocation: relocation??,
            },
        };
        Some(ir::Spot {
            name: it.name.value.clone(),
            doc: Doc(it.doc.clone()),
            stable_type,
            kind,
            members,
            methods,
            subscriptions,
            timers,
        })
    }

    fn packets(&self, owner: &Name, what: &'static str) -> Packets {
        Packets::new(format!("{}.{}", self.namespace, owner.value), what)
    }

    fn members(&self, it: &syntax::Spot, lookup: &mut Lookup<'_, '_>) -> Vec<usize> {
        twice(it.members.iter(), "a member", lookup);
        let mut members = Vec::new();
        for member in &it.members {
            match self.actors.get(member.value.as_str()) {
                Some(at) => members.push(*at),
                None => unknown(
                    member,
                    "Actor",
                    "actors",
                    self.file.actors.iter().map(|it| &it.name),
                    lookup,
                ),
            }
        }
        members
    }

    fn subscriptions(&self, it: &syntax::Spot, lookup: &mut Lookup<'_, '_>) -> Vec<ir::Subscription> {
        let prefix = format!("{}.{}", self.namespace, it.name.value);
        let methods: HashMap<&str, Span> = it
            .methods
            .iter()
            .map(|it| (it.method.name.value.as_str(), it.method.name.span))
            .collect();
        let mut seen = HashMap::new();
        let mut subscriptions = Vec::new();
        for it in &it.subscriptions {
            if let Some(method) = methods.get(it.name.value.as_str()) {
                let message = format!("`{}` is a method of this Spot already", it.name.value);
                let item = Diagnostic::new(Code::DuplicateName, it.name.span, message).at(*method, "the method");
                lookup.report(item.help("methods and subscriptions of a Spot share one set of names"));
            }
            let packet = packet(&it.name, it.packet.as_ref(), it.was.as_ref(), &prefix, lookup);
            if let Some(topic) = &it.topic {
                text(topic, "a topic", lookup);
            }
            let message = it
                .message
                .as_ref()
                .and_then(|path| lookup.message(path, "what is published"));
            let (Some(channel), Some(topic)) = (&it.channel, &it.topic) else {
                continue;
            };
            let key = (channel.value.as_str(), topic.value.as_str(), packet.clone());
            if let Some(first) = seen.insert(key, it.name.span) {
                let message = format!(
                    "`{}` is published on this channel and topic to another subscription",
                    shorten(&packet)
                );
                let item = Diagnostic::new(Code::DuplicateSubscription, it.name.span, message)
                    .label("again here")
                    .at(first, "first here");
                lookup.report(item.help("channel, topic and packet name select the handler; change one of them"));
            }
            subscriptions.extend(message.map(|message| ir::Subscription {
                name: it.name.value.clone(),
                doc: Doc(it.doc.clone()),
                channel: channel.value.clone(),
                topic: topic.value.clone(),
                packet,
                message,
                yields: it.yields,
            }));
        }
        subscriptions
    }

    fn actor(&self, it: &syntax::Actor, stable_type: String, lookup: &mut Lookup<'_, '_>) -> Option<ir::Actor> {
        let mut packets = self.packets(&it.name, "this Actor");
        let methods: Vec<ir::ActorMethod> = it
            .methods
            .iter()
            .filter_map(|it| {
                Some(ir::ActorMethod {
                    method: method(&it.method, &mut packets, lookup)?,
                    yields: it.yields,
                })
            })
            .collect();
        let joins = it.joins.iter().filter_map(|(spot, admission)| {
            let admission = self::admission(admission, lookup);
            Some(ir::Join {
                spot: self.joined(it, spot, lookup)?,
                admission: admission?,
            })
        });
        let joins = joins.collect();
        let timers = timers(&it.timers, lookup);
        let create = it.create.as_ref().map(|create| admission(create, lookup));
        let relocation = it.relocation.as_ref().map(|it| relocation(it, lookup));
        Some(ir::Actor {
            name: it.name.value.clone(),
            doc: Doc(it.doc.clone()),
            stable_type,
            create: create??,
            joins,
            relocation: relocation??,
            methods,
            timers,
        })
    }

    /// The Spot that an Actor joins: a User Spot of which it is a member.
    fn joined(&self, actor: &syntax::Actor, written: &Name, lookup: &mut Lookup<'_, '_>) -> Option<usize> {
        let Some(at) = self.spots.get(written.value.as_str()) else {
            unknown(
                written,
                "Spot",
                "spots",
                self.file.spots.iter().map(|it| &it.name),
                lookup,
            );
            return None;
        };
        let spot = self.file.spots.get(*at)?;
        let pair = (spot.name.value.as_str(), actor.name.value.as_str());
        let (message, help) = match spot.kind? {
            syntax::SpotKind::User if self.members.contains(&pair) => return Some(*at),
            syntax::SpotKind::User => (
                format!(
                    "the Spot `{}` does not have `{}` as a member",
                    spot.name.value, actor.name.value
                ),
                "add it to `members` there",
            ),
            syntax::SpotKind::Entry => (
                format!(
                    "`{}` is an Entry Spot, which admits without being asked",
                    spot.name.value
                ),
                "remove it: every Actor begins in an Entry Spot, and may return to it",
            ),
            syntax::SpotKind::Instance => (
                format!("`{}` is an Instance Spot, which holds no Actors", spot.name.value),
                "Actors join Spots of `kind: user`",
            ),
        };
        let item = Diagnostic::new(Code::BadJoin, written.span, message).at(spot.name.span, "the Spot");
        lookup.report(item.help(help));
        None
    }
}

fn admission(it: &syntax::Admission, lookup: &mut Lookup<'_, '_>) -> Option<Admission> {
    let request = it.request.as_ref().and_then(|path| lookup.message(path, "a request"));
    let written = it.reply.as_ref();
    let reply = written.map(|reply| lookup.message(reply.value.as_ref()?, "a reply"));
    Some(Admission {
        doc: Doc(it.doc.clone()),
        request: request?,
        reply: match reply {
            Some(reply) => Some(reply?),
            None => None,
        },
    })
}

fn relocation(it: &syntax::Relocation, lookup: &mut Lookup<'_, '_>) -> Option<Relocation> {
    let state = it.state.as_ref().and_then(|state| {
        let path = state.value.as_ref()?;
        let at = lookup.message(path, "a relocation state")?;
        is_state(path, at, lookup).then_some(at)
    });
    let policy = it.policy.as_ref()?;
    if let (Policy::Recreate | Policy::Disabled, Some(state)) = (policy.value, &it.state) {
        let item = Diagnostic::new(
            Code::BadRelocation,
            state.span,
            "a state stands where none is preserved",
        )
        .at(policy.span, "this keeps no state");
        lookup.report(item.help("write `policy: preserve`, or remove `state`"));
    }
    Some(match policy.value {
        Policy::Preserve => Relocation::Preserve { state: state? },
        Policy::Recreate => Relocation::Recreate,
        Policy::Disabled => Relocation::Disabled,
    })
}

/// Whether a message has a state version.
fn is_state(path: &syntax::Path, at: DeclRef, lookup: &mut Lookup<'_, '_>) -> bool {
    let message = lookup
        .units
        .get(at.namespace)
        .and_then(|unit| unit.file.messages.get(at.index));
    let Some(message) = message.filter(|message| message.state.is_none()) else {
        return true;
    };
    let (name, declared) = (message.name.value.clone(), message.name.span);
    let item = Diagnostic::new(Code::NotAState, path.span, format!("`{name}` has no state version"))
        .at(declared, "declared here");
    lookup.report(item.help(format!(
        "write `{name}: {{ state: 1, fields: … }}`: a host of another version must know what it reads"
    )));
    false
}

/// A `per_actor` Spot has no state of its own that could move.
fn only_recreate(policy: &Spanned<Policy>, lookup: &mut Lookup<'_, '_>) {
    if policy.value != Policy::Recreate {
        let message = "a `per_actor` Spot is recreated where it moves";
        let item = Diagnostic::new(Code::BadRelocation, policy.span, message);
        lookup.report(item.help(
            "write `policy: recreate`; its Actors move by their own policy, and what all share belongs in a store",
        ));
    }
}

fn timers(list: &[syntax::Timer], lookup: &mut Lookup<'_, '_>) -> Vec<ir::Timer> {
    twice(list.iter().map(|it| &it.name), "a timer", lookup);
    list.iter()
        .map(|it| ir::Timer {
            name: it.name.value.clone(),
            doc: Doc(it.doc.clone()),
            yields: it.yields,
        })
        .collect()
}

fn twice<'n>(names: impl Iterator<Item = &'n Name>, what: &str, lookup: &mut Lookup<'_, '_>) {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name.value.as_str()) {
            let message = format!("`{}` is {what} already", shorten(&name.value));
            lookup.report(Diagnostic::new(Code::ListedTwice, name.span, message).help("remove one of them"));
        }
    }
}

fn unknown<'n>(
    name: &Name,
    what: &str,
    section: &str,
    all: impl Iterator<Item = &'n Name>,
    lookup: &mut Lookup<'_, '_>,
) {
    let message = format!("there is no {what} `{}` in this file", shorten(&name.value));
    let near = suggest(lookup.sink, name.span, &name.value, all.map(|it| it.value.as_str()));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it under `{section}`: a Spot and the Actors that live in it are of one file"),
    };
    lookup.report(Diagnostic::new(Code::UnknownObject, name.span, message).help(help));
}

/// Checks a text that stores and peers compare byte for byte.
fn text(it: &Name, what: &str, lookup: &mut Lookup<'_, '_>) {
    let text = &it.value;
    if text.is_empty() || text.len() > MAX_TEXT || text.contains(char::is_control) {
        let message = format!("`{}` is not {what}", shorten(text));
        let help = format!("use 1 to {MAX_TEXT} bytes without control characters");
        lookup.report(Diagnostic::new(Code::BadText, it.span, message).help(help));
    }
}
