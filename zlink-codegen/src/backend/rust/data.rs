//! Metadata keys, enums, structs, unions and messages: each an invocation of the runtime's macro for its kind.

use super::{Context, doc, names};
use crate::ir::{DeclRef, Doc, Enum, Field, Message, MetadataKey, Scalar, Struct, Type, Union};
use crate::name::{camel, snake};

impl Context<'_> {
    pub(super) fn metadata_key(&mut self, it: &MetadataKey, ident: &str) {
        let (name, ty) = (&it.name, self.scalar_type(it.ty));
        let relay = if it.relay { ".relayed()" } else { "" };
        self.text.line("");
        doc::lines(self.text, &it.doc, format_args!("The metadata key `{name}`."));
        let value = format_args!("rt::MetadataKey::new({name:?}){relay}");
        self.text
            .line(format_args!("pub const {ident}: rt::MetadataKey<{ty}> = {value};"));
    }

    pub(super) fn enumeration(&mut self, it: &Enum, ident: &str) {
        let value_names: Vec<&str> = it.values.iter().map(|value| value.name.as_str()).collect();
        let repr = super::types::int_type(it.repr);
        self.begin("enumeration", &it.doc, format_args!("The enum `{}`.", it.name));
        self.text
            .line(format_args!("pub enum {ident}: {repr} [{}] {{", it.repr.size()));
        for (value, variant) in it.values.iter().zip(names::idents(&value_names, camel, &["Unknown"])) {
            doc::given(self.text, &value.doc);
            self.text.line(format_args!("{variant} = {},", value.number));
        }
        self.end();
    }

    pub(super) fn structure(&mut self, it: &Struct, ident: &str) {
        let field_names: Vec<&str> = it.fields.iter().map(|field| field.name.as_str()).collect();
        self.begin("structure", &it.doc, format_args!("The struct `{}`.", it.name));
        self.text
            .line(format_args!("pub struct {ident} [{}, {}] {{", it.size, it.align));
        for (field, ident) in it.fields.iter().zip(names::idents(&field_names, snake, &[])) {
            doc::given(self.text, &field.doc);
            let ty = self.value_type(&field.ty);
            self.text.line(format_args!("{ident}: {ty} => {},", field.offset));
        }
        self.end();
    }

    pub(super) fn union(&mut self, it: &Union, ident: &str) {
        let schema = self.schema;
        let member_names: Vec<&str> = it
            .members
            .iter()
            .map(|member| schema.message(member.message).name.as_str())
            .collect();
        self.begin("union", &it.doc, format_args!("The union `{}`.", it.name));
        self.text.line(format_args!("pub enum {ident} {{"));
        for (member, variant) in it.members.iter().zip(names::idents(&member_names, camel, &["Unknown"])) {
            let path = self.path(&Type::Message(member.message));
            self.text.line(format_args!("{variant}({path}) = {},", member.tag));
        }
        self.end();
    }

    pub(super) fn message(&mut self, index: usize, it: &Message, ident: &str) {
        let at = DeclRef {
            namespace: self.at,
            index,
        };
        let fields: Vec<&Field> = it.fields().collect();
        let field_names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let mut fields: Vec<(&Field, String)> = fields
            .into_iter()
            .zip(names::idents(&field_names, snake, &[]))
            .collect();
        self.begin("message", &it.doc, format_args!("The message `{}`.", it.name));
        if self.graph.has_default(at) {
            self.text.line("#[derive(Default)]");
        }
        let namespace = &self.schema.namespaces[self.at].name;
        self.text
            .line(format_args!("\"{namespace}.{}\" => pub struct {ident} {{", it.name));
        for (field, ident) in &fields {
            self.field(at, field, ident);
        }
        // Wide before narrow leaves no padding between them.
        fields.sort_by_key(|(field, _)| std::cmp::Reverse(self.schema.align(&field.ty)));
        let slots: Vec<String> = fields.into_iter().map(|(_, ident)| ident).collect();
        self.text.line(format_args!("}} slots [{}]", slots.join(" ")));
        self.text.line("}");
    }

    fn field(&mut self, owner: DeclRef, field: &Field, ident: &str) {
        let mut ty = self.value_type(&field.ty);
        if self.graph.boxed(owner, field) {
            ty = format!("rt::Box<{ty}>");
        }
        if has_no_default(&field.ty) && !field.required {
            ty = format!("rt::Option<{ty}>");
        }
        let kind = self.kind(field);
        let required = if field.required { ".required()" } else { "" };
        let max = field.max.map(|max| format!(".max({max})")).unwrap_or_default();
        doc::given(self.text, &field.doc);
        let (id, name) = (field.id, &field.name);
        self.text
            .line(format_args!("{ident}: {ty} => {kind}({id}, {name:?}){required}{max},"));
    }

    /// The pair of functions that writes and reads a field.
    fn kind(&self, field: &Field) -> &'static str {
        let by_storage = |ty: &Type, inline, offset| if ty.is_inline() { inline } else { offset };
        match &field.ty {
            Type::Scalar(Scalar::String) => "string",
            Type::Scalar(Scalar::Bytes) => "bytes",
            Type::List(item) => by_storage(item, "inlines", "list"),
            Type::Map(value) => by_storage(value, "inline_map", "map"),
            Type::Optional(_) => "optional",
            ty => by_storage(ty, "inline", if field.required { "required" } else { "value" }),
        }
    }

    fn begin(&mut self, kind: &str, doc: &Doc, otherwise: std::fmt::Arguments<'_>) {
        self.text.line("");
        self.text.line(format_args!("rt::{kind}! {{"));
        doc::lines(self.text, doc, otherwise);
    }

    fn end(&mut self) {
        self.text.line("}");
        self.text.line("}");
    }
}

/// Whether absence is told by an `Option`.
fn has_no_default(ty: &Type) -> bool {
    match ty {
        Type::Message(_) | Type::Union(_) => true,
        Type::Scalar(scalar) => {
            matches!(
                scalar,
                Scalar::SpotId | Scalar::ActorId | Scalar::SpotRef | Scalar::ActorRef
            )
        }
        Type::List(_) | Type::Optional(_) | Type::Map(_) | Type::Enum(_) | Type::Struct(_) => false,
    }
}
