//! What was written: one schema file, every part with its span, nothing defaulted and nothing looked up.
//!
//! It must not know other files, nor what a name leads to.

mod data;
mod exchange;
mod fanout;
mod file;
mod help;
mod object;
mod reader;
mod types;

pub(crate) use file::lower;
pub(crate) use reader::suggest;

use crate::source::Span;

/// Something with the place it stands at.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// A name, or a text that is used as one.
pub(crate) type Name = Spanned<String>;

/// One file. What is `None` was missing or wrong, and has been reported.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) namespace: Option<Name>,
    pub(crate) version: Option<Spanned<u32>>,
    pub(crate) doc: Option<String>,
    pub(crate) imports: Vec<Name>,
    pub(crate) metadata: Vec<MetadataKey>,
    pub(crate) enums: Vec<Enum>,
    pub(crate) structs: Vec<Struct>,
    pub(crate) unions: Vec<Union>,
    pub(crate) messages: Vec<Message>,
    pub(crate) services: Vec<Service>,
    pub(crate) fanouts: Vec<Fanout>,
    pub(crate) spots: Vec<Spot>,
    pub(crate) actors: Vec<Actor>,
}

#[derive(Clone, Debug)]
pub(crate) struct MetadataKey {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) ty: Option<Type>,
    pub(crate) relay: Option<bool>,
}

#[derive(Clone, Debug)]
pub(crate) struct Enum {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) ty: Option<Type>,
    /// Nothing where there is no mapping of values.
    pub(crate) values: Option<Vec<EnumValue>>,
    pub(crate) reserved: Vec<Spanned<i128>>,
}

#[derive(Clone, Debug)]
pub(crate) struct EnumValue {
    pub(crate) name: Name,
    pub(crate) number: Option<Spanned<i128>>,
    pub(crate) doc: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    /// Nothing where there is no mapping of fields.
    pub(crate) fields: Option<Vec<StructField>>,
}

#[derive(Clone, Debug)]
pub(crate) struct StructField {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) ty: Option<Type>,
}

#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    /// Nothing where one of them is wrong.
    pub(crate) members: Option<Vec<UnionMember>>,
    pub(crate) reserved: Vec<Spanned<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) struct UnionMember {
    pub(crate) tag: Spanned<u8>,
    pub(crate) message: Path,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) state: Option<Spanned<u32>>,
    pub(crate) fields: Vec<Field>,
    pub(crate) reserved: Vec<Reserved>,
}

#[derive(Clone, Debug)]
pub(crate) struct Reserved {
    pub(crate) id: Spanned<u16>,
    pub(crate) name: Name,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) id: Id,
    pub(crate) ty: Option<Type>,
    pub(crate) required: Option<Spanned<bool>>,
    pub(crate) max: Option<Spanned<u32>>,
    pub(crate) since: Option<Spanned<u32>>,
}

/// The id of a field.
#[derive(Clone, Debug)]
pub(crate) enum Id {
    /// As written.
    Is(Spanned<u16>),
    /// Not written.
    Missing,
    /// Written, but no id. That has been reported.
    Wrong,
}

/// A type as written.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) span: Span,
    pub(crate) kind: TypeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    /// `u8`, `Money`, `common.Money`
    Named(Path),
    /// `list<…>`, `optional<…>`, `map<…>`; the head may be any word.
    Of(Name, Box<Type>),
}

/// The name of a declaration, perhaps of another file.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) span: Span,
    pub(crate) namespace: Option<Name>,
    pub(crate) name: Name,
}

#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) target: Option<Target>,
    pub(crate) methods: Vec<Method>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Channel,
    Node,
}

#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    /// The keys and what they name; a value that is no name has been reported and is `None`.
    pub(crate) send: Option<Spanned<Option<Path>>>,
    pub(crate) request: Option<Spanned<Option<Path>>>,
    pub(crate) reply: Option<Spanned<Option<Path>>>,
    pub(crate) timeout: Option<Timeout>,
    pub(crate) packet: Option<Name>,
    pub(crate) was: Option<Name>,
}

/// A timeout, with the span of its key.
#[derive(Clone, Debug)]
pub(crate) struct Timeout {
    pub(crate) key: Span,
    pub(crate) millis: Option<u32>,
}

/// What is published to whoever subscribes.
#[derive(Clone, Debug)]
pub(crate) struct Fanout {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) message: Option<Path>,
    pub(crate) topic: Option<Name>,
    pub(crate) packet: Option<Name>,
    pub(crate) was: Option<Name>,
}

/// A Spot. The keys that its kind does not have have been reported, and are as if absent.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) kind: Option<SpotKind>,
    pub(crate) ty: Option<Name>,
    pub(crate) execution: Option<Execution>,
    pub(crate) boundary: Option<Boundary>,
    pub(crate) members: Vec<Name>,
    pub(crate) create: Option<Admission>,
    pub(crate) relocation: Option<Relocation>,
    pub(crate) methods: Vec<ObjectMethod>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) timers: Vec<Timer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpotKind {
    Entry,
    User,
    Instance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    SpotWide,
    PerActor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    Framework,
    Application,
}

#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) ty: Option<Name>,
    pub(crate) create: Option<Admission>,
    /// By the Spot that is joined.
    pub(crate) joins: Vec<(Name, Admission)>,
    pub(crate) relocation: Option<Relocation>,
    pub(crate) methods: Vec<ObjectMethod>,
    pub(crate) timers: Vec<Timer>,
}

/// What comes with a creation or a join, and what may come back.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    pub(crate) doc: Option<String>,
    pub(crate) request: Option<Path>,
    pub(crate) reply: Option<Spanned<Option<Path>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Relocation {
    pub(crate) policy: Option<Spanned<Policy>>,
    pub(crate) state: Option<Spanned<Option<Path>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Preserve,
    Recreate,
    Disabled,
}

/// A method of a Spot or an Actor.
#[derive(Clone, Debug)]
pub(crate) struct ObjectMethod {
    pub(crate) method: Method,
    pub(crate) yields: bool,
    pub(crate) activates: bool,
    pub(crate) closes: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) channel: Option<Name>,
    pub(crate) topic: Option<Name>,
    pub(crate) message: Option<Path>,
    pub(crate) packet: Option<Name>,
    pub(crate) was: Option<Name>,
    pub(crate) yields: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Timer {
    pub(crate) name: Name,
    pub(crate) doc: Option<String>,
    pub(crate) yields: bool,
}
