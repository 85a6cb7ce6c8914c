//! Who exchanges: services and their methods.
//!
//! It must not know whether messages exist or keys fit together.

use super::reader::{Reader, find};
use super::{Method, Name, Path, Service, Spanned, Timeout};
use crate::diagnostic::{Code, Diagnostic, shorten};
use crate::load::{Entry, Node};

/// The longest timeout, in milliseconds.
const MAX_MILLIS: u64 = i32::MAX as u64;

impl Reader<'_> {
    pub(super) fn service(&mut self, Entry { key, value }: &Entry) -> Option<Service> {
        let name = self.name(key, "the name of a service", &['-']);
        let entries = self.entries(value, "a service")?;
        self.keys(entries, "a service", &["doc", "target", "methods"], &[]);
        let target = find(entries, "target").and_then(|entry| self.word(&entry.value, "`target`"));
        let mut methods = Vec::new();
        if let Some(entry) = find(entries, "methods") {
            for entry in self.entries(&entry.value, "`methods`").unwrap_or_default() {
                methods.extend(self.method(entry));
            }
        } else {
            let item = Diagnostic::new(Code::MissingKey, key.span, "a service needs `methods`");
            self.report(item.help("write `methods: { charge: { request: Charge, reply: Receipt } }`"));
        }
        Some(Service {
            name,
            doc: self.doc(entries),
            target,
            methods,
        })
    }

    fn method(&mut self, Entry { key, value }: &Entry) -> Option<Method> {
        let name = self.name(key, "the name of a method", &[]);
        let entries = self.entries(value, "a method")?;
        let known = &["doc", "request", "reply", "send", "timeout", "packet", "was"];
        self.keys(entries, "a method", known, &[]);
        Some(Method {
            name,
            doc: self.doc(entries),
            send: self.exchanged(entries, "send"),
            request: self.exchanged(entries, "request"),
            reply: self.exchanged(entries, "reply"),
            timeout: find(entries, "timeout").map(|entry| Timeout {
                key: entry.key.span,
                millis: self.duration(&entry.value),
            }),
            packet: find(entries, "packet").and_then(|entry| self.word(&entry.value, "`packet`")),
            was: find(entries, "was").and_then(|entry| {
                let text = self.text(&entry.value, "`was`")?;
                Some(self.name(text, "the name of a method", &[]))
            }),
        })
    }

    fn exchanged(&mut self, entries: &[Entry], key: &str) -> Option<Spanned<Option<Path>>> {
        let entry = find(entries, key)?;
        Some(Spanned {
            value: self.path(&entry.value, &format!("`{key}`")),
            span: entry.key.span,
        })
    }

    fn word(&mut self, node: &Node, what: &str) -> Option<Name> {
        self.text(node, what).map(|text| Name {
            value: text.text.clone(),
            span: text.span,
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
