//! Services: the trait of their handlers, the server that registers one, and the client that calls it.

use super::names::ServiceNames;
use super::{Context, doc, names};
use crate::ir::{Exchange, Method, Service, Target, Type};
use crate::name::snake;

/// A method with what is derived from it.
pub(super) struct Member<'a> {
    pub(super) method: &'a Method,
    pub(super) ident: String,
    /// What its argument is called.
    pub(super) argument: &'static str,
    pub(super) input: String,
    /// What its handler gives back.
    pub(super) output: String,
}

impl Context<'_> {
    pub(super) fn service(&mut self, it: &Service, names: &ServiceNames) {
        let method_names: Vec<&str> = it.methods.iter().map(|method| method.name.as_str()).collect();
        // The trait and the client have the methods of the schema under the same names, so both keep `on` free.
        let idents = names::idents(&method_names, snake, &[&["on"], names::OF_EVERY_VALUE].concat());
        let members: Vec<Member<'_>> = it
            .methods
            .iter()
            .zip(idents)
            .map(|(method, ident)| self.member(method, ident))
            .collect();
        if it.target == Target::Channel {
            self.text.line("");
            self.text
                .line(format_args!("/// The ChannelName of the service `{}`.", it.name));
            let value = format_args!("rt::ChannelName::from_static({:?})", it.name);
            self.text
                .line(format_args!("pub const {}: rt::ChannelName = {value};", names.channel));
        }
        self.handler(it, names, &members);
        self.server(it, names, &members);
        self.client(it, names, &members);
    }

    pub(super) fn member<'m>(&self, method: &'m Method, ident: String) -> Member<'m> {
        let (argument, input, output) = match method.exchange {
            Exchange::Send { message } => ("message", message, "()".to_owned()),
            Exchange::Request { request, reply, .. } => ("request", request, self.path(&Type::Message(reply))),
        };
        let input = self.path(&Type::Message(input));
        Member {
            method,
            ident,
            argument,
            input,
            output,
        }
    }

    fn handler(&mut self, it: &Service, names: &ServiceNames, members: &[Member<'_>]) {
        let ServiceNames {
            handler, make_server, ..
        } = names;
        let context = match it.target {
            Target::Channel => "rt::ChannelContext<'_>",
            Target::Node => "rt::NodeContext<'_>",
        };
        self.text.line("");
        let otherwise = format_args!(
            "What handles the service `{}`; [`{make_server}`] registers it.",
            it.name
        );
        doc::lines(self.text, &it.doc, otherwise);
        self.text
            .line(format_args!("pub trait {handler}: rt::Send + rt::Sync + 'static {{"));
        for Member {
            method,
            ident,
            argument,
            input,
            output,
        } in members
        {
            doc::lines(self.text, &method.doc, format_args!("Handles `{}`.", method.packet));
            self.text.line(format_args!(
                "fn {ident}(&self, context: &{context}, {argument}: {input})"
            ));
            let result = format_args!("rt::Result<{output}, rt::HandlerError>");
            self.text
                .line(format_args!("-> impl rt::Future<Output = {result}> + rt::Send;"));
        }
        self.text.line("}");
    }

    fn server(&mut self, it: &Service, names: &ServiceNames, members: &[Member<'_>]) {
        let ServiceNames {
            handler,
            channel,
            make_server,
            ..
        } = names;
        let (server, name) = match it.target {
            Target::Channel => ("rt::ChannelServer", format!("{channel}, ")),
            Target::Node => ("rt::NodeServer", String::new()),
        };
        self.text.line("");
        self.text
            .line(format_args!("/// A server of `{}`, to register with a host.", it.name));
        self.text.line(format_args!(
            "pub fn {make_server}<H: {handler}>(handler: H) -> {server} {{"
        ));
        self.text.line(format_args!("{server}::builder({name}handler)"));
        for Member { method, ident, .. } in members {
            let register = match method.exchange {
                Exchange::Send { .. } => "send",
                Exchange::Request { .. } => "request",
            };
            let packet = &method.packet;
            self.text
                .line(format_args!("    .{register}({packet:?}, <H as {handler}>::{ident})"));
        }
        self.text.line("    .build()");
        self.text.line("}");
    }

    fn client(&mut self, it: &Service, names: &ServiceNames, members: &[Member<'_>]) {
        let ServiceNames {
            client,
            channel,
            make_client,
            ..
        } = names;
        let (route, parameters, arguments) = match it.target {
            Target::Channel => ("rt::ChannelRoute", "", channel.as_str()),
            Target::Node => ("rt::NodeRoute", ", mesh: &rt::MeshName, rid: rt::Rid", "mesh, rid"),
        };
        self.text.line("");
        self.text
            .line(format_args!("/// A client of `{}` that calls from `caller`.", it.name));
        self.text.line(format_args!(
            "pub fn {make_client}(caller: &impl rt::Caller{parameters}) -> {client} {{"
        ));
        self.text
            .line(format_args!("{client} {{ route: {route}::new(caller, {arguments}) }}"));
        self.text.line("}");
        self.text.line("");
        self.text.line(format_args!(
            "/// Calls the service `{}`; [`{make_client}`] makes one.",
            it.name
        ));
        self.text.line("#[derive(Clone, Debug)]");
        self.text.line(format_args!("pub struct {client} {{ route: {route} }}"));
        self.text.line("");
        self.text.line(format_args!("impl {client} {{"));
        if it.target == Target::Channel {
            self.text
                .line("/// The same under another ChannelName than the schema's.");
            self.text.line("pub fn on(self, channel: rt::ChannelName) -> Self {");
            self.text.line("Self { route: self.route.on(channel) }");
            self.text.line("}");
        }
        for member in members {
            self.call(member);
        }
        self.text.line("}");
    }

    fn call(
        &mut self,
        Member {
            method,
            ident,
            argument,
            input,
            output,
        }: &Member<'_>,
    ) {
        let packet = &method.packet;
        let (call, begin, how) = call(method, input, output);
        doc::lines(self.text, &method.doc, format_args!("Calls `{packet}`."));
        self.text
            .line(format_args!("pub fn {ident}(&self, {argument}: {input}) -> {call} {{"));
        self.text.line(format_args!(
            "self.route.{begin}(const {{ rt::Method::{how} }}, {argument})"
        ));
        self.text.line("}");
    }
}

/// The type of a call, the method of a route that makes it, and the constant that says how.
pub(super) fn call(method: &Method, input: &str, output: &str) -> (String, &'static str, String) {
    let packet = &method.packet;
    match method.exchange {
        Exchange::Send { .. } => (format!("rt::SendCall<{input}>"), "send", format!("send({packet:?})")),
        Exchange::Request { timeout_ms, .. } => {
            let timeout = timeout_ms.map_or("rt::None".to_owned(), |millis| format!("rt::Some({millis})"));
            let call = format!("rt::RequestCall<{input}, {output}>");
            (call, "request", format!("request({packet:?}, {timeout})"))
        }
    }
}
