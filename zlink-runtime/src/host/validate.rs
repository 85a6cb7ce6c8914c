//! From what was registered to a plan that can only fail at the sockets. Every mistake is found before any work.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::channel::{ChannelServer, Handler};
use crate::clock;
use crate::error::ConfigError;
use crate::id::{ChannelName, MAX_ID_BYTES, MeshName, Rid};
use crate::limit::{LEAST_MESSAGE_BYTES, MAX_WEIGHT, MIN_RECEIVE_BUDGET_BYTES, PAYLOAD_BYTES, WORKERS};
use crate::mesh::{NodeInfo, ObjectRole};
use crate::permit::PermitLimits;
use crate::random::Random;
use crate::transport::{Endpoint, InvalidEndpoint};

use super::fanout::{self, FanoutPlan};
use super::location::LocationPlan;
use super::socket::SocketOptions;
use super::{ClientServerBuilder, HostBuilder, MeshBuilder, describe};

/// Mistakes, each with its place.
pub(super) struct Mistakes(pub(super) Vec<ConfigError>);

impl Mistakes {
    pub(super) fn add(&mut self, place: &str, problem: impl ToString) {
        self.0.push(ConfigError::new(place, problem.to_string()));
    }

    /// The value, or its error as a mistake.
    pub(super) fn check<T, E: ToString>(&mut self, place: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(place, error)).ok()
    }
}

/// A MeshNode whose registration is right.
pub(super) struct MeshPlan {
    pub(super) name: MeshName,
    /// What it tells its peers.
    pub(super) info: NodeInfo,
    /// What made RIDs of it begin with.
    pub(super) rid_prefix: String,
    pub(super) listen: Listen,
    pub(super) connect: Vec<(Endpoint, Option<Rid>)>,
    /// Whether it is found, and finds others, through the Location Store.
    pub(super) automatic: bool,
    pub(super) registered: MeshBuilder,
}

/// A ClientServer channel whose registration is right.
pub(super) struct ChannelPlan {
    pub(super) name: ChannelName,
    pub(super) listen: Listen,
    pub(super) connect: Vec<(Endpoint, Option<Rid>)>,
    /// What its server tells its clients, where this host serves it.
    pub(super) server: Option<NodeInfo>,
    /// What its client tells its servers, where this host calls it.
    pub(super) client: Option<NodeInfo>,
    /// Whether it is found, and finds others, through the Location Store.
    pub(super) automatic: bool,
    pub(super) registered: ClientServerBuilder,
}

/// Where to bind, and under which host name peers are told.
pub(super) struct Listen {
    pub(super) endpoint: Endpoint,
    pub(super) advertise: Option<String>,
}

impl Listen {
    /// What peers are told of where it is bound.
    pub(super) fn told(&self, bound: &Endpoint) -> Endpoint {
        match &self.advertise {
            Some(host) => bound.with_host(host).unwrap_or_else(|_| bound.clone()),
            None => bound.clone(),
        }
    }
}

/// Where it listens that nobody has to be told of by hand.
pub(super) const ANYWHERE: &str = "tcp://127.0.0.1:0";

/// All that start needs.
pub(super) struct Plan {
    pub(super) limits: PermitLimits,
    pub(super) meshes: Vec<MeshPlan>,
    pub(super) channels: Vec<ChannelPlan>,
    pub(super) fanouts: Vec<FanoutPlan>,
    pub(super) location: Option<LocationPlan>,
}

/// Checks the whole registration.
pub(super) fn validate(host: HostBuilder) -> Result<Plan, Vec<ConfigError>> {
    let mut mistakes = Mistakes(Vec::new());
    let limits = PermitLimits::new(host.max_queued_jobs, host.pause_percent, host.resume_percent);
    let limits = mistakes.check("host", limits);
    for (what, timeout) in [
        ("request_timeout", Some(host.request_timeout)),
        ("send_timeout", host.send_timeout),
        ("drain_timeout", Some(host.drain_timeout)),
        ("watchdog", host.watchdog),
        (
            "route_cache_max_age",
            Some(host.route_cache_max_age).filter(|age| !age.is_zero()),
        ),
    ] {
        if let Some(timeout) = timeout {
            mistakes.check("host", clock::timeout(what, timeout));
        }
    }
    match host.workers {
        Some(0) => mistakes.add("host", "0 workers run no handler; give at least 1"),
        Some(count) if count > WORKERS => {
            mistakes.add("host", format!("{count} workers are too many; give at most {WORKERS}"));
        }
        _ => {}
    }
    mistakes.check("host", host.transport.check());
    one_path_per_channel(&host, &mut mistakes);
    let location = host.location.plan(&mut mistakes);
    let store = location.is_some();
    let meshes: Vec<_> = host
        .meshes
        .into_iter()
        .filter_map(|mesh| mesh_plan(mesh, store, &host.random, &mut mistakes))
        .collect();
    for name in repeated(meshes.iter().map(|mesh| mesh.name.clone())) {
        mistakes.add(
            &format!("mesh {:?}", name.as_str()),
            "is registered twice; a host has one node per mesh",
        );
    }
    let channels: Vec<_> = host
        .channels
        .into_iter()
        .filter_map(|one| channel_plan(one, store, &host.random, &mut mistakes))
        .collect();
    let carries = host.transport.connections().is_some();
    if !host.fanouts.is_empty() && !carries {
        mistakes.add(
            "fanout",
            "the transport of this host carries links alone; a fanout needs another",
        );
    }
    let fanouts: Vec<_> = host
        .fanouts
        .into_iter()
        .filter_map(|one| fanout::plan(one, store, &mut mistakes))
        .collect();
    for name in repeated(fanouts.iter().map(|fanout| fanout.name.clone())) {
        let problem =
            "is registered twice; a host has one fanout per name, whose publishers are found or named by hand";
        mistakes.add(&format!("fanout {:?}", name.as_str()), problem);
    }
    // Only there can a turn send to an object of its own host.
    let has_own = |mesh: &MeshPlan| !mesh.registered.node.is_empty() || mesh.registered.role == ObjectRole::Server;
    let limits = match meshes.iter().any(has_own) {
        true => limits.map(PermitLimits::with_reserve),
        false => limits,
    };
    match limits {
        Some(limits) if mistakes.0.is_empty() => Ok(Plan {
            limits,
            meshes,
            channels,
            fanouts,
            location,
        }),
        _ => Err(mistakes.0),
    }
}

pub(super) fn repeated<T: Eq + Hash + Clone + Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    let mut twice: Vec<T> = items.filter(|item| !seen.insert(item.clone())).collect();
    twice.sort_unstable();
    twice.dedup();
    twice
}

/// In one process a ChannelName leads to one path: one mesh, or one ClientServer registration.
fn one_path_per_channel(host: &HostBuilder, mistakes: &mut Mistakes) {
    let mut paths: HashMap<&ChannelName, Vec<String>> = HashMap::new();
    for mesh in &host.meshes {
        let names: HashSet<_> = mesh
            .servers
            .iter()
            .map(|server| &server.channel)
            .chain(&mesh.clients)
            .collect();
        for name in names {
            paths.entry(name).or_default().push(format!("mesh {:?}", mesh.name));
        }
    }
    for channel in &host.channels {
        let names: HashSet<_> = channel
            .servers
            .iter()
            .map(|server| &server.channel)
            .chain(&channel.clients)
            .collect();
        for name in names {
            paths.entry(name).or_default().push("client_server".to_owned());
        }
    }
    // The events of a fanout have a path of their own beside a mesh.
    for name in host.fanouts.iter().flat_map(|fanout| fanout.names().take(1)) {
        let of_name = paths.entry(name).or_default();
        if of_name.iter().any(|path| path == "client_server") {
            of_name.push("fanout".to_owned());
        }
    }
    let mut clashes: Vec<_> = paths.into_iter().filter(|(_, paths)| paths.len() > 1).collect();
    clashes.sort_unstable();
    for (name, mut paths) in clashes {
        paths.sort_unstable();
        let problem = format!(
            "leads to {} paths ({}); a host has one per name",
            paths.len(),
            paths.join(", ")
        );
        mistakes.add(&format!("channel {:?}", name.as_str()), problem);
    }
}

fn mesh_plan(mesh: MeshBuilder, store: bool, random: &Random, mistakes: &mut Mistakes) -> Option<MeshPlan> {
    let place = format!("mesh {:?}", mesh.name);
    let name = mistakes.check(&place, MeshName::new(&mesh.name));
    let rid_prefix = mesh.rid_prefix.clone().unwrap_or_else(|| "node".to_owned());
    let rid = match (&mesh.rid, &mesh.rid_prefix) {
        (Some(_), Some(_)) => {
            mistakes.add(
                &place,
                "has a fixed RID and a prefix for a made one; remove one of them",
            );
            None
        }
        (Some(rid), None) => mistakes.check(&place, Rid::new(rid)),
        (None, _) => mistakes.check(&place, Rid::drawn(&rid_prefix, random)),
    };
    let automatic = store && !mesh.socket.manual;
    if automatic && mesh.rid.is_some() {
        mistakes.add(
            &place,
            "has a fixed RID; a node that is found through the Location Store needs a made one, or must be manual()",
        );
    }
    if mesh.role != ObjectRole::None {
        let problem = match (store, automatic) {
            (false, _) => Some("which needs a Location Store; add location_store(…) to the host"),
            (true, false) => Some("and is manual; objects are found through the Location Store"),
            (true, true) => None,
        };
        if let Some(problem) = problem {
            mistakes.add(&place, format!("has the object role {:?}, {problem}", mesh.role));
        }
        if mesh.rid.is_some() && !automatic {
            mistakes.add(&place, "has a fixed RID; with an object role a node needs a made one");
        }
        if mesh.role == ObjectRole::Client && !mesh.node.is_empty() {
            mistakes.add(
                &place,
                "handles Node direct calls, which an Object Client cannot receive",
            );
        }
    }
    mesh.objects.mistakes(&place, &mesh, mistakes);
    for name in repeated(mesh.servers.iter().map(|server| &server.channel).chain(&mesh.clients)) {
        let problem = format!(
            "takes part twice in channel {:?}; a node is its Server or its Client, once",
            name.as_str()
        );
        mistakes.add(&place, problem);
    }
    for server in &mesh.servers {
        server_mistakes(&place, server, mistakes);
    }
    if mesh.node.iter().any(|server| server.dispatch_limit == 0) {
        mistakes.add(
            &place,
            "its node has dispatch limit 0, so no handler could run; give at least 1".to_owned(),
        );
    }
    handler_mistakes(&place, mesh.node.iter().flat_map(|node| &node.handlers), mistakes);
    if !(LEAST_MESSAGE_BYTES..=PAYLOAD_BYTES).contains(&mesh.socket.max_message) {
        mistakes.add(
            &place,
            format!(
                "max_message is {}; it must be {LEAST_MESSAGE_BYTES} to {PAYLOAD_BYTES} bytes",
                mesh.socket.max_message
            ),
        );
    }
    for (what, timeout) in [
        ("request_timeout", mesh.request_timeout),
        ("send_timeout", mesh.send_timeout),
    ] {
        if let Some(timeout) = timeout {
            mistakes.check(&place, clock::timeout(what, timeout));
        }
    }
    common_mistakes(&place, &mesh.socket, mistakes);
    let anywhere = automatic.then_some(ANYWHERE);
    let listen = match mesh.socket.listen.as_deref().or(anywhere) {
        None => {
            let problem = "has no listen endpoint; without a Location Store it needs one, such as tcp://127.0.0.1:7001";
            mistakes.add(&place, problem);
            None
        }
        Some(listen) => listen_plan(&place, (listen, automatic), mesh.socket.advertise.as_deref(), mistakes),
    };
    let connect = connect_plan(&place, &mesh.socket.connect, mistakes);
    let info = describe::mesh(&place, (name.clone(), rid), &mesh, random, mistakes);
    Some(MeshPlan {
        name: name?,
        info: info?,
        rid_prefix,
        listen: listen?,
        connect: connect?,
        automatic,
        registered: mesh,
    })
}

fn channel_plan(
    channel: ClientServerBuilder,
    store: bool,
    random: &Random,
    mistakes: &mut Mistakes,
) -> Option<ChannelPlan> {
    let names: Vec<_> = channel
        .servers
        .iter()
        .map(|server| &server.channel)
        .chain(&channel.clients)
        .collect();
    let Some(name) = names.first().map(|name| (*name).clone()) else {
        mistakes.add(
            "client_server",
            "has no role; give it a server with serve(…), a client with client(…), or both",
        );
        return None;
    };
    let place = format!("client_server {:?}", name.as_str());
    if let Some(other) = names.iter().find(|other| ***other != name) {
        let problem = format!(
            "names channel {:?}, too; register each channel with a call of its own",
            other.as_str()
        );
        mistakes.add(&place, problem);
    }
    if channel.servers.len() > 1 || channel.clients.len() > 1 {
        mistakes.add(&place, "has a role twice; each of Server and Client may be there once");
    }
    let (serves, calls) = (!channel.servers.is_empty(), !channel.clients.is_empty());
    let automatic = store && !channel.socket.manual;
    for server in &channel.servers {
        server_mistakes(&place, server, mistakes);
    }
    if !matches!(channel.socket.max_message, 0 | LEAST_MESSAGE_BYTES..=PAYLOAD_BYTES) {
        mistakes.add(
            &place,
            format!(
                "max_message is {}; it must be 0, or {LEAST_MESSAGE_BYTES} to {PAYLOAD_BYTES} bytes",
                channel.socket.max_message
            ),
        );
    }
    common_mistakes(&place, &channel.socket, mistakes);
    if !serves && (channel.socket.listen.is_some() || channel.socket.advertise.is_some()) {
        mistakes.add(
            &place,
            "listens, but has no Server role; remove listen, or serve the channel",
        );
    }
    if !calls && !channel.socket.connect.is_empty() {
        mistakes.add(
            &place,
            "connects, but has no Client role; remove connect, or add client(…)",
        );
    }
    if serves && !calls && !automatic && channel.socket.listen.is_none() {
        let problem =
            "serves nobody: it has no listen endpoint, no Location Store to be found in, and this host is no client";
        mistakes.add(&place, problem);
    }
    if calls && !serves && !automatic && channel.socket.connect.is_empty() {
        let problem =
            "has no endpoint to connect to, no Location Store to find one in, and this host does not serve it itself";
        mistakes.add(&place, problem);
    }
    let endpoint = channel.socket.listen.as_deref().unwrap_or(ANYWHERE);
    let listen = listen_plan(
        &place,
        (endpoint, automatic),
        channel.socket.advertise.as_deref(),
        mistakes,
    );
    let connect = connect_plan(&place, &channel.socket.connect, mistakes);
    let (server, client) = describe::channel(&place, &name, &channel, random, mistakes);
    Some(ChannelPlan {
        name,
        listen: listen?,
        connect: connect?,
        server,
        client,
        automatic,
        registered: channel,
    })
}

fn server_mistakes(place: &str, server: &ChannelServer, mistakes: &mut Mistakes) {
    let name = server.channel.as_str();
    if server.weight > u32::from(MAX_WEIGHT) {
        mistakes.add(
            place,
            format!(
                "channel {name:?} has weight {}; it must be 0 to {MAX_WEIGHT}",
                server.weight
            ),
        );
    }
    if server.dispatch_limit == 0 {
        mistakes.add(
            place,
            format!("channel {name:?} has dispatch limit 0, so no handler could run; give at least 1"),
        );
    }
    handler_mistakes(&format!("{place}, channel {name:?}"), server.handlers.iter(), mistakes);
}

pub(super) fn handler_mistakes<'a, T: 'a>(
    place: &str,
    handlers: impl Iterator<Item = &'a Handler<T>>,
    mistakes: &mut Mistakes,
) {
    for (packet, kind) in repeated(handlers.map(|handler| (handler.packet.clone(), handler.kind))) {
        mistakes.add(place, format!("has two handlers for the {kind} {:?}", packet.as_str()));
    }
}

fn common_mistakes(place: &str, socket: &SocketOptions, mistakes: &mut Mistakes) {
    if socket.link_budget == Some(0) {
        mistakes.add(
            place,
            "link_budget is 0 bytes, so nothing could be sent; give at least 1",
        );
    }
    if let Some(bytes @ ..MIN_RECEIVE_BUDGET_BYTES) = socket.receive_budget {
        let problem = format!("receive_budget is {bytes}; it must be at least {MIN_RECEIVE_BUDGET_BYTES} bytes");
        mistakes.add(place, problem);
    }
    let security_identity = &socket.security_identity;
    if security_identity.len() > MAX_ID_BYTES {
        mistakes.add(
            place,
            format!("security_identity has {} bytes; at most 255", security_identity.len()),
        );
    }
}

/// Where to listen. Peers that are `automatic` need not know the port beforehand, so it may be left out.
fn listening(text: &str, automatic: bool) -> Result<Endpoint, InvalidEndpoint> {
    let endpoint: Endpoint = match text.parse() {
        Err(_) if automatic && let Ok(any_port) = format!("{text}:0").parse() => any_port,
        parsed => parsed?,
    };
    endpoint.check_usable()?;
    Ok(endpoint)
}

pub(super) fn listen_plan(
    place: &str,
    (endpoint, automatic): (&str, bool),
    advertise: Option<&str>,
    mistakes: &mut Mistakes,
) -> Option<Listen> {
    let endpoint = mistakes.check(place, listening(endpoint, automatic))?;
    match advertise {
        None if endpoint.is_wildcard() => {
            let problem = format!("listens on every address ({endpoint}); say with advertise(…) which one peers dial");
            mistakes.add(place, problem);
            None
        }
        None => Some(Listen {
            endpoint,
            advertise: None,
        }),
        Some(host) => match mistakes.check(place, endpoint.with_host(host)) {
            Some(named) if named.is_wildcard() => {
                mistakes.add(place, format!("advertises {host:?}, which no peer can dial"));
                None
            }
            Some(_) => Some(Listen {
                endpoint,
                advertise: Some(host.to_owned()),
            }),
            None => None,
        },
    }
}

fn connect_plan(
    place: &str,
    connect: &[(String, Option<Vec<u8>>)],
    mistakes: &mut Mistakes,
) -> Option<Vec<(Endpoint, Option<Rid>)>> {
    let mut plan = Vec::new();
    let mut right = true;
    for (endpoint, rid) in connect {
        let endpoint = mistakes.check(place, Endpoint::of_peer(endpoint));
        let rid = match rid {
            Some(rid) => mistakes.check(place, Rid::new(rid)).map(Some),
            None => Some(None),
        };
        match endpoint.zip(rid) {
            Some(one) => plan.push(one),
            None => right = false,
        }
    }
    for endpoint in repeated(plan.iter().map(|(endpoint, _)| endpoint)) {
        mistakes.add(place, format!("connects to {endpoint} twice"));
    }
    right.then_some(plan)
}
