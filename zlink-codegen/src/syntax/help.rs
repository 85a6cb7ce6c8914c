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
        _ => return None,
    })
}

/// What says here what a key says elsewhere.
pub(super) fn instead(what: &str, key: &str) -> Option<&'static str> {
    Some(match (what, key) {
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
        _ => return None,
    })
}
