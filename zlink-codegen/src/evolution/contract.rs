//! What peers, stored state and code rely on, and no more: the content of a lock file.
//!
//! It must not know how it is written down or compared.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{self, Boundary, DeclRef, Exchange, Execution, Relocation, Schema, Slot, SpotKind, Target, Type};

/// A number or name that is in use, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use<T> {
    /// In use.
    Now(T),
    /// Deleted. What it was called is empty where nobody remembers.
    Gone(String),
}

/// The contract of one namespace. Types are their text, with the namespace where it is another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contract {
    pub(crate) namespace: String,
    pub(crate) version: u32,
    pub(crate) metadata: BTreeMap<String, Use<Metadata>>,
    pub(crate) enums: BTreeMap<String, Enum>,
    /// Fields with their types, in the order of the layout.
    pub(crate) structs: BTreeMap<String, Vec<(String, String)>>,
    /// Messages by tag.
    pub(crate) unions: BTreeMap<String, BTreeMap<u8, Use<String>>>,
    pub(crate) messages: BTreeMap<String, Message>,
    pub(crate) services: BTreeMap<String, Service>,
    pub(crate) fanouts: BTreeMap<String, Fanout>,
    pub(crate) spots: BTreeMap<String, Object>,
    pub(crate) actors: BTreeMap<String, Object>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) ty: String,
    pub(crate) relay: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Enum {
    pub(crate) ty: String,
    pub(crate) values: BTreeMap<i128, Use<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) state: Option<u32>,
    pub(crate) fields: BTreeMap<u16, Use<Field>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) required: bool,
    pub(crate) max: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) node: bool,
    /// Methods by packet name.
    pub(crate) packets: BTreeMap<String, Use<Method>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fanout {
    /// Events by packet name.
    pub(crate) packets: BTreeMap<String, Use<Method>>,
}

/// A method, a subscription, or an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) name: String,
    /// What is sent or requested.
    pub(crate) message: String,
    /// What comes back; nothing for a send.
    pub(crate) reply: Option<String>,
    /// Nothing of it for a service.
    pub(crate) turn: Turn,
    /// Where an event is published to; nothing for all others.
    pub(crate) topic: Option<String>,
}

/// What a User Spot does where it says nothing else, and what a lock leaves out.
pub(super) const DEFAULT_EXECUTION: &str = "spot_wide";

/// How a turn of a Spot or an Actor runs, and what it does to the Spot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) activates: bool,
    pub(crate) closes: bool,
    pub(crate) yields: bool,
}

/// A Spot or an Actor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Object {
    /// It is deleted; its packet names are remembered.
    pub(crate) gone: bool,
    /// `entry`, `user`, `instance` or `actor`.
    pub(crate) kind: String,
    /// Its stable type.
    pub(crate) ty: String,
    /// The policy, and the state that it preserves.
    pub(crate) relocation: Option<(String, Option<String>)>,
    pub(crate) create: Option<Admission>,
    /// `spot_wide`, `application` where it also says when it may move, or `per_actor`; nothing where there is no choice.
    pub(crate) execution: Option<String>,
    /// The Actors that may be in it.
    pub(crate) members: BTreeSet<String>,
    /// Timers by name.
    pub(crate) timers: BTreeMap<String, Turn>,
    /// By the Spot that is joined.
    pub(crate) joins: BTreeMap<String, Admission>,
    /// Methods by packet name.
    pub(crate) packets: BTreeMap<String, Use<Method>>,
    /// Subscriptions by channel, packet name and topic, one text in which only the last may hold spaces.
    pub(crate) subscribes: BTreeMap<String, Use<Method>>,
}

impl Object {
    /// Whether it may come from, or go to, another host with what it has.
    pub(super) fn may_move(&self) -> bool {
        self.relocation.as_ref().is_some_and(|(policy, _)| policy != "disabled")
    }
}

/// What creating or joining exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) request: String,
    pub(crate) reply: Option<String>,
}

impl Contract {
    /// The contract of the namespace at an index of a schema.
    pub(crate) fn of(schema: &Schema, at: usize) -> Option<Contract> {
        let it = schema.namespaces.get(at)?;
        let text = Text { schema, at };
        let metadata = it.metadata.iter().map(|key| {
            let ty = key.ty.name().to_owned();
            (key.name.clone(), Use::Now(Metadata { ty, relay: key.relay }))
        });
        let structs = it.structs.iter().map(|it| {
            let fields = it.fields.iter().map(|field| (field.name.clone(), text.ty(&field.ty)));
            (it.name.clone(), fields.collect())
        });
        let unions = it.unions.iter().map(|it| {
            let gone = it.reserved.iter().map(|tag| (*tag, Use::Gone(String::new())));
            let now = it
                .members
                .iter()
                .map(|member| (member.tag, Use::Now(text.message(member.message))));
            (it.name.clone(), gone.chain(now).collect())
        });
        Some(Contract {
            namespace: it.name.clone(),
            version: it.version,
            metadata: metadata.collect(),
            enums: it.enums.iter().map(|it| (it.name.clone(), enumeration(it))).collect(),
            structs: structs.collect(),
            unions: unions.collect(),
            messages: it
                .messages
                .iter()
                .map(|it| (it.name.clone(), message(it, &text)))
                .collect(),
            services: it
                .services
                .iter()
                .map(|it| (it.name.clone(), service(it, &text)))
                .collect(),
            fanouts: it
                .fanouts
                .iter()
                .map(|it| (it.name.clone(), fanout(it, &text)))
                .collect(),
            spots: it
                .spots
                .iter()
                .map(|spot| (spot.name.clone(), self::spot(spot, &it.actors, &text)))
                .collect(),
            actors: it
                .actors
                .iter()
                .map(|actor| (actor.name.clone(), self::actor(actor, &it.spots, &text)))
                .collect(),
        })
    }

    /// Every id that fields have or had, with their names, by message.
    #[cfg(feature = "cli")]
    pub(crate) fn ids(&self) -> BTreeMap<String, Vec<(u16, String)>> {
        let ids = |message: &Message| {
            let ids = message.fields.iter().map(|(id, field)| match field {
                Use::Now(Field { name, .. }) | Use::Gone(name) => (*id, name.clone()),
            });
            ids.collect()
        };
        self.messages
            .iter()
            .map(|(name, message)| (name.clone(), ids(message)))
            .collect()
    }

    /// Whether a type of this name is declared.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.messages.contains_key(name)
            || self.unions.contains_key(name)
            || self.structs.contains_key(name)
            || self.enums.contains_key(name)
    }

    /// This contract with what `old` remembers of things that are deleted: what `accept` writes.
    pub(crate) fn remembering(mut self, old: &Contract) -> Contract {
        for (name, key) in &old.metadata {
            let gone = match key {
                Use::Now(key) => key.ty.clone(),
                Use::Gone(ty) => ty.clone(),
            };
            self.metadata.entry(name.clone()).or_insert(Use::Gone(gone));
        }
        for (name, old) in &old.enums {
            if let Some(new) = self.enums.get_mut(name) {
                remember(&mut new.values, &old.values, String::clone);
            }
        }
        for (name, old) in &old.unions {
            if let Some(new) = self.unions.get_mut(name) {
                remember(new, old, String::clone);
            }
        }
        for (name, old) in &old.messages {
            if let Some(new) = self.messages.get_mut(name) {
                remember(&mut new.fields, &old.fields, |field| field.name.clone());
            }
        }
        for (name, old) in &old.services {
            // A service that is gone keeps its packet names: one of the same name may come back.
            let new = self.services.entry(name.clone()).or_insert_with(|| Service {
                node: old.node,
                packets: BTreeMap::new(),
            });
            remember(&mut new.packets, &old.packets, |method| method.name.clone());
        }
        for (name, old) in &old.fanouts {
            let new = self.fanouts.entry(name.clone()).or_default();
            remember(&mut new.packets, &old.packets, |event| event.name.clone());
        }
        for (new, old) in [(&mut self.spots, &old.spots), (&mut self.actors, &old.actors)] {
            for (name, old) in old {
                let new = new.entry(name.clone()).or_insert_with(|| Object {
                    gone: true,
                    kind: old.kind.clone(),
                    ty: old.ty.clone(),
                    ..Object::default()
                });
                remember(&mut new.packets, &old.packets, |method| method.name.clone());
                remember(&mut new.subscribes, &old.subscribes, |it| it.name.clone());
            }
        }
        self
    }
}

fn remember<K: Ord + Clone, T>(new: &mut BTreeMap<K, Use<T>>, old: &BTreeMap<K, Use<T>>, name: impl Fn(&T) -> String) {
    for (key, old) in old {
        let gone = match old {
            Use::Now(it) => name(it),
            Use::Gone(name) => name.clone(),
        };
        match new.get_mut(key) {
            None => {
                new.insert(key.clone(), Use::Gone(gone));
            }
            // A schema that reserves a bare number does not say what it was.
            Some(Use::Gone(name)) if name.is_empty() => *name = gone,
            Some(_) => {}
        }
    }
}

fn enumeration(it: &ir::Enum) -> Enum {
    let gone = it.reserved.iter().map(|number| (*number, Use::Gone(String::new())));
    let now = it
        .values
        .iter()
        .map(|value| (value.number, Use::Now(value.name.clone())));
    Enum {
        ty: it.repr.name().to_owned(),
        values: gone.chain(now).collect(),
    }
}

fn message(it: &ir::Message, text: &Text<'_>) -> Message {
    let fields = (0u16..).zip(&it.slots).map(|(id, slot)| {
        let slot = match slot {
            Slot::Reserved { name } => Use::Gone(name.clone()),
            Slot::Field(field) => Use::Now(Field {
                name: field.name.clone(),
                ty: text.ty(&field.ty),
                required: field.required,
                max: field.max,
            }),
        };
        (id, slot)
    });
    Message {
        state: it.state,
        fields: fields.collect(),
    }
}

fn service(it: &ir::Service, text: &Text<'_>) -> Service {
    Service {
        node: it.target == Target::Node,
        packets: it.methods.iter().map(|it| method(it, text)).collect(),
    }
}

fn fanout(it: &ir::Fanout, text: &Text<'_>) -> Fanout {
    let event = |it: &ir::Event| {
        let event = Method {
            name: it.name.clone(),
            message: text.message(it.message),
            reply: None,
            turn: Turn::default(),
            topic: Some(it.topic().to_owned()),
        };
        (it.packet.clone(), Use::Now(event))
    };
    Fanout {
        packets: it.events.iter().map(event).collect(),
    }
}

/// A method under its packet name.
fn method(it: &ir::Method, text: &Text<'_>) -> (String, Use<Method>) {
    let (message, reply) = match &it.exchange {
        Exchange::Send { message } => (message, None),
        Exchange::Request { request, reply, .. } => (request, Some(text.message(*reply))),
    };
    let method = Method {
        name: it.name.clone(),
        message: text.message(*message),
        reply,
        turn: Turn::default(),
        topic: None,
    };
    (it.packet.clone(), Use::Now(method))
}

/// The same with how its turn runs.
fn turn((packet, mut method): (String, Use<Method>), turn: Turn) -> (String, Use<Method>) {
    if let Use::Now(method) = &mut method {
        method.turn = turn;
    }
    (packet, method)
}

fn timers(timers: &[ir::Timer]) -> BTreeMap<String, Turn> {
    let timer = |it: &ir::Timer| {
        let yields = it.yields;
        (
            it.name.clone(),
            Turn {
                yields,
                ..Turn::default()
            },
        )
    };
    timers.iter().map(timer).collect()
}

fn spot(it: &ir::Spot, actors: &[ir::Actor], text: &Text<'_>) -> Object {
    let (kind, create, execution) = match &it.kind {
        SpotKind::Entry => ("entry", None, None),
        SpotKind::User { create, execution, .. } => {
            ("user", Some(admission(create, text)), Some(self::execution(*execution)))
        }
        SpotKind::Instance { .. } => ("instance", None, None),
    };
    let methods = it.methods.iter().map(|it| {
        let (activates, closes, yields) = (it.activates, it.closes, it.yields);
        turn(
            method(&it.method, text),
            Turn {
                activates,
                closes,
                yields,
            },
        )
    });
    let subscribes = it.subscriptions.iter().map(|it| {
        let handled = Method {
            name: it.name.clone(),
            message: text.message(it.message),
            reply: None,
            turn: Turn {
                yields: it.yields,
                ..Turn::default()
            },
            topic: None,
        };
        // Neither channels nor packet names hold spaces.
        let key = format!("{} {} {}", it.channel, it.packet, it.topic);
        (key, Use::Now(handled))
    });
    Object {
        kind: kind.to_owned(),
        ty: it.stable_type.clone(),
        relocation: it.relocation().map(|it| relocation(it, text)),
        create,
        execution: execution.map(str::to_owned),
        members: it
            .members
            .iter()
            .filter_map(|at| Some(actors.get(*at)?.name.clone()))
            .collect(),
        timers: timers(&it.timers),
        packets: methods.collect(),
        subscribes: subscribes.collect(),
        ..Object::default()
    }
}

fn actor(it: &ir::Actor, spots: &[ir::Spot], text: &Text<'_>) -> Object {
    let joins = it.joins.iter().filter_map(|join| {
        let spot = spots.get(join.spot)?;
        Some((spot.name.clone(), admission(&join.admission, text)))
    });
    let methods = it.methods.iter().map(|it| {
        let yields = it.yields;
        turn(
            method(&it.method, text),
            Turn {
                yields,
                ..Turn::default()
            },
        )
    });
    Object {
        kind: "actor".to_owned(),
        ty: it.stable_type.clone(),
        relocation: Some(relocation(&it.relocation, text)),
        create: Some(admission(&it.create, text)),
        joins: joins.collect(),
        timers: timers(&it.timers),
        packets: methods.collect(),
        ..Object::default()
    }
}

fn execution(it: Execution) -> &'static str {
    match it {
        Execution::SpotWide {
            boundary: Boundary::Framework,
        } => DEFAULT_EXECUTION,
        Execution::SpotWide {
            boundary: Boundary::Application,
        } => "application",
        Execution::PerActor => "per_actor",
    }
}

fn admission(it: &ir::Admission, text: &Text<'_>) -> Admission {
    Admission {
        request: text.message(it.request),
        reply: it.reply.map(|reply| text.message(reply)),
    }
}

fn relocation(it: &Relocation, text: &Text<'_>) -> (String, Option<String>) {
    match it {
        Relocation::Preserve { state } => ("preserve".to_owned(), Some(text.message(*state))),
        Relocation::Recreate => ("recreate".to_owned(), None),
        Relocation::Disabled => ("disabled".to_owned(), None),
    }
}

/// Types as text, seen from one namespace.
struct Text<'a> {
    schema: &'a Schema,
    at: usize,
}

impl Text<'_> {
    fn name(&self, at: DeclRef, name: &str) -> String {
        match self.schema.namespaces.get(at.namespace) {
            Some(other) if at.namespace != self.at => format!("{}.{name}", other.name),
            _ => name.to_owned(),
        }
    }

    fn message(&self, at: DeclRef) -> String {
        self.name(at, &self.schema.message(at).name)
    }

    fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(it) => it.name().to_owned(),
            Type::List(inner) => format!("list<{}>", self.ty(inner)),
            Type::Optional(inner) => format!("optional<{}>", self.ty(inner)),
            Type::Map(inner) => format!("map<{}>", self.ty(inner)),
            Type::Enum(at) => self.name(*at, &self.schema.enumeration(*at).name),
            Type::Struct(at) => self.name(*at, &self.schema.structure(*at).name),
            Type::Union(at) => self.name(*at, &self.schema.union(*at).name),
            Type::Message(at) => self.message(*at),
        }
    }
}
