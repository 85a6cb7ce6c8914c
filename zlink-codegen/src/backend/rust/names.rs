//! The identifiers of one namespace: each declaration's, all different.

mod actors;

pub(super) use self::actors::ActorNames;
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
    pub(super) fanouts: Vec<FanoutNames>,
    pub(super) spots: Vec<SpotNames>,
    pub(super) actors: Vec<ActorNames>,
}

/// The identifiers of one Spot.
pub(super) struct SpotNames {
    /// The trait that its Spots implement.
    pub(super) handler: String,
    pub(super) context: String,
    pub(super) turn: String,
    pub(super) yield_turn: String,
    /// The type that creates, finds and closes them.
    pub(super) manager: String,
    /// The type that calls one.
    pub(super) client: String,
    /// The constant of its stable type.
    pub(super) constant: String,
    /// The constants of its timers.
    pub(super) timers: Vec<String>,
    /// The function that registers it.
    pub(super) make_factory: String,
    /// The function that makes a manager.
    pub(super) make_manager: String,
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

/// The identifiers of one fanout.
pub(super) struct FanoutNames {
    /// The trait that its handlers implement.
    pub(super) handler: String,
    /// The type of its publishers.
    pub(super) publisher: String,
    /// The constant of its ChannelName.
    pub(super) channel: String,
    /// The function that makes a subscriber.
    pub(super) make_subscriber: String,
    /// The function that makes a publisher.
    pub(super) make_publisher: String,
}

impl Names {
    pub(super) fn of(namespace: &Namespace) -> Self {
        let types = assign(&namespace.type_names(), camel, []);
        let mut scope = Scope::new(types.iter().map(String::as_str));
        let services = services(namespace, &mut scope);
        // A service's constant keeps its name before that of a metadata key does.
        let constants = namespace
            .services
            .iter()
            .map(|it| &it.name)
            .chain(namespace.metadata.iter().map(|it| &it.name));
        let constants: Vec<&str> = constants.map(String::as_str).collect();
        let mut constants = idents(&constants, upper, &[]);
        // Those of Spots come after all that there were before Spots.
        let spots = spots(namespace, &mut scope, &constants);
        // Those of fanouts come after all that there were before fanouts.
        let of_spots = spots.iter().flat_map(|it| it.timers.iter().chain([&it.constant]));
        let taken: Vec<&str> = constants.iter().chain(of_spots).map(String::as_str).collect();
        let fanouts = fanouts(namespace, &mut scope, &taken);
        // Those of Actors come after all that there were before Actors.
        let of_fanouts = fanouts.iter().map(|it| it.channel.as_str());
        let taken: Vec<&str> = taken.iter().copied().chain(of_fanouts).collect();
        let actors = actors::actors(namespace, &mut scope, &taken);
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
            fanouts,
            spots,
            actors,
            services: services
                .into_iter()
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

/// The identifiers of the services beside the types that `scope` has.
fn services(namespace: &Namespace, scope: &mut Scope) -> Vec<ServiceNames> {
    let names: Vec<&str> = namespace.services.iter().map(|it| it.name.as_str()).collect();
    let mut claim = |name: String| rust_ident(&scope.claim(&name));
    let all = names
        .iter()
        .zip(assign(&names, snake, []))
        .zip(assign(&names, camel, []));
    all.map(|((name, snake), camel)| {
        let prefix = prefix(namespace, name, &snake);
        ServiceNames {
            handler: claim(format!("{camel}Handler")),
            client: claim(format!("{camel}Client")),
            channel: String::new(),
            make_server: rust_ident(&format!("{prefix}server")),
            make_client: rust_ident(&format!("{prefix}client")),
        }
    })
    .collect()
}

/// `billing::server` where the service is what the namespace is about, else `billing::refunds_server`.
fn prefix(namespace: &Namespace, name: &str, snake: &str) -> String {
    if namespace.name.rsplit('.').next() == Some(name) {
        String::new()
    } else {
        format!("{snake}_")
    }
}

/// The identifiers of the fanouts beside the types and constants that there are.
fn fanouts(namespace: &Namespace, scope: &mut Scope, constants: &[&str]) -> Vec<FanoutNames> {
    let names: Vec<&str> = namespace.fanouts.iter().map(|it| it.name.as_str()).collect();
    let mut claim = |name: String| rust_ident(&scope.claim(&name));
    let all = names
        .iter()
        .zip(assign(&names, snake, []))
        .zip(assign(&names, camel, []))
        .zip(idents(&names, upper, constants));
    all.map(|(((name, snake), camel), channel)| {
        let prefix = prefix(namespace, name, &snake);
        FanoutNames {
            handler: claim(format!("{camel}Handler")),
            publisher: claim(format!("{camel}Publisher")),
            channel,
            make_subscriber: rust_ident(&format!("{prefix}subscriber")),
            make_publisher: rust_ident(&format!("{prefix}publisher")),
        }
    })
    .collect()
}

/// The identifiers of the Spots beside the types and `constants` that there are.
fn spots(namespace: &Namespace, scope: &mut Scope, constants: &[String]) -> Vec<SpotNames> {
    let names: Vec<&str> = namespace.spots.iter().map(|it| it.name.as_str()).collect();
    let timers = namespace.spots.iter().flat_map(|spot| {
        let timers = spot.timers.iter();
        timers.map(|timer| format!("{}_{}", spot.name, timer.name))
    });
    let timers: Vec<String> = timers.collect();
    let all: Vec<&str> = names.iter().copied().chain(timers.iter().map(String::as_str)).collect();
    let taken: Vec<&str> = constants.iter().map(String::as_str).collect();
    let mut constants = idents(&all, upper, &taken).into_iter();
    let of_types: Vec<String> = constants.by_ref().take(names.len()).collect();
    let forms = assign(&names, snake, []).into_iter().zip(assign(&names, camel, []));
    let spots = namespace.spots.iter().zip(forms).zip(of_types);
    spots
        .map(|((spot, (snake, camel)), constant)| {
            let mut claim = |end: &str| rust_ident(&scope.claim(&format!("{camel}{end}")));
            SpotNames {
                handler: claim("Spot"),
                context: claim("Context"),
                turn: claim("Turn"),
                yield_turn: claim("YieldTurn"),
                manager: claim("Spots"),
                client: claim("SpotClient"),
                constant,
                timers: constants.by_ref().take(spot.timers.len()).collect(),
                make_factory: rust_ident(&format!("{snake}_spot")),
                make_manager: rust_ident(&format!("{snake}_spots")),
            }
        })
        .collect()
}

/// Methods that take every value by itself: `client.into(…)` would be theirs, and not that of a client of this name.
pub(super) const OF_EVERY_VALUE: &[&str] = &["into", "try_into"];

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
