//! What changes of Spots and Actors mean to peers, and to those that are stored or move.
//!
//! It must not know single methods beyond that they have packet names.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{Changes, pairs};
use super::contract::{Admission, Object};
use super::packets::{Packets, same_reply};
use super::shape::Shapes;
use crate::diagnostic::Code;

type Map = BTreeMap<String, Object>;

const PER_ACTOR: &str = "per_actor";

/// What objects are called now, by what they were called. One under another name, with its stable type, is the same one.
pub(super) struct Renamed<'c>(BTreeMap<&'c str, &'c str>);

impl<'c> Renamed<'c> {
    pub(super) fn of(old: &'c Map, new: &'c Map) -> Self {
        let there = |map: &'c Map, name: &String| map.get(name).is_some_and(|it| !it.gone);
        let new_by_type: BTreeMap<&str, &str> = new
            .iter()
            .filter(|(name, _)| !there(old, name))
            .map(|(name, it)| (it.ty.as_str(), name.as_str()))
            .collect();
        let old = old.iter().filter(|(name, it)| !it.gone && !there(new, name));
        Self(
            old.filter_map(|(name, it)| Some((name.as_str(), *new_by_type.get(it.ty.as_str())?)))
                .collect(),
        )
    }

    fn called_now(&self, name: &'c str) -> &'c str {
        self.0.get(name).copied().unwrap_or(name)
    }
}

/// The objects of one section, `spots` or `actors`; `others` are those of the other, which these name.
pub(super) fn compare<'c>(
    section: &'static str,
    (old, new): (&'c Map, &'c Map),
    (renamed, others): (&Renamed<'c>, &Renamed<'c>),
    shapes: Shapes<'c>,
    changes: &mut Changes,
) {
    let what = if section == "spots" { "Spot" } else { "Actor" };
    let nothing = Object::default();
    let mut before: BTreeMap<&str, (&str, &'c Object)> = BTreeMap::new();
    for (name, it) in old {
        let now = if it.gone { name } else { renamed.called_now(name) };
        // What is there comes before a deleted one of the name that it has now.
        if !it.gone || !before.contains_key(now) {
            before.insert(now, (name, it));
        }
    }
    let now: BTreeMap<&str, (&str, &'c Object)> = new
        .iter()
        .map(|(name, it)| (name.as_str(), (name.as_str(), it)))
        .collect();
    pairs(&before, &now, |name, old, new| {
        let was = old.map_or(*name, |(was, _)| *was);
        let (old, new) = (old.map(|(_, it)| *it), new.map(|(_, it)| *it));
        match (old.filter(|it| !it.gone), new) {
            (None, Some(_)) => {
                let message = format!("the {what} `{name}` is new");
                changes.add(Code::DeclarationAdded, message, &[section, name], &[]);
            }
            (Some(it), None) if it.kind == "entry" => {
                let message = format!("the Spot `{name}` is gone");
                changes.add(Code::DeclarationRemoved, message, &[section], &[section, was]);
            }
            (Some(it), None) => {
                let message = format!("the {what} `{name}` with the stable type `{}` is gone", it.ty);
                let change = changes.add(Code::ObjectRemoved, message, &[section], &[section, was]);
                change.help(format!(
                    "those that exist have nobody left to run them; if it was renamed, write `type: {}`",
                    it.ty
                ));
            }
            (Some(old), Some(new)) => {
                let pair = Pair {
                    section,
                    what,
                    name,
                    was,
                    others,
                };
                pair.compare(old, new, shapes, changes);
            }
            (None, None) => {}
        }
        let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
        let packets = Packets::of(section, name, was);
        packets.compare(&old.packets, &new.packets, shapes, changes);
        let published = packets.published();
        published.compare(&old.subscribes, &new.subscribes, shapes, changes);
    });
}

/// An object on both sides.
struct Pair<'n, 'c> {
    section: &'static str,
    what: &'static str,
    name: &'n str,
    /// What it was called.
    was: &'n str,
    /// What those that it names are called now.
    others: &'n Renamed<'c>,
}

impl<'c> Pair<'_, 'c> {
    fn compare(&self, old: &'c Object, new: &'c Object, shapes: Shapes<'c>, changes: &mut Changes) {
        let Pair {
            section,
            what,
            name,
            was,
            others,
        } = self;
        let at = |key| [*section, *name, key];
        let locked = |key| [*section, *was, key];
        if name != was {
            let message = format!("the {what} `{name}` was called `{was}`, and has its stable type");
            changes.add(Code::Retyped, message, &[section, name], &[section, was]);
        }
        if old.kind != new.kind {
            let message = format!(
                "the Spot `{name}` was of kind `{}` and is of kind `{}`",
                old.kind, new.kind
            );
            changes.add(Code::ObjectKind, message, &at("kind"), &locked("kind"));
        }
        if old.ty != new.ty {
            let message = format!(
                "the stable type of the {what} `{name}` was `{}` and is `{}`",
                old.ty, new.ty
            );
            let change = changes.add(Code::StableType, message, &at("type"), &locked("type"));
            change.help(format!(
                "write `type: {}`: stores remember it, and peers ask for it",
                old.ty
            ));
        }
        // Where the kind is another one, all that follows from it is.
        if let (Some((policy, state)), Some((now, state_now))) = (&old.relocation, &new.relocation)
            && (policy, state) != (now, state_now)
        {
            let shape = |policy: &str, state: &Option<String>| match state {
                Some(state) => format!("`{policy}` of {state}"),
                None => format!("`{policy}`"),
            };
            let message = format!(
                "the relocation of the {what} `{name}` was {} and is {}",
                shape(policy, state),
                shape(now, state_now)
            );
            changes.add(
                Code::RelocationChanged,
                message,
                &at("relocation"),
                &locked("relocation"),
            );
        }
        if old.kind == new.kind {
            self.execution(old, new, changes);
            self.members(old, new, changes);
            self.timers(old, new, changes);
        }
        if let (Some(before), Some(now)) = (&old.create, &new.create) {
            self.admission(
                "creating",
                &at("create"),
                &locked("create"),
                (before, now),
                shapes,
                changes,
            );
        }
        let before = old.joins.iter().map(|(spot, it)| (others.called_now(spot), (spot, it)));
        let now = new.joins.iter().map(|(spot, it)| (spot.as_str(), (spot, it)));
        let (before, now): (BTreeMap<_, _>, BTreeMap<_, _>) = (before.collect(), now.collect());
        pairs(&before, &now, |spot, old, new| {
            let path = [*section, *name, "join", *spot];
            let locked = |spot: &'c String| [*section, *was, "join", spot.as_str()];
            match (old, new) {
                (Some((before, old)), Some((_, new))) => {
                    let doing = format!("joining `{spot}` by");
                    self.admission(&doing, &path, &locked(before), (old, new), shapes, changes);
                }
                (Some((before, _)), None) => {
                    let message = format!("the {what} `{name}` joins `{spot}` no more");
                    changes.add(Code::Admission, message, &path[..3], &locked(before));
                }
                (None, Some(_)) => {
                    let message = format!("the {what} `{name}` may join `{spot}`");
                    changes.add(Code::DeclarationAdded, message, &path, &[]);
                }
                (None, None) => {}
            }
        });
    }

    fn execution(&self, old: &Object, new: &Object, changes: &mut Changes) {
        let (Some(before), Some(now)) = (&old.execution, &new.execution) else {
            return;
        };
        if before == now {
            return;
        }
        // Between turns of all or of one, other things move along.
        let moves = old.may_move() && (before == PER_ACTOR || now == PER_ACTOR);
        let (code, rest) = if moves {
            (Code::RelocationChanged, ", and with that what moves with it")
        } else {
            (Code::ObjectChanged, "")
        };
        let message = format!(
            "the execution of the {} `{}` was {before} and is {now}{rest}",
            self.what, self.name
        );
        let (at, was) = (
            [self.section, self.name, "execution"],
            [self.section, self.was, "execution"],
        );
        changes.add(code, message, &at, &was);
    }

    fn members(&self, old: &'c Object, new: &'c Object, changes: &mut Changes) {
        let (at, was) = (
            [self.section, self.name, "members"],
            [self.section, self.was, "members"],
        );
        let before: BTreeSet<&str> = old.members.iter().map(|actor| self.others.called_now(actor)).collect();
        let now: BTreeSet<&str> = new.members.iter().map(String::as_str).collect();
        for actor in before.difference(&now) {
            let message = format!("the Actor `{actor}` may be in the Spot `{}` no more", self.name);
            let change = changes.add(Code::MemberLost, message, &at, &was);
            change.help("peers built before make it there, or let it join");
        }
        for actor in now.difference(&before) {
            let message = format!("the Actor `{actor}` may be in the Spot `{}`", self.name);
            changes.add(Code::ObjectChanged, message, &at, &was);
        }
    }

    fn timers(&self, old: &Object, new: &Object, changes: &mut Changes) {
        pairs(&old.timers, &new.timers, |timer, before, now| {
            let (at, was) = (
                [self.section, self.name, "timers", timer.as_str()],
                [self.section, self.was, "timers", timer.as_str()],
            );
            let subject = format!("the timer `{timer}` of the {} `{}`", self.what, self.name);
            match (before, now) {
                (Some(_), None) if old.may_move() && old.execution.as_deref() != Some(PER_ACTOR) => {
                    let change = changes.add(Code::TimerRemoved, format!("{subject} is gone"), &at[..3], &was);
                    change
                        .help("one that is set moves along, and finds no handler: leave it until none is set any more");
                }
                (Some(_), None) => {
                    changes.add(Code::ObjectChanged, format!("{subject} is gone"), &at[..3], &was);
                }
                (None, Some(_)) => {
                    changes.add(Code::ObjectChanged, format!("{subject} is new"), &at, &[]);
                }
                (Some(before), Some(now)) if before != now => {
                    let message = format!("{subject} has `yields: {}` now", now.yields);
                    changes.add(Code::ObjectChanged, message, &at, &was);
                }
                _ => {}
            }
        });
    }

    fn admission(
        &self,
        doing: &str,
        at: &[&str],
        was: &[&str],
        (old, new): (&'c Admission, &'c Admission),
        shapes: Shapes<'c>,
        changes: &mut Changes,
    ) {
        if old == new {
            return;
        }
        let shape = |it: &Admission| match &it.reply {
            Some(reply) => format!("request {} and reply {reply}", it.request),
            None => format!("request {}", it.request),
        };
        let message = format!(
            "{doing} the {} `{}` did {} and does {}",
            self.what,
            self.name,
            shape(old),
            shape(new)
        );
        if shapes.same(&old.request, &new.request) && same_reply(&old.reply, &new.reply, shapes) {
            let message = format!("{message}, which is the same on the wire");
            changes.add(Code::Retyped, message, at, was);
        } else {
            changes.add(Code::Admission, message, at, was);
        }
    }
}
