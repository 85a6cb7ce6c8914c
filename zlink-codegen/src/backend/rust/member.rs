//! What a Spot is asked and told of the Actors that may be in it.

use super::names::{ActorNames, SpotNames};
use super::object::future;
use super::{Context, doc};
use crate::ir::{Actor, Admission, Spot, SpotKind, Type};

impl<'a> Context<'a> {
    /// Each Actor that may be in `spot`.
    fn members(&self, spot: &Spot) -> Vec<(&'a Actor, &'a ActorNames)> {
        let (actors, names) = (&self.schema.namespaces[self.at].actors, &self.own().actors);
        let members = spot.members.iter();
        members.filter_map(|at| actors.get(*at).zip(names.get(*at))).collect()
    }

    /// The callbacks that the members of a Spot bring, also those that nothing calls yet: no method of a schema gets
    /// their names, so that nothing is renamed once they are generated.
    pub(super) fn callbacks_of_members(&self, spot: &Spot) -> Vec<String> {
        let members = self.members(spot).into_iter();
        members
            .flat_map(|(_, ActorNames { part, .. })| {
                let admits = match spot.kind {
                    SpotKind::Entry => on_create(part),
                    SpotKind::User { .. } | SpotKind::Instance { .. } => format!("on_{part}_join"),
                };
                let told = ["joined", "leave", "disconnect"].map(|what| format!("on_{what}_{part}"));
                told.into_iter().chain([admits])
            })
            .collect()
    }

    /// The types of its trait.
    pub(super) fn types_of_members(&mut self, spot: &Spot) {
        if let SpotKind::Entry = spot.kind {
            for (actor, ActorNames { state, handler, .. }) in self.members(spot) {
                let name = &actor.name;
                self.text.line(format_args!(
                    "/// What the Actors `{name}` are that its host registers."
                ));
                self.text.line(format_args!("type {state}: {handler};"));
            }
        }
    }

    /// The methods of its trait.
    pub(super) fn membership(&mut self, spot: &Spot, names: &SpotNames) {
        if let SpotKind::Entry = spot.kind {
            for (actor, ActorNames { part, state, .. }) in self.members(spot) {
                let request = self.path(&Type::Message(actor.create.request));
                let output = format!("rt::Admission<{}>", self.reply(&actor.create));
                let name = &actor.name;
                let otherwise = format_args!("Admits a new Actor `{name}`, which nobody can find yet, or rejects it.");
                doc::lines(self.text, &actor.create.doc, otherwise);
                let (ident, turn) = (on_create(part), &names.turn);
                self.text.line(format_args!(
                    "fn {ident}(&mut self, turn: &mut {turn}<'_>, actor: &mut Self::{state}, request: {request})"
                ));
                self.text.line(format_args!("-> {};", future(&output)));
            }
        }
    }

    /// Tells its factory of them.
    pub(super) fn registers_membership(&mut self, spot: &Spot, names: &SpotNames) {
        for (_, ActorNames { part, constant, .. }) in self.members(spot) {
            if let SpotKind::Entry = spot.kind {
                let (handler, ident) = (&names.handler, on_create(part));
                self.text
                    .line(format_args!("    .creates({constant}, <S as {handler}>::{ident})"));
            }
        }
    }

    /// What is answered to a creation or a join.
    pub(super) fn reply(&self, it: &Admission) -> String {
        it.reply
            .map_or("()".to_owned(), |reply| self.path(&Type::Message(reply)))
    }
}

fn on_create(actor: &str) -> String {
    format!("on_create_{actor}")
}
