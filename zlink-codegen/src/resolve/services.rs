//! Services, their methods, and the packet names that travel.
//!
//! It must not know what messages hold.

use std::collections::HashMap;

use super::lookup::Lookup;
use crate::diagnostic::{Code, Diagnostic, shorten};
use crate::ir::{self, Doc, Exchange, Target};
use crate::source::Span;
use crate::syntax::{self, Name};

/// Names on the wire have 1 to this many bytes.
const MAX_PACKET: usize = 255;

pub(super) fn service(it: &syntax::Service, namespace: &str, lookup: &mut Lookup<'_, '_>) -> ir::Service {
    let mut packets = Packets::new(format!("{namespace}.{}", it.name.value), "this service");
    let methods = it.methods.iter().filter_map(|it| method(it, &mut packets, lookup));
    ir::Service {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        methods: methods.collect(),
        target: match it.target {
            Some(syntax::Target::Node) => Target::Node,
            Some(syntax::Target::Channel) | None => Target::Channel,
        },
    }
}

/// The packet names of one service, fanout, Spot or Actor.
pub(super) struct Packets {
    /// What the names begin with.
    prefix: String,
    owner: &'static str,
    seen: HashMap<String, Span>,
}

impl Packets {
    pub(super) fn new(prefix: String, owner: &'static str) -> Self {
        let seen = HashMap::new();
        Packets { prefix, owner, seen }
    }

    /// The packet name of one, which none before it has.
    pub(super) fn take(
        &mut self,
        name: &Name,
        written: Option<&Name>,
        was: Option<&Name>,
        what: &str,
        lookup: &mut Lookup<'_, '_>,
    ) -> String {
        let packet = packet(name, written, was, &self.prefix, lookup);
        let span = written.map_or(name.span, |written| written.span);
        if let Some(first) = self.seen.insert(packet.clone(), span) {
            let message = format!("the packet name `{}` is in use in {}", shorten(&packet), self.owner);
            let item = Diagnostic::new(Code::DuplicatePacket, span, message)
                .label("again here")
                .at(first, "first here");
            lookup.report(item.help(format!("it selects the handler, so each {what} needs its own")));
        }
        packet
    }
}

/// The method, where it exchanges something that exists.
pub(super) fn method(it: &syntax::Method, packets: &mut Packets, lookup: &mut Lookup<'_, '_>) -> Option<ir::Method> {
    let packet = packets.take(&it.name, it.packet.as_ref(), it.was.as_ref(), "method", lookup);
    Some(ir::Method {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        exchange: exchange(it, lookup)?,
        packet,
    })
}

/// The name on the wire.
pub(super) fn packet(
    name: &Name,
    packet: Option<&Name>,
    was: Option<&Name>,
    prefix: &str,
    lookup: &mut Lookup<'_, '_>,
) -> String {
    if let Some(packet) = packet {
        let text = &packet.value;
        if text.is_empty() || text.len() > MAX_PACKET || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let message = format!("`{}` is not a packet name", shorten(text));
            let item = Diagnostic::new(Code::BadPacket, packet.span, message);
            lookup.report(item.help(format!(
                "use 1 to {MAX_PACKET} bytes without white space and control characters"
            )));
        }
    }
    if let Some(was) = was {
        let item = if packet.is_some() {
            Some(("`packet` gives the name on the wire already", "remove `was`"))
        } else if was.value == name.value {
            Some((
                "this is its name already",
                "remove `was`, or write the name that it had first",
            ))
        } else {
            None
        };
        if let Some((message, help)) = item {
            lookup.report(Diagnostic::new(Code::BadWas, was.span, message).help(help));
        }
    }
    match (packet, was) {
        (Some(packet), _) => packet.value.clone(),
        (None, was) => format!("{prefix}.{}", was.unwrap_or(name).value),
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
