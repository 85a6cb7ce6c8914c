//! Spots: their turns, the trait they implement, and the factory that registers one.

use super::names::SpotNames;
use super::object::{Callback, Constants, Handled, Turns, future, on_timers, ticks};
use super::service::Member;
use super::{Context, doc, names};
use crate::ir::{Execution, Spot, SpotKind, SpotMethod, Subscription, Timer, Type};
use crate::name::snake;

/// A Spot with what is derived from its parts.
pub(super) struct Parts<'a> {
    pub(super) it: &'a Spot,
    pub(super) names: &'a SpotNames,
    pub(super) methods: Vec<(Member<'a>, &'a SpotMethod)>,
    pub(super) subscriptions: Vec<Handled<'a, Subscription>>,
    timers: Vec<Handled<'a, Timer>>,
}

impl Context<'_> {
    pub(super) fn spot(&mut self, it: &Spot, names: &SpotNames) {
        let parts = self.parts(it, names);
        self.constants(&Constants {
            what: "Spot",
            name: &it.name,
            stable_type: &it.stable_type,
            constant: &names.constant,
            timers: &it.timers,
            of_timers: &names.timers,
        });
        self.turns(&parts);
        self.behaviour(&parts);
        self.factory(&parts);
        self.manager(&parts);
        self.spot_client(&parts);
    }

    fn parts<'a>(&self, it: &'a Spot, names: &'a SpotNames) -> Parts<'a> {
        // The trait has all of them, and the client calls its methods by the same names.
        let on_timers = on_timers(&it.timers);
        let methods = it.methods.iter().map(|it| it.method.name.as_str());
        let subscriptions = it.subscriptions.iter().map(|it| it.name.as_str());
        let all: Vec<&str> = methods
            .chain(subscriptions)
            .chain(on_timers.iter().map(String::as_str))
            .collect();
        let of_members = self.callbacks_of_members(it);
        let mut reserved = [callbacks(&it.kind), names::OF_EVERY_VALUE].concat();
        reserved.extend(of_members.iter().map(String::as_str));
        let mut idents = names::idents(&all, snake, &reserved).into_iter();
        Parts {
            it,
            names,
            methods: it
                .methods
                .iter()
                .zip(idents.by_ref())
                .map(|(it, ident)| (self.member(&it.method, ident), it))
                .collect(),
            subscriptions: it
                .subscriptions
                .iter()
                .zip(idents.by_ref())
                .map(|(it, ident)| Handled {
                    it,
                    ident,
                    input: self.path(&Type::Message(it.message)),
                })
                .collect(),
            timers: ticks(&it.timers, idents),
        }
    }

    fn turns(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let marker = marker(&it.kind);
        self.text.line("");
        self.text.line(format_args!(
            "/// What a Spot `{}` is made with, and may keep.",
            it.name
        ));
        self.text.line(format_args!(
            "pub type {} = rt::SpotContext<rt::{marker}>;",
            names.context
        ));
        self.text.line("");
        self.text.line(format_args!(
            "/// A turn of a Spot `{}`: what its callbacks may do. Messages of the compiler say `ObjectTurn<'_, {marker}>`.",
            it.name
        ));
        self.text.line(format_args!(
            "pub type {}<'t> = rt::SpotTurn<'t, rt::{marker}>;",
            names.turn
        ));
        if parts.yields() {
            self.text.line("");
            self.text.line(format_args!(
                "/// A turn of a Spot `{}` that may wait while others run; it has the Spot.",
                it.name
            ));
            self.text.line(format_args!(
                "pub type {}<'t, S> = rt::SpotYieldTurn<'t, S, rt::{marker}>;",
                names.yield_turn
            ));
        }
    }

    fn behaviour(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let SpotNames {
            handler, make_factory, ..
        } = names;
        self.text.line("");
        let otherwise = format_args!("What the Spots `{}` do; [`{make_factory}`] registers them.", it.name);
        doc::lines(self.text, &it.doc, otherwise);
        self.text
            .line(format_args!("pub trait {handler}: rt::Sized + rt::Send + 'static {{"));
        self.types_of_members(it);
        self.beginning(parts);
        self.lifecycle(parts);
        let turns = Turns {
            turn: &names.turn,
            yield_turn: &names.yield_turn,
        };
        self.membership(it, names);
        for (member, method) in &parts.methods {
            self.on_method(turns, member, method.yields);
        }
        for Handled { it, ident, input } in &parts.subscriptions {
            let otherwise = format_args!("Handles what is published as `{}` on `{}`.", it.packet, it.channel);
            doc::lines(self.text, &it.doc, otherwise);
            self.callback(
                turns,
                &Callback {
                    ident,
                    yields: it.yields,
                    argument: "message",
                    input,
                    output: "()",
                },
            );
        }
        self.on_ticks(turns, &parts.timers);
        self.text.line("}");
    }

    /// How one begins.
    fn beginning(&mut self, parts: &Parts<'_>) {
        let context = &parts.names.context;
        let (name, request, output) = match &parts.it.kind {
            SpotKind::Entry => {
                self.text
                    .line("/// Makes the one of a node, at its start, and anew where another host has taken it.");
                ("start", String::new(), "Self".to_owned())
            }
            SpotKind::Instance { .. } => {
                self.text
                    .line("/// Makes one for its first message, which is handled once it is initialised.");
                ("activate", String::new(), "Self".to_owned())
            }
            SpotKind::User { create, .. } => {
                doc::lines(self.text, &create.doc, "Makes one, or refuses to.");
                let request = self.path(&Type::Message(create.request));
                let reply = create
                    .reply
                    .map_or("()".to_owned(), |reply| self.path(&Type::Message(reply)));
                let output = format!("rt::Created<Self, {reply}>");
                ("create", format!(", request: {request}"), output)
            }
        };
        self.text.line(format_args!("fn {name}(context: {context}{request})"));
        self.text.line(format_args!("-> {};", future(&output)));
    }

    /// The callbacks that need not be written.
    fn lifecycle(&mut self, parts: &Parts<'_>) {
        let turn = &parts.names.turn;
        self.text
            .line("/// Finishes what making it began. No message comes before.");
        self.text
            .line(format_args!("fn on_initialize(&mut self, turn: &mut {turn}<'_>)"));
        self.text.line(format_args!("-> {} {{", future("()")));
        self.text.line("let _ = turn;");
        self.text.line("async { rt::Result::Ok(()) }");
        self.text.line("}");
        self.text
            .line("/// Ends it: no message comes after. What takes longer than the deadline is cut off.");
        self.text.line(format_args!(
            "fn on_closing(&mut self, turn: &mut {turn}<'_>, reason: rt::CloseReason, deadline: rt::Instant)"
        ));
        self.text.line(format_args!("-> {} {{", future("()")));
        self.text.line("let _ = (turn, reason, deadline);");
        self.text.line("async { rt::Result::Ok(()) }");
        self.text.line("}");
    }

    fn factory(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let SpotNames {
            handler,
            constant,
            make_factory,
            ..
        } = names;
        let own = |ident: &str| format!("<S as {handler}>::{ident}");
        self.text.line("");
        self.text
            .line(format_args!("/// Registers the Spots `{}`, each an `S`.", it.name));
        self.text.line(format_args!(
            "pub fn {make_factory}<S: {handler}>() -> rt::SpotFactory {{"
        ));
        let (kind, begin) = match it.kind {
            SpotKind::Entry => ("entry", "start"),
            SpotKind::User { .. } => ("user", "create"),
            SpotKind::Instance { .. } => ("instance", "activate"),
        };
        self.text
            .line(format_args!("rt::SpotFactory::{kind}({constant}, {})", own(begin)));
        if let SpotKind::User {
            execution: Execution::PerActor,
            ..
        } = it.kind
        {
            self.text.line("    .per_actor()");
        }
        if let Some(relocation) = it.relocation() {
            self.registers_relocation(relocation);
        }
        self.text
            .line(format_args!("    .initialize({})", own("on_initialize")));
        self.text.line(format_args!("    .closing({})", own("on_closing")));
        self.registers_membership(it, names);
        for (member, method) in &parts.methods {
            self.registers(member, &own(&member.ident), method.yields, method.closes);
        }
        for Handled { it, ident, .. } in &parts.subscriptions {
            let yields = if it.yields { "_yielding" } else { "" };
            let (channel, topic, packet, call) = (&it.channel, &it.topic, &it.packet, own(ident));
            self.text.line(format_args!(
                "    .subscribe{yields}({channel:?}, {topic:?}, {packet:?}, {call})"
            ));
        }
        self.registers_ticks(&parts.timers, &format!("<S as {handler}>"));
        self.text.line("    .build()");
        self.text.line("}");
    }
}

impl Parts<'_> {
    fn yields(&self) -> bool {
        let methods = self.it.methods.iter().any(|it| it.yields);
        let subscriptions = self.it.subscriptions.iter().any(|it| it.yields);
        methods || subscriptions || self.it.timers.iter().any(|it| it.yields)
    }
}

/// The type of the runtime that stands for a kind.
fn marker(kind: &SpotKind) -> &'static str {
    match kind {
        SpotKind::Entry => "EntrySpot",
        SpotKind::User { .. } => "UserSpot",
        SpotKind::Instance { .. } => "InstanceSpot",
    }
}

/// The names of the trait that no method of a schema gets: those of callbacks, also of those that belong to Actors and
/// relocation, so that nothing is renamed once they are generated.
fn callbacks(kind: &SpotKind) -> &'static [&'static str] {
    match kind {
        SpotKind::Entry => &[
            "start",
            "on_initialize",
            "on_closing",
            "on_create_actor",
            "on_joined_actor",
            "on_leave_actor",
            "on_disconnect_actor",
        ],
        SpotKind::User { .. } => &[
            "create",
            "on_initialize",
            "on_closing",
            "on_actor_join",
            "on_joined_actor",
            "on_leave_actor",
            "on_disconnect_actor",
            "on_relocation_ready_completed",
            "capture",
            "restore",
        ],
        SpotKind::Instance { .. } => &["activate", "on_initialize", "on_closing", "capture", "restore"],
    }
}
