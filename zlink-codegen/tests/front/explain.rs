//! `explain`: every code has a page, and every example is what it claims to be.

use serde_json::Value;
use zlink_codegen::diagnostic::Code;

use crate::room::Room;

/// The indented lines below a title of a page.
fn block(page: &str, title: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("\n{title}:\n"))?;
    let lines = rest.lines().take_while(|line| line.starts_with("    "));
    Some(lines.map(|line| format!("{}\n", &line[4..])).collect::<String>()).filter(|text| !text.is_empty())
}

/// The codes that a command finds, as JSON.
fn found(room: &Room, args: &[&str]) -> Vec<String> {
    let ran = room.run(args);
    let all: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err));
    let codes = all.as_array().expect("an array").iter();
    codes
        .map(|item| item["code"].as_str().expect("a code").to_owned())
        .collect()
}

/// The codes whose example is a sentence: a file that is too large, not there, not text, or not alone.
const NOTES: [&str; 20] = [
    "ZL0001", "ZL0002", "ZL0003", "ZL0004", "ZL0007", "ZL0012", "ZL0108", "ZL0202", "ZL0302", "ZL0303", "ZL0304",
    "ZL0306", "ZL0409", "ZL0410", "ZL0901", "ZL1001", "ZL1002", "ZL1003", "ZL1404", "ZL1406",
];

#[test]
fn every_code_is_explained_and_its_example_shows_it() {
    let room = Room::new();
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let name = code.as_str();
        let ran = room.run(&["explain", name]);
        let page = ran.out;
        if ran.code != 0 || !page.starts_with(&format!("{name}: {}\n", code.summary())) {
            wrong.push(format!("{name} has no page: {}", ran.err));
            continue;
        }
        for part in ["\nWhy: ", "\nWhat to do: "] {
            let text = page
                .split_once(part)
                .map_or("", |(_, rest)| rest.lines().next().unwrap_or_default());
            if text.len() < 8 {
                wrong.push(format!("{name} lacks `{}`", part.trim()));
            }
        }
        let codes = match (block(&page, "Example"), block(&page, "Before"), block(&page, "After")) {
            (Some(_), None, None) if NOTES.contains(&name) => continue,
            (Some(example), None, None) => {
                room.write("a.yaml", format!("zlink: 1\nnamespace: shop\nversion: 1\n{example}"));
                found(&room, &["check", "@a.yaml", "--format", "json"])
            }
            (None, Some(before), Some(after)) => {
                room.write("a.yaml", format!("zlink: 1\nnamespace: shop\n{before}"));
                room.write("b.yaml", format!("zlink: 1\nnamespace: shop\n{after}"));
                found(&room, &["breaking", "@a.yaml", "@b.yaml", "--format", "json"])
            }
            _ => {
                wrong.push(format!("{name} has no example"));
                continue;
            }
        };
        if !codes.iter().any(|found| found == name) {
            wrong.push(format!("the example of {name} shows {codes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_code_may_be_written_shortly_and_one_that_is_none_is_refused() {
    let room = Room::new();
    let page = room.run(&["explain", "ZL0401"]).out;
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    for short in ["0401", "zl0401"] {
        assert_eq!(room.run(&["explain", short]).out, page);
    }
    let ran = room.run(&["explain", "ZL9999"]);
    assert!(
        ran.code == 2 && ran.out.is_empty() && ran.err.contains("ZL0001 to ZL1406"),
        "{}",
        ran.err
    );
}
