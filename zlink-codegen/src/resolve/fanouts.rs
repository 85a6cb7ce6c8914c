//! Fanouts, and the topics of their events.
//!
//! It must not know what messages hold.

use super::lookup::Lookup;
use super::services::Packets;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Doc};
use crate::syntax::{self, Name};

/// Topics have at most so many bytes.
const MAX_TOPIC: usize = 255;
/// What no topic begins with: publishers tell by it that they live.
const RESERVED: &str = "\u{1}ZLF1";

pub(super) fn fanout(it: &syntax::Fanout, namespace: &str, lookup: &mut Lookup<'_, '_>) -> ir::Fanout {
    let mut packets = Packets::new(format!("{namespace}.{}", it.name.value), "this fanout");
    let events = it.events.iter().filter_map(|it| event(it, &mut packets, lookup));
    ir::Fanout {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        events: events.collect(),
    }
}

fn event(it: &syntax::Event, packets: &mut Packets, lookup: &mut Lookup<'_, '_>) -> Option<ir::Event> {
    // No packet name has a control character, so the topic that is one is not reserved.
    let packet = packets.take(&it.name, it.packet.as_ref(), it.was.as_ref(), "event", lookup);
    if let Some(written) = &it.topic {
        topic(written, lookup);
    }
    let message = it
        .message
        .as_ref()
        .and_then(|path| lookup.message(path, "what is published"));
    Some(ir::Event {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        packet,
        topic: it.topic.as_ref().map(|topic| topic.value.clone()),
        message: message?,
    })
}

fn topic(it: &Name, lookup: &mut Lookup<'_, '_>) {
    let text = &it.value;
    if text.len() > MAX_TOPIC {
        let message = format!("a topic has at most {MAX_TOPIC} bytes, and this one has {}", text.len());
        let item = Diagnostic::new(Code::BadTopic, it.span, message);
        lookup.report(item.help("shorten it; what subscribers do not choose by belongs into the message"));
    } else if text.starts_with(RESERVED) {
        let message = "topics that begin with the bytes 01 5A 4C 46 31 are reserved";
        let item = Diagnostic::new(Code::BadTopic, it.span, message);
        lookup.report(item.help("begin it otherwise, or leave it out: publishers tell by such topics that they live"));
    }
}
