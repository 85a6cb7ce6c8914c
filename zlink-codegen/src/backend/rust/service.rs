//! Services: the trait of their handlers, the server that registers one, and the client that calls it.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::names::ServiceNames;
use super::{Context, doc, names};
use crate::ir::{Doc, Exchange, Method, Service, Target, Type};
use crate::name::snake;

/// What differs between channel services and node services.
struct Surface {
    server: TokenStream,
    route: TokenStream,
    turn: TokenStream,
    context: TokenStream,
}

impl Surface {
    fn of(target: Target) -> Self {
        match target {
            Target::Channel => Self {
                server: quote!(rt::ChannelServer),
                route: quote!(rt::ChannelRoute),
                turn: quote!(rt::ChannelTurn),
                context: quote!(rt::ChannelContext<'_>),
            },
            Target::Node => Self {
                server: quote!(rt::NodeServer),
                route: quote!(rt::NodeRoute),
                turn: quote!(rt::NodeTurn),
                context: quote!(rt::NodeContext<'_>),
            },
        }
    }
}

impl Context<'_> {
    pub(super) fn service(&self, index: usize, it: &Service) -> TokenStream {
        let names = &self.own().services[index];
        let surface = Surface::of(it.target);
        let method_names: Vec<&str> = it.methods.iter().map(|method| method.name.as_str()).collect();
        // The trait and the client have the methods of the schema under the same names, so both keep `on` free.
        let idents = names::idents(&method_names, snake, &["on"]);
        let methods: Vec<(&Method, &Ident)> = it.methods.iter().zip(&idents).collect();
        let channel = (it.target == Target::Channel).then(|| channel_constant(names, it));
        let handler = self.handler(names, it, &surface, &methods);
        let server = self.server(names, it, &surface, &methods);
        let client = self.client(names, it, &surface, &methods);
        quote! { #channel #handler #server #client }
    }

    fn handler(
        &self,
        names: &ServiceNames,
        it: &Service,
        surface: &Surface,
        methods: &[(&Method, &Ident)],
    ) -> TokenStream {
        let (handler, context) = (&names.handler, &surface.context);
        let register = format!("[`{}`]", names.make_server);
        let doc = doc::attributes(
            &it.doc,
            &format!("What handles the service `{}`; {register} registers it.", it.name),
        );
        let methods = methods.iter().map(|(method, ident)| {
            let doc = doc::attributes(&method.doc, &format!("Handles `{}`.", method.packet));
            let (argument, input, output) = self.signature(method);
            quote! {
                #doc
                fn #ident(
                    &self,
                    context: &#context,
                    #argument: #input,
                ) -> impl rt::Future<Output = rt::Result<#output, rt::HandlerError>> + rt::Send;
            }
        });
        quote! {
            #doc
            pub trait #handler: rt::Send + rt::Sync + 'static {
                #(#methods)*
            }
        }
    }

    fn server(
        &self,
        names: &ServiceNames,
        it: &Service,
        surface: &Surface,
        methods: &[(&Method, &Ident)],
    ) -> TokenStream {
        let ServiceNames {
            handler,
            channel,
            make_server,
            ..
        } = names;
        let Surface { server, turn, .. } = surface;
        let doc = doc::attributes(
            &Doc(None),
            &format!("A server of `{}`, to register with a host.", it.name),
        );
        let begin = match it.target {
            Target::Channel => quote!(#server::builder(#channel, handler)),
            Target::Node => quote!(#server::builder(handler)),
        };
        let methods = methods.iter().map(|(method, ident)| {
            let packet = &method.packet;
            let (argument, input, _) = self.signature(method);
            let register = match method.exchange {
                Exchange::Send { .. } => quote!(send),
                Exchange::Request { .. } => quote!(request),
            };
            quote! {
                .#register(#packet, |handler: rt::Arc<_>, turn: #turn, #argument: #input| async move {
                    #handler::#ident(&*handler, &turn.context(), #argument).await
                })
            }
        });
        quote! {
            #doc
            pub fn #make_server(handler: impl #handler) -> #server {
                #begin #(#methods)* .build()
            }
        }
    }

    fn client(
        &self,
        names: &ServiceNames,
        it: &Service,
        surface: &Surface,
        methods: &[(&Method, &Ident)],
    ) -> TokenStream {
        let ServiceNames {
            client,
            channel,
            make_client,
            ..
        } = names;
        let route = &surface.route;
        let make_doc = doc::attributes(
            &Doc(None),
            &format!("A client of `{}` that calls from `caller`.", it.name),
        );
        let type_doc = doc::attributes(
            &Doc(None),
            &format!("Calls the service `{}`; [`{make_client}`] makes one.", it.name),
        );
        let make = match it.target {
            Target::Channel => quote! {
                pub fn #make_client(caller: &impl rt::Caller) -> #client {
                    #client { route: #route::new(caller, #channel) }
                }
            },
            Target::Node => quote! {
                pub fn #make_client(caller: &impl rt::Caller, mesh: &rt::MeshName, rid: rt::Rid) -> #client {
                    #client { route: #route::new(caller, mesh, rid) }
                }
            },
        };
        let on = (it.target == Target::Channel).then(|| {
            quote! {
                /// The same under another ChannelName than the schema's.
                #[must_use]
                pub fn on(self, channel: rt::ChannelName) -> Self {
                    Self { route: self.route.on(channel) }
                }
            }
        });
        let methods = methods.iter().map(|(method, ident)| {
            let doc = doc::attributes(&method.doc, &format!("Calls `{}`.", method.packet));
            let packet = &method.packet;
            let (argument, input, output) = self.signature(method);
            match method.exchange {
                Exchange::Send { .. } => quote! {
                    #doc
                    pub fn #ident(&self, #argument: #input) -> rt::SendCall<#input> {
                        self.route.send(const { rt::Method::send(#packet) }, #argument)
                    }
                },
                Exchange::Request { timeout_ms, .. } => {
                    let timeout = match timeout_ms {
                        Some(millis) => {
                            let millis = Literal::u32_unsuffixed(millis);
                            quote!(rt::Some(#millis))
                        }
                        None => quote!(rt::None),
                    };
                    quote! {
                        #doc
                        pub fn #ident(&self, #argument: #input) -> rt::RequestCall<#input, #output> {
                            self.route.request(const { rt::Method::request(#packet, #timeout) }, #argument)
                        }
                    }
                }
            }
        });
        quote! {
            #make_doc
            #make

            #type_doc
            #[derive(Clone, Debug)]
            pub struct #client {
                route: #route,
            }

            impl #client {
                #on
                #(#methods)*
            }
        }
    }

    /// What a method's argument is called, its type, and that of the reply.
    fn signature(&self, method: &Method) -> (TokenStream, TokenStream, TokenStream) {
        match method.exchange {
            Exchange::Send { message } => (quote!(message), self.path(&Type::Message(message)), quote!(())),
            Exchange::Request { request, reply, .. } => (
                quote!(request),
                self.path(&Type::Message(request)),
                self.path(&Type::Message(reply)),
            ),
        }
    }
}

fn channel_constant(names: &ServiceNames, it: &Service) -> TokenStream {
    let (ident, name) = (&names.channel, &it.name);
    let doc = doc::attributes(&Doc(None), &format!("The ChannelName of the service `{name}`."));
    quote! {
        #doc
        pub const #ident: rt::ChannelName = rt::ChannelName::from_static(#name);
    }
}
