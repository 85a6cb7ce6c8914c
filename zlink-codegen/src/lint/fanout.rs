//! What is odd in a fanout, and in topics wherever they stand.
//!
//! It must not know which topics hosts subscribe to: their code says that.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::diagnostic::{Code, Diagnostic, Sink, shorten};
use crate::syntax::{Fanout, File, Name, Target};

pub(super) fn empty(file: &File, sink: &mut Sink) {
    for Fanout { name, .. } in file.fanouts.iter().filter(|it| it.events.is_empty()) {
        let message = format!("the fanout `{}` has no events", name.value);
        sink.report(Diagnostic::new(Code::EmptyFanout, name.span, message).help("add one, or remove the fanout"));
    }
}

/// A process cannot have both: where it calls services of a channel without a mesh, its start fails.
pub(super) fn shared_channel(file: &File, sink: &mut Sink) {
    let channels = file.services.iter().filter(|it| it.target != Some(Target::Node));
    let channels: BTreeMap<&str, &Name> = channels.map(|it| (it.name.value.as_str(), &it.name)).collect();
    for Fanout { name, .. } in &file.fanouts {
        let Some(service) = channels.get(name.value.as_str()) else {
            continue;
        };
        let message = format!("`{}` is the ChannelName of a service, too", name.value);
        let item = Diagnostic::new(Code::SharedChannel, name.span, message).at(service.span, "the service");
        sink.report(item.help("rename one of them: a host that has both as ClientServer and fanout does not start"));
    }
}

/// Who comes from brokers writes patterns; here a topic is compared byte for byte.
pub(super) fn wildcards(file: &File, sink: &mut Sink) {
    for topic in topics(file).flatten() {
        wildcard(topic, sink, |before| match before {
            "" => "leave `topic` out; a subscriber that names none gets every event".to_owned(),
            _ => format!(
                "write `{}`: a subscriber gets all that begins with what it names",
                shorten(before)
            ),
        });
    }
    let subscriptions = file.spots.iter().flat_map(|spot| &spot.subscriptions);
    for topic in subscriptions.filter_map(|it| it.topic.as_ref()) {
        wildcard(topic, sink, |_| {
            "write a topic as it is published: a Spot gets what has that very one".to_owned()
        });
    }
}

fn wildcard(topic: &Name, sink: &mut Sink, help: impl Fn(&str) -> String) {
    let Some(before) = before_wildcard(&topic.value) else {
        return;
    };
    let message = format!(
        "the topic `{}` is no pattern: each byte of it is sent",
        shorten(&topic.value)
    );
    sink.report(Diagnostic::new(Code::WildcardTopic, topic.span, message).help(help(before)));
}

/// What stands before the first part of a topic that is a wildcard, or ends with one, where others have topics.
fn before_wildcard(topic: &str) -> Option<&str> {
    let mut start = 0;
    for part in topic.split_inclusive(['.', '/']) {
        let word = part.trim_end_matches(['.', '/']);
        if matches!(word, "#" | "+" | ">") {
            return topic.get(..start);
        }
        if word.ends_with('*') {
            return topic.get(..start + word.trim_end_matches('*').len());
        }
        start += part.len();
    }
    None
}

/// Who subscribes to `order` gets `orders` as well.
pub(super) fn within_words(file: &File, sink: &mut Sink) {
    for topics in topics(file) {
        let topics: BTreeMap<&str, &Name> = topics.iter().map(|topic| (topic.value.as_str(), *topic)).collect();
        for (short, name) in topics.iter().filter(|(short, _)| ends_in_word(short)) {
            // All that begin with it stand directly behind it.
            let longer = topics.range::<str, _>((Bound::Excluded(*short), Bound::Unbounded));
            let mut longer = longer.map_while(|(long, name)| Some((long.strip_prefix(short)?, name)));
            let Some((_, other)) = longer.find(|(rest, _)| rest.starts_with(char::is_alphanumeric)) else {
                continue;
            };
            let message = format!(
                "who subscribes to `{}` gets `{}` as well",
                shorten(short),
                shorten(&other.value)
            );
            let item = Diagnostic::new(Code::TopicWithinWord, name.span, message).at(other.span, "the other one");
            sink.report(item.help(format!(
                "end it with a character that ends a word: `{}.`",
                shorten(short)
            )));
        }
    }
}

fn ends_in_word(topic: &str) -> bool {
    topic.ends_with(char::is_alphanumeric)
}

/// The topics that are written, by fanout.
fn topics(file: &File) -> impl Iterator<Item = Vec<&Name>> {
    let fanouts = file.fanouts.iter();
    fanouts.map(|it| it.events.iter().filter_map(|event| event.topic.as_ref()).collect())
}
