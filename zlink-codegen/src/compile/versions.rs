//! Two versions of a set of schemas: which namespace became which, and every difference as a finding.
//!
//! It must not know rules of evolution, nor where either version is kept.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::Program;
use super::locks::{describe, place};
use super::program::Loaded;
use crate::diagnostic::Code;
use crate::evolution::{self, Change, Contract};
use crate::load::{Kind, Node};
use crate::source::Span;

/// The namespaces of one version, as far as nothing is wrong with them.
#[derive(Default)]
pub(crate) struct Version {
    known: Vec<Known>,
    /// Whether something is wrong with a file: its namespaces are not known.
    broken: bool,
}

struct Known {
    /// What tells namespaces of one name apart: the way from the folder that was named, or from a repository's top.
    way: PathBuf,
    /// The file, by its number in the run.
    file: usize,
    contract: Contract,
}

impl Version {
    /// Adds what `path` means, imports included. `way` tells where in its version a file stands.
    pub(crate) fn add(&mut self, program: &mut Program<'_>, path: &Path, way: &dyn Fn(&Path) -> PathBuf) {
        let Some(root) = program.load(path) else {
            self.broken = true;
            return;
        };
        let Some(schema) = program.resolve(root) else {
            self.broken = true;
            return;
        };
        for (at, file) in program.closure(root).into_iter().enumerate() {
            if self.known.iter().any(|known| known.file == file) {
                continue;
            }
            if let (Some(contract), Some(loaded)) = (Contract::of(&schema, at), program.get(file)) {
                self.known.push(Known {
                    way: way(&loaded.path),
                    file,
                    contract,
                });
            }
        }
    }

    /// How many namespaces there are.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Reports what became of every namespace of this version, whose files are `loaded`, in `new`. One that is only
    /// there is nobody's loss.
    pub(crate) fn compare(&self, loaded: &[Loaded], new: &Version, program: &mut Program<'_>) {
        let partners = self.partners(new);
        // A state may hold what another namespace declares, and that what a third does.
        let mut changed = HashSet::new();
        loop {
            let before = changed.len();
            for (known, partner) in self.known.iter().zip(&partners) {
                if let Some(partner) = partner {
                    evolution::compare_beside(&known.contract, &partner.contract, &mut changed);
                }
            }
            if changed.len() == before {
                break;
            }
        }
        for (known, partner) in self.known.iter().zip(partners) {
            let Some(old) = loaded.get(known.file) else { continue };
            let Some(partner) = partner else {
                // A file that is wrong may be what it became, wherever it stands.
                if !new.broken {
                    gone(known, old, program);
                }
                continue;
            };
            for change in evolution::compare_beside(&known.contract, &partner.contract, &mut changed) {
                let Some(now) = program.get(partner.file) else { continue };
                let at = place(now, &change.at);
                let before = written(&old.tree, &change.was).map(|span| (span, "it was this"));
                let item = describe(&change, at, before);
                program.sink.report(item);
            }
        }
    }

    /// For each namespace, the one of `new` that it became.
    fn partners<'n>(&self, new: &'n Version) -> Vec<Option<&'n Known>> {
        let mut left: BTreeMap<&str, Vec<&Known>> = BTreeMap::new();
        for known in &new.known {
            left.entry(&known.contract.namespace).or_default().push(known);
        }
        let mut take = |known: &Known, same_way: bool| {
            let candidates = left.get_mut(known.contract.namespace.as_str())?;
            let at = candidates
                .iter()
                .position(|other| !same_way || other.way == known.way)?;
            Some(candidates.remove(at))
        };
        // First those that stayed where they are, so that of two with one name each finds its own.
        let mut partners: Vec<_> = self.known.iter().map(|known| take(known, true)).collect();
        for (known, partner) in self.known.iter().zip(&mut partners) {
            *partner = partner.or_else(|| take(known, false));
        }
        partners
    }
}

/// A namespace that is gone: each method and each state with it.
fn gone(known: &Known, old: &Loaded, program: &mut Program<'_>) {
    let nothing = Contract {
        namespace: known.contract.namespace.clone(),
        version: known.contract.version,
        ..Contract::default()
    };
    let mut changes = evolution::compare_beside(&known.contract, &nothing, &mut HashSet::new());
    changes.retain(|change| change.code != Code::DeclarationRemoved);
    changes.push(Change {
        code: Code::DeclarationRemoved,
        message: format!("the namespace `{}` is gone", known.contract.namespace),
        help: None,
        at: Vec::new(),
        was: vec!["namespace".to_owned()],
    });
    for change in changes {
        let at = written(&old.tree, &change.was).unwrap_or_else(|| place(old, &change.was));
        program.sink.report(describe(&change, at, None));
    }
}

/// Where a schema says what `path` calls as a lock file does: fields by their ids, methods by their packet names.
fn written(tree: &Node, path: &[String]) -> Option<Span> {
    let mut found = None;
    let mut node = tree;
    for (at, key) in path.iter().enumerate() {
        let numbered = |name: &str| {
            node.get(name)
                .and_then(|entry| entry.value.get(key))
                .map(|it| it.key.span)
        };
        let next = match (path.first().map(String::as_str), at, key.as_str()) {
            (Some("messages"), 3, id) => {
                return field(node, id).or_else(|| numbered("reserved")).or(found);
            }
            (Some("enums"), 3, number) => return value(node, number).or(found),
            (Some("services" | "spots" | "actors"), 2, "packets") => node.get("methods"),
            (Some("fanouts"), 2, "packets") => node.get("events"),
            (Some("services" | "fanouts" | "spots" | "actors"), 3, packet) if path[2] == "packets" => {
                return method(node, packet).or(found);
            }
            (Some("structs"), 2, _) => node.get(key).or_else(|| node.get("fields")?.value.get(key)),
            _ => node.get(key),
        };
        let Some(entry) = next else { break };
        found = Some(entry.key.span);
        node = &entry.value;
    }
    found
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    match &node.get(key)?.value.kind {
        Kind::Text(text) => Some(&text.text),
        _ => None,
    }
}

fn field(fields: &Node, id: &str) -> Option<Span> {
    let Kind::Map(entries) = &fields.kind else { return None };
    let entry = entries.iter().find(|entry| text(&entry.value, "id") == Some(id))?;
    Some(entry.key.span)
}

fn value(values: &Node, number: &str) -> Option<Span> {
    let Kind::Map(entries) = &values.kind else { return None };
    let entry = entries.iter().find(|entry| match &entry.value.kind {
        Kind::Text(text) => text.text == number,
        _ => text(&entry.value, "number") == Some(number),
    })?;
    Some(entry.key.span)
}

fn method(methods: &Node, packet: &str) -> Option<Span> {
    let Kind::Map(entries) = &methods.kind else { return None };
    let last = packet.rsplit('.').next();
    let entry = entries.iter().find(|entry| match text(&entry.value, "packet") {
        Some(own) => own == packet,
        None => last == Some(text(&entry.value, "was").unwrap_or(&entry.key.text)),
    })?;
    Some(entry.key.span)
}
