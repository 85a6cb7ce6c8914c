//! Services, their methods, and the packet names that travel.
//!
//! It must not know what messages hold.

use std::collections::HashMap;

use super::lookup::Lookup;
use crate::diagnostic::{Code, Diagnostic, shorten};
use crate::ir::{self, Doc, Exchange, Target};
use crate::source::Span;
use crate::syntax::{self, suggest};

/// Names on the wire have 1 to this many bytes.
const MAX_PACKET: usize = 255;
const TARGETS: &[(&str, Target)] = &[("channel", Target::Channel), ("node", Target::Node)];

pub(super) fn service(it: &syntax::Service, namespace: &str, lookup: &mut Lookup<'_, '_>) -> ir::Service {
    let target = it
        .target
        .as_ref()
        .map_or(Some(Target::Channel), |target| target_of(target, lookup));
    let mut packets: HashMap<String, Span> = HashMap::new();
    let mut methods = Vec::new();
    for method in &it.methods {
        let packet = packet(method, namespace, &it.name.value, lookup);
        let span = method.packet.as_ref().map_or(method.name.span, |packet| packet.span);
        if let Some(first) = packets.insert(packet.clone(), span) {
            let message = format!("the packet name `{}` is in use in this service", shorten(&packet));
            let item = Diagnostic::new(Code::DuplicatePacket, span, message)
                .label("again here")
                .at(first, "first here");
            lookup.report(item.help("it selects the handler, so each method needs its own"));
        }
        if let Some(exchange) = exchange(method, lookup) {
            methods.push(ir::Method {
                name: method.name.value.clone(),
                doc: Doc(method.doc.clone()),
                packet,
                exchange,
            });
        }
    }
    let name = it.name.value.clone();
    ir::Service {
        name,
        doc: Doc(it.doc.clone()),
        target: target.unwrap_or(Target::Channel),
        methods,
    }
}

fn target_of(written: &syntax::Name, lookup: &mut Lookup<'_, '_>) -> Option<Target> {
    let found = TARGETS.iter().find(|(word, _)| *word == written.value);
    if found.is_none() {
        let item = Diagnostic::new(
            Code::BadChoice,
            written.span,
            format!("`{}` is no target", shorten(&written.value)),
        );
        let help = match suggest(
            lookup.sink,
            written.span,
            &written.value,
            TARGETS.iter().map(|(word, _)| *word),
        ) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write `channel`, or `node` for one node named by the caller".to_owned(),
        };
        lookup.report(item.help(help));
    }
    found.map(|(_, target)| *target)
}

/// The name on the wire.
fn packet(method: &syntax::Method, namespace: &str, service: &str, lookup: &mut Lookup<'_, '_>) -> String {
    if let Some(packet) = &method.packet {
        let text = &packet.value;
        if text.is_empty() || text.len() > MAX_PACKET || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let message = format!("`{}` is not a packet name", shorten(text));
            let item = Diagnostic::new(Code::BadPacket, packet.span, message);
            lookup.report(item.help(format!(
                "use 1 to {MAX_PACKET} bytes without white space and control characters"
            )));
        }
    }
    if let Some(was) = &method.was {
        let item = if method.packet.is_some() {
            Some(("`packet` gives the name on the wire already", "remove `was`"))
        } else if was.value == method.name.value {
            Some((
                "the method has this name",
                "remove `was`, or write the name that the method had first",
            ))
        } else {
            None
        };
        if let Some((message, help)) = item {
            lookup.report(Diagnostic::new(Code::BadWas, was.span, message).help(help));
        }
    }
    match (&method.packet, &method.was) {
        (Some(packet), _) => packet.value.clone(),
        (None, Some(was)) => format!("{namespace}.{service}.{}", was.value),
        (None, None) => format!("{namespace}.{service}.{}", method.name.value),
    }
}

fn exchange(method: &syntax::Method, lookup: &mut Lookup<'_, '_>) -> Option<Exchange> {
    let name = &method.name;
    let send = method
        .send
        .as_ref()
        .and_then(|send| lookup.message(send.value.as_ref()?, "what is sent"));
    let request = method
        .request
        .as_ref()
        .and_then(|request| lookup.message(request.value.as_ref()?, "a request"));
    let reply = method
        .reply
        .as_ref()
        .and_then(|reply| lookup.message(reply.value.as_ref()?, "a reply"));
    match (&method.send, &method.request) {
        (None, None) => {
            let item = Diagnostic::new(
                Code::NoExchange,
                name.span,
                format!("the method `{}` exchanges nothing", name.value),
            );
            lookup.report(item.help("write `{ send: Note }`, or `{ request: Charge, reply: Receipt }`"));
            None
        }
        (Some(send), Some(request)) => {
            let message = format!("the method `{}` both sends and requests", name.value);
            let item = Diagnostic::new(Code::NoExchange, request.span, message).at(send.span, "a send has no reply");
            lookup.report(item.help("remove one of them, or make two methods"));
            None
        }
        (Some(_), None) => {
            if let Some(reply) = &method.reply {
                let item = Diagnostic::new(Code::ReplyMismatch, reply.span, "a send has no reply");
                lookup.report(item.help("write `request` for `send`"));
            }
            if let Some(timeout) = &method.timeout {
                let item = Diagnostic::new(
                    Code::TimeoutOnSend,
                    timeout.key,
                    "a send has no timeout: nothing is waited for",
                );
                lookup.report(item.help("remove it"));
            }
            Some(Exchange::Send { message: send? })
        }
        (None, Some(request_key)) => {
            if method.reply.is_none() {
                let item = Diagnostic::new(Code::ReplyMismatch, request_key.span, "a request needs a `reply`");
                lookup.report(item.help("write `reply: Receipt`, or `send` for `request` where nothing comes back"));
            }
            let timeout_ms = method.timeout.as_ref().and_then(|timeout| timeout.millis);
            Some(Exchange::Request {
                request: request?,
                reply: reply?,
                timeout_ms,
            })
        }
    }
}
