//! The identifiers of one namespace: each declaration's, all different.

use crate::ir::{Namespace, Type};
use crate::name::{Scope, assign, camel, rust_ident, snake, upper};

/// The identifiers of one namespace, by kind and index.
pub(super) struct Names {
    pub(super) module: String,
    pub(super) enums: Vec<String>,
    pub(super) structs: Vec<String>,
    pub(super) unions: Vec<String>,
    pub(super) messages: Vec<String>,
    pub(super) metadata: Vec<String>,
    pub(super) services: Vec<ServiceNames>,
}

/// The identifiers of one service.
pub(super) struct ServiceNames {
    /// The trait that its handlers implement.
    pub(super) handler: String,
    /// The type of its clients.
    pub(super) client: String,
    /// The constant of its ChannelName.
    pub(super) channel: String,
    /// The function that makes a server.
    pub(super) make_server: String,
    /// The function that makes a client.
    pub(super) make_client: String,
}

impl Names {
    pub(super) fn of(namespace: &Namespace) -> Self {
        let types = assign(&namespace.type_names(), camel, []);
        let services = services(namespace, &types);
        // A service's constant keeps its name before that of a metadata key does.
        let constants = namespace
            .services
            .iter()
            .map(|it| &it.name)
            .chain(namespace.metadata.iter().map(|it| &it.name));
        let constants: Vec<&str> = constants.map(String::as_str).collect();
        let mut constants = idents(&constants, upper, &[]);
        let metadata = constants.split_off(namespace.services.len());
        let mut types = types.iter().map(|name| rust_ident(name));
        let mut take = |count: usize| types.by_ref().take(count).collect::<Vec<_>>();
        Self {
            module: module(&namespace.name),
            enums: take(namespace.enums.len()),
            structs: take(namespace.structs.len()),
            unions: take(namespace.unions.len()),
            messages: take(namespace.messages.len()),
            metadata,
            services: services
                .zip(constants)
                .map(|(names, channel)| ServiceNames { channel, ..names })
                .collect(),
        }
    }

    /// The identifier of a declaration of this namespace; `ty` tells its kind.
    pub(super) fn of_type(&self, ty: &Type) -> Option<&str> {
        let (list, at) = match ty {
            Type::Enum(at) => (&self.enums, at),
            Type::Struct(at) => (&self.structs, at),
            Type::Union(at) => (&self.unions, at),
            Type::Message(at) => (&self.messages, at),
            Type::Scalar(_) | Type::List(_) | Type::Optional(_) | Type::Map(_) => return None,
        };
        list.get(at.index).map(String::as_str)
    }
}

/// The identifiers of the services beside `types`, which keep theirs.
fn services(namespace: &Namespace, types: &[String]) -> impl Iterator<Item = ServiceNames> {
    let names: Vec<&str> = namespace.services.iter().map(|it| it.name.as_str()).collect();
    let own = namespace.name.rsplit('.').next().unwrap_or_default();
    let mut scope = Scope::new(types.iter().map(String::as_str));
    let mut claim = |name: String| rust_ident(&scope.claim(&name));
    let all = names
        .iter()
        .zip(assign(&names, snake, []))
        .zip(assign(&names, camel, []));
    let all: Vec<ServiceNames> = all
        .map(|((name, snake), camel)| {
            // `billing::server` where the service is what the namespace is about, else `billing::refunds_server`.
            let prefix = if *name == own {
                String::new()
            } else {
                format!("{snake}_")
            };
            ServiceNames {
                handler: claim(format!("{camel}Handler")),
                client: claim(format!("{camel}Client")),
                channel: String::new(),
                make_server: rust_ident(&format!("{prefix}server")),
                make_client: rust_ident(&format!("{prefix}client")),
            }
        })
        .collect();
    all.into_iter()
}

/// One Rust identifier per name, all different, none of `reserved`.
pub(super) fn idents(names: &[&str], form: impl Fn(&str) -> String, reserved: &[&str]) -> Vec<String> {
    assign(names, form, reserved.iter().copied())
        .iter()
        .map(|name| rust_ident(name))
        .collect()
}

/// The module of a namespace.
pub(super) fn module(namespace: &str) -> String {
    rust_ident(&crate::name::module(namespace))
}

/// The file that `mod` looks for where it declares that module.
pub(super) fn file_stem(namespace: &str) -> String {
    let module = rust_ident(&crate::name::module(namespace));
    module.strip_prefix("r#").map(str::to_owned).unwrap_or(module)
}
