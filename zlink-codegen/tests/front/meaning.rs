//! Right schemas give the right meaning.

use std::fmt::Write as _;

use crate::room::Room;
use zlink_codegen::ir::{Boundary, Exchange, Execution, Int, Relocation, Scalar, Schema, Slot, SpotKind, Target, Type};

fn load(name: &str) -> Schema {
    let path = format!("{}/tests/schemas/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    zlink_codegen::load(path).unwrap_or_else(|findings| panic!("{findings}"))
}

#[test]
fn the_quickstart_schema() {
    let schema = load("billing");
    assert_eq!(schema.namespaces.len(), 1);
    let billing = schema.root();
    assert_eq!((billing.name.as_str(), billing.version), ("billing", 1));
    let Slot::Field(order) = &billing.messages[0].slots[0] else {
        panic!("a field")
    };
    assert_eq!((order.name.as_str(), order.id, order.required), ("order", 0, true));
    assert_eq!(order.ty, Type::Scalar(Scalar::String));
    let Slot::Field(cents) = &billing.messages[0].slots[1] else {
        panic!("a field")
    };
    assert_eq!((cents.required, cents.max, cents.since), (false, None, None));
    assert_eq!(cents.ty, Type::Scalar(Scalar::Int(Int::I64)));
    let charge = &billing.services[0].methods[0];
    assert_eq!(billing.services[0].target, Target::Channel);
    assert_eq!(charge.packet, "billing.billing.charge");
    let Exchange::Request {
        request,
        reply,
        timeout_ms,
    } = &charge.exchange
    else {
        panic!("a request")
    };
    assert_eq!(schema.message(*request).name, "Charge");
    assert_eq!(schema.message(*reply).name, "Receipt");
    assert_eq!(*timeout_ms, Some(3_000));
}

#[test]
fn every_type() {
    let mut text = String::new();
    for it in load("every_type").namespaces {
        let _ = writeln!(
            text,
            "# {} {} {:?} imports {:?}",
            it.name, it.version, it.doc, it.imports
        );
        it.metadata
            .iter()
            .for_each(|key| writeln!(text, "{key:?}").expect("a text"));
        it.enums.iter().for_each(|it| writeln!(text, "{it:?}").expect("a text"));
        it.structs
            .iter()
            .for_each(|it| writeln!(text, "{it:?}").expect("a text"));
        it.unions
            .iter()
            .for_each(|it| writeln!(text, "{it:?}").expect("a text"));
        for it in &it.messages {
            let _ = writeln!(text, "message {} {:?} {:?}", it.name, it.doc, it.state);
            it.slots
                .iter()
                .for_each(|slot| writeln!(text, "  {slot:?}").expect("a text"));
        }
        it.services
            .iter()
            .for_each(|it| writeln!(text, "{it:?}").expect("a text"));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_struct_is_laid_out_as_flatbuffers_does() {
    let schema = load("every_type");
    let mixed = schema
        .root()
        .structs
        .iter()
        .find(|it| it.name == "Mixed")
        .expect("declared");
    let offsets: Vec<(&str, u32)> = mixed
        .fields
        .iter()
        .map(|field| (field.name.as_str(), field.offset))
        .collect();
    let expected = [
        ("flag", 0),
        ("number", 8),
        ("kind", 16),
        ("currency", 18),
        ("id", 20),
        ("at", 40),
        ("lasts", 48),
        ("nested", 56),
        ("point", 64),
        ("tail", 72),
    ];
    assert_eq!(offsets, expected);
    assert_eq!((mixed.size, mixed.align), (80, 8));
}

#[test]
fn an_imported_name_is_the_declaration_of_its_file() {
    let schema = load("every_type");
    assert_eq!(
        schema.namespaces.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
        ["test.common", "test.every_type"]
    );
    assert_eq!(schema.root().imports, [0]);
    let event = &schema.root().unions[0];
    assert_eq!(
        event.members.iter().map(|member| member.tag).collect::<Vec<_>>(),
        [1, 2, 7]
    );
    assert_eq!(schema.message(event.members[2].message).name, "Money");
    assert_eq!(event.reserved, [3]);
}

/// The wire name comes from the schema, a declared name goes before it, and neither a rename nor a method's place in
/// the file changes it.
///
/// REQ: MSG-302
#[test]
fn a_packet_name_is_that_of_the_schema_or_the_one_it_gives() {
    let schema = load("every_type");
    let service = &schema.root().services[0];
    let packet = |method: &str| {
        let found = service.methods.iter().find(|it| it.name == method);
        found.map(|it| it.packet.as_str()).expect("declared")
    };
    assert_eq!(packet("ask"), "test.every_type.everything.ask");
    assert_eq!(packet("named"), "other.name");
    assert_eq!(packet("renamed"), "test.every_type.everything.first_name");
}

/// The bounds of a packet name hold where it is declared, before any code exists.
///
/// REQ: MSG-303
#[test]
fn a_packet_name_has_1_to_255_bytes_and_no_nul() {
    let room = Room::new();
    let with = |packet: &str| {
        let service = format!("services: {{ s: {{ methods: {{ m: {{ send: A, packet: \"{packet}\" }} }} }} }}");
        let path = room.write(
            "a.yaml",
            format!("zlink: 1\nnamespace: a\nversion: 1\nmessages: {{ A: {{}} }}\n{service}\n"),
        );
        zlink_codegen::load(path).map(|schema| schema.root().services[0].methods[0].packet.clone())
    };
    let (longest, one_more) = ("p".repeat(255), "p".repeat(256));
    assert_eq!(with(&longest).expect("255 bytes"), longest);
    assert_eq!(with("ß").expect("two bytes"), "ß");
    for refused in ["", &one_more, &format!("ß{}", "p".repeat(254)), "a\\0b"] {
        let found = with(refused).expect_err("no packet name");
        assert_eq!(found.items[0].code.as_str(), "ZL0705", "{refused}");
    }
}

/// The first of the fanouts of a schema, whose events are given, or what is wrong.
fn events(events: &str) -> Result<zlink_codegen::ir::Fanout, Vec<&'static str>> {
    let room = Room::new();
    let text = format!("fanouts: {{ office-news: {{ doc: Of the office., events: {{ {events} }} }} }}\n");
    let path = room.write(
        "a.yaml",
        format!("zlink: 1\nnamespace: a\nversion: 1\nmessages: {{ A: {{}}, B: {{}} }}\n{text}"),
    );
    match zlink_codegen::load(path) {
        Ok(mut schema) => Ok(schema.namespaces.remove(0).fanouts.remove(0)),
        Err(found) => Err(found.items.iter().map(|item| item.code.as_str()).collect()),
    }
}

/// REQ: CH-802
#[test]
fn the_topic_of_an_event_is_the_one_it_gives_or_its_packet_name() {
    let fanout = events(
        "closed: { publish: A, doc: It closes. }, shut: { publish: B, was: left }, named: { publish: A, packet: p }, \
         grouped: { publish: A, topic: doors., packet: q }, to_all: { publish: A, topic: \"\" }, number: { publish: A, topic: 1.10 }",
    );
    let fanout = fanout.expect("a fanout");
    let doc = fanout.doc.0.as_deref();
    assert_eq!((fanout.name.as_str(), doc), ("office-news", Some("Of the office.")));
    assert_eq!(fanout.events[0].doc.0.as_deref(), Some("It closes."));
    let messages: Vec<usize> = fanout.events.iter().map(|it| it.message.index).collect();
    assert_eq!(messages, [0, 1, 0, 0, 0, 0]);
    let names: Vec<_> = fanout
        .events
        .iter()
        .map(|it| (it.name.as_str(), it.packet.as_str(), it.topic()))
        .collect();
    assert_eq!(
        names,
        [
            ("closed", "a.office-news.closed", "a.office-news.closed"),
            ("shut", "a.office-news.left", "a.office-news.left"),
            ("named", "p", "p"),
            ("grouped", "q", "doors."),
            ("to_all", "a.office-news.to_all", ""),
            ("number", "a.office-news.number", "1.10"),
        ]
    );
}

/// Written, or derived from a packet name: which no name that a packet may have is.
///
/// REQ: CH-906
#[test]
fn a_topic_that_begins_as_the_beacon_does_is_refused() {
    let with = |topic: &str| events(&format!("e: {{ publish: A, topic: \"{topic}\" }}"));
    for refused in ["\\x01ZLF1", "\\x01ZLF1a", "\\x01ZLF1\\0"] {
        assert_eq!(with(refused), Err(vec!["ZL0707"]), "{refused}");
    }
    let allowed = ["\\x01ZLF", "\\x01ZLF2", "ZLF1", "a\\x01ZLF1", "\\x01zlf1"];
    let means = ["\u{1}ZLF", "\u{1}ZLF2", "ZLF1", "a\u{1}ZLF1", "\u{1}zlf1"];
    for (written, topic) in allowed.into_iter().zip(means) {
        assert_eq!(with(written).expect("a topic").events[0].topic(), topic);
    }
    assert_eq!(events("e: { publish: A, packet: \"\\x01ZLF1\" }"), Err(vec!["ZL0705"]));
}

#[test]
fn a_topic_has_at_most_255_bytes() {
    let with = |topic: &str| events(&format!("e: {{ publish: A, topic: \"{topic}\" }}"));
    let longest = format!("ß{}", "t".repeat(253));
    assert_eq!(with(&longest).expect("255 bytes").events[0].topic(), longest);
    assert_eq!(with(&format!("{longest}t")), Err(vec!["ZL0707"]));
}

/// REQ: SP-003, SP-028
#[test]
fn spots_and_actors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/tests/arena.yaml");
    let schema = zlink_codegen::load(path).unwrap_or_else(|findings| panic!("{findings}"));
    let arena = schema.root();
    let [lobby, room, hall, cart, stall] = arena.spots.as_slice() else {
        panic!("five Spots")
    };
    let types: Vec<&str> = arena.spots.iter().map(|it| it.stable_type.as_str()).collect();
    assert_eq!(
        types,
        [
            "arena.lobby",
            "arena.room",
            "arena.great-hall",
            "arena.cart",
            "arena.stall"
        ]
    );
    assert_eq!(
        (&lobby.kind, lobby.may_yield(), lobby.relocation()),
        (&SpotKind::Entry, false, None)
    );
    let SpotKind::User {
        create,
        execution,
        relocation,
    } = &room.kind
    else {
        panic!("a User Spot")
    };
    let boundary = Boundary::Application;
    assert_eq!(*execution, Execution::SpotWide { boundary });
    let Relocation::Preserve { state } = relocation else {
        panic!("its state moves")
    };
    assert_eq!(schema.message(*state).name, "RoomState");
    assert_eq!(schema.message(create.request).name, "RoomSettings");
    assert_eq!(
        create.reply.map(|reply| schema.message(reply).name.as_str()),
        Some("RoomInfo")
    );
    assert_eq!(
        (room.may_yield(), hall.may_yield(), cart.may_yield()),
        (true, false, true)
    );
    assert_eq!(hall.relocation(), Some(&Relocation::Recreate));
    assert_eq!(stall.relocation(), Some(&Relocation::Disabled));
    let packets: Vec<&str> = room.methods.iter().map(|it| it.method.packet.as_str()).collect();
    assert_eq!(packets[..3], ["arena.room.say", "arena.room.view", "arena.room.settle"]);
    let flags: Vec<_> = cart
        .methods
        .iter()
        .map(|it| (it.activates, it.yields, it.closes))
        .collect();
    assert_eq!(
        flags,
        [
            (true, false, false),
            (false, false, false),
            (true, false, false),
            (false, true, true),
            (false, false, true)
        ]
    );
    let events = &room.subscriptions[0];
    assert_eq!(
        (
            events.channel.as_str(),
            events.topic.as_str(),
            events.packet.as_str(),
            events.yields
        ),
        ("room-events", "room.", "arena.room.events", false)
    );
    let timers: Vec<_> = room.timers.iter().map(|it| (it.name.as_str(), it.yields)).collect();
    assert_eq!(timers, [("tick", false), ("bill", true)]);
    let player = &arena.actors[0];
    assert_eq!(
        (room.members.as_slice(), cart.members.as_slice()),
        ([0].as_slice(), [].as_slice())
    );
    assert_eq!(player.stable_type, "arena.player-character");
    let joins: Vec<_> = player
        .joins
        .iter()
        .map(|it| (it.spot, it.admission.reply.is_some()))
        .collect();
    assert_eq!(joins, [(1, true), (2, false)]);
}
