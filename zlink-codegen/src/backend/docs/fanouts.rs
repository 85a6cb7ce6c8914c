//! What a page says of fanouts.
//!
//! It must not know how the page is laid out.

use serde::Serialize;

use super::page::Links;
use super::text;
use crate::ir::{self, DeclRef, Namespace};

#[derive(Serialize)]
pub(super) struct Fanout {
    name: String,
    doc: Vec<String>,
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Event {
    name: String,
    doc: String,
    message: String,
    /// Empty where it is the empty one.
    topic: String,
    packet: String,
}

pub(super) fn fanouts(own: &Namespace, links: &Links<'_>) -> Vec<Fanout> {
    let fanout = |it: &ir::Fanout| Fanout {
        name: it.name.clone(),
        doc: text::quoted(&it.doc),
        events: it.events.iter().map(|it| event(it, links)).collect(),
    };
    own.fanouts.iter().map(fanout).collect()
}

fn event(it: &ir::Event, links: &Links<'_>) -> Event {
    let topic = it.topic();
    Event {
        name: it.name.clone(),
        doc: text::cell(&it.doc),
        message: links.message(it.message),
        topic: if topic.is_empty() {
            String::new()
        } else {
            text::code(topic)
        },
        packet: text::code(&it.packet),
    }
}

/// Where a message is published.
pub(super) fn used(own: &Namespace, this: DeclRef) -> Vec<String> {
    let events = own
        .fanouts
        .iter()
        .flat_map(|it| it.events.iter().map(move |event| (it, event)));
    let used = events.filter(|(_, event)| event.message == this);
    used.map(|(it, event)| format!("published by [{0}.{1}](#fanout-{0})", it.name, event.name))
        .collect()
}
