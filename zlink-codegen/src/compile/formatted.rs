//! One schema in the one form: its file read, and its lock asked for ids.
//!
//! It must not know that form, nor write anything.

use std::path::Path;

use super::Program;
use crate::format;
use crate::load::{self, Kind};

impl Program<'_> {
    /// The text that a schema should have; nothing where it has it, or where something is wrong, which is reported.
    ///
    /// A schema need not be right for that, only YAML. `assign` gives fields ids that have none.
    pub(crate) fn format(&mut self, path: &Path, assign: bool) -> Option<String> {
        let bytes = match self.read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.unreadable(path, &format!("the file cannot be read: {error}"));
                return None;
            }
        };
        let marked = bytes.starts_with("\u{feff}".as_bytes());
        let (file, text) = load::to_text(&mut self.sources, path, bytes);
        if let Err(item) = text {
            self.sink.report(item);
            return None;
        }
        let known = assign.then(|| {
            let source = self.sources.get(file);
            let tree = source.and_then(|source| load::parse(file, source, &mut crate::diagnostic::Sink::default()));
            let namespace = tree.and_then(|tree| match &tree.get("namespace")?.value.kind {
                Kind::Text(text) => Some(text.text.clone()),
                _ => None,
            });
            namespace
                .map(|namespace| self.known_ids(path, &namespace))
                .unwrap_or_default()
        });
        let text = format::format(&self.sources, file, known.as_ref(), &mut self.sink)?;
        let same = !marked && self.sources.get(file).is_some_and(|source| source.text() == text);
        (!same).then_some(text)
    }
}
