//! Actors: their turns, the trait they implement, and the factory that registers one.

use super::names::ActorNames;
use super::object::{Constants, Handled, Turns, future, on_timers, ticks};
use super::service::Member;
use super::{Context, doc, names};
use crate::ir::{Actor, ActorMethod, Timer};
use crate::name::snake;

/// An Actor with what is derived from its parts.
pub(super) struct Parts<'a> {
    pub(super) it: &'a Actor,
    pub(super) names: &'a ActorNames,
    pub(super) methods: Vec<(Member<'a>, &'a ActorMethod)>,
    timers: Vec<Handled<'a, Timer>>,
}

impl<'c> Context<'c> {
    pub(super) fn actor(&mut self, it: &Actor, names: &ActorNames) {
        let parts = self.parts_of_actor(it, names);
        self.constants(&Constants {
            what: "Actor",
            name: &it.name,
            stable_type: &it.stable_type,
            constant: &names.constant,
            timers: &it.timers,
            of_timers: &names.timers,
        });
        self.turns_of_actor(&parts);
        self.behaviour_of_actor(&parts);
        self.actor_factory(&parts);
        self.actor_manager(&parts);
        self.actor_client(&parts);
        for spot in self.joined(it) {
            self.text.line("");
            self.text.line(format_args!(
                "// Joins of Spots `{spot}` by Actors `{}` are part of the contract; nothing is generated for them yet.",
                it.name
            ));
        }
    }

    /// The names of the Spots that it joins.
    fn joined(&self, it: &Actor) -> Vec<&'c str> {
        let spots = &self.schema.namespaces[self.at].spots;
        let joined = it.joins.iter().filter_map(|join| spots.get(join.spot));
        joined.map(|spot| spot.name.as_str()).collect()
    }

    fn parts_of_actor<'a>(&self, it: &'a Actor, names: &'a ActorNames) -> Parts<'a> {
        // The trait has all of them, and the client calls its methods by the same names.
        let on_timers = on_timers(&it.timers);
        let methods = it.methods.iter().map(|it| it.method.name.as_str());
        let all: Vec<&str> = methods.chain(on_timers.iter().map(String::as_str)).collect();
        // Told how a join of theirs ended, once joins are generated.
        let of_joins: Vec<String> = self
            .joined(it)
            .iter()
            .map(|spot| format!("on_joined_{}", snake(spot)))
            .collect();
        let mut reserved = [CALLBACKS, names::OF_EVERY_VALUE].concat();
        reserved.extend(of_joins.iter().map(String::as_str));
        let mut idents = names::idents(&all, snake, &reserved).into_iter();
        let methods = it.methods.iter().zip(idents.by_ref());
        Parts {
            it,
            names,
            methods: methods
                .map(|(it, ident)| (self.member(&it.method, ident), it))
                .collect(),
            timers: ticks(&it.timers, idents),
        }
    }

    fn turns_of_actor(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        self.text.line("");
        self.text
            .line(format_args!("/// What an Actor `{}` is made with, and keeps.", it.name));
        self.text
            .line(format_args!("pub type {} = rt::ActorContext;", names.context));
        self.text.line("");
        self.text.line(format_args!(
            "/// A turn of an Actor `{}`: what its callbacks may do. Messages of the compiler say `ObjectTurn<'_, Actor>`.",
            it.name
        ));
        self.text
            .line(format_args!("pub type {}<'t> = rt::ActorTurn<'t>;", names.turn));
        if parts.yields() {
            self.text.line("");
            self.text.line(format_args!(
                "/// A turn of an Actor `{}` that may wait while others run, where its Spot takes one turn at a time; it has \
                 the Actor.",
                it.name
            ));
            self.text.line(format_args!(
                "pub type {}<'t, A> = rt::ActorYieldTurn<'t, A>;",
                names.yield_turn
            ));
        }
    }

    fn behaviour_of_actor(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let ActorNames {
            handler,
            context,
            make_factory,
            ..
        } = names;
        self.text.line("");
        let otherwise = format_args!("What the Actors `{}` do; [`{make_factory}`] registers them.", it.name);
        doc::lines(self.text, &it.doc, otherwise);
        self.text
            .line(format_args!("pub trait {handler}: rt::Sized + rt::Send + 'static {{"));
        self.text.line(
            "/// Makes one, wherever it comes to live; what its creation asks for is told to it by the Entry Spot that admits it.",
        );
        self.text.line(format_args!("fn create(context: {context})"));
        self.text.line(format_args!("-> {};", future("Self")));
        self.text.line("/// The context that it was made with, which it keeps.");
        self.text.line(format_args!("fn context(&self) -> &{context};"));
        let turns = Turns {
            turn: &names.turn,
            yield_turn: &names.yield_turn,
        };
        for (member, method) in &parts.methods {
            self.on_method(turns, member, method.yields);
        }
        self.on_ticks(turns, &parts.timers);
        self.text.line("}");
    }

    fn actor_factory(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let ActorNames {
            handler,
            constant,
            make_factory,
            ..
        } = names;
        let own = format!("<A as {handler}>");
        self.text.line("");
        self.text
            .line(format_args!("/// Registers the Actors `{}`, each an `A`.", it.name));
        self.text.line(format_args!(
            "pub fn {make_factory}<A: {handler}>() -> rt::ActorFactory {{"
        ));
        self.text.line(format_args!(
            "rt::ActorFactory::new({constant}, {own}::create, {own}::context)"
        ));
        self.registers_relocation(&it.relocation);
        for (member, method) in &parts.methods {
            self.registers(member, &format!("{own}::{}", member.ident), method.yields, false);
        }
        self.registers_ticks(&parts.timers, &own);
        self.text.line("    .build()");
        self.text.line("}");
    }
}

impl Parts<'_> {
    fn yields(&self) -> bool {
        self.it.methods.iter().any(|it| it.yields) || self.it.timers.iter().any(|it| it.yields)
    }
}

/// The names of the trait that no method of a schema gets: those of callbacks, also of those that belong to joins, sessions
/// and relocation, so that nothing is renamed once they are generated.
const CALLBACKS: &[&str] = &[
    "create",
    "context",
    "configure",
    "on_join_completed",
    "on_joined_entry_spot",
    "on_disconnect",
    "capture",
    "restore",
];
