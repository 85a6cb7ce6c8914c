//! Who calls whom: callers, services, and what goes between them.
//!
//! It must not know the language of the picture.

use serde::Serialize;

use crate::ir::{DeclRef, Exchange, Schema, Target};

/// A picture of namespaces.
#[derive(Serialize)]
pub(super) struct Picture {
    namespaces: Vec<Group>,
}

/// The services of a namespace.
#[derive(Serialize)]
struct Group {
    /// An identifier, in every language.
    id: String,
    name: String,
    services: Vec<Service>,
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
    /// The picture of these namespaces; those without services are not in it.
    pub(super) fn of<'s>(namespaces: impl IntoIterator<Item = (&'s Schema, usize)>) -> Self {
        let groups = namespaces.into_iter().filter_map(|(schema, at)| group(schema, at));
        let mut namespaces: Vec<Group> = groups.collect();
        for (at, group) in namespaces.iter_mut().enumerate() {
            group.id = format!("n{at}");
            for (service, it) in group.services.iter_mut().enumerate() {
                it.id = format!("n{at}s{service}");
            }
        }
        Self { namespaces }
    }
}

fn group(schema: &Schema, at: usize) -> Option<Group> {
    let it = schema.namespaces.get(at).filter(|it| !it.services.is_empty())?;
    let message = |of: DeclRef| {
        let name = schema.message(of).name.clone();
        match schema.namespaces.get(of.namespace) {
            Some(other) if of.namespace != at => format!("{}.{name}", other.name),
            _ => name,
        }
    };
    let services = it.services.iter().map(|service| {
        let calls = service.methods.iter().map(|method| {
            let (sent, reply) = match &method.exchange {
                Exchange::Send { message } => (*message, None),
                Exchange::Request { request, reply, .. } => (*request, Some(message(*reply))),
            };
            Call {
                method: method.name.clone(),
                message: message(sent),
                reply,
            }
        });
        Service {
            id: String::new(),
            name: service.name.clone(),
            node: service.target == Target::Node,
            calls: calls.collect(),
        }
    });
    Some(Group {
        id: String::new(),
        name: it.name.clone(),
        services: services.collect(),
    })
}
