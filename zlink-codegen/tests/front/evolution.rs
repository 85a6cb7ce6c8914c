//! The lock file through the life of a contract. Single rules are in `tests/invalid/`.

use crate::room::Room;

fn schema(version: u32, body: &str) -> String {
    format!("zlink: 1\nnamespace: shop\nversion: {version}\n{body}")
}

const FIRST: &str = "\
enums: { Kind: { type: u8, values: { unspecified: 0, weapon: 1, potion: 2 } } }
messages:
  Item: { fields: { kind: { id: 0, type: Kind }, note: { id: 1, type: string } } }
services: { shop: { methods: { buy: { send: Item }, sell: { send: Item } } } }
";

#[test]
fn a_lock_is_written_once_and_says_the_same_until_the_schema_changes() {
    let room = Room::new();
    room.write("shop.yaml", schema(1, FIRST));
    let ran = room.run(&["accept", "@shop.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("wrote ") && ran.err.contains("shop.lock.yaml"),
        "{}",
        ran.err
    );
    insta::assert_snapshot!(room.read("shop.lock.yaml"));
    assert_eq!(room.run(&["check", "--locked", "@shop.yaml"]).code, 0);
    let ran = room.run(&["accept", "@shop.yaml"]);
    assert!(!ran.err.contains("wrote"), "{}", ran.err);
}

#[test]
fn a_lock_of_every_type_reads_back_as_itself() {
    let room = Room::new();
    for name in ["common.yaml", "every_type.yaml"] {
        let path = format!("{}/tests/schemas/{name}", env!("CARGO_MANIFEST_DIR"));
        room.write(name, std::fs::read(path).expect("a schema of these tests"));
    }
    assert_eq!(room.run(&["accept", "@common.yaml", "@every_type.yaml"]).code, 0);
    insta::assert_snapshot!(room.read("test.every_type.lock.yaml"));
    let ran = room.run(&["check", "--locked", "@every_type.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.starts_with("checked 1 schema: 0 errors, 0 warnings"),
        "{}",
        ran.err
    );
}

#[test]
fn what_was_deleted_is_remembered_for_ever() {
    let room = Room::new();
    room.write("shop.yaml", schema(1, FIRST));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    // A value, a field and a method go; the value's number is reserved without its name.
    let second = "\
enums: { Kind: { type: u8, values: { unspecified: 0, weapon: 1 }, reserved: [2] } }
messages:
  Item: { fields: { kind: { id: 0, type: Kind } }, reserved: { 1: note } }
services: { shop: { methods: { buy: { send: Item } } } }
";
    room.write("shop.yaml", schema(2, second));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    let lock = room.read("shop.lock.yaml");
    for gone in [
        "2: { gone: potion }",
        "1: { gone: note }",
        "shop.shop.sell: { gone: sell }",
        "version: 2",
    ] {
        assert!(lock.contains(gone), "{gone} in\n{lock}");
    }
    // Versions later, each comes back in another shape.
    let third = "\
enums: { Kind: { type: u8, values: { unspecified: 0, weapon: 1, elixir: 2 } } }
messages:
  Item: { fields: { kind: { id: 0, type: Kind }, price: { id: 1, type: u32 } } }
services: { shop: { methods: { buy: { send: Item }, sell: { send: Item } } } }
";
    room.write("shop.yaml", schema(9, third));
    for command in [&["check", "@shop.yaml"][..], &["accept", "@shop.yaml"]] {
        let ran = room.run(command);
        assert_eq!(ran.code, 1);
        assert_eq!(ran.err.matches("error[ZL1401]").count(), 2, "{}", ran.err);
        assert_eq!(ran.err.matches("error[ZL1404]").count(), 1, "{}", ran.err);
    }
    assert_eq!(room.read("shop.lock.yaml"), lock, "a refused contract changes nothing");
}

#[test]
fn a_wire_change_needs_a_version_and_then_an_acceptance() {
    let room = Room::new();
    room.write("shop.yaml", schema(1, FIRST));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    let changed = FIRST.replace("{ id: 1, type: string }", "{ id: 1, type: u64 }");
    room.write("shop.yaml", schema(1, &changed));
    assert_eq!(room.run(&["check", "@shop.yaml"]).code, 1);
    assert_eq!(
        room.run(&["accept", "@shop.yaml"]).code,
        1,
        "the version says which contract it is"
    );
    room.write("shop.yaml", schema(2, &changed));
    let ran = room.run(&["check", "@shop.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err
            .contains("warning[ZL1201]: WIRE: the type of `Item.note` was string and is u64"),
        "{}",
        ran.err
    );
    assert_eq!(
        room.run(&["check", "--locked", "@shop.yaml"]).code,
        1,
        "not accepted yet"
    );
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    assert_eq!(room.run(&["check", "--locked", "@shop.yaml"]).code, 0);
}

#[test]
fn one_refused_schema_does_not_keep_the_others_from_being_accepted() {
    let room = Room::new();
    room.write("shop.yaml", schema(1, FIRST));
    room.write("bad.yaml", "zlink: 1\nnamespace: bad\nversion: 1\nmessages: { A: 1 }\n");
    let ran = room.run(&["accept", "@"]);
    assert_eq!(ran.code, 1);
    assert!(room.file("shop.lock.yaml").exists());
    assert!(!room.file("bad.lock.yaml").exists());
    assert!(ran.err.contains("accepted 1 of 2 schemas"), "{}", ran.err);
}

#[test]
fn a_lock_with_merge_conflicts_is_no_lock() {
    let room = Room::new();
    room.write("shop.yaml", schema(1, FIRST));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    let lock = room.read("shop.lock.yaml");
    room.write(
        "shop.lock.yaml",
        lock.replace(
            "version: 1\n",
            "<<<<<<< ours\nversion: 1\n=======\nversion: 2\n>>>>>>> theirs\n",
        ),
    );
    let ran = room.run(&["accept", "@shop.yaml"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        room.read("shop.lock.yaml").contains("<<<<<<<"),
        "it is left for a person to resolve"
    );
    // Line ends of another system are no difference.
    room.write("shop.lock.yaml", lock.replace('\n', "\r\n"));
    assert_eq!(room.run(&["check", "--locked", "@shop.yaml"]).code, 0);
}

#[test]
fn an_actor_and_the_spot_that_it_joins_may_have_other_names() {
    let schema = |actor: &str, spot: &str| {
        format!(
            "zlink: 1\nnamespace: shop\nversion: 1\nmessages: {{ A: {{}} }}\nspots:\n  \
             lobby: {{ kind: entry, members: [{actor}] }}\n  \
             {spot}:\n    kind: user\n    type: shop.room\n    members: [{actor}]\n    create: {{ request: A }}\n    \
             relocation: {{ policy: recreate }}\nactors:\n  \
             {actor}:\n    type: shop.player\n    create: {{ request: A }}\n    join: {{ {spot}: {{ request: A }} }}\n    \
             relocation: {{ policy: recreate }}\n    methods: {{ walk: {{ send: A, packet: shop.walk }} }}\n"
        )
    };
    let room = Room::new();
    room.write("shop.yaml", schema("player", "room"));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    room.write("shop.yaml", schema("guest", "hall"));
    let ran = room.run(&["check", "@shop.yaml"]);
    for said in [
        "SOURCE: the Actor `guest` was called `player`",
        "SOURCE: the Spot `hall` was called `room`",
    ] {
        assert!(ran.code == 0 && ran.err.contains(said), "{}", ran.err);
    }
    assert_eq!(ran.err.matches("note[ZL11").count(), 2, "and nothing else: {}", ran.err);
    assert!(!ran.err.contains("WIRE"), "{}", ran.err);
    // Who is another Actor, and joins nothing, is told of as before.
    let other = schema("guest", "hall").replace("shop.player", "shop.guest");
    room.write("shop.yaml", other.replace("join: { hall: { request: A } }", "join: {}"));
    let ran = room.run(&["check", "@shop.yaml"]);
    let lost = "WIRE: the Actor `player` may be in the Spot `hall` no more";
    assert!(ran.code == 1 && ran.err.contains(lost), "{}", ran.err);
    let kept = schema("guest", "hall").replace("join: { hall: { request: A } }", "join: {}");
    room.write("shop.yaml", kept);
    let ran = room.run(&["check", "@shop.yaml"]);
    let left = "WIRE: the Actor `guest` joins `hall` no more";
    assert!(ran.code == 1 && ran.err.contains(left), "{}", ran.err);
}

#[test]
fn a_lock_of_spots_and_actors_reads_back_as_itself_and_remembers_them() {
    let room = Room::new();
    let arena = include_str!("../../../schemas/tests/arena.yaml");
    room.write("arena.yaml", arena);
    assert_eq!(room.run(&["accept", "@arena.yaml"]).code, 0);
    insta::assert_snapshot!(room.read("arena.lock.yaml"));
    let ran = room.run(&["check", "--locked", "@arena.yaml"]);
    assert!(
        ran.code == 0 && ran.err.starts_with("checked 1 schema: 0 errors"),
        "{}",
        ran.err
    );
    // Another name, with the stable type and the packet names of before.
    let renamed = arena
        .replace("  stall:\n", "  booth:\n    type: arena.stall\n")
        .replace(
            "      open: { send: Open,",
            "      open: { packet: arena.stall.open, send: Open,",
        );
    room.write("arena.yaml", &renamed);
    let ran = room.run(&["check", "@arena.yaml"]);
    assert!(
        ran.code == 0 && ran.err.contains("the Spot `booth` was called `stall`"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("WIRE") && !ran.err.contains("STATE"), "{}", ran.err);
    // Without one of them, in a new version; then one of its name with its packet name is not the same.
    let (without, stall) = arena.split_at(arena.find("  stall:").expect("the Spot"));
    let (stall, actors) = stall.split_at(stall.find("\nactors:").expect("the Actors"));
    room.write(
        "arena.yaml",
        format!("{without}{actors}").replace("version: 1", "version: 2"),
    );
    let ran = room.run(&["check", "@arena.yaml"]);
    assert!(
        ran.err
            .contains("the Spot `stall` with the stable type `arena.stall` is gone"),
        "{}",
        ran.err
    );
    assert_eq!(room.run(&["accept", "@arena.yaml"]).code, 0);
    let ran = room.run(&["check", "--locked", "@arena.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let back = format!("{without}{stall}{actors}").replace("version: 1", "version: 2");
    room.write("arena.yaml", back);
    let ran = room.run(&["check", "@arena.yaml"]);
    assert!(ran.code == 1 && ran.err.contains("[ZL1404]"), "{}", ran.err);
}

const EVENTS: &str = "\
messages: { Closed: {}, Opened: {} }
fanouts: { office: { events: { closed: { publish: Closed, topic: doors }, opened: { publish: Opened } } } }
";

#[test]
fn events_are_held_to_their_packet_names_and_topics() {
    let room = Room::new();
    room.write("shop.yaml", schema(1, EVENTS));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    assert_eq!(room.run(&["check", "--locked", "@shop.yaml"]).code, 0);
    let says = |body: &str, code: u8, found: &str| {
        room.write("shop.yaml", schema(1, body));
        let ran = room.run(&["check", "@shop.yaml"]);
        assert!(ran.code == code && ran.err.contains(found), "{found}\n{}", ran.err);
        assert_eq!(ran.err.contains("error["), code == 1, "{}", ran.err);
    };
    // Another name, and what is said that went without saying.
    let renamed = EVENTS.replace("opened: { publish: Opened", "open: { publish: Opened, was: opened");
    says(&renamed, 0, "SOURCE: the event `office.open` was called `opened`");
    let said = "publish: Opened, packet: shop.office.opened, topic: shop.office.opened";
    says(&EVENTS.replace("publish: Opened", said), 0, "0 errors, 0 warnings");
    let more = "fanouts: { rooms: { events: { left: { publish: Closed } } }, office";
    says(
        &EVENTS.replace("fanouts: { office", more),
        0,
        "SOURCE: the event `rooms.left` is new",
    );
    // Each of these is lost to somebody.
    says(&EVENTS.replace("doors", "doors."), 1, "[ZL1216]: WIRE");
    says(
        &EVENTS.replace("publish: Closed", "publish: Opened"),
        1,
        "[ZL1209]: WIRE",
    );
    says(&EVENTS.replace("Closed", "Shut"), 0, "which is the same on the wire");
    says(
        &EVENTS.replace("office", "rooms"),
        1,
        "WIRE: the event `office.closed` with the packet name",
    );
    // A raised version makes it legal, and what is gone is remembered.
    let without = EVENTS
        .replace(", opened: { publish: Opened }", "")
        .replace("doors", "doors.");
    room.write("shop.yaml", schema(2, &without));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    let lock = room.read("shop.lock.yaml");
    for line in [
        "shop.office.closed: { event: closed, publish: Closed, topic: doors. }",
        "shop.office.opened: { gone: opened }",
    ] {
        assert!(lock.contains(line), "{line} in\n{lock}");
    }
    room.write("shop.yaml", schema(3, &without.replace("closed:", "opened:")));
    let ran = room.run(&["check", "@shop.yaml"]);
    assert!(ran.code == 1 && ran.err.contains("[ZL1404]"), "{}", ran.err);
    // So is a whole fanout.
    room.write("shop.yaml", schema(3, "messages: { Closed: {}, Opened: {} }\n"));
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    room.write("shop.yaml", schema(4, &without));
    let ran = room.run(&["check", "@shop.yaml"]);
    assert!(ran.code == 1 && ran.err.contains("[ZL1404]"), "{}", ran.err);
}
