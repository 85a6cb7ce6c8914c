//! The page of one namespace: every declaration with its rules, each type a link.
//!
//! It must not know how the page is laid out.

use serde::Serialize;

use super::fanouts::{self, Fanout};
use super::objects::{self, Actor, Spot};
use super::{file_of, text};
use crate::ir::{self, DeclRef, Exchange, Namespace, Schema, Slot, Target, Type};

/// What the template of a page is filled with.
#[derive(Serialize)]
pub(super) struct Page {
    #[serde(skip)]
    pub(super) file: String,
    name: String,
    version: u32,
    doc: Vec<String>,
    imports: Vec<Import>,
    picture: String,
    services: Vec<Service>,
    fanouts: Vec<Fanout>,
    spots: Vec<Spot>,
    actors: Vec<Actor>,
    messages: Vec<Message>,
    unions: Vec<Union>,
    enums: Vec<Enum>,
    structs: Vec<Struct>,
    metadata: Vec<Key>,
}

#[derive(Serialize)]
struct Import {
    name: String,
    file: String,
}

#[derive(Serialize)]
struct Service {
    name: String,
    doc: Vec<String>,
    node: bool,
    methods: Vec<Method>,
}

#[derive(Serialize)]
pub(super) struct Method {
    name: String,
    doc: String,
    packet: String,
    message: String,
    /// Empty for what goes one way.
    reply: String,
    timeout: String,
}

#[derive(Serialize)]
struct Message {
    name: String,
    doc: Vec<String>,
    state: Option<u32>,
    used: Vec<String>,
    rows: Vec<Row>,
}

/// An id of a message, in use or reserved.
#[derive(Serialize)]
struct Row {
    id: u16,
    name: String,
    reserved: bool,
    ty: String,
    rules: String,
    doc: String,
}

#[derive(Serialize)]
struct Union {
    name: String,
    doc: Vec<String>,
    members: Vec<Member>,
    reserved: String,
}

#[derive(Serialize)]
struct Member {
    tag: u8,
    message: String,
}

#[derive(Serialize)]
struct Enum {
    name: String,
    doc: Vec<String>,
    ty: String,
    values: Vec<Value>,
    reserved: String,
}

#[derive(Serialize)]
struct Value {
    number: String,
    name: String,
    doc: String,
}

#[derive(Serialize)]
struct Struct {
    name: String,
    doc: Vec<String>,
    size: u32,
    align: u32,
    fields: Vec<Part>,
}

#[derive(Serialize)]
struct Part {
    offset: u32,
    name: String,
    ty: String,
    doc: String,
}

#[derive(Serialize)]
struct Key {
    name: String,
    ty: String,
    relay: bool,
    doc: String,
}

impl Page {
    /// The page of the namespace at an index.
    pub(super) fn of(schema: &Schema, at: usize) -> Option<Self> {
        let it = schema.namespaces.get(at)?;
        let links = Links { schema, at };
        let import = |of: &usize| {
            let other = schema.namespaces.get(*of)?;
            Some(Import {
                name: other.name.clone(),
                file: file_of(other),
            })
        };
        Some(Self {
            file: file_of(it),
            name: it.name.clone(),
            version: it.version,
            doc: text::quoted(&it.doc),
            imports: it.imports.iter().filter_map(import).collect(),
            picture: String::new(),
            services: it.services.iter().map(|it| service(it, &links)).collect(),
            fanouts: fanouts::fanouts(it, &links),
            spots: objects::spots(it, &links),
            actors: objects::actors(it, &links),
            messages: it
                .messages
                .iter()
                .enumerate()
                .map(|(index, it)| message(index, it, &links))
                .collect(),
            unions: it.unions.iter().map(|it| union(it, &links)).collect(),
            enums: it.enums.iter().map(enumeration).collect(),
            structs: it.structs.iter().map(|it| structure(it, &links)).collect(),
            metadata: it.metadata.iter().map(key).collect(),
        })
    }

    /// The page with its picture.
    pub(super) fn with(self, picture: String) -> Self {
        let picture = if self.services.len() + self.fanouts.len() + self.spots.len() + self.actors.len() == 0 {
            String::new()
        } else {
            picture
        };
        Self { picture, ..self }
    }
}

/// Types and messages as links, seen from one namespace.
pub(super) struct Links<'s> {
    schema: &'s Schema,
    at: usize,
}

impl Links<'_> {
    fn own(&self) -> Option<&Namespace> {
        self.schema.namespaces.get(self.at)
    }

    fn link(&self, to: DeclRef, name: &str) -> String {
        match self.schema.namespaces.get(to.namespace) {
            Some(other) if to.namespace != self.at => {
                format!("[{}.{name}]({}#{name})", other.name, file_of(other))
            }
            _ => format!("[{name}](#{name})"),
        }
    }

    pub(super) fn message(&self, to: DeclRef) -> String {
        self.link(to, &self.schema.message(to).name)
    }

    fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(it) => it.name().to_owned(),
            Type::List(inner) => format!("list of {}", self.ty(inner)),
            Type::Optional(inner) => format!("optional {}", self.ty(inner)),
            Type::Map(inner) => format!("map of {}", self.ty(inner)),
            Type::Enum(to) => self.link(*to, &self.schema.enumeration(*to).name),
            Type::Struct(to) => self.link(*to, &self.schema.structure(*to).name),
            Type::Union(to) => self.link(*to, &self.schema.union(*to).name),
            Type::Message(to) => self.message(*to),
        }
    }

    /// Where in its own namespace a message is used.
    fn used(&self, index: usize) -> Vec<String> {
        let this = DeclRef {
            namespace: self.at,
            index,
        };
        let Some(own) = self.own() else { return Vec::new() };
        let mut used = Vec::new();
        for service in &own.services {
            for method in &service.methods {
                let Some(what) = role(&method.exchange, this) else {
                    continue;
                };
                used.push(format!(
                    "{what} [{}.{}](#service-{})",
                    service.name, method.name, service.name
                ));
            }
        }
        used.extend(fanouts::used(own, this));
        used.extend(objects::used(own, this));
        for union in own
            .unions
            .iter()
            .filter(|union| union.members.iter().any(|member| member.message == this))
        {
            used.push(format!("member of [{0}](#{0})", union.name));
        }
        for message in own
            .messages
            .iter()
            .filter(|message| message.slots.iter().any(|slot| holds(slot, this)))
        {
            used.push(format!("part of [{0}](#{0})", message.name));
        }
        used
    }
}

fn holds(slot: &Slot, message: DeclRef) -> bool {
    let Slot::Field(field) = slot else { return false };
    match &field.ty {
        Type::List(inner) | Type::Map(inner) => **inner == Type::Message(message),
        ty => *ty == Type::Message(message),
    }
}

fn service(it: &ir::Service, links: &Links<'_>) -> Service {
    let methods = it.methods.iter().map(|it| method(it, links));
    Service {
        name: it.name.clone(),
        doc: text::quoted(&it.doc),
        node: it.target == Target::Node,
        methods: methods.collect(),
    }
}

pub(super) fn method(it: &ir::Method, links: &Links<'_>) -> Method {
    let (message, reply, timeout) = match &it.exchange {
        Exchange::Send { message } => (links.message(*message), String::new(), String::new()),
        Exchange::Request {
            request,
            reply,
            timeout_ms,
        } => {
            let timeout = timeout_ms.map_or(String::new(), |millis| format!("{millis} ms"));
            (links.message(*request), links.message(*reply), timeout)
        }
    };
    Method {
        name: it.name.clone(),
        doc: text::cell(&it.doc),
        packet: text::code(&it.packet),
        message,
        reply,
        timeout,
    }
}

/// What an exchange has to do with a message.
pub(super) fn role(exchange: &Exchange, this: DeclRef) -> Option<&'static str> {
    match exchange {
        Exchange::Send { message } if *message == this => Some("sent by"),
        Exchange::Request { request, .. } if *request == this => Some("request of"),
        Exchange::Request { reply, .. } if *reply == this => Some("reply of"),
        Exchange::Send { .. } | Exchange::Request { .. } => None,
    }
}

fn message(index: usize, it: &ir::Message, links: &Links<'_>) -> Message {
    let rows = (0u16..).zip(&it.slots).map(|(id, slot)| match slot {
        Slot::Reserved { name } => Row {
            id,
            name: name.clone(),
            reserved: true,
            ty: String::new(),
            rules: String::new(),
            doc: String::new(),
        },
        Slot::Field(field) => Row {
            id,
            name: field.name.clone(),
            reserved: false,
            ty: links.ty(&field.ty),
            rules: rules(field),
            doc: text::cell(&field.doc),
        },
    });
    Message {
        name: it.name.clone(),
        doc: text::quoted(&it.doc),
        state: it.state,
        used: links.used(index),
        rows: rows.collect(),
    }
}

fn rules(field: &ir::Field) -> String {
    let unit = match &field.ty {
        Type::List(_) => "items",
        Type::Map(_) => "entries",
        _ => "bytes",
    };
    let parts = [
        field.required.then(|| "required".to_owned()),
        field.max.map(|max| format!("at most {max} {unit}")),
        field.since.map(|since| format!("since version {since}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn union(it: &ir::Union, links: &Links<'_>) -> Union {
    let members = it.members.iter().map(|member| Member {
        tag: member.tag,
        message: links.message(member.message),
    });
    Union {
        name: it.name.clone(),
        doc: text::quoted(&it.doc),
        members: members.collect(),
        reserved: list(&it.reserved),
    }
}

fn enumeration(it: &ir::Enum) -> Enum {
    let values = it.values.iter().map(|value| Value {
        number: value.number.to_string(),
        name: value.name.clone(),
        doc: text::cell(&value.doc),
    });
    Enum {
        name: it.name.clone(),
        doc: text::quoted(&it.doc),
        ty: it.repr.name().to_owned(),
        values: values.collect(),
        reserved: list(&it.reserved),
    }
}

fn structure(it: &ir::Struct, links: &Links<'_>) -> Struct {
    let fields = it.fields.iter().map(|field| Part {
        offset: field.offset,
        name: field.name.clone(),
        ty: links.ty(&field.ty),
        doc: text::cell(&field.doc),
    });
    Struct {
        name: it.name.clone(),
        doc: text::quoted(&it.doc),
        size: it.size,
        align: it.align,
        fields: fields.collect(),
    }
}

fn key(it: &ir::MetadataKey) -> Key {
    Key {
        name: it.name.clone(),
        ty: it.ty.name().to_owned(),
        relay: it.relay,
        doc: text::cell(&it.doc),
    }
}

fn list<N: ToString>(numbers: &[N]) -> String {
    numbers.iter().map(N::to_string).collect::<Vec<_>>().join(", ")
}
