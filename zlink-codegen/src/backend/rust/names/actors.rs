//! The identifiers of Actors, beside all that a namespace had before it had any.

use super::{idents, rust_ident};
use crate::ir::Namespace;
use crate::name::{Scope, assign, camel, snake, upper};

/// The identifiers of one Actor.
pub(in super::super) struct ActorNames {
    /// Its name within the names of callbacks: `on_joined_player`.
    pub(in super::super) part: String,
    /// What a Spot that admits it calls the type of one.
    pub(in super::super) state: String,
    /// The trait that its Actors implement.
    pub(in super::super) handler: String,
    pub(in super::super) context: String,
    pub(in super::super) turn: String,
    pub(in super::super) yield_turn: String,
    /// The type that creates, finds and destroys them.
    pub(in super::super) manager: String,
    /// The type that calls one.
    pub(in super::super) client: String,
    /// The constant of its stable type.
    pub(in super::super) constant: String,
    /// The constants of its timers.
    pub(in super::super) timers: Vec<String>,
    /// The function that registers it.
    pub(in super::super) make_factory: String,
    /// The function that makes a manager.
    pub(in super::super) make_manager: String,
}

/// The identifiers of the Actors beside the types and `constants` that there are.
pub(super) fn actors(namespace: &Namespace, scope: &mut Scope, constants: &[&str]) -> Vec<ActorNames> {
    let names: Vec<&str> = namespace.actors.iter().map(|it| it.name.as_str()).collect();
    let timers = namespace.actors.iter().flat_map(|actor| {
        let timers = actor.timers.iter();
        timers.map(|timer| format!("{}_{}", actor.name, timer.name))
    });
    let timers: Vec<String> = timers.collect();
    let all: Vec<&str> = names.iter().copied().chain(timers.iter().map(String::as_str)).collect();
    let mut constants = idents(&all, upper, constants).into_iter();
    let of_types: Vec<String> = constants.by_ref().take(names.len()).collect();
    let forms = assign(&names, snake, []).into_iter().zip(assign(&names, camel, []));
    let actors = namespace.actors.iter().zip(forms).zip(of_types);
    actors
        .map(|((actor, (snake, camel)), constant)| {
            let mut claim = |end: &str| rust_ident(&scope.claim(&format!("{camel}{end}")));
            ActorNames {
                handler: claim("Actor"),
                context: claim("Context"),
                turn: claim("Turn"),
                yield_turn: claim("YieldTurn"),
                manager: claim("Actors"),
                client: claim("ActorClient"),
                constant,
                timers: constants.by_ref().take(actor.timers.len()).collect(),
                make_factory: rust_ident(&format!("{snake}_actor")),
                make_manager: rust_ident(&format!("{snake}_actors")),
                part: snake,
                state: rust_ident(&camel),
            }
        })
        .collect()
}
