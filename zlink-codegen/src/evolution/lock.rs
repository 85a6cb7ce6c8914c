//! A lock file back to its contract.
//!
//! It must not forgive: a lock is written by this program, and what it would not write is damage.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::contract::{
    Admission, Contract, DEFAULT_EXECUTION, Enum, Fanout, Field, Message, Metadata, Method, Object, Service, Turn, Use,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::{Entry, Kind, Node, Text};
use crate::source::Span;

/// The contract in the tree of a lock file, or the first place that is damaged.
pub(crate) fn read(root: &Node) -> Result<Contract, Diagnostic> {
    contract(root).map_err(|Damage { span, what }| damaged(span, what))
}

/// A lock file that does not say what this program wrote. What is wrong is said in a few words.
pub(crate) fn damaged(span: Span, what: &str) -> Diagnostic {
    Diagnostic::new(Code::LockBroken, span, format!("the lock file is damaged: {what}"))
        .help("restore it from version control; what it remembers cannot be made again from the schema")
}

struct Damage {
    span: Span,
    what: &'static str,
}

type Read<T> = Result<T, Damage>;

fn contract(root: &Node) -> Read<Contract> {
    const KEYS: &[&str] = &[
        "lock",
        "namespace",
        "version",
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
    known(root, KEYS)?;
    if text(need(root, "lock")?)?.text != "1" {
        return Err(Damage {
            span: root.span,
            what: "its format is of another zlink-codegen",
        });
    }
    Ok(Contract {
        namespace: text(need(root, "namespace")?)?.text.clone(),
        version: number(text(need(root, "version")?)?)?,
        metadata: section(root, "metadata", |node| {
            gone(node).map_or_else(
                || {
                    known(node, &["type", "relay"])?;
                    Ok(Use::Now(Metadata {
                        ty: string(node, "type")?,
                        relay: flag(node, "relay")?,
                    }))
                },
                |ty| Ok(Use::Gone(ty?)),
            )
        })?,
        enums: section(root, "enums", |node| {
            known(node, &["type", "values"])?;
            Ok(Enum {
                ty: string(node, "type")?,
                values: numbered(need(node, "values")?, name)?,
            })
        })?,
        structs: section(root, "structs", |node| {
            let fields = entries(node)?
                .iter()
                .map(|entry| Ok((entry.key.text.clone(), text(&entry.value)?.text.clone())));
            fields.collect()
        })?,
        unions: section(root, "unions", |node| numbered(node, name))?,
        messages: section(root, "messages", message)?,
        services: section(root, "services", service)?,
        fanouts: section(root, "fanouts", |node| {
            known(node, &["packets"])?;
            Ok(Fanout {
                packets: section(node, "packets", event)?,
            })
        })?,
        spots: section(root, "spots", object)?,
        actors: section(root, "actors", object)?,
    })
}

fn message(node: &Node) -> Read<Message> {
    known(node, &["state", "fields"])?;
    let state = node.get("state").map(|entry| number(text(&entry.value)?)).transpose()?;
    let fields = node
        .get("fields")
        .map(|entry| numbered(&entry.value, field))
        .transpose()?;
    Ok(Message {
        state,
        fields: fields.unwrap_or_default(),
    })
}

fn field(node: &Node) -> Read<Use<Field>> {
    if let Some(gone) = gone(node) {
        return Ok(Use::Gone(gone?));
    }
    known(node, &["name", "type", "required", "max"])?;
    let max = node.get("max").map(|entry| number(text(&entry.value)?)).transpose()?;
    let (name, ty) = (string(node, "name")?, string(node, "type")?);
    Ok(Use::Now(Field {
        name,
        ty,
        required: flag(node, "required")?,
        max,
    }))
}

fn service(node: &Node) -> Read<Service> {
    known(node, &["target", "packets"])?;
    let node_target = match string(node, "target")?.as_str() {
        "node" => true,
        "channel" => false,
        _ => {
            return Err(Damage {
                span: node.span,
                what: "there is no such target",
            });
        }
    };
    Ok(Service {
        node: node_target,
        packets: section(node, "packets", method)?,
    })
}

fn method(node: &Node) -> Read<Use<Method>> {
    if let Some(gone) = gone(node) {
        return Ok(Use::Gone(gone?));
    }
    known(
        node,
        &["method", "send", "request", "reply", "activates", "closes", "yields"],
    )?;
    let name = string(node, "method")?;
    let request = node.get("request").is_some();
    let message = string(node, if request { "request" } else { "send" })?;
    let reply = if request { Some(string(node, "reply")?) } else { None };
    let turn = turn(node)?;
    Ok(Use::Now(Method {
        name,
        message,
        reply,
        turn,
        topic: None,
    }))
}

fn event(node: &Node) -> Read<Use<Method>> {
    if let Some(gone) = gone(node) {
        return Ok(Use::Gone(gone?));
    }
    known(node, &["event", "publish", "topic"])?;
    Ok(Use::Now(Method {
        name: string(node, "event")?,
        message: string(node, "publish")?,
        reply: None,
        turn: Turn::default(),
        topic: Some(string(node, "topic")?),
    }))
}

fn turn(node: &Node) -> Read<Turn> {
    Ok(Turn {
        activates: flag(node, "activates")?,
        closes: flag(node, "closes")?,
        yields: flag(node, "yields")?,
    })
}

fn object(node: &Node) -> Read<Object> {
    const KEYS: &[&str] = &[
        "kind",
        "type",
        "gone",
        "relocation",
        "create",
        "execution",
        "members",
        "timers",
        "join",
        "packets",
        "subscribes",
    ];
    known(node, KEYS)?;
    let relocation = node.get("relocation").map(|entry| {
        known(&entry.value, &["policy", "state"])?;
        Ok((string(&entry.value, "policy")?, optional(&entry.value, "state")?))
    });
    let create = node.get("create").map(|entry| admission(&entry.value));
    let (gone, kind) = (flag(node, "gone")?, string(node, "kind")?);
    let execution = optional(node, "execution")?;
    let left_out = (kind == "user" && !gone).then(|| DEFAULT_EXECUTION.to_owned());
    let members = node.get("members").map(|entry| entries(&entry.value)).transpose()?;
    Ok(Object {
        gone,
        kind,
        execution: execution.or(left_out),
        members: members
            .into_iter()
            .flatten()
            .map(|entry| entry.key.text.clone())
            .collect(),
        timers: section(node, "timers", |node| {
            known(node, &["yields"])?;
            turn(node)
        })?,
        ty: string(node, "type")?,
        relocation: relocation.transpose()?,
        create: create.transpose()?,
        joins: section(node, "join", admission)?,
        packets: section(node, "packets", method)?,
        subscribes: section(node, "subscribes", method)?,
    })
}

fn admission(node: &Node) -> Read<Admission> {
    known(node, &["request", "reply"])?;
    Ok(Admission {
        request: string(node, "request")?,
        reply: optional(node, "reply")?,
    })
}

fn name(node: &Node) -> Read<Use<String>> {
    match gone(node) {
        Some(gone) => Ok(Use::Gone(gone?)),
        None => Ok(Use::Now(text(node)?.text.clone())),
    }
}

/// The text behind the one key `gone`.
fn gone(node: &Node) -> Option<Read<String>> {
    node.get("gone").map(|entry| {
        known(node, &["gone"])?;
        Ok(text(&entry.value)?.text.clone())
    })
}

fn section<T>(root: &Node, key: &str, read: impl Fn(&Node) -> Read<T>) -> Read<BTreeMap<String, T>> {
    let Some(entry) = root.get(key) else {
        return Ok(BTreeMap::new());
    };
    entries(&entry.value)?
        .iter()
        .map(|entry| Ok((entry.key.text.clone(), read(&entry.value)?)))
        .collect()
}

fn numbered<K: Ord + FromStr, T>(node: &Node, read: impl Fn(&Node) -> Read<T>) -> Read<BTreeMap<K, T>> {
    entries(node)?
        .iter()
        .map(|entry| Ok((number(&entry.key)?, read(&entry.value)?)))
        .collect()
}

fn entries(node: &Node) -> Read<&[Entry]> {
    match &node.kind {
        Kind::Map(entries) => Ok(entries),
        _ => Err(Damage {
            span: node.span,
            what: "a mapping should stand here",
        }),
    }
}

fn known(node: &Node, keys: &[&str]) -> Read<()> {
    match entries(node)?
        .iter()
        .find(|entry| !keys.contains(&entry.key.text.as_str()))
    {
        Some(entry) => Err(Damage {
            span: entry.key.span,
            what: "there is no such key",
        }),
        None => Ok(()),
    }
}

fn need<'n>(node: &'n Node, key: &str) -> Read<&'n Node> {
    node.get(key).map(|entry| &entry.value).ok_or(Damage {
        span: node.span,
        what: "a key is missing",
    })
}

fn text(node: &Node) -> Read<&Text> {
    match &node.kind {
        Kind::Text(text) if !node.is_nothing() => Ok(text),
        _ => Err(Damage {
            span: node.span,
            what: "a text should stand here",
        }),
    }
}

fn string(node: &Node, key: &str) -> Read<String> {
    Ok(text(need(node, key)?)?.text.clone())
}

fn optional(node: &Node, key: &str) -> Read<Option<String>> {
    node.get(key)
        .map(|entry| Ok(text(&entry.value)?.text.clone()))
        .transpose()
}

fn flag(node: &Node, key: &str) -> Read<bool> {
    match node.get(key) {
        None => Ok(false),
        Some(entry) if text(&entry.value)?.text == "true" => Ok(true),
        Some(entry) => Err(Damage {
            span: entry.value.span,
            what: "`true` should stand here",
        }),
    }
}

fn number<T: FromStr>(text: &Text) -> Read<T> {
    text.text.parse().map_err(|_| Damage {
        span: text.span,
        what: "a number should stand here",
    })
}
