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

/// The codes whose examples are wrong by themselves, at one place, so that an editor can mark them.
const SEEN: [&str; 21] = [
    "ZL0101", "ZL0102", "ZL0103", "ZL0104", "ZL0105", "ZL0106", "ZL0107", "ZL0108", "ZL0109", "ZL0201", "ZL0202",
    "ZL0305", "ZL0402", "ZL0501", "ZL0701", "ZL0702", "ZL0703", "ZL0801", "ZL0804", "ZL0805", "ZL0808",
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
