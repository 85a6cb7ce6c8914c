//! Fanouts: events that go to whoever subscribes.
//!
//! It must not know whether messages exist, nor which topics there may be.

use super::help::{EVENT, FANOUT};
use super::reader::{Reader, find};
use super::{Event, Fanout};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::Entry;

/// What others write for `publish`: what is wrong with an event that has one is told there.
const FOR_PUBLISH: &[&str] = &["send", "message", "request"];

impl Reader<'_> {
    pub(super) fn fanout(&mut self, Entry { key, value }: &Entry) -> Option<Fanout> {
        let name = self.name(key, "the name of a fanout", &['-']);
        let entries = self.entries(value, FANOUT)?;
        self.keys(entries, FANOUT, &["doc", "events"], &[]);
        if find(entries, "events").is_none() {
            let item = Diagnostic::new(Code::MissingKey, key.span, "a fanout needs `events`");
            self.report(item.help("write `events: { closed: { publish: Closed } }`"));
        }
        Some(Fanout {
            name,
            doc: self.doc(entries),
            events: self.section(entries, "events", Reader::event),
        })
    }

    fn event(&mut self, Entry { key, value }: &Entry) -> Option<Event> {
        let name = self.name(key, "the name of an event", &[]);
        let entries = self.entries(value, EVENT)?;
        self.keys(entries, EVENT, &["doc", "publish", "topic", "packet", "was"], &[]);
        let publish = self.exchanged(entries, "publish");
        if publish.is_none() && !FOR_PUBLISH.iter().any(|key| find(entries, key).is_some()) {
            let item = Diagnostic::new(Code::MissingKey, key.span, "an event needs `publish`");
            self.report(item.help("write `{ publish: Closed }`: the message that subscribers get"));
        }
        Some(Event {
            name,
            doc: self.doc(entries),
            message: publish.and_then(|it| it.value),
            topic: self.word(entries, "topic"),
            packet: self.word(entries, "packet"),
            was: self.was(entries, "the name of an event"),
        })
    }
}
