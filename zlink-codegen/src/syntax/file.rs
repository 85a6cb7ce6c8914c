//! The top of a file, and the way into its declarations.
//!
//! It must not know other files.

use super::data::VERSIONS;
use super::reader::{Reader, find};
use super::{File, Name};
use crate::diagnostic::{Code, Diagnostic, Sink, shorten};
use crate::load::{Entry, Kind, Node, Text};
use crate::source::{Source, Span};

/// The edition of the language that this generator speaks.
const EDITION: &str = "1";
const KEYS: &[&str] = &[
    "zlink",
    "namespace",
    "version",
    "doc",
    "imports",
    "metadata",
    "enums",
    "structs",
    "unions",
    "messages",
    "services",
    "fanouts",
    "spots",
    "actors",
];
/// Known to the language, not to this generator.
const LATER: &[&str] = &["sessions"];
/// A namespace is the prefix of packet names, which have at most 255 bytes.
pub(super) const NAMESPACE_BYTES: usize = 100;

/// The parts of a file. What is wrong with single parts is in `sink`; the others are there.
pub(crate) fn lower(root: &Node, source: &Source, sink: &mut Sink) -> File {
    let mut reader = Reader { source, sink };
    let entries = match &root.kind {
        Kind::Map(entries) => entries.as_slice(),
        _ => {
            reader.wrong_shape(root, "a schema is a mapping");
            &[]
        }
    };
    let top = Span {
        end: root.span.start,
        ..root.span
    };
    if matches!(root.kind, Kind::Map(_)) {
        reader.edition(entries, top);
    }
    reader.keys(entries, "a schema", KEYS, LATER);
    let namespace = reader.namespace(entries, top);
    let version = match find(entries, "version") {
        Some(entry) => reader.value(&entry.value, "`version`", VERSIONS),
        None => {
            reader.missing(
                top,
                "version",
                "write `version: 1`, and raise it when the contract changes",
            );
            None
        }
    };
    let mut file = File {
        namespace,
        version,
        doc: reader.doc(entries),
        imports: Vec::new(),
        metadata: reader.section(entries, "metadata", Reader::metadata_key),
        enums: reader.section(entries, "enums", |reader, entry| Some(reader.enumeration(entry))),
        structs: reader.section(entries, "structs", |reader, entry| Some(reader.structure(entry))),
        unions: reader.section(entries, "unions", |reader, entry| Some(reader.union(entry))),
        messages: reader.section(entries, "messages", |reader, entry| Some(reader.message(entry))),
        services: reader.section(entries, "services", Reader::service),
        fanouts: reader.section(entries, "fanouts", Reader::fanout),
        spots: reader.section(entries, "spots", Reader::spot),
        actors: reader.section(entries, "actors", Reader::actor),
    };
    if let Some(entry) = find(entries, "imports") {
        for item in reader.items(&entry.value, "`imports`") {
            let text = reader.text(item, "an import");
            file.imports.extend(text.map(|text| Name {
                value: text.text.clone(),
                span: text.span,
            }));
        }
    }
    file
}

impl Reader<'_> {
    pub(super) fn section<T>(
        &mut self,
        entries: &[Entry],
        key: &str,
        read: impl Fn(&mut Self, &Entry) -> Option<T>,
    ) -> Vec<T> {
        let Some(entry) = find(entries, key) else {
            return Vec::new();
        };
        let entries = self.entries(&entry.value, &format!("`{key}`")).unwrap_or_default();
        entries.iter().filter_map(|entry| read(self, entry)).collect()
    }

    fn missing(&mut self, top: Span, key: &str, help: &str) {
        self.report(Diagnostic::new(Code::MissingKey, top, format!("a schema needs `{key}`")).help(help));
    }

    fn edition(&mut self, entries: &[Entry], top: Span) {
        match find(entries, "zlink") {
            None => self.missing(top, "zlink", "write `zlink: 1`: the edition of the schema language"),
            Some(Entry { value, .. }) => match &value.kind {
                Kind::Text(Text { text, plain: true, .. }) if text == EDITION => {}
                _ => {
                    let message = format!("this generator speaks edition {EDITION} of the schema language");
                    self.report(Diagnostic::new(Code::BadEdition, value.span, message).help("write `zlink: 1`"));
                }
            },
        }
    }

    fn namespace(&mut self, entries: &[Entry], top: Span) -> Option<Name> {
        let Some(entry) = find(entries, "namespace") else {
            self.missing(
                top,
                "namespace",
                "write `namespace: billing`, the prefix of its packet names",
            );
            return None;
        };
        let text = self.text(&entry.value, "a namespace")?;
        if is_namespace(&text.text) {
            return Some(Name {
                value: text.text.clone(),
                span: text.span,
            });
        }
        let message = format!("`{}` is not a namespace", shorten(&text.text));
        let item = Diagnostic::new(Code::BadNamespace, text.span, message).help(format!(
            "use words of small letters, digits and `_` that start with a letter, joined by `.`, \
             at most {NAMESPACE_BYTES} characters: `shop.billing`"
        ));
        self.report(item);
        None
    }
}

fn is_namespace(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    text.len() <= NAMESPACE_BYTES && text.split('.').all(is_word)
}
