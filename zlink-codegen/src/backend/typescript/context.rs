//! What the template of a namespace is filled with.

use std::collections::BTreeSet;

use serde::Serialize;

use super::names::{self, Names, ServiceNames};
use super::text::{doc, literal};
use super::types;
use crate::ir::{Doc, Enum, Exchange, Field, Message, Schema, Service, Struct, Type, Union};

/// Turns declarations into identifiers, and remembers which namespaces they come from.
pub(super) struct Namer<'a> {
    pub(super) schema: &'a Schema,
    at: usize,
    names: &'a [Names],
    imports: BTreeSet<String>,
}

impl<'a> Namer<'a> {
    /// The path of a declaration, from the namespace at hand.
    pub(super) fn path(&mut self, ty: &Type, input: bool) -> String {
        let (Type::Enum(at) | Type::Struct(at) | Type::Union(at) | Type::Message(at)) = ty else {
            return String::new();
        };
        let Some(names) = self.names.get(at.namespace) else {
            return String::new();
        };
        let ident = names.of_type(ty, input).unwrap_or_default();
        if at.namespace == self.at {
            return ident.to_owned();
        }
        self.imports.insert(names.module.clone());
        format!("${}.{ident}", names.module)
    }

    fn own(&self) -> Option<&'a Names> {
        self.names.get(self.at)
    }
}

/// A namespace.
#[derive(Serialize)]
pub(super) struct Module {
    doc: String,
    /// The path of what the module is written in.
    runtime: String,
    is_empty: bool,
    imports: Vec<String>,
    metadata: Vec<Key>,
    enums: Vec<EnumContext>,
    structs: Vec<StructContext>,
    unions: Vec<UnionContext>,
    messages: Vec<MessageContext>,
    services: Vec<ServiceContext>,
    /// Services without a client.
    at_nodes: Vec<String>,
    /// Fanouts, which have none.
    fanouts: Vec<String>,
    /// Spots and Actors, which have none.
    objects: Vec<String>,
}

#[derive(Serialize)]
struct Key {
    doc: String,
    ident: String,
    maker: String,
    name: String,
}

#[derive(Serialize)]
struct EnumContext {
    doc: String,
    ident: String,
    values: Vec<EnumValue>,
}

#[derive(Serialize)]
struct EnumValue {
    doc: String,
    ident: String,
    number: String,
}

#[derive(Serialize)]
struct StructContext {
    doc: String,
    ident: String,
    size: u32,
    align: u32,
    fields: Vec<StructField>,
}

#[derive(Serialize)]
struct StructField {
    doc: String,
    ident: String,
    ty: String,
    codec: String,
    offset: u32,
}

#[derive(Serialize)]
struct UnionContext {
    doc: String,
    ident: String,
    input: String,
    members: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    kind: String,
    ty: String,
    input: String,
    tag: u8,
}

#[derive(Serialize)]
struct MessageContext {
    doc: String,
    ident: String,
    input: String,
    /// Its name with its namespace.
    name: String,
    fields: Vec<FieldContext>,
    /// How fields are put into the table, in that order.
    slots: Vec<String>,
}

#[derive(Serialize)]
struct FieldContext {
    doc: String,
    ident: String,
    /// As it is read.
    ty: String,
    /// As it is written.
    input: String,
    /// Whether it may be left out where it is written.
    optional: bool,
    /// What it puts before its table, if anything.
    child: Option<String>,
    read: String,
}

#[derive(Serialize)]
struct ServiceContext {
    doc: String,
    name: String,
    channel: String,
    client: String,
    make_client: String,
    methods: Vec<MethodContext>,
}

#[derive(Serialize)]
struct MethodContext {
    doc: String,
    ident: String,
    packet: String,
    is_send: bool,
    input: String,
    input_codec: String,
    reply: String,
    timeout_ms: String,
}

impl Module {
    pub(super) fn of(schema: &Schema, at: usize, names: &[Names], runtime: &str) -> Self {
        let mut namer = Namer {
            schema,
            at,
            names,
            imports: BTreeSet::new(),
        };
        let (Some(namespace), Some(own)) = (schema.namespaces.get(at), namer.own()) else {
            return Self::empty(runtime);
        };
        let metadata = namespace.metadata.iter().zip(&own.metadata).map(|(it, ident)| Key {
            doc: doc(&it.doc, &format!("The metadata key `{}`.", it.name), 0),
            ident: ident.clone(),
            maker: types::key_maker(it.ty),
            name: literal(&it.name),
        });
        let mut module = Self::empty(runtime);
        module.doc = doc(&namespace.doc, &format!("The namespace `{}`.", namespace.name), 0);
        module.metadata = metadata.collect();
        let enums = namespace.enums.iter().zip(&own.enums);
        module.enums = enums.map(|(it, ident)| enumeration(it, ident)).collect();
        for (it, ident) in namespace.structs.iter().zip(&own.structs) {
            module.structs.push(namer.structure(it, ident));
        }
        for (it, pair) in namespace.unions.iter().zip(&own.unions) {
            module.unions.push(namer.union(it, &pair.read, &pair.input));
        }
        for (it, pair) in namespace.messages.iter().zip(&own.messages) {
            module.messages.push(namer.message(it, &pair.read, &pair.input));
        }
        for (at, names) in &own.services {
            if let Some(it) = namespace.services.get(*at) {
                module.services.push(namer.service(it, names));
            }
        }
        module.fanouts = namespace.fanouts.iter().map(|it| it.name.clone()).collect();
        module.objects = namespace.object_names().map(str::to_owned).collect();
        module.at_nodes = namespace.at_nodes().map(|it| it.name.clone()).collect();
        let types = module.enums.len() + module.structs.len() + module.unions.len() + module.messages.len();
        module.is_empty = types + module.metadata.len() + module.services.len() == 0;
        module.imports = namer.imports.into_iter().collect();
        module
    }

    fn empty(runtime: &str) -> Self {
        Self {
            doc: String::new(),
            runtime: literal(runtime),
            is_empty: true,
            imports: Vec::new(),
            metadata: Vec::new(),
            enums: Vec::new(),
            structs: Vec::new(),
            unions: Vec::new(),
            messages: Vec::new(),
            services: Vec::new(),
            at_nodes: Vec::new(),
            fanouts: Vec::new(),
            objects: Vec::new(),
        }
    }
}

fn enumeration(it: &Enum, ident: &str) -> EnumContext {
    let names: Vec<&str> = it.values.iter().map(|value| value.name.as_str()).collect();
    let suffix = if types::is_wide(it.repr) { "n" } else { "" };
    let values = it
        .values
        .iter()
        .zip(names::members(&names))
        .map(|(value, ident)| EnumValue {
            doc: given(&value.doc),
            ident,
            number: format!("{}{suffix}", value.number),
        });
    EnumContext {
        doc: doc(&it.doc, &format!("The enum `{}`.", it.name), 0),
        ident: ident.to_owned(),
        values: values.collect(),
    }
}

/// The comment of a doc text that is there, inside a declaration.
fn given(text: &Doc) -> String {
    doc(text, "", 2)
}

impl Namer<'_> {
    fn structure(&mut self, it: &Struct, ident: &str) -> StructContext {
        let names: Vec<&str> = it.fields.iter().map(|field| field.name.as_str()).collect();
        let fields = it
            .fields
            .iter()
            .zip(names::fields(&names))
            .map(|(field, ident)| StructField {
                doc: given(&field.doc),
                ident,
                ty: self.value_type(&field.ty, false),
                codec: self.codec(&field.ty),
                offset: field.offset,
            });
        StructContext {
            doc: doc(&it.doc, &format!("The struct `{}`.", it.name), 0),
            ident: ident.to_owned(),
            size: it.size,
            align: it.align,
            fields: fields.collect(),
        }
    }

    fn union(&mut self, it: &Union, ident: &str, input: &str) -> UnionContext {
        let schema = self.schema;
        let members = it.members.iter();
        let names: Vec<&str> = members
            .map(|member| schema.message(member.message).name.as_str())
            .collect();
        let members = it.members.iter().zip(names::members(&names)).map(|(member, kind)| {
            let ty = Type::Message(member.message);
            Member {
                kind,
                ty: self.path(&ty, false),
                input: self.path(&ty, true),
                tag: member.tag,
            }
        });
        UnionContext {
            doc: doc(&it.doc, &format!("The union `{}`.", it.name), 0),
            ident: ident.to_owned(),
            input: input.to_owned(),
            members: members.collect(),
        }
    }

    fn message(&mut self, it: &Message, ident: &str, input: &str) -> MessageContext {
        let fields: Vec<&Field> = it.fields().collect();
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let idents = names::fields(&names);
        let mut slots: Vec<(u32, String)> = Vec::new();
        let mut contexts = Vec::new();
        for (field, ident) in fields.iter().zip(idents) {
            slots.push((self.schema.align(&field.ty), self.slot(field, &ident)));
            contexts.push(self.field(field, ident));
        }
        // Wide before narrow leaves no padding between them.
        slots.sort_by_key(|(align, _)| std::cmp::Reverse(*align));
        let namespace = self.schema.namespaces.get(self.at);
        let namespace = namespace.map(|it| it.name.as_str()).unwrap_or_default();
        MessageContext {
            doc: doc(&it.doc, &format!("The message `{}`.", it.name), 0),
            ident: ident.to_owned(),
            input: input.to_owned(),
            name: literal(&format!("{namespace}.{}", it.name)),
            fields: contexts,
            slots: slots.into_iter().map(|(_, slot)| slot).collect(),
        }
    }

    fn field(&mut self, field: &Field, ident: String) -> FieldContext {
        let (id, name) = (field.id, literal(&field.name));
        let absent = if types::has_no_default(&field.ty) && !field.required {
            " | undefined"
        } else {
            ""
        };
        let rules = match (field.required, field.max) {
            (_, Some(max)) => format!(", {}, {max}", field.required),
            (true, None) => ", true".to_owned(),
            (false, None) => String::new(),
        };
        let (kind, codec) = self.kind(field);
        let child = (!field.ty.is_inline()).then(|| {
            let kind = if kind == "required" { "value" } else { kind };
            format!("o{id} = w.{kind}(value.{ident}, {name}{codec}{rules})")
        });
        // Reading what must be there has a name of its own, except where emptiness is no absence.
        let read_rules = if kind == "required" || kind == "value" {
            ""
        } else {
            &rules
        };
        FieldContext {
            doc: given(&field.doc),
            ty: self.value_type(&field.ty, false) + absent,
            input: self.value_type(&field.ty, true),
            optional: !field.required,
            child,
            read: format!("t.{kind}({id}, {name}{codec}{read_rules})"),
            ident,
        }
    }

    /// The pair of functions that writes and reads a field, and the codec they are given, as an argument.
    fn kind(&mut self, field: &Field) -> (&'static str, String) {
        let by_storage = |ty: &Type, inline, offset| if ty.is_inline() { inline } else { offset };
        let (kind, codec) = match &field.ty {
            Type::Scalar(crate::ir::Scalar::String) => return ("string", String::new()),
            Type::Scalar(crate::ir::Scalar::Bytes) => return ("bytes", String::new()),
            Type::List(item) => (by_storage(item, "inlines", "list"), self.item_codec(item)),
            Type::Map(value) => (by_storage(value, "inlineMap", "map"), self.codec(value)),
            Type::Optional(inner) => ("optional", self.codec(inner)),
            ty => {
                let offset = if field.required { "required" } else { "value" };
                (by_storage(ty, "inline", offset), self.codec(ty))
            }
        };
        (kind, format!(", {codec}"))
    }

    /// How a field is put into its table.
    fn slot(&mut self, field: &Field, ident: &str) -> String {
        let id = field.id;
        if !field.ty.is_inline() {
            return format!("w.offset({id}, o{id});");
        }
        let (kind, codec) = self.kind(field);
        format!("w.{kind}({id}, {}{codec}, value.{ident});", literal(&field.name))
    }

    fn service(&mut self, it: &Service, names: &ServiceNames) -> ServiceContext {
        let methods = it.methods.iter().zip(names::methods(it)).map(|(method, ident)| {
            let (input, reply, timeout_ms) = match method.exchange {
                Exchange::Send { message } => (message, None, None),
                Exchange::Request {
                    request,
                    reply,
                    timeout_ms,
                } => (request, Some(reply), timeout_ms),
            };
            let input = Type::Message(input);
            MethodContext {
                doc: doc(&method.doc, &format!("Calls `{}`.", method.packet), 2),
                ident,
                packet: literal(&method.packet),
                is_send: reply.is_none(),
                input_codec: self.path(&input, false),
                input: self.path(&input, true),
                reply: reply
                    .map(|reply| self.path(&Type::Message(reply), false))
                    .unwrap_or_default(),
                timeout_ms: timeout_ms.map_or("undefined".to_owned(), |millis| millis.to_string()),
            }
        });
        ServiceContext {
            doc: doc(&it.doc, &format!("Calls the service `{}`.", it.name), 0),
            name: literal(&it.name),
            channel: names.channel.clone(),
            client: names.client.clone(),
            make_client: names.make_client.clone(),
            methods: methods.collect(),
        }
    }
}
