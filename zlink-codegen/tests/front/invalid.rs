//! Every code has a wrong schema in `tests/invalid/`, with what is said of it. `ZLINK_BLESS=1` writes what is said now.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use zlink_codegen::diagnostic::Code;

/// What `check` says of a schema, and its exit code. `root` is cut from paths.
fn check(schema: &Path, args: &str, root: &Path) -> String {
    let mut command = vec![
        "zlink-codegen".to_owned(),
        "check".to_owned(),
        schema.display().to_string(),
    ];
    command.extend(args.split_whitespace().map(str::to_owned));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = zlink_codegen::cli::run(command, &mut out, &mut err);
    assert!(out.is_empty(), "findings for people go to stderr");
    let text = String::from_utf8(err).expect("text");
    let text = text.replace(&format!("{}/", root.display()), "");
    format!("{text}exit code {code}\n")
}

fn corpus() -> PathBuf {
    // Tests run in the folder of their package.
    PathBuf::from("tests/invalid")
}

/// Compares, or blesses; tells what differs.
fn compare(expected: &Path, actual: &str, wrong: &mut String) {
    if std::env::var_os("ZLINK_BLESS").is_some() {
        std::fs::write(expected, actual).expect("writable");
        return;
    }
    let there = std::fs::read_to_string(expected).unwrap_or_default();
    if there != actual {
        let _ = writeln!(
            wrong,
            "{} differs.\n--- expected\n{there}\n--- actual\n{actual}",
            expected.display()
        );
    }
}

#[test]
fn every_wrong_schema_is_explained_as_expected() {
    let mut wrong = String::new();
    let mut seen = BTreeSet::new();
    let mut cases: Vec<PathBuf> = std::fs::read_dir(corpus())
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    cases.sort();
    for case in cases {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        let code = name.split('_').next().expect("a code").to_owned();
        let args = std::fs::read_to_string(case.join("args")).unwrap_or_default();
        let actual = match made(&code) {
            Some((_room, schema, root)) => check(&schema, &args, &root),
            None => check(&case.join("schema.yaml"), &args, &corpus()),
        };
        let actual = if code == Code::TooManyFindings.as_str() {
            last_two(&actual)
        } else {
            actual
        };
        if !actual.contains(&format!("[{code}]")) {
            let _ = writeln!(wrong, "{name} does not report its code:\n{actual}");
        }
        compare(&case.join("expected.txt"), &actual, &mut wrong);
        seen.insert(code);
    }
    for code in Code::ALL.iter().filter(|code| !seen.contains(code.as_str())) {
        let _ = writeln!(wrong, "{} ({}) has no case", code.as_str(), code.summary());
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The last two findings of a very long list, and how it ended.
fn last_two(findings: &str) -> String {
    let blocks: Vec<&str> = findings.split("\n\n").collect();
    blocks[blocks.len() - 3..].join("\n\n")
}

/// Schemas that are too large to be checked in, or that must not be there at all.
fn made(code: &str) -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
    let room = tempfile::tempdir().expect("a temporary folder");
    let schema = room.path().join("schema.yaml");
    let head = "zlink: 1\nnamespace: shop\nversion: 1\n";
    match code {
        "ZL0001" => {}
        "ZL0002" => std::fs::write(&schema, vec![b'#'; (4 << 20) + 1]).expect("writable"),
        "ZL0007" => {
            // Each line holds the one before ten times: ten to the ninth values.
            let mut text = format!("{head}a0: &a0 [x]\n");
            for level in 1..10 {
                let before = format!("*a{}, ", level - 1).repeat(10);
                let _ = writeln!(text, "a{level}: &a{level} [{before}]");
            }
            std::fs::write(&schema, text).expect("writable");
        }
        "ZL0306" => {
            for at in 0..300 {
                let name = if at == 0 {
                    "schema.yaml".to_owned()
                } else {
                    format!("s{at}.yaml")
                };
                let next = at + 1;
                let import = format!(
                    "imports: [s{next}.yaml]\nmessages: {{ A: {{ fields: {{ b: {{ id: 0, type: s{next}.A }} }} }} }}\n"
                );
                let text = format!("zlink: 1\nnamespace: s{at}\nversion: 1\n{import}");
                std::fs::write(room.path().join(name), text).expect("writable");
            }
        }
        _ => return None,
    }
    let root = room.path().to_owned();
    Some((room, schema, root))
}

#[test]
fn six_mistakes_are_six_findings() {
    let found = zlink_codegen::load("tests/invalid/ZL0102_six_mistakes/schema.yaml").expect_err("six mistakes");
    let codes: Vec<&str> = found.items.iter().map(|item| item.code.as_str()).collect();
    assert_eq!(codes, ["ZL0401", "ZL0102", "ZL0502", "ZL0501", "ZL0401", "ZL0109"]);
    let helps: Vec<&str> = found.items.iter().filter_map(|item| item.help.as_deref()).collect();
    for help in [
        "did you mean `string`?",
        "did you mean `required`?",
        "did you mean `Receipt`?",
    ] {
        assert!(helps.contains(&help), "{helps:?}");
    }
}
