//! The text of a lock file: sorted, one line per thing, so that a review shows what changed.
//!
//! It must not know how it is read back, beyond that both agree, which a test holds them to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::contract::{Admission, Contract, DEFAULT_EXECUTION, Fanout, Message, Method, Object, Service, Turn, Use};

const HEAD: &str = "\
# Written by `zlink-codegen accept`. Check it in, and do not edit it.
# It holds what other peers, stored state and code rely on, and what must not be used again.
";

/// The text. The same contract gives the same bytes.
pub(crate) fn write(it: &Contract) -> String {
    let mut out = Lines(HEAD.to_owned());
    out.line(0, format_args!("lock: 1"));
    out.line(0, format_args!("namespace: {}", quote(&it.namespace)));
    out.line(0, format_args!("version: {}", it.version));
    out.section("metadata", &it.metadata, |out, name, key| match key {
        Use::Now(key) => {
            let relay = if key.relay { ", relay: true" } else { "" };
            out.line(1, format_args!("{}: {{ type: {}{relay} }}", quote(name), key.ty));
        }
        Use::Gone(ty) => out.line(1, format_args!("{}: {{ gone: {} }}", quote(name), quote(ty))),
    });
    out.section("enums", &it.enums, |out, name, it| {
        out.line(1, format_args!("{}:", quote(name)));
        out.line(2, format_args!("type: {}", it.ty));
        out.line(2, format_args!("values:"));
        for (number, value) in &it.values {
            out.name(3, number, value);
        }
    });
    out.section("structs", &it.structs, |out, name, fields| {
        out.line(1, format_args!("{}:", quote(name)));
        for (field, ty) in fields {
            out.line(2, format_args!("{}: {}", quote(field), quote(ty)));
        }
    });
    out.section("unions", &it.unions, |out, name, members| {
        out.line(1, format_args!("{}:", quote(name)));
        for (tag, member) in members {
            out.name(2, tag, member);
        }
    });
    out.section("messages", &it.messages, Lines::message);
    out.section("services", &it.services, Lines::service);
    out.section("fanouts", &it.fanouts, Lines::fanout);
    out.section("spots", &it.spots, Lines::object);
    out.section("actors", &it.actors, Lines::object);
    out.0
}

struct Lines(String);

impl Lines {
    fn line(&mut self, level: usize, text: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "{:1$}{text}", "", level * 2);
    }

    fn section<T>(&mut self, key: &str, map: &BTreeMap<String, T>, each: impl Fn(&mut Self, &str, &T)) {
        if !map.is_empty() {
            self.line(0, format_args!("{key}:"));
            for (name, it) in map {
                each(self, name, it);
            }
        }
    }

    fn name(&mut self, level: usize, number: &impl std::fmt::Display, it: &Use<String>) {
        match it {
            Use::Now(name) => self.line(level, format_args!("{number}: {}", quote(name))),
            Use::Gone(name) => self.line(level, format_args!("{number}: {{ gone: {} }}", quote(name))),
        }
    }

    fn message(&mut self, name: &str, it: &Message) {
        if it.state.is_none() && it.fields.is_empty() {
            self.line(1, format_args!("{}: {{}}", quote(name)));
            return;
        }
        self.line(1, format_args!("{}:", quote(name)));
        if let Some(state) = it.state {
            self.line(2, format_args!("state: {state}"));
        }
        if !it.fields.is_empty() {
            self.line(2, format_args!("fields:"));
        }
        for (id, field) in &it.fields {
            match field {
                Use::Gone(name) => self.line(3, format_args!("{id}: {{ gone: {} }}", quote(name))),
                Use::Now(field) => {
                    let required = if field.required { ", required: true" } else { "" };
                    let max = field.max.map(|max| format!(", max: {max}")).unwrap_or_default();
                    let (name, ty) = (quote(&field.name), quote(&field.ty));
                    self.line(3, format_args!("{id}: {{ name: {name}, type: {ty}{required}{max} }}"));
                }
            }
        }
    }

    fn service(&mut self, name: &str, it: &Service) {
        self.line(1, format_args!("{}:", quote(name)));
        self.line(2, format_args!("target: {}", if it.node { "node" } else { "channel" }));
        self.packets("packets", &it.packets);
    }

    fn fanout(&mut self, name: &str, it: &Fanout) {
        if it.packets.is_empty() {
            self.line(1, format_args!("{}: {{}}", quote(name)));
            return;
        }
        self.line(1, format_args!("{}:", quote(name)));
        self.packets("packets", &it.packets);
    }

    fn object(&mut self, name: &str, it: &Object) {
        self.line(1, format_args!("{}:", quote(name)));
        self.line(2, format_args!("kind: {}", it.kind));
        self.line(2, format_args!("type: {}", quote(&it.ty)));
        if it.gone {
            self.line(2, format_args!("gone: true"));
        }
        if let Some((policy, state)) = &it.relocation {
            let state = state.as_ref().map(|state| format!(", state: {}", quote(state)));
            let state = state.unwrap_or_default();
            self.line(2, format_args!("relocation: {{ policy: {policy}{state} }}"));
        }
        if let Some(create) = &it.create {
            self.admission(2, "create", create);
        }
        if let Some(execution) = it
            .execution
            .as_ref()
            .filter(|execution| *execution != DEFAULT_EXECUTION)
        {
            self.line(2, format_args!("execution: {execution}"));
        }
        if !it.members.is_empty() {
            let members: Vec<_> = it.members.iter().map(|it| format!("{}: true", quote(it))).collect();
            self.line(2, format_args!("members: {{ {} }}", members.join(", ")));
        }
        if !it.joins.is_empty() {
            self.line(2, format_args!("join:"));
        }
        for (spot, join) in &it.joins {
            self.admission(3, spot, join);
        }
        if !it.timers.is_empty() {
            self.line(2, format_args!("timers:"));
        }
        for (name, turn) in &it.timers {
            let turn = marks(*turn);
            let turn = if turn.is_empty() {
                "{}".to_owned()
            } else {
                format!("{{ {} }}", turn.join(", "))
            };
            self.line(3, format_args!("{}: {turn}", quote(name)));
        }
        self.packets("packets", &it.packets);
        self.packets("subscribes", &it.subscribes);
    }

    fn admission(&mut self, level: usize, key: &str, it: &Admission) {
        let reply = it.reply.as_ref().map(|reply| format!(", reply: {}", quote(reply)));
        let (key, request, reply) = (quote(key), quote(&it.request), reply.unwrap_or_default());
        self.line(level, format_args!("{key}: {{ request: {request}{reply} }}"));
    }

    fn packets(&mut self, key: &str, packets: &BTreeMap<String, Use<Method>>) {
        if !packets.is_empty() {
            self.line(2, format_args!("{key}:"));
        }
        for (packet, method) in packets {
            let packet = quote(packet);
            match method {
                Use::Gone(name) => self.line(3, format_args!("{packet}: {{ gone: {} }}", quote(name))),
                Use::Now(Method {
                    name,
                    message,
                    topic: Some(topic),
                    ..
                }) => {
                    let (name, message, topic) = (quote(name), quote(message), quote(topic));
                    self.line(
                        3,
                        format_args!("{packet}: {{ event: {name}, publish: {message}, topic: {topic} }}"),
                    );
                }
                Use::Now(Method {
                    name,
                    message,
                    reply,
                    turn,
                    topic: None,
                }) => {
                    let key = if reply.is_some() { "request" } else { "send" };
                    let reply = reply
                        .as_ref()
                        .map(|reply| format!(", reply: {}", quote(reply)))
                        .unwrap_or_default();
                    let (name, message) = (quote(name), quote(message));
                    let turn: String = marks(*turn).iter().map(|mark| format!(", {mark}")).collect();
                    self.line(
                        3,
                        format_args!("{packet}: {{ method: {name}, {key}: {message}{reply}{turn} }}"),
                    );
                }
            }
        }
    }
}

/// What a turn is, as entries of a mapping.
fn marks(turn: Turn) -> Vec<&'static str> {
    let all = [
        (turn.activates, "activates: true"),
        (turn.closes, "closes: true"),
        (turn.yields, "yields: true"),
    ];
    all.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect()
}

/// A scalar that every YAML reader takes for this text. Plain where it is a word that means nothing else.
fn quote(text: &str) -> String {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '<' | '>'))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // A topic may hold any character; a file may not, and some end lines.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
