//! Who owns state: Spots and Actors, each with the keys that its kind has.
//!
//! It must not know whether messages and other objects exist. What the contract forbids has no key here.

use super::exchange::METHOD;
use super::help::{self, ACTOR, ENTRY, INSTANCE, PER_ACTOR, SPOT, USER};
use super::reader::{Reader, find};
use super::{
    Actor, Admission, Boundary, Execution, Name, ObjectMethod, Policy, Relocation, Spot, SpotKind, Subscription, Timer,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::{Entry, Kind, Node, Text};

const KINDS: &[(&str, SpotKind)] = &[
    ("entry", SpotKind::Entry),
    ("user", SpotKind::User),
    ("instance", SpotKind::Instance),
];
const EXECUTIONS: &[(&str, Execution)] = &[("spot_wide", Execution::SpotWide), ("per_actor", Execution::PerActor)];
const BOUNDARIES: &[(&str, Boundary)] = &[
    ("framework", Boundary::Framework),
    ("application", Boundary::Application),
];
const POLICIES: &[(&str, Policy)] = &[
    ("preserve", Policy::Preserve),
    ("recreate", Policy::Recreate),
    ("disabled", Policy::Disabled),
];

const RELOCATION: &str = "there is no default; write `preserve` with a `state`, `recreate`, or `disabled`";

/// What decides which keys a Spot and its parts have.
#[derive(Clone, Copy)]
struct Shape {
    kind: Option<SpotKind>,
    per_actor: bool,
}

impl Shape {
    fn what(self) -> &'static str {
        match self.kind {
            Some(SpotKind::Entry) => ENTRY,
            Some(SpotKind::User) if self.per_actor => PER_ACTOR,
            Some(SpotKind::User) => USER,
            Some(SpotKind::Instance) => INSTANCE,
            None => SPOT,
        }
    }

    fn keys(self) -> Vec<&'static str> {
        let mut keys = vec!["doc", "kind", "methods", "timers"];
        let only: &[&str] = match self.kind {
            Some(SpotKind::Entry) => &["members", "subscribes"],
            Some(SpotKind::Instance) => &["type", "relocation"],
            Some(SpotKind::User) | None => &["type", "execution", "members", "create", "relocation", "subscribes"],
        };
        keys.extend(only);
        if self.kind.is_none_or(|kind| kind == SpotKind::User) && !self.per_actor {
            keys.push("boundary");
        }
        keys
    }

    /// Whether other turns may run while one of its own waits.
    fn yields(self) -> bool {
        self.kind != Some(SpotKind::Entry) && !self.per_actor
    }

    /// The keys of its methods beyond those of all methods.
    fn method_keys(self) -> Vec<&'static str> {
        let mut keys = METHOD.to_vec();
        keys.extend(self.yields().then_some("yields"));
        keys.extend((self.kind != Some(SpotKind::Entry)).then_some("closes"));
        keys.extend(
            self.kind
                .is_none_or(|kind| kind == SpotKind::Instance)
                .then_some("activates"),
        );
        keys
    }
}

impl Reader<'_> {
    pub(super) fn spot(&mut self, Entry { key, value }: &Entry) -> Option<Spot> {
        let name = self.name(key, "the name of a Spot", &[]);
        let entries = self.entries(value, SPOT)?;
        let kind = self.choice(
            entries,
            "kind",
            "kind of Spot",
            KINDS,
            "write `entry`, `user` or `instance`",
        );
        if find(entries, "kind").is_none() {
            let item = Diagnostic::new(Code::MissingKey, key.span, "a Spot needs `kind`");
            self.report(item.help(
                "write `kind: entry` for one per host, `kind: user` for what callers create, \
                 or `kind: instance` for what its first message makes",
            ));
        }
        let kind = kind.map(|kind| kind.value);
        let execution = self.choice(
            entries,
            "execution",
            "way of execution",
            EXECUTIONS,
            "write `spot_wide` for one turn at a time, or `per_actor`",
        );
        let execution = execution.map(|it| it.value);
        let per_actor = kind == Some(SpotKind::User) && execution == Some(Execution::PerActor);
        let shape = Shape { kind, per_actor };
        let what = shape.what();
        self.keys(entries, what, &shape.keys(), &[]);
        if kind == Some(SpotKind::User) {
            self.needs(
                entries,
                key,
                what,
                "create",
                "what a caller asks for, and perhaps what it gets",
            );
        }
        if matches!(kind, Some(SpotKind::User | SpotKind::Instance)) {
            self.needs(entries, key, what, "relocation", RELOCATION);
        }
        let boundary = self.choice(
            entries,
            "boundary",
            "boundary",
            BOUNDARIES,
            "write `framework`, or `application` where the Spot says when it may move",
        );
        Some(Spot {
            name,
            doc: self.doc(entries),
            kind,
            ty: self.word(entries, "type"),
            execution,
            boundary: boundary.map(|it| it.value),
            members: self.members(entries),
            create: find(entries, "create").and_then(|entry| self.admission(entry, "`create`")),
            relocation: self.relocation(entries),
            methods: self.section(entries, "methods", |reader, entry| {
                reader.object_method(entry, what, &shape.method_keys())
            }),
            subscriptions: self.section(entries, "subscribes", |reader, entry| reader.subscription(entry, shape)),
            timers: self.timers(entries, what, shape.yields()),
        })
    }

    pub(super) fn actor(&mut self, Entry { key, value }: &Entry) -> Option<Actor> {
        let name = self.name(key, "the name of an Actor", &[]);
        let entries = self.entries(value, ACTOR)?;
        let keys = ["doc", "type", "create", "join", "relocation", "methods", "timers"];
        self.keys(entries, ACTOR, &keys, &[]);
        self.needs(
            entries,
            key,
            ACTOR,
            "create",
            "what a caller asks for, and perhaps what it gets",
        );
        self.needs(entries, key, ACTOR, "relocation", RELOCATION);
        let method_keys: Vec<&str> = METHOD.iter().copied().chain(["yields"]).collect();
        Some(Actor {
            name,
            doc: self.doc(entries),
            ty: self.word(entries, "type"),
            create: find(entries, "create").and_then(|entry| self.admission(entry, "`create`")),
            joins: self.section(entries, "join", |reader, entry| {
                let spot = reader.name(&entry.key, "the name of a Spot", &[]);
                Some((spot, reader.admission(entry, "a join")?))
            }),
            relocation: self.relocation(entries),
            methods: self.section(entries, "methods", |reader, entry| {
                reader.object_method(entry, ACTOR, &method_keys)
            }),
            timers: self.timers(entries, ACTOR, true),
        })
    }

    fn needs(&mut self, entries: &[Entry], owner: &Text, what: &str, key: &str, why: &str) {
        if find(entries, key).is_none() {
            let item = Diagnostic::new(Code::MissingKey, owner.span, format!("{what} needs `{key}`"));
            let example = help::example(&format!("`{key}` of {what}"));
            let example = example.or(help::example(&format!("`{key}`"))).unwrap_or_default();
            self.report(item.help(format!("write `{example}`: {why}")));
        }
    }

    fn admission(&mut self, Entry { key, value }: &Entry, what: &str) -> Option<Admission> {
        let entries = self.entries(value, what)?;
        self.keys(entries, what, &["doc", "request", "reply"], &[]);
        let request = self.exchanged(entries, "request");
        if request.is_none() {
            let item = Diagnostic::new(Code::MissingKey, key.span, format!("{what} needs `request`"));
            self.report(item.help("write `request: EnterRoom`: what is asked; a message without fields will do"));
        }
        Some(Admission {
            doc: self.doc(entries),
            request: request.and_then(|it| it.value),
            reply: self.exchanged(entries, "reply"),
        })
    }

    fn relocation(&mut self, entries: &[Entry]) -> Option<Relocation> {
        let Entry { key, value } = find(entries, "relocation")?;
        let entries = self.entries(value, "`relocation`")?;
        self.keys(entries, "`relocation`", &["policy", "state"], &[]);
        if find(entries, "policy").is_none() {
            let item = Diagnostic::new(Code::MissingKey, key.span, "`relocation` needs `policy`");
            self.report(item.help(format!("write `policy`: {RELOCATION}")));
        }
        let policy = self.choice(entries, "policy", "policy", POLICIES, RELOCATION);
        let state = self.exchanged(entries, "state");
        if let (Some(policy), None) = (&policy, &state)
            && policy.value == Policy::Preserve
        {
            let item = Diagnostic::new(Code::MissingKey, policy.span, "`preserve` needs a `state`");
            self.report(item.help("write `state: RoomState`, a message with a state version: what moves along"));
        }
        Some(Relocation { policy, state })
    }

    fn object_method(&mut self, entry: &Entry, owner: &str, keys: &[&str]) -> Option<ObjectMethod> {
        let (method, entries) = self.method(entry)?;
        self.keys(entries, &format!("a method of {owner}"), keys, &[]);
        Some(ObjectMethod {
            method,
            yields: self.flag(entries, "yields"),
            activates: self.flag(entries, "activates"),
            closes: self.flag(entries, "closes"),
        })
    }

    fn subscription(&mut self, Entry { key, value }: &Entry, shape: Shape) -> Option<Subscription> {
        let name = self.name(key, "the name of a subscription", &[]);
        let entries = self.entries(value, "a subscription")?;
        let mut keys = vec!["doc", "channel", "topic", "message", "packet", "was"];
        keys.extend(shape.yields().then_some("yields"));
        self.keys(entries, &format!("a subscription of {}", shape.what()), &keys, &[]);
        for needed in ["channel", "topic", "message"] {
            if find(entries, needed).is_none() {
                let item = Diagnostic::new(Code::MissingKey, key.span, format!("a subscription needs `{needed}`"));
                self.report(item.help("write `{ channel: room-news, topic: rooms, message: News }`"));
            }
        }
        let channel = find(entries, "channel").and_then(|entry| {
            let text = self.text(&entry.value, "`channel`")?;
            Some(self.name(text, "the name of a channel", &['-']))
        });
        Some(Subscription {
            name,
            doc: self.doc(entries),
            channel,
            topic: self.word(entries, "topic"),
            message: self.exchanged(entries, "message").and_then(|it| it.value),
            packet: self.word(entries, "packet"),
            was: self.was(entries, "the name of a subscription"),
            yields: self.flag(entries, "yields"),
        })
    }

    /// Timers are a list of names, or of mappings that say more of them.
    fn timers(&mut self, entries: &[Entry], owner: &str, yields: bool) -> Vec<Timer> {
        let Some(entry) = find(entries, "timers") else {
            return Vec::new();
        };
        let items = self.items(&entry.value, "`timers`");
        items
            .iter()
            .filter_map(|item| self.timer(item, owner, yields))
            .collect()
    }

    fn timer(&mut self, item: &Node, owner: &str, yields: bool) -> Option<Timer> {
        const WHAT: &str = "the name of a timer";
        let Kind::Map(entries) = &item.kind else {
            let text = self.text(item, "a timer")?;
            let name = self.name(text, WHAT, &[]);
            return Some(Timer {
                name,
                doc: None,
                yields: false,
            });
        };
        let mut keys = vec!["name", "doc"];
        keys.extend(yields.then_some("yields"));
        self.keys(entries, &format!("a timer of {owner}"), &keys, &[]);
        let Some(entry) = find(entries, "name") else {
            let item = Diagnostic::new(Code::MissingKey, item.span, "a timer needs `name`");
            self.report(item.help("write `{ name: tick, yields: true }`"));
            return None;
        };
        let text = self.text(&entry.value, WHAT)?;
        Some(Timer {
            name: self.name(text, WHAT, &[]),
            doc: self.doc(entries),
            yields: self.flag(entries, "yields"),
        })
    }

    fn members(&mut self, entries: &[Entry]) -> Vec<Name> {
        let Some(entry) = find(entries, "members") else {
            return Vec::new();
        };
        let mut members = Vec::new();
        for item in self.items(&entry.value, "`members`") {
            members.extend(self.text(item, "a member").map(|text| Name {
                value: text.text.clone(),
                span: text.span,
            }));
        }
        members
    }

    fn flag(&mut self, entries: &[Entry], key: &str) -> bool {
        let entry = find(entries, key);
        let flag = entry.and_then(|entry| self.boolean(&entry.value, &format!("`{key}`")));
        flag.is_some_and(|flag| flag.value)
    }
}
