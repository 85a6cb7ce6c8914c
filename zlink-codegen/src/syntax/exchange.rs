//! Services, and what the methods of all who exchange have in common.
//!
//! It must not know whether messages exist or keys fit together.

use super::reader::{Reader, find};
use super::{Method, Name, Path, Service, Spanned, Target, Timeout};
use crate::diagnostic::{Code, Diagnostic, shorten};
use crate::load::{Entry, Node};

/// The longest timeout, in milliseconds.
const MAX_MILLIS: u64 = i32::MAX as u64;
const TARGETS: &[(&str, Target)] = &[("channel", Target::Channel), ("node", Target::Node)];
/// The keys that every method has.
pub(super) const METHOD: &[&str] = &["doc", "request", "reply", "send", "timeout", "packet", "was"];

impl Reader<'_> {
    pub(super) fn service(&mut self, Entry { key, value }: &Entry) -> Option<Service> {
        let name = self.name(key, "the name of a service", &['-']);
        let entries = self.entries(value, "a service")?;
        self.keys(entries, "a service", &["doc", "target", "methods"], &[]);
        if find(entries, "methods").is_none() {
            let item = Diagnostic::new(Code::MissingKey, key.span, "a service needs `methods`");
            self.report(item.help("write `methods: { charge: { request: Charge, reply: Receipt } }`"));
        }
        Some(Service {
            name,
            doc: self.doc(entries),
            target: self
                .choice(
                    entries,
                    "target",
                    "target",
                    TARGETS,
                    "write `channel`, or `node` for one node named by the caller",
                )
                .map(|target| target.value),
            methods: self.section(entries, "methods", |reader, entry| {
                let (method, entries) = reader.method(entry)?;
                reader.keys(entries, "a method", METHOD, &[]);
                Some(method)
            }),
        })
    }

    /// What all methods have, and the keys that were written: the caller knows which belong here.
    pub(super) fn method<'n>(&mut self, Entry { key, value }: &'n Entry) -> Option<(Method, &'n [Entry])> {
        let name = self.name(key, "the name of a method", &[]);
        let entries = self.entries(value, "a method")?;
        let method = Method {
            name,
            doc: self.doc(entries),
            send: self.exchanged(entries, "send"),
            request: self.exchanged(entries, "request"),
            reply: self.exchanged(entries, "reply"),
            timeout: find(entries, "timeout").map(|entry| Timeout {
                key: entry.key.span,
                millis: self.duration(&entry.value),
            }),
            packet: self.word(entries, "packet"),
            was: self.was(entries, "the name of a method"),
        };
        Some((method, entries))
    }

    pub(super) fn was(&mut self, entries: &[Entry], what: &str) -> Option<Name> {
        let text = self.text(&find(entries, "was")?.value, "`was`")?;
        Some(self.name(text, what, &[]))
    }

    pub(super) fn exchanged(&mut self, entries: &[Entry], key: &str) -> Option<Spanned<Option<Path>>> {
        let entry = find(entries, key)?;
        Some(Spanned {
            value: self.path(&entry.value, &format!("`{key}`")),
            span: entry.key.span,
        })
    }

    /// `250ms`, `5s`, `2m` or `1h`, in milliseconds.
    fn duration(&mut self, node: &Node) -> Option<u32> {
        let text = self.text(node, "a timeout")?;
        let digits = text.text.len() - text.text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.text.split_at(digits);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => 0,
        };
        let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        if let Some(millis) = millis.filter(|millis| (1..=MAX_MILLIS).contains(millis)) {
            return u32::try_from(millis).ok();
        }
        let message = format!(
            "a timeout is 1ms to {MAX_MILLIS}ms, and this is `{}`",
            shorten(&text.text)
        );
        self.report(Diagnostic::new(Code::BadDuration, text.span, message).help("write `250ms`, `5s`, `2m` or `1h`"));
        None
    }
}
