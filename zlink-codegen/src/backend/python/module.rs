//! One namespace, as its template is told it: imports, declarations, metadata keys, clients.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::Serialize;

use super::codec::{Scene, scalar_codec, scalar_type};
use super::data::{Class, Either, Enumeration, Structure};
use super::names::{self, Names};
use super::text::{doc, literal};
use crate::ir::{DeclRef, Exchange, Schema, Service, Target, Type};

/// What `namespace.py.tera` is filled with.
#[derive(Serialize)]
pub(super) struct Module {
    doc: Vec<String>,
    /// The package of what all namespaces need, from here.
    zlink: &'static str,
    /// The packages of the other namespaces that are named.
    imports: Vec<String>,
    enums: Vec<Enumeration>,
    structs: Vec<Structure>,
    messages: Vec<Class>,
    unions: Vec<Either>,
    metadata: Vec<Key>,
    clients: Vec<Client>,
    /// Services without a client.
    at_nodes: Vec<String>,
    /// Fanouts, which have none.
    fanouts: Vec<String>,
    /// Spots and Actors, which have none.
    objects: Vec<String>,
}

#[derive(Serialize)]
struct Key {
    name: String,
    doc: Vec<String>,
    literal: String,
    ty: &'static str,
    text: &'static str,
}

#[derive(Serialize)]
struct Client {
    name: String,
    doc: Vec<String>,
    channel: String,
    methods: Vec<Method>,
}

#[derive(Serialize)]
struct Method {
    name: String,
    doc: Vec<String>,
    packet: String,
    input: String,
    /// Nothing for a one-way message.
    output: Option<String>,
    /// The schema's timeout in seconds.
    timeout: Option<String>,
}

impl Module {
    pub(super) fn of(schema: &Schema, all: &[Names], at: usize, zlink: &'static str) -> Self {
        let namespace = &schema.namespaces[at];
        let scene = Scene {
            schema,
            names: all,
            at,
            used: RefCell::new(BTreeSet::new()),
        };
        let names = &all[at];
        let enums = namespace.enums.iter().zip(&names.enums);
        let messages = namespace.messages.iter().enumerate();
        let unions = namespace.unions.iter().zip(&names.unions);
        let metadata = namespace.metadata.iter().zip(&names.metadata);
        let services = namespace.services.iter().zip(&names.clients);
        let mut module = Self {
            doc: doc(&namespace.doc, &format!("The namespace `{}`.", namespace.name)),
            zlink,
            imports: Vec::new(),
            enums: enums.map(|(it, name)| Enumeration::of(it, name)).collect(),
            structs: Structure::all(&scene),
            messages: messages
                .map(|(index, it)| Class::of(&scene, it, DeclRef { namespace: at, index }))
                .collect(),
            unions: unions.map(|(it, name)| Either::of(&scene, it, name)).collect(),
            metadata: metadata
                .map(|(it, name)| Key {
                    name: name.clone(),
                    doc: doc(&it.doc, &format!("The metadata key `{}`.", it.name)),
                    literal: literal(&it.name),
                    ty: scalar_type(it.ty),
                    text: scalar_codec(it.ty),
                })
                .collect(),
            clients: services
                .filter(|(it, _)| it.target == Target::Channel)
                .map(|(it, name)| Client::of(&scene, it, name))
                .collect(),
            fanouts: namespace.fanouts.iter().map(|it| it.name.clone()).collect(),
            objects: namespace.object_names().map(str::to_owned).collect(),
            at_nodes: namespace.at_nodes().map(|it| it.name.clone()).collect(),
        };
        module.imports = scene.used.into_inner().into_iter().collect();
        module
    }
}

impl Client {
    fn of(scene: &Scene<'_>, it: &Service, name: &str) -> Self {
        let method_names: Vec<&str> = it.methods.iter().map(|method| method.name.as_str()).collect();
        let methods = it.methods.iter().zip(names::methods(&method_names));
        Self {
            name: name.to_owned(),
            doc: doc(&it.doc, &format!("Calls the service `{}`.", it.name)),
            channel: literal(&it.name),
            methods: methods
                .map(|(method, name)| {
                    let (input, output, timeout) = match method.exchange {
                        Exchange::Send { message } => (message, None, None),
                        Exchange::Request {
                            request,
                            reply,
                            timeout_ms,
                        } => (request, Some(reply), timeout_ms),
                    };
                    Method {
                        name,
                        doc: doc(&method.doc, &format!("Calls `{}`.", method.packet)),
                        packet: literal(&method.packet),
                        input: scene.path(&Type::Message(input)),
                        output: output.map(|output| scene.path(&Type::Message(output))),
                        timeout: timeout.map(|millis| format!("{}.{:03}", millis / 1000, millis % 1000)),
                    }
                })
                .collect(),
        }
    }
}
