//! What is checked in of the generator's output is what it writes now. `ZLINK_BLESS=1` writes it.

#[allow(dead_code, reason = "the rules are for the other test that reads it")]
#[path = "../../generated/rust/tests/changes/table.rs"]
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use zlink_codegen::backend::python;
use zlink_codegen::backend::rust::{self, Options};
use zlink_codegen::backend::tera::{BuiltIn, Error, Own, Templates};
use zlink_codegen::backend::typescript;
use zlink_codegen::backend::{docs, flatbuffers};
use zlink_codegen::ir::Schema;
use zlink_codegen::output::Tree;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn load(path: &str) -> Schema {
    zlink_codegen::load(root().join(path)).expect("a schema")
}

fn compare(dir: &str, tree: &Tree) {
    let dir = root().join(dir);
    if std::env::var_os("ZLINK_BLESS").is_some() {
        tree.write(&dir).expect("the folder is writable");
    }
    for (path, content) in tree.iter() {
        let path = dir.join(path);
        let there = std::fs::read(&path).unwrap_or_default();
        assert!(
            there == content,
            "{} is not what the generator writes; ZLINK_BLESS=1 renews it",
            path.display()
        );
    }
}

/// The same for a folder in which nothing else is: a file that is not written any more does not stay there either.
fn compare_whole(dir: &str, tree: &Tree) {
    compare(dir, tree);
    let mut there = Vec::new();
    files_below(&root().join(dir), "", &mut there);
    there.retain(|path| !path.contains("__pycache__"));
    there.sort();
    let written: Vec<&str> = tree.iter().map(|(path, _)| path).collect();
    assert_eq!(there, written, "{dir}");
}

/// REQ: MSG-708
#[test]
fn the_wire_is_generated_from_its_schema() {
    let options = Options {
        runtime: "crate::message::codec".to_owned(),
    };
    let wire = rust::modules(&load("schemas/zlink/wire.yaml"), &options).expect("the generator has no bug");
    let mut tree = Tree::default();
    tree.add(
        "generated.rs",
        wire.get("zlink_wire.rs").expect("the module of the namespace"),
    )
    .expect("a path");
    compare("zlink-runtime/src/wire", &tree);
}

/// The codecs of the wire that the TypeScript client is built on.
fn wire_in_typescript() -> Vec<u8> {
    let templates = Templates::new(typescript::TEMPLATES, &[]).expect("the templates are right");
    let wire = typescript::modules(&[load("schemas/zlink/wire.yaml")], &templates, "./codec.js");
    let wire = wire.expect("the templates are right");
    wire.get("zlink_wire.ts").expect("the module of the namespace").to_vec()
}

/// REQ: MSG-708
#[test]
fn the_wire_in_typescript_is_generated_from_its_schema() {
    let mut tree = Tree::default();
    tree.add("wire.ts.tera", wire_in_typescript()).expect("a path");
    compare("zlink-codegen/templates/typescript/zlink", &tree);
}

#[test]
fn the_typescript_output_is_checked_in() {
    let templates = Templates::new(typescript::TEMPLATES, &[]).expect("the templates are right");
    let mut schemas: Vec<Schema> = for_clients().map(load).collect();
    // Words of the language as names.
    schemas.push(load("schemas/tests/class.yaml"));
    let written = typescript::generate(&schemas, &templates).expect("the generator has no bug");
    let mut tree = Tree::default();
    for (path, content) in written.iter() {
        // What was built in may be older than the wire's schema, while its own test is writing it.
        let content = match path {
            "zlink/wire.ts" => wire_in_typescript(),
            _ => content.to_vec(),
        };
        tree.add(path, content).expect("a path");
    }
    compare_whole("generated/typescript/src", &tree);
}

/// The schemas whose output is checked in.
const SCHEMAS: [&str; 10] = [
    "schemas/tests/arena.yaml",
    "schemas/billing.yaml",
    "schemas/zlink/wire.yaml",
    "schemas/tests/contract.yaml",
    "schemas/tests/depot.yaml",
    "schemas/tests/interop.yaml",
    "schemas/tests/interop_next.yaml",
    "schemas/tests/obstacles.yaml",
    "schemas/tests/order.yaml",
    "zlink-codegen/tests/schemas/every_type.yaml",
];

/// Those of clients in other languages, which have the wire within them.
fn for_clients() -> impl Iterator<Item = &'static str> {
    SCHEMAS
        .into_iter()
        .filter(|schema| *schema != "schemas/zlink/wire.yaml")
}

#[test]
fn the_rust_output_is_checked_in() {
    for schema in SCHEMAS {
        let tree = rust::modules(&load(schema), &Options::default()).expect("the generator has no bug");
        compare("generated/rust/src", &tree);
    }
}

/// The output is written as text; that it is Rust, item for item, is for a parser to say.
#[test]
fn the_rust_output_parses() {
    for schema in SCHEMAS {
        let tree = rust::modules(&load(schema), &Options::default()).expect("the generator has no bug");
        for (path, content) in tree.iter() {
            let text = std::str::from_utf8(content).expect("text");
            if let Err(error) = syn::parse_file(text) {
                panic!("{path}:{}: {error}", error.span().start().line);
            }
        }
    }
}

#[test]
fn the_flatbuffers_output_is_checked_in() {
    let templates = Templates::new(flatbuffers::TEMPLATES, &[]).expect("the templates are right");
    let tree = flatbuffers::generate(&SCHEMAS.map(load), &templates).expect("the templates are right");
    compare_whole("generated/fbs", &tree);
}

type Generate = fn(&[Schema], &Templates) -> Result<Tree, Error>;

/// Each language that is made from templates: its folder, what of it is built in, and all that makes files from it.
const LANGUAGES: [(&str, BuiltIn, &[Generate]); 4] = [
    ("docs", docs::TEMPLATES, &[docs::generate, docs::mermaid, docs::dot]),
    ("fbs", flatbuffers::TEMPLATES, &[flatbuffers::generate]),
    ("python", python::TEMPLATES, &[python::generate]),
    ("typescript", typescript::TEMPLATES, &[typescript::generate]),
];

#[test]
fn a_language_is_one_folder_and_all_of_it_is_built_in() {
    let mut folders = Vec::new();
    for (language, built_in, _) in LANGUAGES {
        let mut there = Vec::new();
        files_below(&root().join("zlink-codegen/templates").join(language), "", &mut there);
        let mut names: Vec<&str> = built_in.iter().map(|(name, _)| *name).collect();
        there.sort();
        names.sort_unstable();
        assert_eq!(there, names, "{language}");
        folders.push(language.to_owned());
    }
    let there = std::fs::read_dir(root().join("zlink-codegen/templates")).expect("the folder is there");
    let mut there: Vec<String> = there
        .map(|entry| entry.expect("readable").file_name().into_string().expect("text"))
        .collect();
    there.sort();
    assert_eq!(there, folders);
}

fn files_below(folder: &Path, below: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("readable");
        let name = format!("{below}{}", entry.file_name().to_str().expect("text"));
        if entry.path().is_dir() {
            files_below(&entry.path(), &format!("{name}/"), found);
        } else {
            found.push(name);
        }
    }
}

/// No file of a language comes from anywhere but its templates, and no template is for nothing.
#[test]
fn each_file_of_a_language_changes_with_a_template_and_each_template_changes_a_file() {
    let schemas = ["zlink-codegen/tests/schemas/every_type.yaml"].map(load);
    for (language, built_in, generate) in LANGUAGES {
        let files = |own: &[Own]| {
            let templates = Templates::new(built_in, own).expect("the templates are right");
            let mut tree = Tree::default();
            for generate in generate {
                let files = generate(&schemas, &templates).expect("the templates are right");
                tree.merge(files).expect("each file has a name of its own");
            }
            tree
        };
        let as_built_in = files(&[]);
        let mut from_templates = BTreeSet::new();
        for (name, text) in built_in {
            let own = Own {
                name: (*name).to_owned(),
                shown: (*name).to_owned(),
                text: format!("of one's own\n{text}"),
            };
            let with_own = files(&[own]);
            let changed: Vec<String> = with_own
                .iter()
                .filter(|(path, content)| as_built_in.get(path) != Some(*content))
                .map(|(path, _)| path.to_owned())
                .collect();
            assert!(!changed.is_empty(), "{language}: {name} changes nothing");
            from_templates.extend(changed);
        }
        let all: BTreeSet<String> = as_built_in.iter().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(from_templates, all, "{language}");
    }
}

/// The messages of the wire that the Python client is built on.
fn wire_in_python() -> String {
    let templates = Templates::new(python::TEMPLATES, &[]).expect("the templates are right");
    python::protocol(&load("schemas/zlink/wire.yaml"), &templates).expect("the templates are right")
}

/// REQ: MSG-708
#[test]
fn the_wire_in_python_is_generated_from_its_schema() {
    let mut tree = Tree::default();
    tree.add("protocol.py.tera", wire_in_python()).expect("a path");
    compare("zlink-codegen/templates/python/zlink", &tree);
}

#[test]
fn the_python_output_is_checked_in() {
    let templates = Templates::new(python::TEMPLATES, &[]).expect("the templates are right");
    let words = ["schemas/tests/python_words.yaml"];
    let schemas: Vec<Schema> = for_clients().chain(words).map(load).collect();
    let written = python::generate(&schemas, &templates).expect("the templates are right");
    let mut tree = Tree::default();
    for (path, content) in written.iter() {
        // What was built in may be older than the wire's schema, while its own test is writing it.
        let content = match path {
            "zlink/protocol.py" => wire_in_python().into_bytes(),
            _ => content.to_vec(),
        };
        tree.add(path, content).expect("a path");
    }
    compare_whole("generated/python/zlink_generated", &tree);
}

#[test]
fn what_only_hosts_can_use_has_no_client_in_other_languages_which_is_said() {
    for path in [
        "python/zlink_generated/contract/__init__.py",
        "typescript/src/contract.ts",
    ] {
        let text = std::fs::read_to_string(root().join("generated").join(path)).expect("it is checked in");
        assert!(text.contains("`desk` has no client here"), "{path}");
        assert!(!text.to_lowercase().contains("deskclient"), "{path}");
    }
    for path in [
        "python/zlink_generated/test_every_type/__init__.py",
        "typescript/src/test_every_type.ts",
    ] {
        let text = std::fs::read_to_string(root().join("generated").join(path)).expect("it is checked in");
        assert!(text.contains("`happenings` has no client here: a fanout"), "{path}");
        assert!(!text.to_lowercase().contains("happeningsclient"), "{path}");
    }
    for path in ["python/zlink_generated/arena/__init__.py", "typescript/src/arena.ts"] {
        let text = std::fs::read_to_string(root().join("generated").join(path)).expect("it is checked in");
        for name in ["room", "cart", "player"] {
            assert!(text.contains(&format!("`{name}` has no client here")), "{path}: {name}");
        }
    }
}

/// The two modules of the table of changes, which `generated/rust/tests/changes` exchanges bytes between.
#[test]
fn both_versions_of_the_table_of_changes_are_checked_in() {
    let rows = table::rows();
    let room = tempfile::tempdir().expect("a temporary folder");
    let mut tree = Tree::default();
    for (side, file) in [(table::Side::Before, "before.rs"), (table::Side::After, "after.rs")] {
        let path = room.path().join("changes.yaml");
        std::fs::write(&path, table::schema(&rows, side)).expect("writable");
        let schema = zlink_codegen::load(path).unwrap_or_else(|findings| panic!("{findings}"));
        let modules = rust::modules(&schema, &Options::default()).expect("the generator has no bug");
        tree.add(file, modules.get("changes.rs").expect("the module of the namespace"))
            .expect("a path");
    }
    compare("generated/rust/tests/changes", &tree);
}

#[test]
fn the_documentation_is_checked_in_and_every_link_of_it_leads_somewhere() {
    let templates = Templates::new(docs::TEMPLATES, &[]).expect("the templates are right");
    let tree = docs::generate(&SCHEMAS.map(load), &templates).expect("the generator has no bug");
    let text = |path: &str| {
        tree.get(path)
            .map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
    };
    let mut links = 0;
    for (path, content) in tree.iter() {
        // Code spans and docs of schemas may hold what looks like a link.
        let page = std::str::from_utf8(content).expect("text");
        let lines = page.lines().filter(|line| !line.starts_with('>'));
        for target in lines.flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next())) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let there = text(if file.is_empty() { path } else { file }).unwrap_or_default();
            let found = !there.is_empty() && (anchor.is_empty() || there.contains(&format!("<a id=\"{anchor}\"></a>")));
            assert!(found, "{path}: {target} leads nowhere");
            links += 1;
        }
    }
    assert!(links > 100, "{links} links");
    let every = text("test_every_type.md").expect("the page of the namespace");
    for part in [
        "| 12 | some_bytes | bytes | required, at most 1024 bytes |",
        "| 27 | ~~old_name~~ |",
        "since version 3",
        "A relocation state of version 2.",
        "Deleted tags, never used again: 3.",
        "| ask | [Small](#Small) | [All](#All) | 250 ms | `test.every_type.everything.ask` | Asks. |",
        "[test.common.Money](test_common.md#Money)",
        "sent by [everything.named](#service-everything)",
        "caller -->|\"ask: Small → All\"| n0s0",
        "| grouped | [Small](#Small) | `everything.grouped.` | `test.every_type.happenings.grouped` |  |",
        "| to_all | [Empty](#Empty) | the empty one | `test.every_type.happenings.to_all` |  |",
        "| renamed | [Empty](#Empty) | `test.every_type.happenings.first_name` |",
        "published by [happenings.grouped](#fanout-happenings)",
        "caller -.->|\"told: test.common.Money\"| n0f0",
    ] {
        assert!(every.contains(part), "{part} in\n{every}");
    }
    let arena = text("arena.md").expect("the page of the namespace");
    for part in [
        "it moves with its state, [RoomState](#RoomState), when it says so.",
        "| checkout | [Checkout](#Checkout) | [Receipt](#Receipt) | the caller's | `arena.cart.checkout` | yields, closes |  |",
        "| events | `room-events` | `room.` | [RoomEvent](#RoomEvent) | `arena.room.events` |  | What happens in rooms. |",
        "| [room](#spot-room) | [JoinRoom](#JoinRoom) | [JoinedRoom](#JoinedRoom) | Takes a seat. |",
        "state of [room](#spot-room)",
        "caller -.->|\"room-events: RoomEvent\"| n0o1",
        "n0o5 -->|joins| n0o1",
    ] {
        assert!(arena.contains(part), "{part} in\n{arena}");
    }
    compare_whole("generated/docs", &tree);
}

#[test]
fn the_picture_alone_is_that_of_all_namespaces() {
    let templates = Templates::new(docs::TEMPLATES, &[]).expect("the templates are right");
    let schemas = SCHEMAS.map(load);
    let mermaid = docs::mermaid(&schemas, &templates).expect("the generator has no bug");
    let mermaid = std::str::from_utf8(mermaid.get("services.mmd").expect("the picture"))
        .expect("text")
        .to_owned();
    let dot = docs::dot(&schemas, &templates).expect("the generator has no bug");
    let dot = std::str::from_utf8(dot.get("services.dot").expect("the picture"))
        .expect("text")
        .to_owned();
    let nodes = |schema: &Schema| {
        let root = schema.root();
        root.services.len() + root.fanouts.len() + root.spots.len() + root.actors.len()
    };
    let nodes: usize = schemas.iter().map(nodes).sum();
    for (picture, service, call) in [
        (&mermaid, "[\"billing\"]", "charge: Charge → Receipt"),
        (&dot, "label=\"billing\"]", "charge: Charge → Receipt"),
    ] {
        assert!(picture.contains(service) && picture.contains(call), "{picture}");
        let drawn = picture.lines().filter(|line| line.starts_with("    n")).count();
        assert_eq!(drawn, nodes, "{picture}");
    }
    assert!(dot.starts_with("digraph services {") && dot.trim_end().ends_with('}'));
}
