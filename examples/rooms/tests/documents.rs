//! The code of `docs/schema.md` and `docs/objects.md`: their schemas are right, and what they show of Spots and Actors is this
//! crate's, word for word.

#![allow(clippy::panic, reason = "a test may")]

use std::path::Path;

use tempfile::TempDir;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code blocks of a page, each with the language it begins with.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, code)), None) => *code += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block that does not end");
    blocks
}

#[test]
fn every_schema_of_the_documents_is_right() {
    let folder = TempDir::new().expect("a folder");
    // What the first one imports.
    let common =
        "zlink: 1\nnamespace: common\nversion: 1\nmessages: { Money: { fields: { cents: { id: 0, type: i64 } } } }\n";
    std::fs::write(folder.path().join("common.yaml"), common).expect("written");
    let schemas: Vec<_> = [read("../../docs/schema.md"), read("../../docs/objects.md")]
        .iter()
        .flat_map(|page| blocks(page))
        .filter(|(language, _)| language == "yaml")
        .collect();
    assert_eq!(schemas.len(), 2);
    for (at, (_, schema)) in schemas.iter().enumerate() {
        let path = folder.path().join(format!("schema_{at}.yaml"));
        std::fs::write(&path, schema).expect("written");
        let schema = zlink_codegen::load(&path).unwrap_or_else(|findings| panic!("{findings}"));
        assert!(!schema.root().messages.is_empty());
    }
    assert_eq!(schemas[1].1, read("chat.yaml"), "the schema of this crate");
}

#[test]
fn all_code_about_spots_and_actors_is_in_this_crate() {
    let source = read("src/lib.rs");
    let code = blocks(&read("../../docs/objects.md"));
    assert_eq!(code.len(), 6);
    for (_, code) in code {
        assert!(source.contains(&code), "not in src/lib.rs:\n{code}");
    }
}
