//! What calls Actors: the manager of a type, and the client of one Actor.

use super::actor::Parts;
use super::service::call;
use super::{Context, doc};
use crate::ir::Type;

impl Context<'_> {
    pub(super) fn actor_manager(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let (manager, make, client) = (&names.manager, &names.make_manager, &names.client);
        self.text.line("");
        self.text.line(format_args!(
            "/// Calls, creates and finds the Actors `{}`, from `caller`.",
            it.name
        ));
        self.text
            .line(format_args!("pub fn {make}(caller: &impl rt::Caller) -> {manager} {{"));
        self.text.line(format_args!(
            "{manager} {{ route: rt::ActorRoute::new(caller, {}) }}",
            names.constant
        ));
        self.text.line("}");
        self.text.line("");
        self.text.line(format_args!(
            "/// Creates, finds, destroys and calls the Actors `{}`; [`{make}`] makes one.",
            it.name
        ));
        self.text.line("#[derive(Clone, Debug)]");
        self.text
            .line(format_args!("pub struct {manager} {{ route: rt::ActorRoute }}"));
        self.text.line("");
        self.text.line(format_args!("impl {manager} {{"));
        self.text
            .line("/// The Actor of that ID, wherever it lives. An ID that is none is an error of each call.");
        self.text
            .line(format_args!("pub fn of(&self, id: impl rt::AsRef<str>) -> {client} {{"));
        self.text.line(format_args!("{client} {{ actor: self.route.of(id) }}"));
        self.text.line("}");
        self.creations(parts);
        self.text
            .line("/// The one of that ID, if there is one; it makes none.");
        self.text
            .line("pub fn find(&self, id: impl rt::AsRef<str>) -> rt::FindActorCall {");
        self.text.line("self.route.find(id)");
        self.text.line("}");
        self.text.line("/// Ends exactly that one; `false` where it is gone.");
        self.text
            .line("pub fn destroy(&self, actor: &rt::ActorRef) -> rt::DestroyActorCall {");
        self.text.line("self.route.destroy(actor)");
        self.text.line("}");
        self.text
            .line("/// Frees the ID of one whose host is dead, once that is certain.");
        self.text
            .line("pub fn release(&self, actor: &rt::ActorRef) -> rt::ReleaseActorCall {");
        self.text.line("self.route.release(actor)");
        self.text.line("}");
        self.text.line("}");
    }

    fn creations(&mut self, Parts { it, .. }: &Parts<'_>) {
        let request = self.path(&Type::Message(it.create.request));
        let call = format!("rt::CreateActorCall<{request}, {}>", self.reply(&it.create));
        let otherwise = "Creates the one of that ID; it is an error that there is one.";
        doc::lines(self.text, &it.create.doc, otherwise);
        self.text.line(format_args!(
            "pub fn create(&self, id: impl rt::AsRef<str>, request: {request}) -> {call} {{"
        ));
        self.text.line("self.route.create(id, request)");
        self.text.line("}");
        self.text
            .line("/// The one of that ID; where there is none, it is created.");
        self.text.line(format_args!(
            "pub fn get_or_create(&self, id: impl rt::AsRef<str>, request: {request}) -> {call} {{"
        ));
        self.text.line("self.route.get_or_create(id, request)");
        self.text.line("}");
    }

    pub(super) fn actor_client(&mut self, parts: &Parts<'_>) {
        let Parts { it, names, .. } = parts;
        let (manager, client) = (&names.manager, &names.client);
        self.text.line("");
        self.text.line(format_args!(
            "/// Calls one Actor `{}`; [`{manager}::of`] makes one.",
            it.name
        ));
        self.text.line("#[derive(Clone, Debug)]");
        self.text
            .line(format_args!("pub struct {client} {{ actor: rt::ActorClient }}"));
        self.text.line("");
        self.text.line(format_args!("impl {client} {{"));
        for (member, _) in &parts.methods {
            let (ident, argument, input) = (&member.ident, member.argument, &member.input);
            let (ty, begin, how) = call(member.method, input, &member.output);
            let otherwise = format_args!("Calls `{}`.", member.method.packet);
            doc::lines(self.text, &member.method.doc, otherwise);
            self.text
                .line(format_args!("pub fn {ident}(&self, {argument}: {input}) -> {ty} {{"));
            self.text.line(format_args!(
                "self.actor.{begin}(const {{ rt::Method::{how} }}, {argument})"
            ));
            self.text.line("}");
        }
        self.text.line("}");
    }
}
