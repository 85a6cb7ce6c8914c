//! Actors, and the Spots that they may be in. One rule per function.

use std::collections::HashSet;

use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::syntax::{Actor, Execution, File, Spot, SpotKind};

/// The first membership of every Actor is that of an Entry Spot.
pub(super) fn no_entry(file: &File, sink: &mut Sink) {
    let entries = file.spots.iter().filter(|it| it.kind == Some(SpotKind::Entry));
    let admitted: HashSet<&str> = entries.flat_map(|it| &it.members).map(|it| it.value.as_str()).collect();
    for it in file
        .actors
        .iter()
        .filter(|it| !admitted.contains(it.name.value.as_str()))
    {
        let message = format!(
            "the Actor `{}` is a member of no Entry Spot, so none can be created",
            it.name.value
        );
        let item = Diagnostic::new(Code::NoEntry, it.name.span, message);
        sink.report(item.help("add it to the `members` of a Spot of `kind: entry`"));
    }
}

/// Only a join brings an Actor into a User Spot.
pub(super) fn never_joined(file: &File, sink: &mut Sink) {
    for spot in file.spots.iter().filter(|it| it.kind == Some(SpotKind::User)) {
        for member in &spot.members {
            let mut actors = file.actors.iter();
            let Some(actor) = actors.find(|it| it.name.value == member.value) else {
                continue;
            };
            if actor.joins.iter().any(|(joined, _)| joined.value == spot.name.value) {
                continue;
            }
            let message = format!(
                "no Actor `{}` can come into a Spot `{}`, since it does not join it",
                member.value, spot.name.value
            );
            let item = Diagnostic::new(Code::NeverJoined, member.span, message).at(actor.name.span, "the Actor");
            sink.report(item.help(format!(
                "write `join: {{ {}: {{ request: JoinRoom }} }}` there, or remove it from `members`",
                spot.name.value
            )));
        }
    }
}

/// A turn is given back only where a User Spot takes one at a time.
pub(super) fn never_yields(file: &File, sink: &mut Sink) {
    for actor in &file.actors {
        if file.spots.iter().any(|spot| shares_turns(spot, actor)) {
            continue;
        }
        let methods = actor.methods.iter().filter(|it| it.yields);
        let timers = actor.timers.iter().filter(|it| it.yields).map(|it| &it.name);
        for name in methods.map(|it| &it.method.name).chain(timers) {
            let message = format!(
                "`{}` can never yield: no Spot that has `{}` as a member shares its turns",
                name.value, actor.name.value
            );
            let item = Diagnostic::new(Code::NeverYields, name.span, message).at(actor.name.span, "the Actor");
            sink.report(item.help(
                "remove `yields`; there is something to yield only in a Spot of `kind: user` that is `spot_wide`",
            ));
        }
    }
}

fn shares_turns(spot: &Spot, actor: &Actor) -> bool {
    let has = spot.members.iter().any(|it| it.value == actor.name.value);
    has && spot.kind == Some(SpotKind::User) && spot.execution != Some(Execution::PerActor)
}
