//! What calls Spots: the manager of a type, and the client of one Spot.

use super::object::Handled;
use super::service::call;
use super::spot::Parts;
use super::{Context, doc};
use crate::ir::{SpotKind, Type};

impl Context<'_> {
    pub(super) fn manager(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let (manager, make, client) = (&names.manager, &names.make_manager, &names.client);
        let (does, begins) = match it.kind {
            SpotKind::Entry => ("Calls", "Calls"),
            SpotKind::User { .. } => ("Calls, creates and finds", "Creates, finds, closes and calls"),
            SpotKind::Instance { .. } => ("Calls and finds", "Finds and calls"),
        };
        self.text.line("");
        self.text
            .line(format_args!("/// {does} the Spots `{}`, from `caller`.", it.name));
        self.text
            .line(format_args!("pub fn {make}(caller: &impl rt::Caller) -> {manager} {{"));
        self.text.line(format_args!(
            "{manager} {{ route: rt::SpotRoute::new(caller, {}) }}",
            names.constant
        ));
        self.text.line("}");
        self.text.line("");
        self.text.line(format_args!(
            "/// {begins} the Spots `{}`; [`{make}`] makes one.",
            it.name
        ));
        self.text.line("#[derive(Clone, Debug)]");
        self.text
            .line(format_args!("pub struct {manager} {{ route: rt::SpotRoute }}"));
        self.text.line("");
        self.text.line(format_args!("impl {manager} {{"));
        self.text
            .line("/// The Spot of that ID, wherever it lives. An ID that is none is an error of each call.");
        self.text
            .line(format_args!("pub fn of(&self, id: impl rt::AsRef<str>) -> {client} {{"));
        self.text.line(format_args!("{client} {{ spot: self.route.of(id) }}"));
        self.text.line("}");
        if let SpotKind::User { create, .. } = &it.kind {
            let request = self.path(&Type::Message(create.request));
            let reply = create
                .reply
                .map_or("()".to_owned(), |reply| self.path(&Type::Message(reply)));
            let call = format!("rt::CreateCall<{request}, {reply}>");
            doc::lines(self.text, &create.doc, "Creates one, under an ID of its own.");
            self.text
                .line(format_args!("pub fn create(&self, request: {request}) -> {call} {{"));
            self.text.line("self.route.create(request)");
            self.text.line("}");
            self.text
                .line("/// The one of that ID; where there is none, it is created.");
            self.text.line(format_args!(
                "pub fn get_or_create(&self, id: impl rt::AsRef<str>, request: {request}) -> {call} {{"
            ));
            self.text.line("self.route.get_or_create(id, request)");
            self.text.line("}");
        }
        if !matches!(it.kind, SpotKind::Entry) {
            self.text
                .line("/// The one of that ID, if there is one; it makes none.");
            self.text
                .line("pub fn find(&self, id: impl rt::AsRef<str>) -> rt::FindCall {");
            self.text.line("self.route.find(id)");
            self.text.line("}");
            self.text
                .line("/// Frees the ID of one whose host is dead, once that is certain.");
            self.text
                .line("pub fn release(&self, spot: &rt::SpotRef) -> rt::ReleaseCall {");
            self.text.line("self.route.release(spot)");
            self.text.line("}");
        }
        if let SpotKind::User { .. } = it.kind {
            self.text
                .line("/// Closes exactly that one; `false` where it is gone, or has members.");
            self.text
                .line("pub fn close(&self, spot: &rt::SpotRef) -> rt::CloseCall {");
            self.text.line("self.route.close(spot)");
            self.text.line("}");
        }
        for Handled { it, ident, input } in &parts.subscriptions {
            let ident = ident.strip_prefix("r#").unwrap_or(ident);
            let (channel, topic, packet) = (&it.channel, &it.topic, &it.packet);
            let otherwise = format_args!("Publishes `{packet}` on `{channel}`, to all who subscribe to it.");
            doc::lines(self.text, &it.doc, otherwise);
            self.text.line(format_args!(
                "pub fn publish_{ident}(&self, message: {input}) -> rt::PublishCall<{input}> {{"
            ));
            self.text.line(format_args!(
                "self.route.publish({channel:?}, {topic:?}, {packet:?}, message)"
            ));
            self.text.line("}");
        }
        self.text.line("}");
    }

    pub(super) fn spot_client(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let (manager, client) = (&names.manager, &names.client);
        self.text.line("");
        self.text.line(format_args!(
            "/// Calls one Spot `{}`; [`{manager}::of`] makes one.",
            it.name
        ));
        self.text.line("#[derive(Clone, Debug)]");
        self.text
            .line(format_args!("pub struct {client} {{ spot: rt::SpotClient }}"));
        self.text.line("");
        self.text.line(format_args!("impl {client} {{"));
        for (member, method) in &parts.methods {
            let (ident, argument, input) = (&member.ident, member.argument, &member.input);
            let (mut ty, begin, how) = call(member.method, input, &member.output);
            let mut value = format!("self.spot.{begin}(const {{ rt::Method::{how} }}, {argument})");
            if method.activates {
                ty = format!("rt::Activates<{ty}>");
                value = format!("self.spot.activates({value})");
            }
            let otherwise = format_args!("Calls `{}`.", member.method.packet);
            doc::lines(self.text, &member.method.doc, otherwise);
            if method.activates {
                self.text.line("///");
                self.text
                    .line("/// It finds the Spot, or ends with `NotFound`; with `.activating()`, it makes one where there is none.");
            }
            self.text
                .line(format_args!("pub fn {ident}(&self, {argument}: {input}) -> {ty} {{"));
            self.text.line(value);
            self.text.line("}");
        }
        self.text.line("}");
    }
}
