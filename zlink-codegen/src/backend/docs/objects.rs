//! What a page says of Spots and Actors.
//!
//! It must not know how the page is laid out.

use serde::Serialize;

use super::page::{Links, Method, method, role};
use super::text;
use crate::ir::{self, Boundary, DeclRef, Execution, Namespace, SpotKind};

#[derive(Serialize)]
pub(super) struct Spot {
    name: String,
    doc: Vec<String>,
    /// `entry`, `user` or `instance`.
    kind: &'static str,
    stable_type: String,
    per_actor: bool,
    /// Whether it moves only where it says so.
    says_when: bool,
    create: Option<Admission>,
    relocation: Option<Relocation>,
    members: Vec<String>,
    methods: Vec<Row>,
    subscriptions: Vec<Subscription>,
    timers: Vec<Timer>,
}

#[derive(Serialize)]
pub(super) struct Actor {
    name: String,
    doc: Vec<String>,
    stable_type: String,
    create: Admission,
    joins: Vec<Admission>,
    relocation: Relocation,
    methods: Vec<Row>,
    timers: Vec<Timer>,
}

/// A creation, or the joining of a Spot.
#[derive(Serialize)]
struct Admission {
    /// The Spot that is joined.
    spot: String,
    request: String,
    /// Empty where nothing comes back.
    reply: String,
    doc: String,
}

#[derive(Serialize)]
struct Relocation {
    /// `preserve`, `recreate` or `disabled`.
    policy: &'static str,
    state: String,
}

/// A method, and what its turn may do.
#[derive(Serialize)]
struct Row {
    method: Method,
    turn: String,
}

#[derive(Serialize)]
struct Subscription {
    name: String,
    channel: String,
    topic: String,
    message: String,
    packet: String,
    turn: String,
    doc: String,
}

#[derive(Serialize)]
struct Timer {
    name: String,
    turn: String,
    doc: String,
}

pub(super) fn spots(own: &Namespace, links: &Links<'_>) -> Vec<Spot> {
    own.spots.iter().map(|it| spot(it, own, links)).collect()
}

fn spot(it: &ir::Spot, own: &Namespace, links: &Links<'_>) -> Spot {
    let (kind, create, execution) = match &it.kind {
        SpotKind::Entry => ("entry", None, None),
        SpotKind::User { create, execution, .. } => ("user", Some(create), Some(*execution)),
        SpotKind::Instance { .. } => ("instance", None, None),
    };
    let members = it.members.iter().filter_map(|at| own.actors.get(*at));
    let says_when = Execution::SpotWide {
        boundary: Boundary::Application,
    };
    Spot {
        name: it.name.clone(),
        doc: text::quoted(&it.doc),
        kind,
        stable_type: text::code(&it.stable_type),
        per_actor: execution == Some(Execution::PerActor),
        says_when: execution == Some(says_when),
        create: create.map(|create| admission(String::new(), create, links)),
        relocation: it.relocation().map(|it| relocation(it, links)),
        members: members.map(|it| it.name.clone()).collect(),
        methods: it
            .methods
            .iter()
            .map(|it| Row {
                method: method(&it.method, links),
                turn: turn(it.activates, it.yields, it.closes),
            })
            .collect(),
        subscriptions: it
            .subscriptions
            .iter()
            .map(|it| Subscription {
                name: it.name.clone(),
                channel: it.channel.clone(),
                topic: text::code(&it.topic),
                message: links.message(it.message),
                packet: text::code(&it.packet),
                turn: turn(false, it.yields, false),
                doc: text::cell(&it.doc),
            })
            .collect(),
        timers: timers(&it.timers),
    }
}

pub(super) fn actors(own: &Namespace, links: &Links<'_>) -> Vec<Actor> {
    own.actors
        .iter()
        .map(|it| {
            let joins = it.joins.iter().filter_map(|join| {
                let spot = own.spots.get(join.spot)?;
                Some(admission(spot.name.clone(), &join.admission, links))
            });
            Actor {
                name: it.name.clone(),
                doc: text::quoted(&it.doc),
                stable_type: text::code(&it.stable_type),
                create: admission(String::new(), &it.create, links),
                joins: joins.collect(),
                relocation: relocation(&it.relocation, links),
                methods: it
                    .methods
                    .iter()
                    .map(|it| Row {
                        method: method(&it.method, links),
                        turn: turn(false, it.yields, false),
                    })
                    .collect(),
                timers: timers(&it.timers),
            }
        })
        .collect()
}

fn admission(spot: String, it: &ir::Admission, links: &Links<'_>) -> Admission {
    Admission {
        spot,
        request: links.message(it.request),
        reply: it.reply.map_or(String::new(), |reply| links.message(reply)),
        doc: text::cell(&it.doc),
    }
}

fn relocation(it: &ir::Relocation, links: &Links<'_>) -> Relocation {
    let (policy, state) = match it {
        ir::Relocation::Preserve { state } => ("preserve", links.message(*state)),
        ir::Relocation::Recreate => ("recreate", String::new()),
        ir::Relocation::Disabled => ("disabled", String::new()),
    };
    Relocation { policy, state }
}

fn timers(list: &[ir::Timer]) -> Vec<Timer> {
    list.iter()
        .map(|it| Timer {
            name: it.name.clone(),
            turn: turn(false, it.yields, false),
            doc: text::cell(&it.doc),
        })
        .collect()
}

fn turn(activates: bool, yields: bool, closes: bool) -> String {
    let all = [(activates, "may activate"), (yields, "yields"), (closes, "closes")];
    let said = all.iter().filter(|(is, _)| *is).map(|(_, word)| *word);
    said.collect::<Vec<_>>().join(", ")
}

/// Where objects use a message.
pub(super) fn used(own: &Namespace, this: DeclRef) -> Vec<String> {
    let mut used = Vec::new();
    let admitted = |it: &ir::Admission| match it {
        it if it.request == this => Some("request of"),
        it if it.reply == Some(this) => Some("reply of"),
        _ => None,
    };
    let state = |it: &ir::Relocation| matches!(it, ir::Relocation::Preserve { state } if *state == this);
    for spot in &own.spots {
        let name = &spot.name;
        let mut add = |what: &str, part: &str| used.push(format!("{what} [{name}{part}](#spot-{name})"));
        for it in spot.methods.iter().map(|it| &it.method) {
            if let Some(what) = role(&it.exchange, this) {
                add(what, &format!(".{}", it.name));
            }
        }
        for it in spot.subscriptions.iter().filter(|it| it.message == this) {
            add("published to", &format!(".{}", it.name));
        }
        if let SpotKind::User { create, .. } = &spot.kind
            && let Some(what) = admitted(create)
        {
            add(&format!("{what} creating"), "");
        }
        if spot.relocation().is_some_and(state) {
            add("state of", "");
        }
    }
    for actor in &own.actors {
        let name = &actor.name;
        let mut add = |what: &str, part: &str| used.push(format!("{what} [{name}{part}](#actor-{name})"));
        for it in actor.methods.iter().map(|it| &it.method) {
            if let Some(what) = role(&it.exchange, this) {
                add(what, &format!(".{}", it.name));
            }
        }
        if let Some(what) = admitted(&actor.create) {
            add(&format!("{what} creating"), "");
        }
        for join in &actor.joins {
            if let (Some(what), Some(spot)) = (admitted(&join.admission), own.spots.get(join.spot)) {
                add(&format!("{what} joining {} by", spot.name), "");
            }
        }
        if state(&actor.relocation) {
            add("state of", "");
        }
    }
    used
}
