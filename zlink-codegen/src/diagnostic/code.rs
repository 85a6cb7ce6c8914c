//! The table of all codes. A code keeps its meaning for ever; a retired number is not used again.
//!
//! It must not know where a code is reported.

use super::Severity;

macro_rules! codes {
    ($($name:ident = $number:literal $severity:ident $summary:literal;)*) => {
        /// The kind of a finding, `ZLnnnn`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $summary] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => concat!("ZL", $number),)* }
            }

            /// What it is about, in one sentence.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Code::$name => $summary,)* }
            }

            /// The severity it is reported with unless a report says otherwise.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    // 00xx: the file and its YAML
    Unreadable = "0001" Error "A file cannot be read.";
    TooLarge = "0002" Error "A file is larger than any schema.";
    NotUtf8 = "0003" Error "A file is not UTF-8.";
    ControlCharacter = "0004" Error "A file holds a control character.";
    Syntax = "0005" Error "The text is not YAML.";
    TooDeep = "0006" Error "Collections are nested deeper than any schema.";
    TooManyNodes = "0007" Error "The file, its aliases expanded, holds more values than any schema.";
    UnknownAlias = "0008" Error "An alias has no anchor before it.";
    DuplicateKey = "0009" Error "A mapping has a key twice.";
    NotOneDocument = "0010" Error "A file does not hold exactly one YAML document.";
    Tag = "0011" Error "A YAML tag stands where the schema language has none.";
    TooManyFindings = "0012" Note "Findings beyond the limit are not shown.";

    // 01xx: shape
    WrongShape = "0101" Error "A value has another shape than its key demands.";
    UnknownKey = "0102" Error "A key is not part of the language.";
    MissingKey = "0103" Error "A key is missing.";
    LaterEdition = "0104" Error "A key belongs to a later edition of the generator.";
    BadNumber = "0105" Error "A value is not a whole number in its range.";
    BadBool = "0106" Error "A value is neither true nor false.";
    BadChoice = "0107" Error "A value is none of the words allowed there.";
    BadEdition = "0108" Error "The edition of the language is not known.";
    BadDuration = "0109" Error "A value is not a duration in its range.";

    // 02xx: names
    BadName = "0201" Error "A name has characters or a length that names cannot have.";
    BadNamespace = "0202" Error "A namespace is not lower-case words joined by dots.";
    DuplicateName = "0203" Error "Two declarations of a file share a name.";
    BuiltInName = "0204" Error "A declaration has the name of a built-in type.";

    // 03xx: imports
    ImportUnreadable = "0301" Error "An imported file cannot be read.";
    ImportCycle = "0302" Error "A file imports itself, directly or through others.";
    ImportTwice = "0303" Error "A file is imported twice.";
    NamespaceClash = "0304" Error "Two files have namespaces that generated code cannot tell apart.";
    ImportPath = "0305" Error "An import is not a relative path to a YAML file.";
    TooManyFiles = "0306" Error "A schema imports more files than any schema needs.";

    // 04xx: types
    UnknownType = "0401" Error "A type is not declared.";
    BadType = "0402" Error "A type is not written as types are.";
    NotImported = "0403" Error "A type names a namespace that this file does not import.";
    TypeNotAllowed = "0404" Error "A type cannot stand here.";
    WrongKind = "0405" Error "A name is declared, but not as what is needed here.";
    StructCycle = "0406" Error "A struct contains itself.";
    EndlessMessage = "0407" Error "A message requires itself, so that no value of it can exist.";
    NoFields = "0408" Error "A struct has no fields.";
    StructTooLarge = "0409" Error "A struct is larger or nested deeper than a struct can be.";
    MessageTooLarge = "0410" Error "The fields of a message have no room in one table.";

    // 05xx: fields of messages
    MissingId = "0501" Error "A field has no id.";
    DuplicateId = "0502" Error "Two fields of a message share an id.";
    IdGap = "0503" Error "The ids of a message leave a gap.";
    ReservedId = "0504" Error "An id is in use and reserved.";
    ReservedName = "0505" Error "A name is in use and reserved.";
    MaxNotAllowed = "0506" Error "`max` stands on a type without a length.";
    RequiredNotAllowed = "0507" Error "`required` stands on a type that is always there.";
    SinceAfterVersion = "0508" Error "A field is younger than the contract.";

    // 06xx: enums and unions
    NoUnspecified = "0601" Error "An enum has no value `unspecified` with the number 0.";
    DuplicateNumber = "0602" Error "Two values of an enum share a number.";
    NumberOutOfRange = "0603" Error "A number does not fit the integer type of its enum.";
    ReservedNumber = "0604" Error "A number of an enum, or a tag of a union, is in use and reserved.";
    EmptyUnion = "0605" Error "A union has no members.";
    MemberTwice = "0606" Error "A message is a member of a union twice.";

    // 07xx: services and fanouts
    NoExchange = "0701" Error "A method says neither `send` nor `request`, or both.";
    ReplyMismatch = "0702" Error "A request has no reply, or a send has one.";
    TimeoutOnSend = "0703" Error "A send has a timeout.";
    DuplicatePacket = "0704" Error "Two methods of a service, Spot or Actor, or two events of a fanout, share a packet name.";
    BadPacket = "0705" Error "A packet name is empty, too long, or holds characters it cannot have.";
    BadWas = "0706" Error "`was` names nothing that a method can have been called.";
    BadTopic = "0707" Error "The topic of an event is too long, or is reserved.";

    // 08xx: Spots and Actors
    KeyOfAnotherKind = "0801" Error "A key belongs to another kind of Spot, or to Spots alone.";
    UnknownObject = "0802" Error "An Actor or a Spot is not declared in this file.";
    NotAState = "0803" Error "What a relocation preserves is a message without a state version.";
    BadRelocation = "0804" Error "A relocation has a policy or a state that it cannot have.";
    ListedTwice = "0805" Error "A list of members or timers names something twice.";
    BadJoin = "0806" Error "An Actor joins a Spot that it is no member of.";
    DuplicateType = "0807" Error "Two Spots, or two Actors, share a stable type.";
    BadText = "0808" Error "A stable type or a topic is empty, too long, or holds characters it cannot have.";
    DuplicateSubscription = "0809" Error "Two subscriptions of a Spot have one channel, topic and packet name.";

    // 09xx: lints
    UnusedImport = "0901" Warning "An import is not used.";
    TypeCase = "0902" Warning "The name of a type is not in UpperCamelCase.";
    MemberCase = "0903" Warning "The name of a field, value or method is not in snake_case.";
    SameInOtherCase = "0904" Warning "Two names are one in the case of another language.";
    EmptyService = "0905" Warning "A service has no methods.";

    IdleObject = "0906" Warning "A Spot or an Actor has nothing to do.";
    NeverActivated = "0907" Warning "No message activates an Instance Spot.";
    NoEntry = "0908" Warning "An Actor is a member of no Entry Spot.";
    EmptyFanout = "0909" Warning "A fanout has no events.";
    WildcardTopic = "0910" Warning "A topic holds what looks like a wildcard.";
    TopicWithinWord = "0911" Warning "The topic of an event goes on within the last word of another one.";
    SharedChannel = "0912" Warning "A fanout has the ChannelName of a service.";

    // 10xx: the lock file
    NoLock = "1001" Note "A namespace has no lock file.";
    LockBroken = "1002" Error "A lock file cannot be read.";
    LockOutdated = "1003" Error "A lock file does not say what its schema says.";

    // 11xx: changes that only code must follow
    FieldAdded = "1101" Note "SOURCE: a field was added.";
    FieldRenamed = "1102" Note "SOURCE: a field has another name.";
    FieldRemoved = "1103" Note "SOURCE: a field was deleted.";
    ValueAdded = "1104" Note "SOURCE: an enum value was added.";
    ValueRenamed = "1105" Note "SOURCE: an enum value has another name.";
    ValueRemoved = "1106" Note "SOURCE: an enum value was deleted.";
    MemberAdded = "1107" Note "SOURCE: a union member was added.";
    MemberRemoved = "1108" Note "SOURCE: a union member was deleted.";
    MethodAdded = "1109" Note "SOURCE: a method was added.";
    MethodRenamed = "1110" Note "SOURCE: a method has another name.";
    DeclarationAdded = "1111" Note "SOURCE: a declaration was added.";
    DeclarationRemoved = "1112" Note "SOURCE: a declaration was deleted.";
    RelayOpened = "1113" Note "SOURCE: a metadata key may cross relays now.";
    Retyped = "1114" Note "SOURCE: a type has another name, and is the same on the wire.";

    ObjectChanged = "1115" Note "SOURCE: what a Spot or an Actor does, or may do, changed.";

    // 12xx: changes that peers built before do not understand
    FieldType = "1201" Error "WIRE: a field has another type.";
    FieldRequired = "1202" Error "WIRE: whether a field is required changed.";
    FieldMax = "1203" Error "WIRE: the bound of a field changed.";
    RequiredRemoved = "1204" Error "WIRE: a required field was deleted.";
    EnumType = "1205" Error "WIRE: an enum has another integer type.";
    StructLayout = "1206" Error "WIRE: the layout of a struct changed.";
    MemberChanged = "1207" Error "WIRE: a union tag means another message.";
    MethodRemoved = "1208" Error "WIRE: a method was deleted.";
    MethodExchange = "1209" Error "WIRE: a method exchanges something else.";
    ServiceTarget = "1210" Error "WIRE: a service is addressed in another way.";
    MetadataChanged = "1211" Error "WIRE: a metadata key has another type, or crosses relays no more.";
    NameMoved = "1212" Error "WIRE: a name has another id, number, place or packet name.";

    ObjectKind = "1213" Error "WIRE: a Spot is of another kind, or is an Actor now.";
    Admission = "1214" Error "WIRE: a creation or a join exchanges something else, or is gone.";

    MemberLost = "1215" Error "WIRE: an Actor may be in a Spot no more.";

    TopicChanged = "1216" Error "WIRE: an event is published to another topic.";

    // 13xx: changes that stored or relocated state does not survive
    StateRaised = "1301" Error "STATE: the version of a state was raised.";
    StateRemoved = "1302" Error "STATE: a message is a state no more.";
    StateNotRaised = "1303" Error "STATE: a state changed, its version did not.";
    StateLowered = "1304" Error "STATE: the version of a state was lowered.";

    StableType = "1305" Error "STATE: a Spot or an Actor has another stable type.";
    ObjectRemoved = "1306" Error "STATE: a Spot or an Actor was deleted.";
    RelocationChanged = "1307" Error "STATE: what becomes of a Spot or an Actor that moves changed.";

    TimerRemoved = "1308" Error "STATE: a timer that moves with a Spot or an Actor was deleted.";

    // 14xx: what no version may do
    IdReused = "1401" Error "An id, number or tag of something deleted is in use again.";
    NameReused = "1402" Error "The name of something deleted is in use again.";
    NotReserved = "1403" Error "Something was deleted without a reservation of its number.";
    PacketReused = "1404" Error "The packet name of a deleted method is in use again.";
    VersionLowered = "1405" Error "The version of the contract was lowered.";
    KeyReused = "1406" Error "The name of a deleted metadata key is in use again.";
}

/// Who notices a change of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Code that is built against the schema. Programs that run need not follow.
    Source,
    /// Programs that were built before.
    Wire,
    /// State that was stored, or moves between nodes.
    State,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Source => "source",
            Level::Wire => "wire",
            Level::State => "state",
        }
    }
}

impl Code {
    /// What a change of a contract breaks; nothing for what is wrong with a schema by itself.
    #[must_use]
    pub fn level(self) -> Option<Level> {
        match self {
            Code::NameReused | Code::VersionLowered => return Some(Level::Source),
            // These numbers and names travel: whoever still uses the old meaning is misunderstood.
            Code::IdReused | Code::NotReserved | Code::PacketReused | Code::KeyReused => return Some(Level::Wire),
            _ => {}
        }
        match self.as_str().get(..4) {
            Some("ZL11") => Some(Level::Source),
            Some("ZL12") => Some(Level::Wire),
            Some("ZL13") => Some(Level::State),
            _ => None,
        }
    }
}
