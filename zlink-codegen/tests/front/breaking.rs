//! `breaking`: what is compared with what, and how the outcome is told. Single rules are in `tests/invalid/`; that they
//! agree with what happens on the wire is shown in `generated/rust/tests/changes`.

use std::process::Command;

use serde_json::Value;

use crate::room::{Ran, Room};

const OLD: &str = "\
zlink: 1
namespace: shop
version: 1
messages:
  Item: { fields: { name: { id: 0, type: string }, price: { id: 1, type: u32 } } }
  Kept: { state: 1, fields: { item: { id: 0, type: Item } } }
services: { shop: { methods: { buy: { send: Item } } } }
";

/// The codes of the findings, each with its severity and level.
fn codes(ran: &Ran) -> Vec<String> {
    let all: Value = serde_json::from_str(&ran.out).expect("JSON");
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or("none").to_owned();
    let all = all.as_array().expect("an array").iter();
    all.map(|item| {
        format!(
            "{} {} {}",
            text(item, "code"),
            text(item, "severity"),
            text(item, "level")
        )
    })
    .collect()
}

#[test]
fn two_versions_are_compared_rule_by_rule() {
    let room = Room::new();
    room.write("old/shop.yaml", OLD);
    let new = OLD
        .replace("type: u32", "type: u64")
        .replace("buy:", "order:")
        .replace("name:", "title:");
    room.write("new/shop.yaml", new.replace("version: 1", "version: 2"));
    let json = room.run(&["breaking", "@old", "@new", "--format", "json"]);
    assert_eq!(
        (json.code, json.err.as_str()),
        (1, ""),
        "a raised version makes a change legal, not harmless"
    );
    assert_eq!(
        codes(&json),
        [
            "ZL1102 note source", // title
            "ZL1201 error wire",  // price
            "ZL1303 error state", // what Kept holds
            "ZL1208 error wire",  // buy
            "ZL1109 note source", // order
        ]
    );
    let human = room.run(&["breaking", "@old/shop.yaml", "@new/shop.yaml"]);
    assert_eq!((human.code, human.out.as_str()), (1, ""));
    assert!(
        human
            .err
            .contains("compared 1 namespace: 2 changes of WIRE, 1 of STATE, 2 of SOURCE"),
        "{}",
        human.err
    );
    // Both places are shown, each in its own file.
    for place in ["new/shop.yaml:5:", "old/shop.yaml:5:", "it was this"] {
        assert!(human.err.contains(place), "{place} in\n{}", human.err);
    }
    let back = room.run(&["breaking", "@new", "@old", "--format", "json"]);
    assert!(codes(&back).contains(&"ZL1405 error source".to_owned()), "{}", back.out);
}

#[test]
fn what_only_code_must_follow_is_no_failure_unless_it_is_asked_for() {
    let room = Room::new();
    room.write("old.yaml", OLD);
    room.write("new.yaml", OLD.replace("price: {", "cost: {"));
    assert_eq!(room.run(&["breaking", "@old.yaml", "@new.yaml"]).code, 0);
    assert_eq!(room.run(&["breaking", "@old.yaml", "@new.yaml", "--source"]).code, 1);
    assert_eq!(room.run(&["breaking", "@old.yaml", "@old.yaml", "--source"]).code, 0);
}

#[test]
fn namespaces_are_found_wherever_they_moved_and_missed_where_they_are_gone() {
    let room = Room::new();
    let other = OLD.replace("namespace: shop", "namespace: other");
    room.write("old/a.yaml", OLD);
    room.write("old/b.yaml", &other);
    // Two files of one namespace: each is compared with the one at its own place.
    room.write("old/copy/a.yaml", OLD.replace("u32", "u64"));
    room.write("new/copy/a.yaml", OLD.replace("u32", "u64"));
    room.write("new/a.yaml", OLD);
    room.write("new/deep/moved.yaml", other);
    room.write("new/fresh.yaml", OLD.replace("namespace: shop", "namespace: fresh"));
    let ran = room.run(&["breaking", "@old", "@new", "--source", "--format", "json"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "[]\n"),
        "a new namespace breaks nothing"
    );
    std::fs::remove_file(room.file("new/deep/moved.yaml")).expect("it is there");
    let ran = room.run(&["breaking", "@old", "@new", "--format", "json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        codes(&ran),
        ["ZL1112 note source", "ZL1302 error state", "ZL1208 error wire"]
    );
    assert!(ran.out.contains("old/b.yaml"), "a place in what was there: {}", ran.out);
}

/// A state holds what other namespaces declare, too.
#[test]
fn a_state_that_holds_a_changed_message_of_another_namespace_has_changed() {
    let room = Room::new();
    let file = |name: &str, rest: &str| format!("zlink: 1\nnamespace: {name}\nversion: 1\n{rest}");
    let coin = "messages: { Coin: { fields: { cents: { id: 0, type: i64 }, of: { id: 1, type: string } } } }\n";
    let less = "messages: { Coin: { fields: { cents: { id: 0, type: i64 } }, reserved: { 1: of } } }\n";
    let purse = "imports: [z.yaml]\nmessages: { Purse: { fields: { coins: { id: 0, type: list<z.Coin> } } }, Other: { state: 1 } }\n";
    let owner = "imports: [m.yaml]\nmessages: { Owner: { state: 4, fields: { purse: { id: 0, type: m.Purse } } } }\n";
    for (folder, coin) in [("old", coin), ("new", less)] {
        room.write(&format!("{folder}/z.yaml"), file("z", coin));
        room.write(&format!("{folder}/m.yaml"), file("m", purse));
        room.write(&format!("{folder}/a.yaml"), file("a", owner));
    }
    let ran = room.run(&["breaking", "@old", "@new", "--format", "json"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert_eq!(codes(&ran), ["ZL1303 error state", "ZL1103 note source"]);
    assert!(ran.out.contains("what the state `Owner` holds changed"), "{}", ran.out);
}

/// The locks of before tell that, until one is written: so none is.
#[test]
fn a_state_that_holds_what_another_lock_says_otherwise_has_changed() {
    let room = Room::new();
    let file = |name: &str, rest: &str| format!("zlink: 1\nnamespace: {name}\nversion: 1\n{rest}");
    let coin = "messages: { Coin: { fields: { cents: { id: 0, type: i64 }, of: { id: 1, type: string } } } }\n";
    let purse = "imports: [z.yaml]\nmessages: { Purse: { fields: { coins: { id: 0, type: list<z.Coin> } } } }\n";
    let owner = "imports: [m.yaml]\nmessages: { Owner: { state: 4, fields: { purse: { id: 0, type: m.Purse } } } }\n";
    room.write("z.yaml", file("z", coin));
    room.write("m.yaml", file("m", purse));
    room.write("a.yaml", file("a", owner));
    assert_eq!(room.run(&["accept", "@"]).code, 0);
    assert_eq!(room.run(&["check", "@", "--locked"]).code, 0);
    let less = coin
        .replace("of: { id: 1, type: string } }", "}, reserved: { 1: of }")
        .replace(" }, }", " } }");
    room.write("z.yaml", file("z", &less));
    for command in [
        &["check", "@a.yaml", "--format", "json"][..],
        &["check", "@", "--format", "json"],
        &["breaking", "--against", "lock", "@a.yaml", "--format", "json"],
        &["breaking", "--against", "lock", "@", "--format", "json"],
    ] {
        let ran = room.run(command);
        assert_eq!(
            (ran.code, codes(&ran)[0].as_str()),
            (1, "ZL1303 error state"),
            "{command:?}: {}",
            ran.out
        );
        assert!(ran.out.contains("what the state `Owner` holds changed"), "{}", ran.out);
    }
    for named in ["@", "@a.yaml"] {
        let ran = room.run(&["accept", named]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.err.contains("ZL1303") && !ran.err.contains("wrote"), "{}", ran.err);
    }
    room.write(
        "a.yaml",
        file("a", &owner.replace("state: 4", "state: 5")).replace("version: 1", "version: 2"),
    );
    assert_eq!(room.run(&["accept", "@"]).code, 0);
    assert_eq!(room.run(&["check", "@", "--locked"]).code, 0);
}

#[test]
fn a_version_that_is_wrong_is_no_version_without_changes() {
    let room = Room::new();
    room.write("old.yaml", OLD.replace("type: u32", "type: u33"));
    room.write("new.yaml", OLD);
    let ran = room.run(&["breaking", "@old.yaml", "@new.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("ZL0401"), "{}", ran.err);
    // Of what cannot be read nobody knows that it is gone.
    let back = room.run(&["breaking", "@new.yaml", "@old.yaml", "--source", "--format", "json"]);
    assert_eq!((back.code, codes(&back)), (1, vec!["ZL0401 error none".to_owned()]));
    assert_eq!(room.run(&["breaking", "@absent.yaml", "@new.yaml"]).code, 2);
    assert_eq!(room.run(&["breaking", "@new.yaml"]).code, 2, "compared with what?");
    assert_eq!(room.run(&["breaking", "@new.yaml", "--against", "nothing"]).code, 2);
}

#[test]
fn locks_are_compared_with_as_they_are() {
    let room = Room::new();
    room.write("shop.yaml", OLD);
    let ran = room.run(&["breaking", "--against", "lock", "@shop.yaml"]);
    assert_eq!(
        ran.code, 1,
        "a comparison with nothing must not look like success: {}",
        ran.err
    );
    assert_eq!(room.run(&["accept", "@shop.yaml"]).code, 0);
    assert_eq!(room.run(&["breaking", "--against", "lock", "@shop.yaml"]).code, 0);
    room.write(
        "shop.yaml",
        OLD.replace("u32", "u64").replace("version: 1", "version: 2"),
    );
    let ran = room.run(&["breaking", "--against", "lock", "@", "--format", "json"]);
    assert_eq!(
        (ran.code, codes(&ran)),
        (1, vec!["ZL1201 error wire".to_owned(), "ZL1303 error state".to_owned()])
    );
}

/// A repository with one commit of what is in the room.
fn commit(room: &Room) {
    let git = |args: &[&str]| {
        let ran = Command::new("git")
            .current_dir(room.path())
            .args([
                "-c",
                "user.name=test",
                "-c",
                "user.email=test@localhost",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(args)
            .output();
        let ran = ran.expect("git is installed");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
}

#[test]
fn a_commit_is_compared_with_the_files_that_are_there_now() {
    let room = Room::new();
    let import = "imports: [../common/c.yaml]\n";
    let with_import = OLD.replace(
        "messages:\n",
        &format!("{import}messages:\n  Use: {{ fields: {{ c: {{ id: 0, type: common.C }} }} }}\n"),
    );
    let common = "zlink: 1\nnamespace: common\nversion: 1\nmessages: { C: { fields: { n: { id: 0, type: u8 } } } }\n";
    room.write("schemas/shop.yaml", &with_import);
    room.write("common/c.yaml", common);
    commit(&room);
    let against =
        |extra: &[&str]| room.run(&[&["breaking", "--against", "git:HEAD", "--format", "json"], extra].concat());
    assert_eq!(against(&["@schemas"]).out, "[]\n");
    // What an import changes is a change of whoever imports it.
    room.write("common/c.yaml", common.replace("u8", "u16"));
    let ran = against(&["@schemas/shop.yaml"]);
    assert_eq!((ran.code, codes(&ran)), (1, vec!["ZL1201 error wire".to_owned()]));
    assert!(ran.out.contains("HEAD:common/c.yaml"), "{}", ran.out);
    // A file that is gone is missed; one that is not part of the commit breaks nothing.
    std::fs::remove_file(room.file("schemas/shop.yaml")).expect("it is there");
    room.write("schemas/other.yaml", common.replace("common", "other"));
    let ran = against(&["@schemas"]);
    assert!(codes(&ran).contains(&"ZL1208 error wire".to_owned()), "{}", ran.out);
    for (wrong, said) in [
        (["--against", "git:nowhere", "@schemas"], "is no commit"),
        (["--against", "git:--output=x", "@schemas"], "is no commit"),
        (
            ["--against", "git:HEAD", "@schemas/other.yaml"],
            "no schema at these paths",
        ),
    ] {
        let ran = room.run(&[&["breaking"], &wrong[..]].concat());
        assert!(ran.code == 2 && ran.err.contains(said), "{wrong:?}: {}", ran.err);
    }
}
