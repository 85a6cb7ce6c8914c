//! `schema`: every schema of the repository satisfies it, and what is wrong in its eyes is wrong.
//!
//! The validator is a Python package.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::format::schemas;
use crate::room::Room;

/// Python, in the environment that all interop tests share.
fn python() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/python-env");
    let ran = Command::new(script).output().expect("the script starts");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success(),
        "this test needs python3 with venv, and packages of it: {said}"
    );
    let folder = String::from_utf8(ran.stdout).expect("a path");
    Path::new(folder.lines().next().expect("a path")).join("bin/python")
}

/// What the JSON Schema says of each file.
fn verdicts(files: &[PathBuf]) -> Vec<String> {
    let room = Room::new();
    let ran = room.run(&["schema"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let schema = room.write("zlink.schema.json", ran.out);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/front/validate.py");
    let mut python = Command::new(python())
        .arg(script)
        .arg(schema)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let list: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    python
        .stdin
        .take()
        .expect("its input")
        .write_all(list.as_bytes())
        .expect("it reads");
    let ran = python.wait_with_output().expect("it ends");
    assert!(ran.status.success());
    let text = String::from_utf8(ran.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

/// Ways to write a scalar, or nothing, that YAML readers take for one thing or another.
const SPELLINGS: [&str; 34] = [
    "",
    "~",
    "null",
    "Null",
    "\"null\"",
    "0",
    "\"0\"",
    "1",
    "'1'",
    "-1",
    "+1",
    "007",
    "1_000",
    "0x10",
    "0o7",
    "1.0",
    "1.5",
    "1e2",
    ".inf",
    ".nan",
    "true",
    "\"true\"",
    "True",
    "false",
    "no",
    "'no'",
    "\"\"",
    "A",
    "\"A\"",
    "u8",
    "2026-01-01",
    "'a b'",
    "[]",
    "{}",
];
/// Where one may stand: `@` is its place in a schema that is right without it.
const PLACES: [&str; 44] = [
    "doc: @\n",
    "imports: @\n",
    "messages: { @: {} }\n",
    "messages: { A: @ }\n",
    "messages: { A: { doc: @ } }\n",
    "messages: { A: { state: @ } }\n",
    "messages: { A: { fields: @ } }\n",
    "messages: { A: { fields: { @: { id: 0, type: u8 } } } }\n",
    "messages: { A: { fields: { x: { id: @, type: u8 } } } }\n",
    "messages: { A: { fields: { x: { id: 0, type: @ } } }, true: {}, no: {} }\n",
    "messages: { A: { fields: { x: { id: 0, type: string, required: @ } } } }\n",
    "messages: { A: { fields: { x: { id: 0, type: string, max: @ } } } }\n",
    "messages: { A: { fields: { x: { id: 0, type: u8, since: @ } } } }\n",
    "messages: { A: { reserved: { @: x } } }\n",
    "messages: { A: { reserved: { 0: @ } } }\n",
    "enums: { E: { type: i64, values: { unspecified: 0, x: @ } } }\n",
    "enums: { E: { type: u8, values: { unspecified: @ } } }\n",
    "enums: { E: { type: i64, values: { unspecified: 0 }, reserved: [@] } }\n",
    "structs: { S: { x: @ } }\n",
    "messages: { A: {} }\nunions: { U: { @: A } }\n",
    "messages: { A: {}, true: {}, no: {} }\nunions: { U: { 1: @ } }\n",
    "metadata: { @: { type: u8 } }\n",
    "metadata: { k: { type: u8, relay: @ } }\n",
    "messages: { A: {}, true: {}, no: {} }\nservices: { s: { methods: { m: { send: @ } } } }\n",
    "messages: { A: {} }\nservices: { s: { methods: { @: { send: A, packet: p } } } }\n",
    "messages: { A: {} }\nservices: { s: { methods: { m: { send: A, packet: @ } } } }\n",
    "messages: { A: {} }\nservices: { s: { methods: { m: { request: A, reply: A, timeout: @ } } } }\n",
    "messages: { A: {} }\nservices: { s: { target: @, methods: { m: { send: A } } } }\n",
    "messages: { A: {} }\nservices: { s: { methods: { m: { send: A, was: @ } } } }\n",
    "messages: { A: {} }\nfanouts: { @: { events: { e: { publish: A } } } }\n",
    "messages: { A: {} }\nfanouts: { f: { events: @ } }\n",
    "messages: { A: {}, true: {}, no: {} }\nfanouts: { f: { events: { e: { publish: @ } } } }\n",
    "messages: { A: {} }\nfanouts: { f: { events: { e: { publish: A, topic: @ } } } }\n",
    "spots: { @: { kind: entry } }\n",
    "spots: { a: { kind: @ } }\n",
    "messages: { A: {} }\nspots: { s: { kind: instance, relocation: @, methods: { m: { send: A, activates: true } } } }\n",
    "messages: { A: {} }\nspots: { s: { kind: instance, relocation: { policy: @ }, methods: { m: { send: A, activates: true } } } }\n",
    "messages: { A: {} }\nspots: { s: { kind: instance, relocation: { policy: recreate }, methods: { m: { send: A, activates: @ } } } }\n",
    "messages: { A: {} }\nspots: { s: { kind: instance, relocation: { policy: recreate }, timers: @, methods: { m: { send: A, activates: true } } } }\n",
    "messages: { A: {} }\nspots: { s: { kind: instance, relocation: { policy: recreate }, timers: [@], methods: { m: { send: A, activates: true } } } }\n",
    "messages: { A: {} }\nspots: { s: { kind: user, relocation: { policy: recreate }, create: { request: A }, boundary: @ } }\n",
    "messages: { A: {} }\nspots: { s: { kind: user, relocation: { policy: recreate }, create: { request: A }, execution: @ } }\n",
    "messages: { A: {} }\nspots: { s: { kind: user, relocation: { policy: recreate }, create: @ } }\n",
    "messages: { A: {} }\nspots: { s: { kind: user, relocation: { policy: recreate }, create: { request: A }, subscribes: { e: { channel: c, topic: @, message: A } } } }\n",
];

#[test]
fn whatever_is_written_in_a_place_the_json_schema_takes_what_check_takes() {
    let room = Room::new();
    let mut files = Vec::new();
    for (at, place) in PLACES.iter().enumerate() {
        for (which, spelling) in SPELLINGS.iter().enumerate() {
            let text = format!("zlink: 1\nnamespace: a\nversion: 1\n{}", place.replace('@', spelling));
            files.push(room.write(&format!("{at}-{which}.yaml"), text));
        }
    }
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for (file, verdict) in files.iter().zip(verdicts(&files)) {
        let right = room.run(&["check", &file.display().to_string()]).code == 0;
        taken += usize::from(right);
        if right && verdict != "ok" {
            let text = std::fs::read_to_string(file).expect("it was written");
            wrong.push(format!("{text}{verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 150, "{taken} are right");
}

/// The codes whose examples are wrong by themselves, at one place, so that an editor can mark them.
const SEEN: [&str; 22] = [
    "ZL0101", "ZL0102", "ZL0103", "ZL0104", "ZL0105", "ZL0106", "ZL0107", "ZL0108", "ZL0109", "ZL0201", "ZL0202",
    "ZL0305", "ZL0402", "ZL0501", "ZL0701", "ZL0702", "ZL0703", "ZL0707", "ZL0801", "ZL0804", "ZL0805", "ZL0808",
];
/// The codes of which some examples can be seen.
const PARTLY: [&str; 2] = ["ZL0705", "ZL0706"];

#[test]
fn the_json_schema_sees_what_an_editor_can_see_and_nothing_that_is_right() {
    let files = schemas();
    let verdicts = verdicts(&files);
    assert_eq!(verdicts.len(), files.len());
    let (mut wrong, mut right, mut seen) = (Vec::new(), 0, BTreeSet::new());
    for (path, verdict) in files.iter().zip(&verdicts) {
        let shown = path.to_string_lossy();
        let case = shown.split("tests/invalid/").nth(1).map(|case| case[..6].to_owned());
        // The other files of an example are right, and so is what is only wrong in another file or in a lock.
        let code = case.filter(|_| shown.ends_with("schema.yaml")).unwrap_or_default();
        let sees = verdict.starts_with("wrong");
        let fits = match code.as_str() {
            code if SEEN.contains(&code) => verdict != "ok",
            code if PARTLY.contains(&code) => true,
            code if code.starts_with("ZL00") => true,
            _ => !sees,
        };
        right += usize::from(verdict == "ok");
        if sees {
            seen.insert(code);
        }
        if !fits {
            wrong.push(format!("{shown}: {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(right > 80, "{right} files are right");
    for code in SEEN {
        assert!(seen.contains(code), "{code} has no example");
    }
}
