//! Who calls whom: callers, services, fanouts, Spots, Actors, and what goes between them.
//!
//! It must not know the language of the picture.

use serde::Serialize;

use crate::ir::{DeclRef, Exchange, Method, Schema, SpotKind, Target};

/// A picture of namespaces.
#[derive(Serialize)]
pub(super) struct Picture {
    namespaces: Vec<Group>,
}

/// The services, fanouts and objects of a namespace.
#[derive(Serialize)]
struct Group {
    /// An identifier, in every language.
    id: String,
    name: String,
    services: Vec<Service>,
    fanouts: Vec<Fanout>,
    objects: Vec<Object>,
}

/// The Spots of a name, or the Actors.
#[derive(Serialize)]
struct Object {
    id: String,
    name: String,
    /// `entry`, `user`, `instance` or `actor`.
    kind: &'static str,
    calls: Vec<Call>,
    /// The channels it gets messages from, with the messages.
    published: Vec<(String, String)>,
    /// The Spots it joins, by their identifiers.
    joins: Vec<String>,
}

#[derive(Serialize)]
struct Fanout {
    id: String,
    name: String,
    /// The events, with their messages.
    events: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Service {
    id: String,
    name: String,
    /// Whether it is called by mesh and RID.
    node: bool,
    calls: Vec<Call>,
}

/// What a caller does.
#[derive(Serialize)]
struct Call {
    method: String,
    message: String,
    /// Nothing for what goes one way.
    reply: Option<String>,
}

impl Picture {
    /// The picture of these namespaces; those without services, fanouts and objects are not in it.
    pub(super) fn of<'s>(namespaces: impl IntoIterator<Item = (&'s Schema, usize)>) -> Self {
        let groups = namespaces.into_iter().filter_map(|(schema, at)| group(schema, at));
        let mut namespaces: Vec<Group> = groups.collect();
        for (at, group) in namespaces.iter_mut().enumerate() {
            group.id = format!("n{at}");
            for (service, it) in group.services.iter_mut().enumerate() {
                it.id = format!("n{at}s{service}");
            }
            for (fanout, it) in group.fanouts.iter_mut().enumerate() {
                it.id = format!("n{at}f{fanout}");
            }
            for (object, it) in group.objects.iter_mut().enumerate() {
                it.id = format!("n{at}o{object}");
                it.joins.iter_mut().for_each(|spot| *spot = format!("n{at}o{spot}"));
            }
        }
        Self { namespaces }
    }
}

fn group(schema: &Schema, at: usize) -> Option<Group> {
    let it = schema.namespaces.get(at)?;
    if it.services.len() + it.fanouts.len() + it.spots.len() + it.actors.len() == 0 {
        return None;
    }
    let message = |of: DeclRef| {
        let name = schema.message(of).name.clone();
        match schema.namespaces.get(of.namespace) {
            Some(other) if of.namespace != at => format!("{}.{name}", other.name),
            _ => name,
        }
    };
    let call = |method: &Method| {
        let (sent, reply) = match &method.exchange {
            Exchange::Send { message } => (*message, None),
            Exchange::Request { request, reply, .. } => (*request, Some(message(*reply))),
        };
        Call {
            method: method.name.clone(),
            message: message(sent),
            reply,
        }
    };
    let services = it.services.iter().map(|service| Service {
        id: String::new(),
        name: service.name.clone(),
        node: service.target == Target::Node,
        calls: service.methods.iter().map(call).collect(),
    });
    let fanouts = it.fanouts.iter().map(|fanout| Fanout {
        id: String::new(),
        name: fanout.name.clone(),
        events: fanout
            .events
            .iter()
            .map(|it| (it.name.clone(), message(it.message)))
            .collect(),
    });
    let spots = it.spots.iter().map(|spot| Object {
        id: String::new(),
        name: spot.name.clone(),
        kind: match spot.kind {
            SpotKind::Entry => "entry",
            SpotKind::User { .. } => "user",
            SpotKind::Instance { .. } => "instance",
        },
        calls: spot.methods.iter().map(|it| call(&it.method)).collect(),
        published: spot
            .subscriptions
            .iter()
            .map(|it| (it.channel.clone(), message(it.message)))
            .collect(),
        joins: Vec::new(),
    });
    let actors = it.actors.iter().map(|actor| Object {
        id: String::new(),
        name: actor.name.clone(),
        kind: "actor",
        calls: actor.methods.iter().map(|it| call(&it.method)).collect(),
        published: Vec::new(),
        // Spots come first among the objects, in this order.
        joins: actor.joins.iter().map(|it| it.spot.to_string()).collect(),
    });
    Some(Group {
        id: String::new(),
        name: it.name.clone(),
        services: services.collect(),
        fanouts: fanouts.collect(),
        objects: spots.chain(actors).collect(),
    })
}
