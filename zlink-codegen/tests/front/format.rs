//! `fmt`: one form, nothing lost, and the same again the second time.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::room::Room;

/// The schemas of this repository, and those of its tests.
pub(crate) fn schemas() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = ["schemas", "examples", "bench/schemas", "zlink-codegen/tests"]
        .iter()
        .map(|folder| root.join(folder))
        .collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "yaml") && !path.to_string_lossy().ends_with(".lock.yaml")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The comments of a text that has `#` in comments alone.
fn comments(text: &str) -> Vec<String> {
    let comments = text
        .lines()
        .filter_map(|line| line.find('#').map(|at| line[at..].trim_end().to_owned()));
    comments.collect()
}

/// The text of a schema after `fmt`, or nothing where it is not YAML.
fn formatted(room: &Room, text: &[u8]) -> Option<String> {
    room.write("a.yaml", text);
    let ran = room.run(&["fmt", "@a.yaml"]);
    assert!(ran.code < 2, "{}", ran.err);
    (ran.code == 0).then(|| room.read("a.yaml"))
}

/// What `check` says, without places.
fn meaning(room: &Room, text: &[u8]) -> Vec<String> {
    room.write("a.yaml", text);
    let found: serde_json::Value =
        serde_json::from_str(&room.run(&["check", "@a.yaml", "--format", "json"]).out).expect("JSON");
    let items = found.as_array().expect("an array").iter();
    let mut all: Vec<_> = items
        .map(|item| format!("{} {} {}", item["code"], item["message"], item["help"]))
        .collect();
    all.sort();
    all
}

#[test]
fn every_schema_that_is_yaml_keeps_its_meaning_and_its_form() {
    let room = Room::new();
    let (mut seen, mut refused) = (0, 0);
    for path in schemas() {
        let text = std::fs::read(&path).expect("readable");
        let Some(once) = formatted(&room, &text) else {
            refused += 1;
            let said = room.run(&["check", "@a.yaml"]).err;
            let broken = said.contains("[ZL00") || said.contains("a key must be text");
            assert!(broken, "{} is YAML: {said}", path.display());
            continue;
        };
        seen += 1;
        assert_eq!(
            meaning(&room, &text),
            meaning(&room, once.as_bytes()),
            "{}",
            path.display()
        );
        assert_eq!(
            formatted(&room, once.as_bytes()).as_deref(),
            Some(once.as_str()),
            "{}",
            path.display()
        );
        let lines = once.lines().all(|line| line == line.trim_end() && !line.contains('\t'));
        assert!(lines && once.ends_with('\n') && !once.ends_with("\n\n"), "{once}");
    }
    assert!(seen > 110 && refused < 20, "{seen} formatted, {refused} refused");
}

#[test]
fn the_schemas_of_this_repository_that_people_read_have_the_form() {
    // Those that people look at; what only tests read may be as it is.
    let own = schemas()
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("/tests/"));
    let args: Vec<String> = own.map(|path| path.display().to_string()).collect();
    let mut all = vec!["fmt", "--check"];
    all.extend(args.iter().map(String::as_str));
    let ran = Room::new().run(&all);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn what_is_written_in_another_way_comes_out_in_one() {
    let room = Room::new();
    let text = "\
# Of the shop.


zlink:   1   # the edition
namespace: shop
version: 1
imports:
    - common.yaml # one
    # and not
    - other.yaml
messages:
      # Buys.
      Buy : {fields: {item: {id: 0,type: string,doc: 'it''s \"it\"'}}}   # one

      Sell:
            doc: |
                  Two
                    lines.

                  And a third.
            fields: { # of Sell
               price:    { id: 0, type: list< u64 > }, # in cents
               # the note
               a:        { id: 1, type: string }
               # at the end
            } # no more
      Empty: {   }
      # under Empty
# of services
services: {shop: {methods: {buy: {request: Buy, reply: Sell, timeout: 250ms}, sell: {request: Sell, reply: Empty, timeout: 250ms}}}}
";
    let expected = "\
# Of the shop.

zlink: 1   # the edition
namespace: shop
version: 1
imports:
  - common.yaml # one
  # and not
  - other.yaml
messages:
  # Buys.
  Buy: { fields: { item: { id: 0, type: string, doc: 'it''s \"it\"' } } }   # one

  Sell:
    doc: |
      Two
        lines.

      And a third.
    fields: # of Sell
      price:    { id: 0, type: list< u64 > } # in cents
      # the note
      a:        { id: 1, type: string }
      # at the end
  # no more
  Empty: {}
  # under Empty
# of services
services:
  shop:
    methods:
      buy: { request: Buy, reply: Sell, timeout: 250ms }
      sell: { request: Sell, reply: Empty, timeout: 250ms }
";
    assert_eq!(formatted(&room, text.as_bytes()).as_deref(), Some(expected));
    let windows = expected.replace('\n', "\r\n");
    assert_eq!(
        formatted(&room, windows.as_bytes()).as_deref(),
        Some(expected),
        "line ends of another system"
    );
}

#[test]
fn what_yaml_allows_and_schemas_rarely_have_is_kept_or_left_alone() {
    let room = Room::new();
    for (text, expected) in [
        ("a: &x {b: 1}\nc: *x\n", "a: &x { b: 1 }\nc: *x\n"),
        ("a: [ # nothing\n ]\nb: 1\n", "a: [] # nothing\nb: 1\n"),
        ("- [ # nothing\n ]\n-\n\n  b: 1\n", "- [] # nothing\n- b: 1\n"),
        (
            "a: \"one\n    two\"\nb: one\n  two\n",
            "a: \"one\n  two\"\nb: one\n  two\n",
        ),
        ("---\n# first\na: 'x # y'\n", "# first\na: 'x # y'\n"),
        ("a: >-\n      one\n      two\nb: 1\n", "a: >-\n  one\n  two\nb: 1\n"),
        ("- a: 1\n\n\n-   b: 1\n", "- a: 1\n\n- b: 1\n"),
        // A block scalar that begins with spaces says how far in it is, and one may keep the lines at its end.
        ("a: |4-\n      x\n    y\nb: 1\n", "a: |2-\n    x\n  y\nb: 1\n"),
        ("- |1 # why\n   x\n  y\n", "- |2 # why\n    x\n   y\n"),
        (
            "a: >+\n    one\n\n\nb: |+\n  two\n\n",
            "a: >+\n  one\n\n\nb: |+\n  two\n\n",
        ),
        (
            "a: &x # an anchor of a block\n   b: 1\nc: *x\n",
            "a: &x # an anchor of a block\n  b: 1\nc: *x\n",
        ),
        (
            "a: &x\n    # of b\n    b: 1\nc: *x\n",
            "a: &x\n  # of b\n  b: 1\nc: *x\n",
        ),
        ("- &x # of x\n  - 1\n- *x\n", "# of x\n- &x\n  - 1\n- *x\n"),
        (
            "a: &x # one\n  word\nb: [*x, &y  {c: *x}, *y]\n",
            "a: &x word # one\nb: [*x, &y { c: *x }, *y]\n",
        ),
        ("a:\nb: ~\nc: {}\n", "a:\nb: ~\nc: {}\n"),
        ("\u{feff}a:  1", "a: 1\n"),
    ] {
        room.write("a.yaml", text);
        let ran = room.run(&["fmt", "@a.yaml"]);
        assert_eq!(ran.code, 0, "{text:?}: {}", ran.err);
        assert_eq!(room.read("a.yaml"), expected, "{text:?}");
        assert_eq!(room.run(&["fmt", "--check", "@a.yaml"]).code, 0, "{text:?}");
    }
}

#[test]
fn check_writes_nothing_and_fails_for_another_form() {
    let room = Room::new();
    let text = "zlink:  1\nnamespace: a\nversion: 1\n";
    room.write("a.yaml", text);
    room.write("b.yaml", "zlink: 1\nnamespace: b\nversion: 1\n");
    let ran = room.run(&["fmt", "--check", "@"]);
    assert_eq!((ran.code, room.read("a.yaml").as_str()), (1, text));
    assert!(ran.err.contains("a.yaml") && !ran.err.contains("b.yaml"), "{}", ran.err);
    assert_eq!(room.run(&["fmt", "@"]).code, 0);
    assert_eq!(room.run(&["fmt", "--check", "@"]).code, 0);
    room.write("b.yaml", "zlink: [\n");
    let ran = room.run(&["fmt", "@"]);
    assert_eq!(
        (ran.code, room.read("b.yaml").as_str()),
        (1, "zlink: [\n"),
        "what is not YAML stays: {}",
        ran.err
    );
    assert_eq!(room.run(&["fmt", "@absent.yaml"]).code, 2);
}

#[test]
fn ids_are_given_where_there_are_none() {
    let room = Room::new();
    let head = "zlink: 1\nnamespace: a\nversion: 1\nmessages:\n";
    let fields = "  A: { fields: { x: { type: u8 }, y: { id: 1, type: u8 }, z: string }, reserved: { 2: old } }\n  B:\n    fields:\n      # first\n      one:\n        type: u8 # one\n        doc: One.\n";
    room.write("a.yaml", format!("{head}{fields}"));
    assert_eq!(room.run(&["fmt", "--assign-ids", "@a.yaml"]).code, 0);
    let expected = "  A: { fields: { x: { id: 0, type: u8 }, y: { id: 1, type: u8 }, z: { id: 3, type: string } }, reserved: { 2: old } }\n  B:\n    fields:\n      # first\n      one:\n        id: 0\n        type: u8 # one\n        doc: One.\n";
    assert_eq!(room.read("a.yaml"), format!("{head}{expected}"));
    assert_eq!(room.run(&["check", "@a.yaml"]).code, 0);
    // With a lock, a field gets back the id it had, and no id that something had is given to another.
    assert_eq!(room.run(&["accept", "@a.yaml"]).code, 0);
    let lost = "  A: { fields: { z: { type: string }, y: { type: u8 }, w: { type: u8 } }, reserved: { 2: old } }\n";
    room.write("a.yaml", format!("{head}{lost}"));
    assert_eq!(room.run(&["fmt", "--assign-ids", "@a.yaml"]).code, 0);
    let text = room.read("a.yaml");
    for field in [
        "z: { id: 3, type: string }",
        "y: { id: 1, type: u8 }",
        "w: { id: 4, type: u8 }",
    ] {
        assert!(text.contains(field), "{field} in {text}");
    }
}

/// A schema in random style: indentation, braces, blank lines and comments.
fn styled() -> impl Strategy<Value = String> {
    let field = ("[a-z]{1,8}", 0..3usize, prop::bool::ANY, "[ a-z]{0,12}");
    (prop::collection::vec(field, 1..8), 1..5usize, prop::bool::ANY).prop_map(|(fields, step, flow)| {
        let pad = " ".repeat(step);
        let mut text = format!("zlink: 1\nnamespace: a\nversion: 1\nmessages:\n{pad}M:\n{pad}{pad}fields:");
        text.push_str(if flow { " {\n" } else { "\n" });
        for (id, (name, blanks, comment, words)) in fields.into_iter().enumerate() {
            text.push_str(&"\n".repeat(blanks));
            if comment {
                text.push_str(&format!("{pad}{pad}{pad}# above {words}\n"));
            }
            let colon = " ".repeat(1 + blanks);
            let comma = if flow { "," } else { "" };
            text.push_str(&format!(
                "{pad}{pad}{pad}{name}{id}:{colon}{{id: {id}, type:  u8 , doc: \"{words}\"}}{comma}"
            ));
            text.push_str(if comment { "  # behind\n" } else { "\n" });
        }
        text.push_str(if flow { "      }\n" } else { "" });
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_style_becomes_the_one_form_and_stays(text in styled()) {
        let room = Room::new();
        let once = formatted(&room, text.as_bytes()).expect("it is YAML");
        prop_assert_eq!(comments(&text), comments(&once));
        prop_assert_eq!(meaning(&room, text.as_bytes()), meaning(&room, once.as_bytes()));
        prop_assert_eq!(formatted(&room, once.as_bytes()), Some(once));
    }
}

/// Doc texts as block scalars of every style, some of them behind an anchor and a comment.
fn texts() -> impl Strategy<Value = String> {
    let line = (0..4usize, "[a-z#&:]{1,6}( [a-z]{1,4})?");
    let line = prop_oneof![3 => line.prop_map(|(lead, words)| format!("{}{words}", " ".repeat(lead))), 1 => Just(String::new())];
    let text = (
        prop::sample::select(vec!["|", ">"]),
        prop::sample::select(vec!["", "-", "+"]),
        1..5usize,
        prop::bool::ANY,
        prop::collection::vec(line, 1..6),
        prop::sample::select(vec!["", " # why"]),
        0..3usize,
    );
    prop::collection::vec(text, 1..5).prop_map(|texts| {
        let mut schema = String::from("zlink: 1\nnamespace: a\nversion: 1\nmessages:\n");
        for (at, (style, chomp, step, says, mut lines, comment, end)) in texts.into_iter().enumerate() {
            // Without a word on it, the first line tells how far in it is.
            let begins = lines
                .iter()
                .find(|line| !line.is_empty())
                .is_some_and(|line| line.starts_with(' '));
            let step_said = if says || begins {
                step.to_string()
            } else {
                String::new()
            };
            lines.extend(std::iter::repeat_n(String::new(), end));
            let anchor = if at % 2 == 0 {
                format!("&m{at} # of {at}\n    ")
            } else {
                "\n    ".to_owned()
            };
            schema.push_str(&format!("  M{at}: {anchor}doc: {style}{step_said}{chomp}{comment}\n"));
            for line in lines {
                let indent = if line.is_empty() { 0 } else { 4 + step };
                schema.push_str(&format!("{}{line}\n", " ".repeat(indent)));
            }
            schema.push_str("    fields: {}\n");
            if at % 2 == 0 {
                schema.push_str(&format!("  Same{at}: *m{at}\n"));
            }
        }
        schema
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// `fmt` itself holds what it writes against what it read.
    #[test]
    fn no_block_of_text_is_refused_or_changed(text in texts()) {
        let room = Room::new();
        let once = formatted(&room, text.as_bytes());
        prop_assert!(once.is_some(), "{}", text);
        prop_assert_eq!(formatted(&room, once.as_deref().unwrap_or_default().as_bytes()), once);
    }
}

/// A file is brought into the one form where it is: who may read it stays, and what is a link stays one.
#[cfg(unix)]
#[test]
fn a_formatted_file_stays_the_file_it_was() {
    use std::os::unix::fs::PermissionsExt as _;
    let crooked = "zlink: 1\nnamespace:   a\nversion: 1\nmessages: { M: {} }\n";
    let room = Room::new();
    let path = room.write("a.yaml", crooked);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("ours");
    assert_eq!(room.run(&["fmt", "@a.yaml"]).code, 0);
    assert_ne!(room.read("a.yaml"), crooked);
    let mode = std::fs::metadata(&path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{mode:o}: others may read it now");
}

/// As above, for a schema that several folders share by a link.
#[cfg(unix)]
#[test]
fn a_link_to_a_schema_is_followed() {
    let crooked = "zlink: 1\nnamespace:   a\nversion: 1\nmessages: { M: {} }\n";
    let room = Room::new();
    let shared = room.write("shared/a.yaml", crooked);
    std::os::unix::fs::symlink(&shared, room.file("a.yaml")).expect("writable");
    assert_eq!(room.run(&["fmt", "@a.yaml"]).code, 0);
    assert!(room.file("a.yaml").is_symlink(), "the link is a copy now");
    assert_ne!(room.read("shared/a.yaml"), crooked, "the file it leads to is as it was");
}
