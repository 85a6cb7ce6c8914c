//! The house rules of the source: which room may use which, what every file begins with, how long it may grow.
//!
//! The rooms are data in this file; ARCHITECTURE.md explains them. It knows the source text only, never the crates.

#![allow(clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The runtime from the ground up. A room uses the floors below its own; on its own floor a room uses only those that
/// stand before it in the same chain.
const FLOORS: &[&[&[&str]]] = &[
    &[&["random", "id"], &["limit"], &["error"], &["sync"]],
    &[&["clock"]],
    &[&["message", "wire"]],
    &[&["permit", "execution"], &["call"]],
    &[&["transport"], &["location"]],
    &[&["routing"], &["mesh"]],
    &[&["channel", "spot", "actor", "session"], &["channel", "fanout"]],
    &[&["relocation"]],
    &[&["host"], &["observe"]],
    &[&["rt"], &["testing"], &["fuzz"], &["bench"]],
];

/// The generator: each room, and the rooms it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("source", &[]),
    ("name", &[]),
    ("output", &[]),
    ("diagnostic", &["source"]),
    ("load", &["source", "diagnostic"]),
    ("syntax", &["source", "diagnostic", "load"]),
    ("ir", &["source", "name"]),
    ("resolve", &["source", "name", "diagnostic", "load", "syntax", "ir"]),
    (
        "lint",
        &["source", "name", "diagnostic", "load", "syntax", "ir", "resolve"],
    ),
    // It reads lock files, which are YAML, and says what is wrong with them.
    ("evolution", &["source", "diagnostic", "load", "ir"]),
    ("format", &["source", "diagnostic", "load"]),
    ("backend", &[]),
    ("backend::rust", BACK_END),
    ("backend::flatbuffers", TEMPLATE_BACK_END),
    ("backend::tera", BACK_END),
    ("backend::python", TEMPLATE_BACK_END),
    ("backend::typescript", TEMPLATE_BACK_END),
    ("backend::docs", TEMPLATE_BACK_END),
    ("compile", EVERY_ROOM),
    ("cli", EVERY_ROOM),
];
const BACK_END: &[&str] = &["ir", "name", "output", "diagnostic"];
/// A language whose files are made from templates.
const TEMPLATE_BACK_END: &[&str] = &["ir", "name", "output", "diagnostic", "backend::tera"];
const EVERY_ROOM: &[&str] = &["*"];

/// The longest file that is still one room's one thought.
const CODE_LINES: usize = 600;

#[test]
fn the_runtime_uses_only_floors_below() {
    House::runtime().inspect("zlink-runtime");
}

#[test]
fn the_generator_keeps_its_rooms_apart() {
    House::generator().inspect("zlink-codegen");
}

#[test]
fn every_file_says_what_it_owns_and_stays_short() {
    let mut faults = Vec::new();
    for folder in ["zlink-runtime", "zlink-codegen", "examples", "generated"] {
        for file in files_below(&workspace(folder), "rs") {
            let text = std::fs::read_to_string(&file).expect("a source file");
            faults.extend(form_faults(&shown(&file), &text));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = vec![
        workspace("README.md"),
        workspace("ARCHITECTURE.md"),
        workspace("CONTRIBUTING.md"),
    ];
    documents.extend(files_below(&workspace("docs"), "md"));
    let mut faults = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(&document).expect("a document");
        let folder = document.parent().expect("a folder");
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|target| !target.contains("://") && !folder.join(target).exists()) {
            faults.push(format!("{}: {target} does not exist", shown(&document)));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn tests_name_rules_that_exist_and_few_at_once() {
    let mut rules = BTreeSet::new();
    for chapter in files_below(&workspace("docs/contract"), "md") {
        let text = std::fs::read_to_string(&chapter).expect("a chapter");
        // A rule stands at the beginning of a row or of a paragraph.
        let words = text
            .lines()
            .filter_map(|line| line.trim_start_matches(['|', ' ']).split([' ', '|']).next());
        rules.extend(words.filter(|word| word.contains('-')).map(str::to_owned));
    }
    let mut faults = Vec::new();
    for folder in ["zlink-runtime", "zlink-codegen", "examples", "generated"] {
        for file in files_below(&workspace(folder), "rs") {
            let text = std::fs::read_to_string(&file).expect("a source file");
            for (at, line) in text.lines().enumerate() {
                let Some(claim) = line.trim_start().strip_prefix(concat!("/// RE", "Q:")) else {
                    continue;
                };
                let named: Vec<_> = claim.split(',').map(str::trim).collect();
                let unknown: Vec<_> = named.iter().filter(|rule| !rules.contains(**rule)).collect();
                if named.len() > 6 || !unknown.is_empty() {
                    faults.push(format!(
                        "{}:{}: {} rules, unknown: {unknown:?}",
                        shown(&file),
                        at + 1,
                        named.len()
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(rules.len() > 900, "the contract was not read");
}

/// Which rooms there are, and which edges between them are allowed.
struct House {
    crate_name: &'static str,
    /// Room by room, those it may use; `*` is any.
    rooms: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

impl House {
    fn runtime() -> Self {
        let mut rooms = BTreeMap::new();
        let mut below = BTreeSet::new();
        for floor in FLOORS {
            for chain in *floor {
                for (at, room) in chain.iter().enumerate() {
                    let mut allowed = below.clone();
                    allowed.extend(chain[..at].iter().copied());
                    rooms.insert(*room, allowed);
                }
            }
            below.extend(floor.iter().copied().flatten());
        }
        Self {
            crate_name: "zlink_runtime",
            rooms,
        }
    }

    fn generator() -> Self {
        let rooms = ROOMS.iter().map(|(room, uses)| (*room, uses.iter().copied().collect()));
        Self {
            crate_name: "zlink_codegen",
            rooms: rooms.collect(),
        }
    }

    /// The room a module belongs to: the longest name in the table that leads there.
    fn room(&self, module: &[String]) -> Option<&'static str> {
        let path = module.join("::");
        let holds = |room: &str| path == room || path.strip_prefix(room).is_some_and(|rest| rest.starts_with("::"));
        self.rooms
            .keys()
            .copied()
            .filter(|room| holds(room))
            .max_by_key(|room| room.len())
    }

    fn allows(&self, from: &str, to: &str) -> bool {
        let uses = &self.rooms[from];
        from == to || uses.contains("*") || uses.contains(to)
    }

    /// Fails on every forbidden edge of the crate in `folder`, and on a source file that no module declares.
    fn inspect(&self, folder: &str) {
        let src = workspace(folder).join("src");
        let crate_ = Crate::read(&src, self.crate_name);
        let mut faults = self.faults(&crate_);
        for file in files_below(&src, "rs") {
            if !crate_.files.iter().any(|known| file.starts_with(known)) {
                faults.push(format!("{}:1: no module declares this file", shown(&file)));
            }
        }
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
        assert!(
            !crate_.uses.is_empty(),
            "a house where nobody uses anybody was not read"
        );
    }

    fn faults(&self, crate_: &Crate) -> Vec<String> {
        let mut faults = BTreeSet::new();
        for Use { at, from, path } in &crate_.uses {
            let mut path = path.clone();
            // Exported macros stand at the crate root, wherever they are written.
            for (prefix, room) in [("__zlink_", "message"), ("__testing_", "testing")] {
                if path.first().is_some_and(|name| name.starts_with(prefix)) {
                    path.insert(0, room.to_owned());
                }
            }
            // A name of the crate root is the room it was brought from; a room may share it with a function.
            if self.room(&path).is_none()
                && let Some((name, rest)) = path.split_first()
                && let Some(behind) = crate_.root_names.get(name)
            {
                path = behind.iter().chain(rest).cloned().collect();
            }
            let Some(room) = self.room(from) else {
                faults.insert(format!("{at}: module {:?} is in no room of the table", from.join("::")));
                continue;
            };
            match self.room(&path) {
                Some(used) if self.allows(room, used) => {}
                Some(used) => {
                    faults.insert(format!("{at}: `{room}` must not use `{used}` ({})", path.join("::")));
                }
                None => {
                    faults.insert(format!(
                        "{at}: `{room}` uses `crate::{}`, which is no room",
                        path.join("::")
                    ));
                }
            }
        }
        faults.into_iter().collect()
    }
}

/// What a crate's source says about its modules.
#[derive(Default)]
struct Crate {
    files: BTreeSet<PathBuf>,
    uses: Vec<Use>,
    /// What the crate root offers that is not a module: name → the path it stands for.
    root_names: BTreeMap<String, Vec<String>>,
}

/// One path that leads through the crate root.
struct Use {
    at: Place,
    /// The module that names it.
    from: Vec<String>,
    path: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place(String, usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

impl Crate {
    /// Follows the module declarations from `lib.rs`.
    fn read(src: &Path, crate_name: &str) -> Self {
        let mut crate_ = Self {
            files: BTreeSet::from([src.join("lib.rs"), src.join("main.rs")]),
            ..Self::default()
        };
        let mut waiting = vec![(src.join("lib.rs"), Vec::new())];
        while let Some((file, module)) = waiting.pop() {
            let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            for child in crate_.add(&shown(&file), &text, &module, crate_name) {
                let folder = child.module.iter().fold(src.to_owned(), |path, name| path.join(name));
                let file = folder.with_extension("rs");
                if child.only_in_tests {
                    // Neither it nor what it declares is looked into.
                    crate_.files.insert(folder);
                } else {
                    waiting.push((file.clone(), child.module));
                }
                crate_.files.insert(file);
            }
        }
        crate_
    }

    /// Adds one file; the modules it declares without a body are the answer.
    fn add(&mut self, file: &str, text: &str, module: &[String], crate_name: &str) -> Vec<Child> {
        let syntax =
            syn::parse_file(text).unwrap_or_else(|error| panic!("{file}:{}: {error}", error.span().start().line));
        let mut reader = Reader {
            crate_: self,
            crate_name,
            file,
            module: module.to_vec(),
            children: Vec::new(),
        };
        if module.is_empty() {
            reader.root(&syntax);
        } else {
            reader.visit_file(&syntax);
        }
        reader.children
    }
}

/// A module that has a file of its own.
struct Child {
    module: Vec<String>,
    only_in_tests: bool,
}

/// Walks one file and notes each path that leads through the crate root.
struct Reader<'a> {
    crate_: &'a mut Crate,
    crate_name: &'a str,
    file: &'a str,
    module: Vec<String>,
    children: Vec<Child>,
}

impl Reader<'_> {
    /// The crate root uses every room by right; what it offers under names of its own is noted. A module written out
    /// in it, such as the prelude, is for applications: no room may use it.
    fn root(&mut self, file: &syn::File) {
        for item in &file.items {
            match item {
                syn::Item::Mod(item) if item.content.is_none() => {
                    self.declare(vec![item.ident.to_string()], &item.attrs);
                }
                syn::Item::Use(item) => {
                    for (path, name) in leaves(&item.tree) {
                        let behind = self.absolute(&path).unwrap_or_default();
                        self.crate_.root_names.insert(name, behind);
                    }
                }
                _ => {}
            }
        }
    }

    fn declare(&mut self, module: Vec<String>, attributes: &[syn::Attribute]) {
        self.children.push(Child {
            module,
            only_in_tests: only_in_tests(attributes),
        });
    }

    /// The path from the crate root on, where it leads through the crate root.
    fn absolute(&self, path: &[Name]) -> Option<Vec<String>> {
        let (Name(first, _), rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" => self.parent(&self.module),
            other if other == self.crate_name => Vec::new(),
            // In the root a bare name may be one of its modules; elsewhere it was brought in by a use, or is a child.
            _ if self.module.is_empty() => vec![first.clone()],
            _ => return None,
        };
        for Name(name, _) in rest {
            match name.as_str() {
                "super" => base = self.parent(&base),
                "self" => {}
                _ => base.push(name.clone()),
            }
        }
        Some(base)
    }

    fn parent(&self, module: &[String]) -> Vec<String> {
        module.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default()
    }

    fn note(&mut self, path: &[Name]) {
        let Some(absolute) = self.absolute(path) else { return };
        let line = path.first().map_or(0, |Name(_, span)| span.start().line);
        self.crate_.uses.push(Use {
            at: Place(self.file.into(), line),
            from: self.module.clone(),
            path: absolute,
        });
    }

    /// Paths among the tokens of a macro, where nothing tells a path from anything else but its look.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Name> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.flush(&mut path);
                    }
                    path.push(Name::of(&ident));
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Group(group) => {
                    self.flush(&mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.flush(&mut path);
                    colons = 0;
                }
            }
        }
        self.flush(&mut path);
    }

    fn flush(&mut self, path: &mut Vec<Name>) {
        if path.len() > 1 {
            self.note(path);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let is_declaration = matches!(item, syn::Item::Mod(item) if item.content.is_none());
        if is_declaration || !only_in_tests(item_attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !only_in_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        match &item.content {
            Some((_, items)) => items.iter().for_each(|item| self.visit_item(item)),
            None => self.declare(self.module.clone(), &item.attrs),
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for (path, _) in leaves(&item.tree) {
            self.note(&path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| Name::of(&segment.ident)).collect();
        // One segment leads nowhere: `self`, a local, a name brought in by a use.
        if names.len() > 1 {
            self.note(&names);
        }
        visit::visit_path(self, path);
    }

    /// `pub(in crate::a)` can only name an ancestor.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }
}

/// One segment of a path, and where it stands.
#[derive(Clone)]
struct Name(String, Span);

impl Name {
    fn of(ident: &syn::Ident) -> Self {
        let name = ident.to_string();
        Self(name.strip_prefix("r#").unwrap_or(&name).to_owned(), ident.span())
    }
}

/// The paths of a use, each with the name it brings.
fn leaves(tree: &syn::UseTree) -> Vec<(Vec<Name>, String)> {
    let leaf = |name: Name, brings: &Name| vec![(vec![name], brings.0.clone())];
    match tree {
        syn::UseTree::Path(path) => {
            let mut found = leaves(&path.tree);
            for (leaf, _) in &mut found {
                leaf.insert(0, Name::of(&path.ident));
            }
            found
        }
        syn::UseTree::Name(name) => leaf(Name::of(&name.ident), &Name::of(&name.ident)),
        syn::UseTree::Rename(name) => leaf(Name::of(&name.ident), &Name::of(&name.rename)),
        syn::UseTree::Glob(glob) => {
            let all = Name("*".into(), syn::spanned::Spanned::span(glob));
            leaf(all.clone(), &all)
        }
        syn::UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

fn only_in_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Meta>()
                .is_ok_and(|condition| match condition {
                    syn::Meta::Path(path) => path.is_ident("test"),
                    syn::Meta::List(list) => list.path.is_ident("all") && list.tokens.to_string().starts_with("test"),
                    syn::Meta::NameValue(_) => false,
                })
    })
}

fn item_attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// What is wrong with the form of a file.
fn form_faults(file: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !text.starts_with("//!") {
        faults.push(format!(
            "{file}:1: does not begin with `//!`: what it owns, and what it must not know"
        ));
    }
    let code = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count();
    if code > CODE_LINES && !text.contains("\n// Generated by zlink-codegen") {
        faults.push(format!("{file}:1: {code} lines of code, more than {CODE_LINES}"));
    }
    // A branch that is drawn by chance makes a simulation that does not repeat itself. The sockets of a foreign crate are
    // in none, and each must get its turn.
    if file.starts_with("zlink-runtime/src/") && !file.contains("/zeromq/") {
        let bodies = text.split("select! {").skip(1);
        let drawn = bodies.filter(|body| !body.trim_start().starts_with("biased;")).count();
        faults.extend((drawn > 0).then(|| format!("{file}: {drawn} times select! without `biased`")));
    }
    faults
}

fn workspace(path: &str) -> PathBuf {
    let crate_ = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_.parent().expect("the workspace").join(path)
}

/// A file as people name it, from the workspace on.
fn shown(file: &Path) -> String {
    file.strip_prefix(workspace("")).unwrap_or(file).display().to_string()
}

/// All files below `folder`, but for what a build made.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|there| there == extension) {
            found.push(path);
        }
    }
    found
}

/// The checker itself must see an edge however it is written.
mod planted {
    use super::*;

    /// The faults of a crate of one file, `transport::link`, with that body.
    fn faults(body: &str) -> Vec<String> {
        let mut crate_ = Crate::default();
        let root = "mod transport; mod host; mod message; pub use host::Host; pub use message::Metadata as Meta; \
                    pub mod prelude { pub use crate::host::Host; }";
        crate_.add("lib.rs", root, &[], "zlink_runtime");
        crate_.add("link.rs", body, &["transport".into(), "link".into()], "zlink_runtime");
        House::runtime().faults(&crate_)
    }

    #[test]
    fn an_edge_upwards_is_seen_in_every_form() {
        for body in [
            "use crate::host::Host;",
            "use super::super::host;",
            "pub(crate) use crate::{id, message, host::Host as H};",
            "use zlink_runtime::mesh::*;",
            "use crate::Host;",
            "use crate::prelude::*;",
            "use crate::*;",
            "use crate as everything;",
            "use super::super as everything;",
            "fn f() { let x = crate::host::start(); }",
            "fn f(host: &crate::host::Host) {}",
            "fn f() -> Option<Vec<super::super::channel::Call>> { None }",
            "impl crate::mesh::Upcall for X {}",
            "fn f() { assert!(matches!(x, Some(crate::host::Phase::Serving))); }",
            "macro_rules! m { () => { $crate::host::Host::builder() } }",
            "mod inner { use super::super::super::routing::select; }",
            "#[cfg(not(test))] use crate::host::Host;",
            "use crate::location::Store;",
            "impl X { fn f(&self) { crate::spot::wake() } }",
        ] {
            let found = faults(body);
            assert_eq!(found.len(), 1, "{body}: {found:?}");
            assert!(found[0].starts_with("link.rs:1: `transport` "), "{found:?}");
        }
    }

    #[test]
    fn an_edge_downwards_and_a_test_are_no_fault() {
        for body in [
            "use crate::{id::Rid, message::Metadata, wire, permit::Permit, call, execution};",
            "use super::super::error::Error;",
            "use super::{endpoint, zmtp::frame};",
            "use crate::Meta;",
            "use host::Host;",
            "#[cfg(test)] mod tests { use crate::host::Host; }",
            "#[cfg(all(test, unix))] mod tests;",
            "#[cfg(test)] use crate::host::Host;",
            "impl X { #[cfg(test)] fn f(&self) { crate::host::start() } }",
            "/// See [`crate::host::Host`].\nfn f(host: Rid) -> host::X { let crate_ = 1; }",
        ] {
            assert_eq!(faults(body), Vec::<String>::new(), "{body}");
        }
    }

    #[test]
    fn the_place_of_an_edge_is_its_line() {
        let found = faults("use crate::id::Rid;\n\nuse crate::id::{\n    self,\n};\nuse crate::host;\n");
        assert_eq!(found, ["link.rs:6: `transport` must not use `host` (host)"]);
    }

    #[test]
    fn an_arrow_on_a_floor_points_one_way() {
        let house = House::runtime();
        assert!(house.allows("execution", "permit") && !house.allows("permit", "execution"));
        assert!(house.allows("actor", "spot") && !house.allows("spot", "actor"));
        assert!(!house.allows("transport", "location") && !house.allows("routing", "mesh"));
        let house = House::generator();
        assert!(house.allows("compile", "backend::rust") && !house.allows("backend::rust", "backend::flatbuffers"));
        assert!(!house.allows("backend::rust", "syntax") && !house.allows("ir", "syntax"));
    }

    #[test]
    fn the_form_of_a_file_is_seen() {
        let long = format!("//! Owns much.\n{}", "fn f() {}\n\n// why\n".repeat(CODE_LINES + 1));
        assert!(form_faults("a.rs", &long)[0].contains("601 lines of code"));
        assert!(form_faults("a.rs", "use std::fmt;\n")[0].contains("does not begin with"));
        assert!(
            form_faults(
                "a.rs",
                &format!("//! Owns little.\n{}", "// why\n".repeat(2 * CODE_LINES))
            )
            .is_empty()
        );
        let drawn = "//! Waits.\nfn f() { tokio::select! { () = a => {} } }";
        assert_eq!(form_faults("zlink-runtime/src/a.rs", drawn).len(), 1);
    }
}
