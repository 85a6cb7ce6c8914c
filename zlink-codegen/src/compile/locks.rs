//! Each namespace of a schema against its lock file.
//!
//! It must not know rules of evolution; it finds both sides, and the place each difference is shown at.

#[cfg(feature = "cli")]
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::Program;
use super::program::Loaded;
use crate::diagnostic::{Code, Diagnostic, Severity, Sink};
use crate::evolution::{self, Change, Contract};
use crate::ir::Schema;
use crate::load::{self, Node};
use crate::source::{FileId, Sources, Span};

/// What became of one namespace.
pub(crate) struct Checked {
    /// Where the lock is, or would be.
    pub(crate) path: PathBuf,
    pub(crate) exists: bool,
    /// What the lock should say; nothing where that is not allowed.
    pub(crate) accepted: Option<String>,
}

impl Program<'_> {
    /// Compares the namespace of a file with its lock. `locked` takes no difference and no missing lock.
    pub(crate) fn check_lock(
        &mut self,
        schema: &Schema,
        namespace: usize,
        file: usize,
        locked: bool,
    ) -> Option<Checked> {
        let new = Contract::of(schema, namespace)?;
        let loaded = self.get(file)?;
        let path = lock_path(&loaded.path, &new.namespace);
        let top = place(loaded, &["namespace".to_owned()]);
        let bytes = match self.read_lock(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!(
                    "the namespace `{}` has no lock file `{}`",
                    new.namespace,
                    path.display()
                );
                let item = Diagnostic::new(Code::NoLock, top, message)
                    .severity(if locked { Severity::Error } else { Severity::Note })
                    .help("run `zlink-codegen accept` once the contract is in use: changes are checked from then on");
                self.sink.report(item);
                return Some(Checked {
                    path,
                    exists: false,
                    accepted: Some(evolution::write(&new)),
                });
            }
            Err(error) => {
                self.unreadable(&path, &format!("the lock file cannot be read: {error}"));
                return Some(Checked {
                    path,
                    exists: true,
                    accepted: None,
                });
            }
        };
        let Some((old, lock_file, lock)) = self.parse_lock(&path, bytes) else {
            return Some(Checked {
                path,
                exists: true,
                accepted: None,
            });
        };
        let before = self.sink.errors();
        self.compare_below(schema, file);
        let changes = evolution::compare_beside(&old, &new, &mut self.held.changed);
        self.held.seen.insert(file);
        let raised = new.version > old.version;
        for change in &changes {
            let loaded = self.get(file)?;
            // Places are looked up by name; beyond what is shown, that is time for nothing.
            let item = if self.sink.is_full(top.file, change.code.severity()) {
                Diagnostic::new(change.code, top, change.message.as_str())
            } else {
                let remembered = find(&lock, &change.was).map(|span| (span, "the lock file remembers this"));
                allow(
                    describe(change, place(loaded, &change.at), remembered),
                    change,
                    raised,
                    old.version,
                )
            };
            self.sink.report(item);
        }
        let accepted = (self.sink.errors() == before).then(|| evolution::write(&new.remembering(&old)));
        let text = self.sources.get(lock_file).map_or("", |source| source.text());
        if locked
            && accepted
                .as_ref()
                .is_some_and(|accepted| *accepted != text.replace("\r\n", "\n"))
        {
            let item = Diagnostic::new(
                Code::LockOutdated,
                top,
                format!("the lock file `{}` is not up to date", path.display()),
            );
            self.sink
                .report(item.help("run `zlink-codegen accept`, and check the lock file in"));
        }
        Some(Checked {
            path,
            exists: true,
            accepted,
        })
    }

    /// The ids that the lock file beside a schema knows, with the names of their fields, by message. Nothing where there
    /// is no lock file, or none that can be read: `check` tells of that.
    #[cfg(feature = "cli")]
    pub(crate) fn known_ids(&mut self, schema: &Path, namespace: &str) -> BTreeMap<String, Vec<(u16, String)>> {
        let path = lock_path(schema, namespace);
        let bytes = self.read_lock(&path).ok();
        let Some((contract, ..)) = bytes.and_then(|bytes| self.parse_lock(&path, bytes)) else {
            return BTreeMap::new();
        };
        contract.ids()
    }

    /// Compares what a file imports with its locks, for what states of this one hold. What is wrong there is told where
    /// those namespaces are looked at themselves.
    fn compare_below(&mut self, schema: &Schema, file: usize) {
        for at in self.closure(file) {
            if at == file || !self.held.seen.insert(at) {
                continue;
            }
            let Some(loaded) = self.get(at) else { continue };
            let Some(name) = &loaded.file.namespace else { continue };
            let path = lock_path(&loaded.path, &name.value);
            let namespace = schema.namespaces.iter().position(|it| it.name == name.value);
            let (Some(new), Ok(bytes)) = (namespace.and_then(|at| Contract::of(schema, at)), self.read_lock(&path))
            else {
                continue;
            };
            if let Ok((old, ..)) = self.read_contract(&path, bytes) {
                evolution::compare_beside(&old, &new, &mut self.held.changed);
            }
        }
    }

    fn parse_lock(&mut self, path: &Path, bytes: Vec<u8>) -> Option<(Contract, FileId, Node)> {
        self.read_contract(path, bytes)
            .map_err(|item| self.sink.report(item))
            .ok()
    }

    fn read_contract(&mut self, path: &Path, bytes: Vec<u8>) -> Result<(Contract, FileId, Node), Diagnostic> {
        let (id, text) = load::to_text(&mut self.sources, path, bytes);
        let mut sink = Sink::default();
        let tree = match text {
            Ok(()) => self
                .sources
                .get(id)
                .and_then(|source| load::parse(id, source, &mut sink)),
            Err(item) => {
                sink.report(item);
                None
            }
        };
        let finding = sink.finish(Sources::default()).items.into_iter().next();
        match (finding, tree) {
            // What the loader advises is for who writes a schema, and nobody writes a lock.
            (Some(item), _) => Err(evolution::damaged(item.span, &item.message)),
            (None, tree) => tree.map_or_else(
                || Err(evolution::damaged(Sources::top(id), "it holds nothing")),
                |tree| Ok((evolution::read(&tree)?, id, tree)),
            ),
        }
    }
}

/// The lock stands beside its schema.
fn lock_path(schema: &Path, namespace: &str) -> PathBuf {
    schema.with_file_name(format!("{namespace}.lock.yaml"))
}

/// A difference as a finding. `before` is where it stood, with what is said of that place.
pub(super) fn describe(change: &Change, at: Span, before: Option<(Span, &str)>) -> Diagnostic {
    let kind = change.code.summary().split_once(':').map_or("", |(kind, _)| kind);
    let prefix = if kind.bytes().all(|b| b.is_ascii_uppercase()) && !kind.is_empty() {
        format!("{kind}: ")
    } else {
        String::new()
    };
    let mut item = Diagnostic::new(change.code, at, format!("{prefix}{}", change.message));
    if let Some((span, text)) = before {
        item = item.at(span, text);
    }
    item.help = change.help.clone();
    item
}

/// What a raised version makes of it.
fn allow(mut item: Diagnostic, change: &Change, raised: bool, version: u32) -> Diagnostic {
    if !evolution::needs_version(change.code) {
        return item;
    }
    let own = item.help.take().map(|help| format!("{help}; ")).unwrap_or_default();
    if raised {
        return item
            .severity(Severity::Warning)
            .help(format!("{own}`zlink-codegen accept` makes it part of the contract"));
    }
    let next = version.saturating_add(1);
    item.help(format!(
        "{own}if it is meant, write `version: {next}` and run `zlink-codegen accept`"
    ))
}

/// The deepest key of `path` that the schema has.
pub(super) fn place(loaded: &Loaded, path: &[String]) -> Span {
    find(&loaded.tree, path)
        .or_else(|| find(&loaded.tree, &["namespace".to_owned()]))
        .unwrap_or(Sources::top(loaded.id))
}

fn find(tree: &Node, path: &[String]) -> Option<Span> {
    let mut found = None;
    let mut node = tree;
    for key in path {
        let Some(entry) = node.get(key).or_else(|| node.get("fields")?.value.get(key)) else {
            break;
        };
        found = Some(entry.key.span);
        node = &entry.value;
    }
    found
}
