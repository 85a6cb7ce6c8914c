//! Fanouts: the trait of their handlers, the subscriber that registers one, and the publisher.

use super::names::FanoutNames;
use super::{Context, doc, names};
use crate::ir::{Event, Fanout, Type};
use crate::name::snake;

/// An event with what is derived from it.
struct Member<'a> {
    event: &'a Event,
    ident: String,
    /// The type of its message.
    input: String,
}

impl Context<'_> {
    pub(super) fn fanout(&mut self, it: &Fanout, names: &FanoutNames) {
        let event_names: Vec<&str> = it.events.iter().map(|event| event.name.as_str()).collect();
        // The trait and the publisher have the events of the schema under the same names, so both keep `on` free.
        let idents = names::idents(&event_names, snake, &[&["on"], names::OF_EVERY_VALUE].concat());
        let members = it.events.iter().zip(idents).map(|(event, ident)| Member {
            event,
            ident,
            input: self.path(&Type::Message(event.message)),
        });
        let members: Vec<Member<'_>> = members.collect();
        self.text.line("");
        self.text
            .line(format_args!("/// The ChannelName of the fanout `{}`.", it.name));
        let value = format_args!("rt::ChannelName::from_static({:?})", it.name);
        self.text
            .line(format_args!("pub const {}: rt::ChannelName = {value};", names.channel));
        self.events(it, names, &members);
        self.subscriber(it, names, &members);
        self.publisher(it, names, &members);
    }

    /// The trait.
    fn events(&mut self, it: &Fanout, names: &FanoutNames, members: &[Member<'_>]) {
        let FanoutNames {
            handler,
            make_subscriber,
            ..
        } = names;
        self.text.line("");
        let otherwise = format_args!(
            "What handles the events of the fanout `{}`; [`{make_subscriber}`] registers it.",
            it.name
        );
        doc::lines(self.text, &it.doc, otherwise);
        self.text
            .line(format_args!("pub trait {handler}: rt::Send + rt::Sync + 'static {{"));
        for Member { event, ident, input } in members {
            doc::lines(self.text, &event.doc, format_args!("Handles `{}`.", event.packet));
            self.text.line(format_args!(
                "fn {ident}(&self, context: &rt::FanoutContext<'_>, event: {input})"
            ));
            self.text
                .line("-> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send;");
        }
        self.text.line("}");
    }

    fn subscriber(&mut self, it: &Fanout, names: &FanoutNames, members: &[Member<'_>]) {
        let FanoutNames {
            handler,
            channel,
            make_subscriber,
            ..
        } = names;
        self.text.line("");
        self.text.line(format_args!(
            "/// A subscriber of `{}`, to register with a host.",
            it.name
        ));
        self.text.line(format_args!(
            "pub fn {make_subscriber}<H: {handler}>(handler: H) -> rt::FanoutSubscriber {{"
        ));
        self.text
            .line(format_args!("rt::FanoutSubscriber::builder({channel}, handler)"));
        for Member { event, ident, .. } in members {
            let packet = &event.packet;
            self.text
                .line(format_args!("    .event({packet:?}, <H as {handler}>::{ident})"));
        }
        self.text.line("    .build()");
        self.text.line("}");
    }

    fn publisher(&mut self, it: &Fanout, names: &FanoutNames, members: &[Member<'_>]) {
        let FanoutNames {
            publisher,
            channel,
            make_publisher,
            ..
        } = names;
        self.text.line("");
        self.text.line(format_args!(
            "/// A publisher of `{}` that publishes from `caller`.",
            it.name
        ));
        self.text.line(format_args!(
            "pub fn {make_publisher}(caller: &impl rt::Caller) -> {publisher} {{"
        ));
        self.text.line(format_args!(
            "{publisher} {{ route: rt::FanoutRoute::new(caller, {channel}) }}"
        ));
        self.text.line("}");
        self.text.line("");
        self.text.line(format_args!(
            "/// Publishes to the fanout `{}`; [`{make_publisher}`] makes one.",
            it.name
        ));
        self.text.line("#[derive(Clone, Debug)]");
        self.text
            .line(format_args!("pub struct {publisher} {{ route: rt::FanoutRoute }}"));
        self.text.line("");
        self.text.line(format_args!("impl {publisher} {{"));
        self.text
            .line("/// The same under another ChannelName than the schema's.");
        self.text.line("pub fn on(self, channel: rt::ChannelName) -> Self {");
        self.text.line("Self { route: self.route.on(channel) }");
        self.text.line("}");
        for Member { event, ident, input } in members {
            let packet = &event.packet;
            let topic = match &event.topic {
                Some(topic) => format!("rt::Some({topic:?})"),
                None => "rt::None".to_owned(),
            };
            doc::lines(self.text, &event.doc, format_args!("Publishes `{packet}`."));
            self.text.line(format_args!(
                "pub fn {ident}(&self, event: {input}) -> rt::FanoutCall<{input}> {{"
            ));
            self.text.line(format_args!(
                "self.route.publish(const {{ rt::FanoutEvent::new({packet:?}, {topic}) }}, event)"
            ));
            self.text.line("}");
        }
        self.text.line("}");
    }
}
