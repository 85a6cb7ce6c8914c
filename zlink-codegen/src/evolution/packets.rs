//! What was sent under which packet name, and what is: of a service, of a fanout, of a Spot or of an Actor.
//!
//! It must not know what else these have.

use std::collections::BTreeMap;

use super::compare::{Changes, now_called, pairs};
use super::contract::{Method, Turn, Use};
use super::shape::Shapes;
use crate::diagnostic::{Code, shorten};

/// Whose packet names are compared, and what they are called here and in the lock.
pub(super) struct Packets<'n> {
    section: &'static str,
    owner: &'n str,
    /// What the owner was called.
    before: &'n str,
    /// The key of the schema.
    list: &'static str,
    /// The key of the lock.
    locked: &'static str,
    what: &'static str,
    /// What selects one.
    key: &'static str,
}

type Map = BTreeMap<String, Use<Method>>;

impl<'n> Packets<'n> {
    /// The methods.
    pub(super) fn of(section: &'static str, owner: &'n str, before: &'n str) -> Self {
        Self {
            section,
            owner,
            before,
            list: "methods",
            locked: "packets",
            what: "method",
            key: "packet name",
        }
    }

    /// The events of a fanout.
    pub(super) fn events(owner: &'n str) -> Self {
        Self {
            list: "events",
            what: "event",
            ..Self::of("fanouts", owner, owner)
        }
    }

    /// The subscriptions. Channel, packet name and topic select one.
    pub(super) fn published(self) -> Self {
        Self {
            list: "subscribes",
            locked: "subscribes",
            what: "subscription",
            key: "channel, packet name and topic",
            ..self
        }
    }

    fn was<'p>(&'p self, packet: &'p str) -> [&'p str; 4] {
        [self.section, self.before, self.locked, packet]
    }

    fn at<'p>(&'p self, name: &'p str) -> [&'p str; 4] {
        [self.section, self.owner, self.list, name]
    }

    pub(super) fn compare<'c>(&self, old: &'c Map, new: &'c Map, shapes: Shapes<'c>, changes: &mut Changes) {
        let Packets { owner, what, key, .. } = self;
        let before = now_called(old, |method| &method.name);
        pairs(old, new, |packet, old, new| {
            let was = self.was(packet);
            match (old, new) {
                (None | Some(Use::Gone(_)), None | Some(Use::Gone(_))) => {}
                (None, Some(Use::Now(new))) => {
                    let message = format!("the {what} `{owner}.{}` is new", new.name);
                    changes.add(Code::MethodAdded, message, &self.at(&new.name), &[]);
                }
                (Some(Use::Gone(name)), Some(Use::Now(new))) => {
                    let message = format!("the {key} `{packet}` was that of the deleted {what} `{owner}.{name}`");
                    let change = changes.add(Code::PacketReused, message, &self.at(&new.name), &was);
                    change.help(format!(
                        "a peer may still send the old one: give the {what} another name, or a `packet` of its own"
                    ));
                }
                (Some(Use::Now(old)), None | Some(Use::Gone(_))) => {
                    let message = format!("the {what} `{owner}.{}` with the {key} `{packet}` is gone", old.name);
                    let change = changes.add(Code::MethodRemoved, message, &self.at("")[..3], &was);
                    change.help(format!(
                        "if it was renamed, write `was: {}` at the {what}; the packet name stays",
                        old.name
                    ));
                }
                (Some(Use::Now(old)), Some(Use::Now(new))) => {
                    if old.name != new.name {
                        if let Some(elsewhere) = before.get(new.name.as_str()) {
                            let message = format!(
                                "the {what} `{owner}.{}` had the {key} `{elsewhere}` and has `{packet}`, which \
                                 was that of `{}`",
                                new.name, old.name
                            );
                            let was = self.was(elsewhere);
                            changes.add(Code::NameMoved, message, &self.at(&new.name), &was);
                        } else {
                            let message = format!("the {what} `{owner}.{}` was called `{}`", new.name, old.name);
                            changes.add(Code::MethodRenamed, message, &self.at(&new.name), &was);
                        }
                    }
                    self.exchange(packet, old, new, shapes, changes);
                }
            }
        });
    }

    fn exchange<'c>(&self, packet: &str, old: &'c Method, new: &'c Method, shapes: Shapes<'c>, changes: &mut Changes) {
        let was = self.was(packet);
        let shape = |it: &Method| match &it.reply {
            Some(reply) => format!("request {} and reply {reply}", it.message),
            None if it.topic.is_some() => format!("publish {}", it.message),
            None => format!("send {}", it.message),
        };
        let message = format!(
            "the {} `{}.{}` did {} and does {}",
            self.what,
            self.owner,
            new.name,
            shape(old),
            shape(new)
        );
        let at = self.at(&new.name);
        if !same_reply(&old.reply, &new.reply, shapes) || !shapes.same(&old.message, &new.message) {
            changes
                .add(Code::MethodExchange, message, &at, &was)
                .help(format!("or add another {} and keep this one", self.what));
        } else if (&old.message, &old.reply) != (&new.message, &new.reply) {
            let message = format!("{message}, which is the same on the wire");
            changes.add(Code::Retyped, message, &at, &was);
        }
        self.turn(packet, old.turn, new, changes);
        self.topic(packet, old, new, changes);
    }

    /// Who subscribes to a topic that only one side publishes to gets nothing of the other, and nobody is told.
    fn topic(&self, packet: &str, old: &Method, new: &Method, changes: &mut Changes) {
        let (Some(before), Some(now)) = (&old.topic, &new.topic) else {
            return;
        };
        if before != now {
            let message = format!(
                "the {} `{}.{}` was published to the topic `{}` and is to `{}`",
                self.what,
                self.owner,
                new.name,
                shorten(before),
                shorten(now)
            );
            let change = changes.add(Code::TopicChanged, message, &self.at(&new.name), &self.was(packet));
            change.help(format!(
                "who subscribes to one gets nothing of the other; or add another {} and keep this one",
                self.what
            ));
        }
    }

    fn turn(&self, packet: &str, old: Turn, new: &Method, changes: &mut Changes) {
        let (at, was) = (self.at(&new.name), self.was(packet));
        let subject = format!("the {} `{}.{}`", self.what, self.owner, new.name);
        // Whether a call may make a Spot is in the call: one of a program built before still does.
        let marks = [
            ("activates", old.activates != new.turn.activates, new.turn.activates),
            ("closes", old.closes != new.turn.closes, new.turn.closes),
            ("yields", old.yields != new.turn.yields, new.turn.yields),
        ];
        for (key, _, now) in marks.into_iter().filter(|(_, changed, _)| *changed) {
            let message = format!("{subject} has `{key}: {now}` now");
            changes.add(Code::ObjectChanged, message, &at, &was);
        }
    }
}

/// Whether both come back, as the same bytes, or neither does.
pub(super) fn same_reply<'c>(old: &'c Option<String>, new: &'c Option<String>, shapes: Shapes<'c>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => shapes.same(old, new),
        (old, new) => old.is_none() && new.is_none(),
    }
}
