//! Start: plan, bind, connect, serve. It waits for no peer, and a failure leaves nothing running.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::channel::{
    ChannelPath, ChannelServer, Filters, HostState, Inbound, InboundConfig, MeshPath, NodeServer, Outbound, OwnLines,
    OwnPeer, PathKind, Queue, Timeouts,
};
use crate::clock;
use crate::error::{ConfigError, ErrorKind, StartError};
use crate::execution::{Owner, Workers};
use crate::fanout::{Fanout, FanoutConfig, Intake, IntakeConfig, Outlets};
use crate::location::{Blobs, HostLease};
use crate::mesh::{Links, LinksConfig, NodeInfo, ObjectRole, Publishes, ReceiveFlow, Scope, Searches};
use crate::permit::HostPermits;
use crate::random::Random;
use crate::spot::{Home, Shared, Spots, SpotsConfig};
use crate::transport::{Endpoint, Transport};

use super::fanout::FanoutPlan;
use super::location::Location;
use super::status::Sequence;
use super::validate::{ChannelPlan, Listen, MeshPlan, validate};
use super::{Channel, Host, HostBuilder, Inner, Mesh, MeshBuilder, Profiles, pressure, shutdown, stall};

/// How long a start that fails waits for the Location Store to take its records back.
const FAILED_RELEASE: Duration = Duration::from_secs(2);

/// What every part of a starting host needs.
struct Ground {
    outbound: Outbound,
    filters: Filters,
    permits: HostPermits,
    flow: ReceiveFlow,
    /// Of a link for which none is set.
    link_budget: usize,
    workers: Workers,
    runtime: Handle,
    transport: Arc<dyn Transport>,
    random: Random,
    queues: Vec<(Queue, ErrorKind)>,
    paths: Vec<Arc<ChannelPath>>,
    begun: Begun,
    mistakes: Vec<ConfigError>,
}

/// The links of a start that has not succeeded. It may be given up wherever it waits: then they end with it.
#[derive(Default)]
struct Begun(Vec<Links>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.iter().for_each(Links::abandon);
    }
}

pub(super) async fn start(builder: HostBuilder) -> Result<Host, StartError> {
    let runtime = Handle::current();
    let threads = runtime.metrics().num_workers();
    let (request_timeout, send_timeout) = (builder.request_timeout, builder.send_timeout);
    let (drain_timeout, workers) = (builder.drain_timeout, builder.workers.unwrap_or(threads));
    let (transport, random) = (builder.transport.clone(), builder.random.clone());
    let (watchdog, filters) = (builder.watchdog, builder.filters.clone().into());
    let mut builder = builder;
    let (shared, route_age) = (
        Shared::new(std::mem::take(&mut builder.shared)),
        builder.route_cache_max_age,
    );
    let profiles = Profiles {
        jobs: builder.job_profile,
        links: builder.link_profile,
    };
    let plan = validate(builder).map_err(StartError::new)?;
    let blobs = plan.location.as_ref().and_then(|location| location.blobs.clone());
    let mut location = match plan.location {
        None => None,
        Some(location) => {
            let nodes = plan.meshes.iter().filter(|mesh| mesh.automatic);
            let nodes = nodes.map(|mesh| (Scope::Mesh(mesh.name.clone()), mesh.info.rid.clone()));
            let taken = Location::take(location, nodes.collect(), &random, runtime.clone()).await;
            Some(taken.map_err(|error| StartError::new(vec![error]))?)
        }
    };
    let mut ground = Ground {
        outbound: Outbound::new(request_timeout, send_timeout),
        filters,
        permits: HostPermits::with_limits(plan.limits),
        flow: ReceiveFlow::new(),
        link_budget: profiles.links.budget(),
        workers: Workers::spawn(&runtime, workers),
        runtime,
        transport,
        random,
        queues: Vec::new(),
        paths: Vec::new(),
        begun: Begun::default(),
        mistakes: Vec::new(),
    };
    if let Some(Err(error)) = watchdog.map(|limit| ground.workers.watch(limit)) {
        let problem = format!("the watchdog gets no thread: {error}");
        ground.mistakes.push(ConfigError::new("host", problem));
    }
    let lines = OwnLines::new(ground.permits.clone());
    let (mut meshes, mut mesh_paths) = (Vec::new(), Vec::new());
    let (mut published, mut searching, mut homes) = (Vec::new(), Vec::new(), Vec::new());
    for mesh in plan.meshes {
        let rid = mesh.info.rid.clone();
        let timeouts = timeouts(&mesh.registered);
        let connect = mesh.connect.clone();
        let max_record = mesh.registered.socket.max_message;
        let (role, objects) = (mesh.registered.role, mesh.registered.objects.clone());
        let rid_prefix = mesh.rid_prefix.clone();
        let (mesh, listen) = ground.mesh(mesh);
        let path = MeshPath {
            name: mesh.name.clone(),
            links: mesh.links.downgrade(),
            timeouts,
        };
        if mesh.automatic {
            published.push(Arc::new(mesh.links.clone()) as Arc<dyn Publishes>);
            searching.push(Arc::new(mesh.links.clone()) as Arc<dyn Searches>);
        }
        if role != ObjectRole::None {
            let run = (rid.clone(), mesh.links.local().generation);
            homes.push(objects.home(mesh.name.clone(), run, mesh.links.clone(), (role, rid_prefix)));
        }
        let own = OwnPeer::new(rid, &mesh.inbound, max_record, lines.clone());
        mesh_paths.push((Arc::new(path), Arc::new(own)));
        meshes.push((mesh, listen, connect));
    }
    let mut channels = Vec::new();
    for channel in plan.channels {
        let connect = channel.connect.clone();
        let (channel, listen) = ground.channel(channel);
        if channel.automatic {
            let served = channel.server.iter().map(|(links, _)| links.clone());
            published.extend(served.map(|links| Arc::new(links) as Arc<dyn Publishes>));
            let called = channel.client.clone();
            searching.extend(called.map(|links| Arc::new(links) as Arc<dyn Searches>));
        }
        channels.push((channel, listen, connect));
    }
    if ground.mistakes.is_empty() {
        for (mesh, listen, _) in &mut meshes {
            mesh.endpoint = ground.listen(&mesh.links, listen).await;
        }
        for (channel, listen, _) in &mut channels {
            if let Some((links, endpoint)) = &mut channel.server {
                *endpoint = ground.listen(links, listen).await;
            }
        }
    }
    let mut fanouts = Vec::new();
    for fanout in plan.fanouts {
        let connect = fanout.connect.clone();
        let Some(fanout) = ground.fanout(fanout).await else {
            continue;
        };
        let announced = fanout.announced().cloned();
        published.extend(announced.map(|announced| announced as Arc<dyn Publishes>));
        searching.extend(fanout.found().cloned().map(|found| found as Arc<dyn Searches>));
        fanouts.push((fanout, connect));
    }
    ground
        .outbound
        .set_fanouts(Arc::new(Outlets::new(fanouts.iter().map(|(fanout, _)| fanout))));
    ground.outbound.set_paths(ground.paths.iter().cloned(), mesh_paths);
    let spots = location
        .as_ref()
        .filter(|_| !homes.is_empty() && ground.mistakes.is_empty());
    let spots = spots.map(|location| {
        let spots = ground.spots((location.lease(), Blobs::new(blobs)), (shared, route_age), homes);
        location.asks(spots.reader().clone());
        spots
    });
    if let Some(Err(problem)) = match &spots {
        Some(spots) => {
            spots.take_up().await;
            Some(spots.start_entries().await)
        }
        None => None,
    } {
        ground.mistakes.push(ConfigError::new("object_server", problem));
    }
    if let Some(location) = location.as_mut().filter(|_| ground.mistakes.is_empty()) {
        ground.mistakes.extend(location.publish(published).await.err());
    }
    if !ground.mistakes.is_empty() {
        // Nothing is made from here on.
        ground.outbound.set_state(HostState::Draining);
        if let Some(spots) = &spots {
            spots.close(clock::now() + FAILED_RELEASE).await;
        }
        if let Some(location) = &location {
            location.release(FAILED_RELEASE).await;
        }
        for links in meshes
            .iter()
            .map(|(mesh, ..)| &mesh.links)
            .chain(channels.iter().flat_map(|(one, ..)| one.links()))
        {
            links.close(Duration::ZERO).await;
        }
        for (fanout, _) in &fanouts {
            fanout.close().await;
        }
        return Err(StartError::new(ground.mistakes));
    }
    let tasks = vec![
        ground.runtime.spawn(ground.outbound.pending().clone().run_deadlines()),
        ground
            .runtime
            .spawn(pressure::watch(ground.permits.clone(), ground.flow.clone())),
        ground.runtime.spawn(stall::watch(ground.permits.clone())),
    ];
    // Everything that a peer may ask for is there: now peers may come.
    for links in meshes
        .iter()
        .map(|(mesh, ..)| &mesh.links)
        .chain(channels.iter().flat_map(|(one, ..)| one.links()))
    {
        links.open();
    }
    for (mesh, _, connect) in &meshes {
        for (endpoint, rid) in connect {
            mesh.links.connect(endpoint.clone(), rid.clone());
        }
    }
    for (channel, _, connect) in &channels {
        let Some(client) = &channel.client else { continue };
        for (endpoint, rid) in connect {
            client.connect(endpoint.clone(), rid.clone());
        }
        if let Some((server, endpoint)) = &channel.server {
            client.connect(endpoint.clone(), Some(server.local().rid));
        }
    }
    for (fanout, connect) in &mut fanouts {
        for endpoint in std::mem::take(connect) {
            fanout.connect(endpoint);
        }
    }
    if let Some(location) = &mut location {
        location.search(searching);
    }
    ground.outbound.set_state(HostState::Serving);
    // From here on the host ends them.
    ground.begun.0.clear();
    Ok(Host(Arc::new(Inner {
        runtime: ground.runtime,
        outbound: ground.outbound,
        permits: ground.permits,
        flow: ground.flow,
        profiles,
        workers: Mutex::new(Some(ground.workers)),
        meshes: meshes.into_iter().map(|(mesh, ..)| mesh).collect(),
        channels: channels.into_iter().map(|(channel, ..)| channel).collect(),
        fanouts: fanouts.into_iter().map(|(fanout, _)| fanout).collect(),
        queues: ground.queues,
        tasks,
        drain_timeout,
        location,
        spots,
        stopping: shutdown::Stopping::default(),
        sequence: Sequence::default(),
    })))
}

impl Ground {
    fn spots(
        &self,
        (lease, blobs): (Arc<HostLease>, Blobs),
        (shared, route_age): (Shared, Duration),
        homes: Vec<Home>,
    ) -> Spots {
        Spots::new(SpotsConfig {
            outbound: self.outbound.clone(),
            permits: self.permits.clone(),
            workers: self.workers.handle(),
            runtime: self.runtime.clone(),
            random: self.random.clone(),
            lease,
            blobs,
            shared,
            homes,
            route_age,
        })
    }

    /// `closed` is what a call is told that comes while this host drains.
    fn queue(&mut self, limit: usize, closed: ErrorKind) -> Queue {
        let queue = Queue::new(&self.workers, limit);
        self.queues.push((queue.clone(), closed));
        queue
    }

    fn path(&mut self, path: ChannelPath) -> Arc<ChannelPath> {
        let path = Arc::new(path);
        self.paths.push(path.clone());
        path
    }

    fn links(
        &mut self,
        info: NodeInfo,
        (budget, receive_budget): (Option<usize>, Option<usize>),
        upcall: Arc<Inbound>,
    ) -> Links {
        let links = Links::new(LinksConfig {
            transport: self.transport.clone(),
            permits: self.permits.clone(),
            // Over the links of a client only answers come.
            flow: Some(self.flow.clone()).filter(|_| !info.scope.is_channel_client()),
            budget: budget.unwrap_or(self.link_budget),
            receive_budget,
            upcall,
            runtime: self.runtime.clone(),
            random: self.random.clone(),
            info,
        });
        self.begun.0.push(links.clone());
        links
    }

    /// Binds; a failure is a mistake like the others, and the endpoint that was asked for stands in.
    async fn listen(&mut self, links: &Links, listen: &Listen) -> Endpoint {
        match links.listen(&listen.endpoint, |bound| listen.told(bound)).await {
            Ok(endpoint) => endpoint,
            Err(error) => {
                let place = match links.local().scope {
                    Scope::Mesh(name) => format!("mesh {:?}", name.as_str()),
                    scope => format!("client_server {:?}", scope.name()),
                };
                self.mistakes.push(ConfigError::new(place, error.to_string()));
                listen.endpoint.clone()
            }
        }
    }

    /// A fanout, whose publisher is bound unless there is a mistake already; subscribers of it are not dialled yet.
    async fn fanout(&mut self, plan: FanoutPlan) -> Option<Fanout> {
        let connections = self.transport.connections()?;
        let max_record = plan.max_record;
        let intake = plan.subscriber.map(|(subscriber, subscribed)| {
            Intake::new(IntakeConfig {
                channel: plan.name.clone(),
                handlers: subscriber.handlers,
                subscribed,
                queue: Owner::new(&self.workers, subscriber.dispatch_limit),
                outbound: self.outbound.clone(),
                filters: self.filters.clone(),
                permits: self.permits.clone(),
                max_record,
            })
        });
        let mut fanout = Fanout::new(FanoutConfig {
            channel: plan.name.clone(),
            connections,
            runtime: self.runtime.clone(),
            random: self.random.clone(),
            intake,
            automatic: plan.automatic,
        });
        if let Some((listen, config)) = plan.publisher.filter(|_| self.mistakes.is_empty())
            && let Err(error) = fanout.bind(&listen.endpoint, config, |bound| listen.told(bound)).await
        {
            let place = format!("fanout {:?}", plan.name.as_str());
            self.mistakes.push(ConfigError::new(place, error.to_string()));
        }
        Some(fanout)
    }

    /// A MeshNode that does not listen yet, and where it shall.
    fn mesh(&mut self, plan: MeshPlan) -> (Mesh, Listen) {
        let MeshPlan {
            name,
            info,
            listen,
            registered,
            automatic,
            ..
        } = plan;
        let (timeouts, budgets) = (timeouts(&registered), registered.socket.budgets());
        let mut paths = Vec::new();
        for channel in registered
            .servers
            .iter()
            .map(|server| &server.channel)
            .chain(&registered.clients)
        {
            let kind = PathKind::RouteMesh(name.clone());
            paths.push(self.path(ChannelPath::new(channel.clone(), kind, timeouts)));
        }
        let node_limit = registered.node.iter().map(|server| server.dispatch_limit).min();
        let node = node_limit.map(|limit| {
            let handlers = registered
                .node
                .into_iter()
                .flat_map(|NodeServer { handlers, .. }| handlers)
                .collect();
            (name.clone(), handlers, self.queue(limit, ErrorKind::ShuttingDown))
        });
        let served = registered.servers.into_iter().map(|server| {
            let ChannelServer {
                channel,
                handlers,
                dispatch_limit,
                ..
            } = server;
            (channel, handlers, self.queue(dispatch_limit, ErrorKind::ShuttingDown))
        });
        let served = served.collect();
        let inbound = Arc::new(Inbound::new(InboundConfig {
            outbound: self.outbound.clone(),
            filters: self.filters.clone(),
            mesh: Some(name.clone()),
            channels: served,
            node,
            operations: info.operations.clone(),
            paths,
            only_calls: false,
        }));
        let mesh = Mesh {
            name,
            links: self.links(info, budgets, inbound.clone()),
            endpoint: listen.endpoint.clone(),
            inbound,
            automatic,
            sequence: Sequence::default(),
        };
        (mesh, listen)
    }

    /// The same for a channel; only a server listens.
    fn channel(&mut self, plan: ChannelPlan) -> (Channel, Listen) {
        let ChannelPlan {
            name,
            server,
            client,
            listen,
            registered,
            automatic,
            ..
        } = plan;
        let budgets = registered.socket.budgets();
        let inbound = |ground: &Self, info: &NodeInfo, channels: Vec<_>, paths| {
            Arc::new(Inbound::new(InboundConfig {
                outbound: ground.outbound.clone(),
                filters: ground.filters.clone(),
                mesh: None,
                only_calls: channels.is_empty(),
                channels,
                node: None,
                operations: info.operations.clone(),
                paths,
            }))
        };
        let registration = registered.servers.into_iter().next();
        let (server, taking) = server.zip(registration).map_or((None, None), |(info, registration)| {
            let queue = self.queue(registration.dispatch_limit, ErrorKind::Rejected);
            let served = vec![(name.clone(), registration.handlers, queue)];
            let inbound = inbound(self, &info, served, Vec::new());
            let links = self.links(info, budgets, inbound.clone());
            (Some((links, listen.endpoint.clone())), Some(inbound))
        });
        let kind = match client {
            Some(_) => PathKind::ClientServer { searches: automatic },
            None => PathKind::ServerOnly,
        };
        let path = self.path(ChannelPath::new(name.clone(), kind, Timeouts::default()));
        let client = client.map(|info| {
            let inbound = inbound(self, &info, Vec::new(), vec![path]);
            self.links(info, budgets, inbound)
        });
        let channel = Channel {
            name,
            server,
            inbound: taking,
            client,
            automatic,
            sequence: Sequence::default(),
        };
        (channel, listen)
    }
}

fn timeouts(mesh: &MeshBuilder) -> Timeouts {
    Timeouts {
        request: mesh.request_timeout,
        send: mesh.send_timeout,
    }
}

impl Channel {
    pub(super) fn links(&self) -> impl Iterator<Item = &Links> {
        self.server.iter().map(|(links, _)| links).chain(&self.client)
    }
}
