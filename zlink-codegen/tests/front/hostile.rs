//! Files made to hurt: each ends soon, with a finding, in little memory.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::room::Room;

/// Far above what any of these takes in an unoptimised build, far below what an unbounded reader would.
const SOON: Duration = Duration::from_secs(60);

const HEAD: &str = "zlink: 1\nnamespace: a\nversion: 1\n";

/// The codes found, and that they were found soon.
fn codes(text: impl AsRef<[u8]>) -> Vec<&'static str> {
    let room = Room::new();
    let path = room.write("a.yaml", text);
    let start = Instant::now();
    let result = zlink_codegen::load(path);
    let codes = result.err().map(|findings| {
        // Showing them is part of the work.
        let _ = findings.to_string();
        findings.items.iter().map(|item| item.code.as_str()).collect()
    });
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
    codes.unwrap_or_default()
}

#[test]
fn nesting_is_bounded() {
    for text in [
        "[".repeat(2_000_000),
        "{a: ".repeat(1_000_000),
        "- ".repeat(2_000_000),
        "? ".repeat(2_000_000),
    ] {
        assert_eq!(codes(format!("{HEAD}doc:\n  {text}")), ["ZL0006"]);
    }
    let types = format!(
        "{HEAD}messages: {{ A: {{ fields: {{ a: {{ id: 0, type: \"{}\" }} }} }} }}",
        "list<".repeat(500_000)
    );
    assert_eq!(codes(types), ["ZL0402"]);
}

fn messages(count: usize, body: &str) -> String {
    (0..count).fold(String::new(), |mut all, at| {
        let _ = writeln!(all, "  M{at}: {body}");
        all
    })
}

#[test]
fn long_names_are_not_quoted_in_full() {
    let long = "x".repeat(100_000);
    let field = format!("\n    fields:\n      ? {long}\n      : {{ id: 0, type: {long} }}");
    let body = format!("messages:\n{}", messages(10, &field));
    let room = Room::new();
    let path = room.write("a.yaml", format!("{HEAD}imports: [{long}.yaml]\n{body}"));
    let found = zlink_codegen::load(path).expect_err("names are too long");
    assert_eq!(found.items.len(), 21);
    assert!(
        found.items.iter().all(|item| item.message.len() < 400),
        "{:?}",
        found.items
    );
    assert!(found.to_string().len() < 40_000);
}

#[test]
fn objects_are_bounded() {
    let list = |name: &str, count: usize| {
        (0..count).fold(String::new(), |mut all, at| {
            let _ = write!(all, "{name}{at}, ");
            all
        })
    };
    let actors = |spot: &str| {
        let rest = "create: { request: M }, relocation: { policy: recreate }, timers: [t]";
        (0..5_000).fold("actors:\n".to_owned(), |mut all, at| {
            let _ = writeln!(all, "  a{at}: {{ {rest}, join: {{ {spot}: {{ request: M }} }} }}");
            all
        })
    };
    let room = "kind: user, create: { request: M }, relocation: { policy: recreate }";
    let head = format!("{HEAD}messages: {{ M: {{}} }}\nspots:\n");
    // Every Actor joins one Spot of which all are members: pairs are looked up, not searched for.
    let all = list("a", 5_000);
    let lobby = format!("  lobby: {{ kind: entry, members: [{all}] }}\n");
    let room_of_all = format!("  room: {{ {room}, members: [{all}], timers: [{all}] }}\n");
    assert_eq!(codes(format!("{head}{lobby}{room_of_all}{}", actors("room"))), [""; 0]);
    // Names that lead nowhere, one of them long.
    let (nobody, long) = (list("nobody", 50_000), "x".repeat(100_000));
    let strangers = format!("  room: {{ {room}, members: [{long}, {long}, {nobody}], timers: [t] }}\n");
    let room = Room::new();
    let path = room.write("a.yaml", format!("{head}{strangers}{}", actors("kitchen")));
    let found = zlink_codegen::load(path).expect_err("names lead nowhere");
    assert!(found.items.len() < 300, "{}", found.items.len());
    assert!(found.items.iter().any(|item| item.code.as_str() == "ZL0802"));
    assert!(found.items.iter().all(|item| item.message.len() < 400));
}

#[test]
fn imports_are_bounded() {
    let absent: String = (0..50_000).fold(String::new(), |all, at| all + &format!("a{at}.yaml, "));
    let found = codes(format!("{HEAD}imports: [{absent}]\n"));
    assert_eq!(found.iter().filter(|code| **code == "ZL0306").count(), 1);
    let same = "b.yaml, ".repeat(50_000);
    assert!(codes(format!("{HEAD}imports: [{same}]\n")).contains(&"ZL0306"));
}

#[test]
fn a_lock_of_another_contract_is_compared_in_time() {
    let room = Room::new();
    let fields = |name: &str| {
        (0..30_000).fold(String::new(), |all, at| {
            all + &format!("{name}{at}: {{ id: {at}, type: bool }}, ")
        })
    };
    room.write(
        "a.yaml",
        format!("{HEAD}messages: {{ M: {{ fields: {{ {} }} }} }}\n", fields("x")),
    );
    let start = Instant::now();
    assert_eq!(room.run(&["accept", "@a.yaml"]).code, 0);
    room.write(
        "a.yaml",
        format!("{HEAD}messages: {{ M: {{ fields: {{ {} }} }} }}\n", fields("y")),
    );
    assert_eq!(room.run(&["check", "@a.yaml"]).code, 0, "names are no contract");
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
}

#[test]
fn aliases_are_bounded() {
    let mut lists = format!("{HEAD}a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    let mut maps = format!("{HEAD}b0: &b0 {{ x: 1, y: 2 }}\n");
    for level in 1..25 {
        let before = level - 1;
        let _ = writeln!(lists, "a{level}: &a{level} [{}]", format!("*a{before}, ").repeat(10));
        let _ = writeln!(maps, "b{level}: &b{level} {{ x: *b{before}, y: *b{before} }}");
    }
    assert_eq!(codes(lists), ["ZL0007"]);
    assert_eq!(codes(maps), ["ZL0007"]);
    // Few values, but each alias is a megabyte.
    let long = format!(
        "{HEAD}doc: &d {}\nmessages:\n{}",
        "x".repeat(1 << 20),
        messages(1_000, "{ doc: *d }")
    );
    assert_eq!(codes(long), ["ZL0007"]);
    let many = format!("{HEAD}doc: &d x\nmessages:\n{}", "  ? *d\n".repeat(100_000));
    assert!(codes(many).contains(&"ZL0009"));
}

#[test]
fn size_is_bounded() {
    let room = Room::new();
    let path = room.file("large.yaml");
    // A hole of 100 MB: nothing is read beyond the bound.
    std::fs::File::create(&path)
        .and_then(|file| file.set_len(100 << 20))
        .expect("writable");
    let found = zlink_codegen::load(&path).expect_err("too large");
    assert_eq!(found.items[0].code.as_str(), "ZL0002");
    assert!(
        found
            .sources
            .get(found.items[0].span.file)
            .expect("the file")
            .text()
            .is_empty()
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let room = Room::new();
    std::fs::create_dir(room.file("folder.yaml")).expect("writable");
    let found = zlink_codegen::load(room.file("folder.yaml")).expect_err("a folder");
    assert_eq!(found.items[0].code.as_str(), "ZL0001");
    #[cfg(unix)]
    {
        let found = zlink_codegen::load("/dev/zero").expect_err("no regular file");
        assert_eq!(found.items[0].code.as_str(), "ZL0001");
        std::os::unix::fs::symlink("loop.yaml", room.file("loop.yaml")).expect("writable");
        let found = zlink_codegen::load(room.file("loop.yaml")).expect_err("a loop");
        assert_eq!(found.items[0].code.as_str(), "ZL0001");
    }
}

#[test]
fn many_mistakes_are_cut_off() {
    let mut text = format!("{HEAD}messages:\n");
    for at in 0..20_000 {
        let _ = writeln!(
            text,
            "  Message{at}: {{ fields: {{ a: {{ id: 0, type: Mesage{at} }}, b: {{ id: 0, type: lost }} }} }}"
        );
    }
    let found = codes(text);
    assert_eq!(found.len(), 201);
    assert_eq!(found.last(), Some(&"ZL0012"));
}

#[test]
fn one_endless_line_is_not_drawn_again_and_again() {
    let mut text = format!("{HEAD}messages: {{ ");
    for at in 0..20_000 {
        let _ = write!(text, "M{at}: {{ fields: {{ a: {{ id: 0, type: lost }} }} }}, ");
    }
    text.push('}');
    assert_eq!(codes(text).len(), 201);
}

#[test]
fn chains_do_not_recurse() {
    let mut messages = format!("{HEAD}messages:\n");
    let mut structs = format!("{HEAD}structs:\n");
    for at in 0..30_000 {
        let _ = writeln!(
            messages,
            "  M{at}: {{ fields: {{ a: {{ id: 0, type: M{}, required: true }} }} }}",
            (at + 1) % 30_000
        );
        let _ = writeln!(structs, "  S{at}: {{ a: S{} }}", at + 1);
    }
    let _ = writeln!(structs, "  S30000: {{ a: u8 }}");
    assert_eq!(codes(messages).first(), Some(&"ZL0407"));
    assert_eq!(codes(structs).first(), Some(&"ZL0409"));
    let mut doubling = format!("{HEAD}structs:\n  S0: {{ a: uuid }}\n");
    for at in 1..200 {
        let _ = writeln!(doubling, "  S{at}: {{ a: S{0}, b: S{0} }}", at - 1);
    }
    assert!(codes(doubling).contains(&"ZL0409"));
}

#[test]
fn names_that_collide_are_numbered_without_trying_each_number() {
    // Two ways to write each of 15 word breaks, and one snake_case for all.
    let mut names = vec!["a".to_owned()];
    for letter in 'b'..='p' {
        let upper = letter.to_ascii_uppercase();
        names = names
            .iter()
            .flat_map(|name| [format!("{name}_{letter}"), format!("{name}{upper}")])
            .collect();
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let start = Instant::now();
    let idents = zlink_codegen::name::assign(&names, zlink_codegen::name::snake, []);
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
    assert_eq!(idents.len(), 1 << 15);
    assert_eq!(idents.iter().collect::<std::collections::BTreeSet<_>>().len(), 1 << 15);
}

#[test]
fn encodings() {
    let good = format!("{HEAD}messages: {{ A: {{}} }}\n");
    assert_eq!(
        codes(format!("\u{feff}{good}")),
        [""; 0],
        "a byte order mark is no content"
    );
    assert_eq!(codes(good.replace('\n', "\r\n")), [""; 0]);
    assert_eq!(codes(good.replace('\n', "\r")), [""; 0]);
    assert_eq!(codes(format!("{HEAD}doc: \"\0\"\n")), ["ZL0004"]);
    assert_eq!(codes(b"\xff\xfez\0l\0i\0n\0k\0"), ["ZL0003"], "UTF-16");
    assert_eq!(codes([HEAD.as_bytes(), b"doc: \xc3"].concat()), ["ZL0003"]);
    assert_eq!(codes(b""), ["ZL0010"]);
}

#[test]
fn words_that_yaml_would_take_for_something_else_are_names() {
    let text = "\
zlink: 1
namespace: on
version: 1
enums: { Yes: { type: u8, values: { unspecified: 0, yes: 1, no: 2, true: 3, null: 4, on: 5, y: 6, e1: 7 } } }
messages: { No: { fields: { yes: { id: 0, type: Yes }, null: { id: 1, type: No }, off: { id: 2, type: u8 } } } }
services: { yes: { methods: { no: { send: No }, true: { send: No, packet: 1.10 } } } }
";
    let room = Room::new();
    let path = room.write("on.yaml", text);
    let schema = zlink_codegen::load(&path).unwrap_or_else(|findings| panic!("{findings}"));
    let values: Vec<&str> = schema.root().enums[0]
        .values
        .iter()
        .map(|value| value.name.as_str())
        .collect();
    assert_eq!(values, ["unspecified", "yes", "no", "true", "null", "on", "y", "e1"]);
    assert_eq!(schema.root().services[0].methods[1].packet, "1.10");
    assert_eq!(room.run(&["accept", "@on.yaml"]).code, 0);
    assert_eq!(
        room.run(&["check", "--locked", "@on.yaml"]).code,
        0,
        "the lock reads back as it was written"
    );
}
