//! `explain`: what a code means, why it is reported, an example, and what to do.
//!
//! It must not know how anything is found. What it says stands in two YAML files, which are read like a schema.

use super::{Console, FINE, TROUBLE};
use crate::diagnostic::{Code, Sink};
use crate::load::{self, Kind, Node};
use crate::source::Sources;

const TEXTS: [&str; 2] = [
    include_str!("explain/schemas.yaml"),
    include_str!("explain/changes.yaml"),
];

pub(super) fn run(code: &str, console: &mut Console<'_>) -> u8 {
    let wanted = code.trim().to_ascii_uppercase();
    let wanted = if wanted.starts_with("ZL") {
        wanted
    } else {
        format!("ZL{wanted}")
    };
    let Some(code) = Code::ALL.iter().find(|code| code.as_str() == wanted) else {
        console.say(format_args!("error: there is no code `{code}`; they are {}", range()));
        return TROUBLE;
    };
    match page(*code) {
        Some(page) if console.out.write_all(page.as_bytes()).is_ok() => FINE,
        _ => TROUBLE,
    }
}

fn range() -> String {
    let (first, last) = (
        Code::ALL.iter().min_by_key(|code| code.as_str()),
        Code::ALL.iter().max_by_key(|code| code.as_str()),
    );
    let text = |code: Option<&Code>| code.map_or("", |code| code.as_str());
    format!("{} to {}", text(first), text(last))
}

/// The whole page of a code.
fn page(code: Code) -> Option<String> {
    let node = TEXTS.into_iter().find_map(|text| entry(text, code))?;
    let get = |key: &str| match &node.get(key)?.value.kind {
        Kind::Text(text) => Some(text.text.trim_end().to_owned()),
        _ => None,
    };
    let mut page = format!("{}: {}\n", code.as_str(), code.summary());
    page.push_str(&format!("\nWhy: {}\n", wrapped(&get("why")?, "Why: ".len())));
    for (key, title) in [
        ("note", "Example"),
        ("example", "Example"),
        ("before", "Before"),
        ("after", "After"),
    ] {
        if let Some(text) = get(key) {
            page.push_str(&format!("\n{title}:\n"));
            text.lines().for_each(|line| page.push_str(&format!("    {line}\n")));
        }
    }
    page.push_str(&format!(
        "\nWhat to do: {}\n",
        wrapped(&get("do")?, "What to do: ".len())
    ));
    Some(page)
}

fn entry(text: &str, code: Code) -> Option<Node> {
    let mut sources = Sources::default();
    let file = sources.add("explain.yaml", text);
    let tree = load::parse(file, sources.get(file)?, &mut Sink::default())?;
    Some(tree.get(code.as_str())?.value.clone())
}

/// The text in lines of a terminal, the first of which begins at a column.
fn wrapped(text: &str, column: usize) -> String {
    const WIDTH: usize = 100;
    let mut out = String::new();
    let mut at = column;
    for (index, word) in text.split_whitespace().enumerate() {
        let len = word.chars().count();
        if index > 0 && at + 1 + len > WIDTH {
            out.push('\n');
            at = 0;
        } else if index > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += len;
    }
    out
}
