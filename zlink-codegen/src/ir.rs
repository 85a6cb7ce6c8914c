//! What a schema means: total, immutable, ids assigned, defaults filled in.
//!
//! Back ends read this and nothing else. It must not know YAML, spans or any
//! target language: names are kept exactly as the schema writes them.

mod fanout;
mod object;

pub use self::fanout::{Event, Fanout};
pub use self::object::{
    Actor, ActorMethod, Admission, Boundary, Execution, Join, Relocation, Spot, SpotKind, SpotMethod, Subscription,
    Timer,
};

/// Everything one root schema needs: the root and all it imports, imports first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The namespaces, each after the ones it imports. The root is the last.
    pub namespaces: Vec<Namespace>,
}

impl Schema {
    /// The namespace that was asked for.
    #[must_use]
    pub fn root(&self) -> &Namespace {
        &self.namespaces[self.namespaces.len() - 1]
    }

    /// The enum that `at` names.
    #[must_use]
    pub fn enumeration(&self, at: DeclRef) -> &Enum {
        &self.namespaces[at.namespace].enums[at.index]
    }

    /// The struct that `at` names.
    #[must_use]
    pub fn structure(&self, at: DeclRef) -> &Struct {
        &self.namespaces[at.namespace].structs[at.index]
    }

    /// The union that `at` names.
    #[must_use]
    pub fn union(&self, at: DeclRef) -> &Union {
        &self.namespaces[at.namespace].unions[at.index]
    }

    /// The message that `at` names.
    #[must_use]
    pub fn message(&self, at: DeclRef) -> &Message {
        &self.namespaces[at.namespace].messages[at.index]
    }

    /// The alignment in bytes of a field of that type in its table: of the value, or of the offset that leads to it.
    #[must_use]
    pub fn align(&self, ty: &Type) -> u32 {
        match ty {
            Type::Scalar(Scalar::Int(int)) => int.size(),
            Type::Scalar(Scalar::Bool | Scalar::Uuid) => 1,
            Type::Scalar(Scalar::F64 | Scalar::Timestamp | Scalar::Duration) => 8,
            Type::Enum(at) => self.enumeration(*at).repr.size(),
            Type::Struct(at) => self.structure(*at).align,
            Type::Optional(inner) => self.align(inner),
            Type::Scalar(_) | Type::List(_) | Type::Map(_) | Type::Union(_) | Type::Message(_) => 4,
        }
    }
}

/// Where a declaration stands: a namespace of the [`Schema`], and its index among
/// the declarations of its kind there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeclRef {
    /// Index into [`Schema::namespaces`].
    pub namespace: usize,
    /// Index into the list of the declaration's kind.
    pub index: usize,
}

/// One YAML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// `namespace:`; one or more lower-case words joined by `.` or `_`.
    pub name: String,
    /// `version:`, the contract version, at least 1.
    pub version: u32,
    /// The file's doc text.
    pub doc: Doc,
    /// The namespaces this one may name, as indexes into [`Schema::namespaces`].
    pub imports: Vec<usize>,
    /// Typed metadata keys, in the order of the file.
    pub metadata: Vec<MetadataKey>,
    /// Enums, in the order of the file.
    pub enums: Vec<Enum>,
    /// Structs, in the order of the file.
    pub structs: Vec<Struct>,
    /// Unions, in the order of the file.
    pub unions: Vec<Union>,
    /// Messages, in the order of the file.
    pub messages: Vec<Message>,
    /// Services, in the order of the file.
    pub services: Vec<Service>,
    /// Fanouts, in the order of the file.
    pub fanouts: Vec<Fanout>,
    /// Spots, in the order of the file.
    pub spots: Vec<Spot>,
    /// Actors, in the order of the file.
    pub actors: Vec<Actor>,
}

impl Namespace {
    /// The names of its types: enums, structs, unions, messages, each kind in the order of the file.
    #[must_use]
    pub fn type_names(&self) -> Vec<&str> {
        let enums = self.enums.iter().map(|it| &it.name);
        let structs = self.structs.iter().map(|it| &it.name);
        let unions = self.unions.iter().map(|it| &it.name);
        let messages = self.messages.iter().map(|it| &it.name);
        let all = enums.chain(structs).chain(unions).chain(messages);
        all.map(String::as_str).collect()
    }

    /// The names of its Spots, then of its Actors.
    pub fn object_names(&self) -> impl Iterator<Item = &str> {
        let spots = self.spots.iter().map(|it| it.name.as_str());
        spots.chain(self.actors.iter().map(|it| it.name.as_str()))
    }

    /// Its services that are called at a node, which only a node of the same mesh can do.
    pub fn at_nodes(&self) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(|it| it.target == Target::Node)
    }
}

/// Doc text as the schema has it, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doc(pub Option<String>);

/// One key of the metadata snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataKey {
    /// The key as it travels.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// What the text of its value means.
    pub ty: Scalar,
    /// Whether it may cross a relay between a session and an Actor.
    pub relay: bool,
}

/// An open set of named numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// The integer type on the wire.
    pub repr: Int,
    /// Values by rising number; 0 is always there and is `unspecified`.
    pub values: Vec<EnumValue>,
    /// Numbers of deleted values, rising. None is in `values`.
    pub reserved: Vec<i128>,
}

/// One value of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumValue {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: i128,
    /// Doc text.
    pub doc: Doc,
}

/// Inline data of fixed layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// Fields in layout order. Types are scalars (not `string` or `bytes`), enums, `uuid`, `timestamp`,
    /// `duration` and other structs.
    pub fields: Vec<StructField>,
    /// Bytes of the whole, tail padding included.
    pub size: u32,
    /// Alignment in bytes: 1, 2, 4 or 8.
    pub align: u32,
}

/// One field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructField {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// Its type.
    pub ty: Type,
    /// Its first byte in the struct.
    pub offset: u32,
}

/// One of several messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Union {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// Members by rising tag.
    pub members: Vec<UnionMember>,
    /// Tags of deleted members, rising. None is in `members`.
    pub reserved: Vec<u8>,
}

/// One member of a union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnionMember {
    /// The number on the wire, 1..=255.
    pub tag: u8,
    /// The message.
    pub message: DeclRef,
}

/// A message: what services exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// The version of a relocation state, for messages that are one.
    pub state: Option<u32>,
    /// Slots by rising id, ids contiguous from 0.
    pub slots: Vec<Slot>,
}

impl Message {
    /// Its fields in use, by rising id.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Field(field) => Some(field),
            Slot::Reserved { .. } => None,
        })
    }
}

/// One id of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A field in use. Its id is its index.
    Field(Field),
    /// A deleted field: it keeps its number and its name.
    Reserved {
        /// The name it had.
        name: String,
    },
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// Its id, 0-based.
    pub id: u16,
    /// Its type.
    pub ty: Type,
    /// Whether the wire must carry it.
    pub required: bool,
    /// Upper bound: UTF-8 bytes of a string, bytes of `bytes`, items of a list or map.
    pub max: Option<u32>,
    /// The contract version that brought it.
    pub since: Option<u32>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A scalar, string or bytes.
    Scalar(Scalar),
    /// `list<T>`: never nested, never of optional.
    List(Box<Type>),
    /// `optional<T>` of a scalar (not `string`, not `bytes`) or enum.
    Optional(Box<Type>),
    /// `map<V>` with string keys.
    Map(Box<Type>),
    /// An enum.
    Enum(DeclRef),
    /// A struct.
    Struct(DeclRef),
    /// A union.
    Union(DeclRef),
    /// A message.
    Message(DeclRef),
}

impl Type {
    /// Whether a value stands in its table itself, as scalars, enums and structs do, and not behind an offset.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        match self {
            Type::Scalar(scalar) => match scalar {
                Scalar::String
                | Scalar::Bytes
                | Scalar::SpotId
                | Scalar::ActorId
                | Scalar::SpotRef
                | Scalar::ActorRef => false,
                Scalar::Bool | Scalar::Int(_) | Scalar::F32 | Scalar::F64 => true,
                Scalar::Uuid | Scalar::Timestamp | Scalar::Duration => true,
            },
            Type::Enum(_) | Type::Struct(_) => true,
            Type::Optional(inner) => inner.is_inline(),
            Type::List(_) | Type::Map(_) | Type::Union(_) | Type::Message(_) => false,
        }
    }
}

/// A type without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `bool`
    Bool,
    /// An integer.
    Int(Int),
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `uuid`: 16 bytes inline.
    Uuid,
    /// `timestamp`: i64 microseconds since the Unix epoch.
    Timestamp,
    /// `duration`: i64 microseconds.
    Duration,
    /// `spot_id`: a string of 1..=255 bytes.
    SpotId,
    /// `actor_id`: a string of 1..=255 bytes.
    ActorId,
    /// `spot_ref`: an exact incarnation of a Spot.
    SpotRef,
    /// `actor_ref`: an exact incarnation of an Actor.
    ActorRef,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Int {
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
}

impl Scalar {
    /// Its name in the language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::Int(int) => int.name(),
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::String => "string",
            Scalar::Bytes => "bytes",
            Scalar::Uuid => "uuid",
            Scalar::Timestamp => "timestamp",
            Scalar::Duration => "duration",
            Scalar::SpotId => "spot_id",
            Scalar::ActorId => "actor_id",
            Scalar::SpotRef => "spot_ref",
            Scalar::ActorRef => "actor_ref",
        }
    }
}

impl Int {
    /// Its name in the language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Int::I8 => "i8",
            Int::I16 => "i16",
            Int::I32 => "i32",
            Int::I64 => "i64",
            Int::U8 => "u8",
            Int::U16 => "u16",
            Int::U32 => "u32",
            Int::U64 => "u64",
        }
    }

    /// Bytes on the wire.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Int::I8 | Int::U8 => 1,
            Int::I16 | Int::U16 => 2,
            Int::I32 | Int::U32 => 4,
            Int::I64 | Int::U64 => 8,
        }
    }
}

/// A set of methods behind one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name: its ChannelName, for a channel service.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// How it is addressed.
    pub target: Target,
    /// Methods, in the order of the file.
    pub methods: Vec<Method>,
}

/// How a service is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// By ChannelName, one server selected per call.
    Channel,
    /// By MeshName and RID.
    Node,
}

/// One method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// The name on the wire.
    pub packet: String,
    /// What is exchanged.
    pub exchange: Exchange,
}

/// What a method exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// One way.
    Send {
        /// The message.
        message: DeclRef,
    },
    /// A request and its reply.
    Request {
        /// The request.
        request: DeclRef,
        /// The reply.
        reply: DeclRef,
        /// The default timeout in milliseconds, where the schema gives one.
        timeout_ms: Option<u32>,
    },
}
