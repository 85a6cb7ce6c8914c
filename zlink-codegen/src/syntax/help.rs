//! What to write instead, for those who come from another language of schemas.
//!
//! It must not know how anything is read.

/// How something is written. It is called what messages call it.
pub(super) fn example(what: &str) -> Option<&'static str> {
    Some(match what {
        "`imports`" => "imports: [common.yaml]",
        "`metadata`" => "metadata: { tenant: { type: string } }",
        "a metadata key" => "tenant: { type: string }",
        "`enums`" => "enums: { Kind: { type: u8, values: { unspecified: 0, card: 1 } } }",
        "an enum" => "Kind: { type: u8, values: { unspecified: 0, card: 1 } }",
        "`values`" => "values: { unspecified: 0, card: 1 }",
        "`reserved` of an enum" | "`reserved` of a union" => "reserved: [2, 3]",
        "`structs`" => "structs: { Point: { x: f32, y: f32 } }",
        "a struct" => "Point: { x: f32, y: f32 }",
        "`unions`" => "unions: { Payment: { 1: Card, 2: Transfer } }",
        "a union" => "Payment: { 1: Card, 2: Transfer }",
        "`messages`" => "messages: { Charge: { fields: { cents: { id: 0, type: i64 } } } }",
        "a message" => "Charge: { fields: { cents: { id: 0, type: i64 } } }",
        "`fields`" => "fields: { cents: { id: 0, type: i64 } }",
        "a field" => "cents: { id: 0, type: i64 }",
        "`reserved` of a message" => "reserved: { 2: old_name }",
        "`services`" => "services: { billing: { methods: { charge: { request: Charge, reply: Receipt } } } }",
        "a service" => "billing: { methods: { charge: { request: Charge, reply: Receipt } } }",
        "`methods`" => "methods: { charge: { request: Charge, reply: Receipt } }",
        "a method" => "charge: { request: Charge, reply: Receipt }",
        "`fanouts`" => "fanouts: { office-events: { events: { closed: { publish: Closed } } } }",
        "a fanout" => "office-events: { events: { closed: { publish: Closed } } }",
        "`events`" => "events: { closed: { publish: Closed } }",
        "an event of a fanout" => "closed: { publish: Closed }",
        "`spots`" => "spots: { cart: { kind: instance, relocation: { policy: recreate } } }",
        "a Spot" => "cart: { kind: instance, relocation: { policy: recreate } }",
        "`members`" => "members: [player]",
        "`relocation`" => "relocation: { policy: recreate }",
        "`create` of an Actor" => "create: { request: EnterRoom, reply: Entered }",
        "`create`" => "create: { request: RoomSettings, reply: RoomInfo }",
        "`subscribes`" => "subscribes: { news: { channel: room-news, topic: rooms, message: News } }",
        "a subscription" => "news: { channel: room-news, topic: rooms, message: News }",
        "`timers`" => "timers: [tick, { name: settle, yields: true }]",
        "`actors`" => "actors: { player: { create: { request: EnterRoom }, relocation: { policy: recreate } } }",
        "an Actor" => "player: { create: { request: EnterRoom }, relocation: { policy: recreate } }",
        "`join`" => "join: { room: { request: JoinRoom, reply: JoinedRoom } }",
        "a join" => "room: { request: JoinRoom, reply: JoinedRoom }",
        _ => return None,
    })
}

/// What says here what a key says elsewhere.
pub(super) fn instead(what: &str, key: &str) -> Option<&'static str> {
    let what = ["a method", "a timer"]
        .into_iter()
        .find(|part| what.starts_with(part))
        .unwrap_or(what);
    Some(match (what, key) {
        ("a timer", "period" | "interval" | "every" | "delay" | "overrun") => {
            "remove it: a turn starts a timer and says how often it ticks: `turn.add_timer(ROOM_TICK, period)?`"
        }
        (SPOT | ENTRY | USER | PER_ACTOR | INSTANCE | ACTOR, "capacity" | "weight") => {
            "remove it: the node says it, where it registers the type: `objects.capacity(…)`, `objects.placement_weight(…)`"
        }
        (INSTANCE, "idle" | "idle_timeout" | "timeout" | "ttl" | "expires") => {
            "remove it: the node says when idle ones close: `objects.instance_idle_timeout(…)`"
        }
        (SPOT | USER | INSTANCE | ACTOR, "state") => {
            "write it under `relocation`: `relocation: { policy: preserve, state: RoomState }`"
        }
        (SPOT | USER | INSTANCE | ACTOR, "policy") => "write it under `relocation`: `relocation: { policy: recreate }`",
        ("a field", "optional" | "nullable") => {
            "leave it out: a field is optional unless it says `required: true`, \
             and a number that may be absent has the type `optional<…>`"
        }
        ("a field", "default") => {
            "leave it out: there are no defaults but zero and empty; \
             with the type `optional<…>`, code can tell that a number is absent"
        }
        ("a method", "response" | "returns" | "output") => "write `reply: Receipt`, the message that is answered",
        ("a method", "oneway" | "one_way" | "notify") => {
            "write `send: Charge` in place of `request`: a message without a reply"
        }
        (FANOUT, "methods" | "messages") => {
            "write `events: { closed: { publish: Closed } }`: a fanout has no handler that answers"
        }
        (FANOUT, "topic" | "topics") => "write `topic` at each event; what a host subscribes to, its code says",
        (FANOUT, "target") => "remove it: a fanout reaches every subscriber, and nobody in particular",
        (FANOUT | EVENT, "metadata") => {
            "remove it: an event carries none; what subscribers need is part of its message"
        }
        (FANOUT | EVENT, "timeout" | "send_timeout" | "no_drop") => {
            "remove it: nobody is waited for but the publisher's own queues, and its host says how long"
        }
        (EVENT, "send" | "message") => "write `publish: Closed`: the message that subscribers get",
        (EVENT, "request") => {
            "write `publish: Closed`: a publisher does not know who gets an event; a service has requests and replies"
        }
        (EVENT, "reply" | "response" | "returns" | "output") => {
            "remove it: a publisher does not know who gets an event, so nobody can answer; a service has replies"
        }
        (EVENT, "channel") => "remove it: the ChannelName is the name of the fanout",
        _ => return None,
    })
}

/// What the kinds of Spots are called, and Actors.
pub(super) const SPOT: &str = "a Spot";
pub(super) const ENTRY: &str = "an Entry Spot";
pub(super) const USER: &str = "a User Spot";
pub(super) const PER_ACTOR: &str = "a User Spot that is `per_actor`";
pub(super) const INSTANCE: &str = "an Instance Spot";
pub(super) const ACTOR: &str = "an Actor";

/// What fanouts are called, and their parts.
pub(super) const FANOUT: &str = "a fanout";
pub(super) const EVENT: &str = "an event of a fanout";

/// Why a kind, or a part of one (`a method of an Entry Spot`), has no such key, where another has it.
pub(super) fn elsewhere(what: &str, key: &str) -> Option<&'static str> {
    let (part, owner) = what.split_once(" of ").unwrap_or(("", what));
    Some(match (part, owner, key) {
        ("", ENTRY, "type") => "remove it: nobody creates an Entry Spot by its type",
        ("", ENTRY, "create") => "remove it: a host makes it at its start; what callers create is of `kind: user`",
        ("", ENTRY, "execution") => "remove it: an Entry Spot and its Actors always take turns each for itself",
        ("", ENTRY, "boundary" | "relocation") => {
            "remove it: an Entry Spot never moves; its Actors do, each by its own policy"
        }
        ("", INSTANCE, "members") => "remove it: Actors live in Spots of `kind: entry` and `kind: user`",
        ("", INSTANCE, "subscribes") => "remove it: multicast reaches Spots of `kind: entry` and `kind: user`",
        ("", INSTANCE, "create") => "remove it: its first message makes it; write `activates: true` at that method",
        ("", INSTANCE, "execution") => "remove it: an Instance Spot takes one turn at a time",
        ("", INSTANCE, "boundary") => "remove it: an Instance Spot moves between any two turns",
        ("", PER_ACTOR, "boundary") => "remove it: its Actors move one by one, each between any two of its turns",
        (_, ENTRY | PER_ACTOR, "yields") => {
            "remove it: its turns are shared with nobody, so there is nobody to yield to"
        }
        ("a method", ENTRY, "closes") => "remove it: an Entry Spot lives as long as its host",
        ("a method", ENTRY | USER | PER_ACTOR, "activates") => {
            "remove it: only a Spot of `kind: instance` is made by a message"
        }
        ("", ACTOR, "kind" | "execution" | "boundary") => {
            "remove it: an Actor runs as the Spot does that it is in, and moves by its own `relocation`"
        }
        ("", ACTOR, "members") => "remove it: each Spot says which Actors may be in it, under its own `members`",
        ("", ACTOR, "subscribes") => {
            "remove it: multicast reaches Spots; one that has this Actor as a member may tell it"
        }
        ("a method", ACTOR, "activates") => "remove it: an Actor is made by `create`, never by a message",
        ("a method", ACTOR, "closes") => "remove it: an Actor is ended by `destroy`, from outside of it",
        _ => return None,
    })
}
