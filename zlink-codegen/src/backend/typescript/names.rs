//! The identifiers of one namespace in TypeScript: each declaration's, all different, none a word of the language.
//!
//! Types and constants begin with a capital and functions end with `Client`, so none of them can be a word of the
//! language, and none the `rt`, the `$module`s and the parameters that the generator puts there itself.

use crate::ir::{Namespace, Service, Target, Type};
use crate::name::{Scope, assign, camel, lower_camel, upper};

/// What every object has by itself: a field of that name would be there where it is left out.
const OF_OBJECTS: &[&str] = &[
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];
/// What every client has by itself, and what would make one a promise.
const OF_CLIENTS: &[&str] = &["channel", "close", "then"];

/// The identifiers of one namespace, by kind and index.
pub(super) struct Names {
    /// The module of the namespace.
    pub(super) module: String,
    pub(super) enums: Vec<String>,
    pub(super) structs: Vec<String>,
    pub(super) unions: Vec<Pair>,
    pub(super) messages: Vec<Pair>,
    pub(super) metadata: Vec<String>,
    /// Of those that are channels, with their index.
    pub(super) services: Vec<(usize, ServiceNames)>,
}

/// What a message or union is called where it is read, and where it is written.
pub(super) struct Pair {
    pub(super) read: String,
    pub(super) input: String,
}

/// The identifiers of one service.
pub(super) struct ServiceNames {
    /// The constant of its ChannelName.
    pub(super) channel: String,
    /// The class of its clients.
    pub(super) client: String,
    /// The function that makes a client.
    pub(super) make_client: String,
}

impl Names {
    pub(super) fn of(namespace: &Namespace) -> Self {
        let types = assign(&namespace.type_names(), camel, []);
        let mut scope = Scope::new(types.iter().map(String::as_str));
        // A service's constant keeps its name before that of a metadata key does.
        let channels = namespace.services.iter().enumerate();
        let channels: Vec<(usize, &Service)> = channels.filter(|(_, it)| it.target == Target::Channel).collect();
        let service_names: Vec<&str> = channels.iter().map(|(_, it)| it.name.as_str()).collect();
        let keys: Vec<&str> = namespace.metadata.iter().map(|it| it.name.as_str()).collect();
        let mut constants = assign(&[service_names.as_slice(), &keys].concat(), upper, [])
            .into_iter()
            .map(|name| scope.claim(&name))
            .collect::<Vec<_>>();
        let metadata = constants.split_off(channels.len());
        let services = services(&namespace.name, &channels, &service_names, constants, &mut scope);
        let mut types = types.into_iter();
        let mut take = |count: usize| types.by_ref().take(count).collect::<Vec<_>>();
        let (enums, structs) = (take(namespace.enums.len()), take(namespace.structs.len()));
        let mut pairs = |count: usize| {
            let pair = |read: String| Pair {
                input: scope.claim(&format!("{read}Input")),
                read,
            };
            take(count).into_iter().map(pair).collect::<Vec<_>>()
        };
        Self {
            module: crate::name::module(&namespace.name),
            enums,
            structs,
            unions: pairs(namespace.unions.len()),
            messages: pairs(namespace.messages.len()),
            metadata,
            services,
        }
    }

    /// The identifier of a declaration of this namespace; `ty` tells its kind. With `input`, as it is written.
    pub(super) fn of_type(&self, ty: &Type, input: bool) -> Option<&str> {
        match ty {
            Type::Enum(at) => self.enums.get(at.index).map(String::as_str),
            Type::Struct(at) => self.structs.get(at.index).map(String::as_str),
            Type::Union(at) => self.unions.get(at.index).map(|pair| pair.name(input)),
            Type::Message(at) => self.messages.get(at.index).map(|pair| pair.name(input)),
            Type::Scalar(_) | Type::List(_) | Type::Optional(_) | Type::Map(_) => None,
        }
    }
}

impl Pair {
    fn name(&self, input: bool) -> &str {
        if input { &self.input } else { &self.read }
    }
}

/// The identifiers of the services beside those that `scope` has already.
fn services(
    namespace: &str,
    channels: &[(usize, &Service)],
    names: &[&str],
    constants: Vec<String>,
    scope: &mut Scope,
) -> Vec<(usize, ServiceNames)> {
    let own = namespace.rsplit('.').next().unwrap_or_default();
    let all = channels.iter().zip(assign(names, camel, [])).zip(constants);
    all.map(|(((at, service), camel), channel)| {
        // `billing.client` where the service is what the namespace is about, else `billing.refundsClient`.
        let make_client = if service.name == own {
            "client".to_owned()
        } else {
            lower_camel(&format!("{camel}Client"))
        };
        let names = ServiceNames {
            channel,
            client: scope.claim(&format!("{camel}Client")),
            make_client: scope.claim(&make_client),
        };
        (*at, names)
    })
    .collect()
}

/// The properties that fields are.
pub(super) fn fields(names: &[&str]) -> Vec<String> {
    assign(names, lower_camel, OF_OBJECTS.iter().copied())
}

/// The members of an enum, or the kinds of a union.
pub(super) fn members(names: &[&str]) -> Vec<String> {
    assign(names, camel, [])
}

/// The methods of a client.
pub(super) fn methods(service: &Service) -> Vec<String> {
    let names: Vec<&str> = service.methods.iter().map(|method| method.name.as_str()).collect();
    let reserved = OF_OBJECTS.iter().chain(OF_CLIENTS).copied();
    assign(&names, lower_camel, reserved)
}
