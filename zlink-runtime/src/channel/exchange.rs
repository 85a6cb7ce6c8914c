//! One operation on its way out: route, register, submit once, wait. The same machine for sends and requests, to
//! channels and to nodes; only its users know message types.
//!
//! Until a link has taken the record another server may be picked; from then on the target is fixed.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::call::{Key, Waiting};
use crate::clock;
use crate::error::{ArgumentError, CallError, Error, ErrorKind, Execution};
use crate::id::{ChannelName, LinkId, Rid};
use crate::limit::{PAYLOAD_BYTES, ROUTE_READY_TIME};
use crate::mesh::{Lookup, PeerLink};
use crate::message::codec::Kept;
use crate::message::metadata::Metadata;
use crate::transport::{BoxFuture, Lane, Record, Refused};
use crate::wire::{self, CallHead, OperationRef, To};

use super::call::Method;
use super::found::{Found, Lead};
use super::outbound::Outbound;
use super::own::{Claim, Kind, LOCAL, OwnPeer};
use super::path::PathKind;
use super::way::{Target, Way};

mod here;
mod spot;
mod told;

pub(crate) use spot::no_role;
use told::Traced;

/// Everything of an operation but its payload.
pub(super) struct Exchange {
    way: Arc<Way>,
    method: Method,
    metadata: Metadata,
    /// Set for a request: how long from now.
    timeout: Option<Duration>,
    /// When it ends at the latest, once that is fixed; one for all its stages.
    deadline: Option<Instant>,
    stage: Stage,
    /// A request's entry, from when it waits for anything.
    waiting: Option<Waiting>,
    /// From its submission, where somebody traces.
    traced: Option<Box<Traced>>,
    /// Where the Spot is that it goes to.
    found: Option<Found>,
    /// What led it to its Spot, once it was sent there.
    sent_by: Lead,
}

enum Stage {
    Start,
    /// Waits for somebody to send to.
    Route(BoxFuture<'static, Result<Ways, Error>>),
    /// Waits for room. A link has a record only from the poll that finds room; the own node takes one by itself, as its
    /// claim tells.
    Room(BoxFuture<'static, Result<(), Refused>>, Option<Claim>),
    /// A request was accepted.
    Sent,
}

/// Somebody to send to.
enum Route {
    Link(Arc<PeerLink>),
    Own(Arc<OwnPeer>, Kind),
}

/// The same, and which Spot there.
type Ways = (Route, Option<Found>);

impl Route {
    fn is_own(&self) -> bool {
        match self {
            Route::Link(_) => false,
            Route::Own(..) => true,
        }
    }

    fn id(&self) -> LinkId {
        match self {
            Route::Link(peer) => peer.id(),
            Route::Own(..) => LOCAL,
        }
    }

    fn rid(&self) -> &Rid {
        match self {
            Route::Link(peer) => peer.rid(),
            Route::Own(own, _) => own.rid(),
        }
    }

    fn max_record(&self) -> usize {
        match self {
            Route::Link(peer) => peer.max_record(),
            Route::Own(own, _) => own.max_record(),
        }
    }

    fn try_send(&self, record: Record<'_>) -> Result<(), Refused> {
        match self {
            Route::Link(peer) => peer.try_send(Lane::Data, record),
            Route::Own(own, kind) => own.try_send(*kind, record),
        }
    }

    fn send(&self, record: Vec<u8>) -> (BoxFuture<'static, Result<(), Refused>>, Option<Claim>) {
        match self {
            Route::Link(peer) => (peer.send(Lane::Data, record), None),
            Route::Own(own, kind) => {
                let (sending, claim) = own.send(*kind, record);
                (sending, Some(claim))
            }
        }
    }
}

/// How an exchange goes on after a step.
pub(super) enum Step {
    /// Encode the payload and call [`Exchange::submit`].
    Submit(Ready),
    Pending,
    /// A send is accepted.
    Accepted,
    /// A request has its reply.
    Reply(Kept),
    Failed(CallError),
}

/// A route that was found, to be used at once.
pub(super) struct Ready {
    route: Route,
    /// What is left of a request's time, in milliseconds.
    left: u32,
}

impl Ready {
    fn new(route: Route, left: Option<Duration>) -> Self {
        // 0 would say that there is no deadline.
        let left = left.map_or(0, |left| u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1));
        Self { route, left }
    }
}

thread_local! {
    /// The buffer that heads are made in. Taken while in use.
    static HEAD: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Exchange {
    #[inline]
    pub(super) fn new(way: Arc<Way>, method: Method, metadata: Metadata, timeout: Option<Duration>) -> Self {
        Self {
            way,
            method,
            metadata,
            timeout,
            deadline: None,
            stage: Stage::Start,
            waiting: None,
            traced: None,
            found: None,
            sent_by: Lead::Record(0),
        }
    }

    /// Whether a link has taken it.
    pub(super) fn is_submitted(&self) -> bool {
        matches!(self.stage, Stage::Sent)
    }

    /// Whether it was never polled.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.stage, Stage::Start)
    }

    /// Goes on as far as it can.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Step {
        if let Some(entry) = &mut self.waiting
            && let Poll::Ready(outcome) = entry.poll(cx)
        {
            let mut stage = std::mem::replace(&mut self.stage, Stage::Sent);
            self.waiting = None;
            if let Stage::Room(sending, claim) = &mut stage
                && (matches!(sending.as_mut().poll(cx), Poll::Ready(Ok(())))
                    || claim.as_ref().is_some_and(|claim| !claim.withdraw()))
            {
                // It found room at the same moment.
                stage = Stage::Sent;
            }
            return match (stage, outcome) {
                // Its link was lost while it waited for room there: nothing was submitted, to nobody.
                (Stage::Room(..), Err(error)) if error.kind() == ErrorKind::Unavailable => self.again(cx),
                (_, Ok(reply)) => Step::Reply(reply),
                (Stage::Sent, Err(error)) => {
                    self.note_misled(&error);
                    Step::Failed(error.into())
                }
                // It was still waiting for a server or for room: there was no reply to miss.
                (stage, Err(error)) => {
                    let text = match (stage, error.kind()) {
                        (Stage::Route(_), ErrorKind::DeadlineExceeded) => self.nobody_in_time(),
                        (_, ErrorKind::DeadlineExceeded) => "no room to send appeared in time".to_owned(),
                        _ => error.message().to_owned(),
                    };
                    Step::Failed(Error::new(error.kind(), Execution::NotExecuted, text).into())
                }
            };
        }
        match &mut self.stage {
            Stage::Start => self.begin(cx),
            Stage::Route(finding) => match finding.as_mut().poll(cx) {
                Poll::Pending => Step::Pending,
                Poll::Ready(Ok((route, found))) => {
                    self.stage = Stage::Start;
                    self.found = found;
                    let left = self.time_left();
                    Step::Submit(Ready::new(route, left))
                }
                Poll::Ready(Err(error)) => Step::Failed(error.into()),
            },
            Stage::Room(sending, _) => match sending.as_mut().poll(cx) {
                Poll::Pending => Step::Pending,
                Poll::Ready(Ok(())) => {
                    self.in_line(false);
                    self.accepted()
                }
                Poll::Ready(Err(Refused::Closed)) => self.again(cx),
                Poll::Ready(Err(refused)) => Step::Failed(refusal(refused)),
            },
            Stage::Sent => Step::Pending,
        }
    }

    /// Finds somebody else: what waited for room is submitted to nobody yet.
    fn again(&mut self, cx: &mut Context<'_>) -> Step {
        self.waiting = None;
        self.stage = Stage::Start;
        self.begin(cx)
    }

    fn accepted(&mut self) -> Step {
        self.stage = Stage::Sent;
        self.note_submitted();
        if self.timeout.is_some() {
            Step::Pending
        } else {
            Step::Accepted
        }
    }

    fn begin(&mut self, cx: &mut Context<'_>) -> Step {
        if let Err(error) = self.way.outbound.takes(self.way.in_turn()) {
            return Step::Failed(error.into());
        }
        let left = self.time_left();
        match self.route() {
            Ok(Some(route)) => Step::Submit(Ready::new(route, left)),
            Ok(None) => self.wait_for_route(Vec::new(), cx),
            Err(error) => Step::Failed(match &self.way.target {
                Target::Bad(refused) => refused.clone().into(),
                _ => error.into(),
            }),
        }
    }

    /// Waits for somebody whose link is none of those that have `ended`.
    fn wait_for_route(&mut self, ended: Vec<LinkId>, cx: &mut Context<'_>) -> Step {
        // A request's deadline ends this wait too.
        let deadline = self.deadline.filter(|_| self.timeout.is_some());
        self.waiting = deadline.map(|deadline| self.way.outbound.pending().register(deadline));
        self.stage = Stage::Route(self.find_route(ended));
        // Polled once, so that it wakes this call.
        self.poll(cx)
    }

    /// When a send ends that waits, where that is bounded; fixed at the first wait. A request is ended by its entry.
    fn send_deadline(&mut self) -> Option<Instant> {
        if self.timeout.is_some() {
            return None;
        }
        if self.deadline.is_none() {
            self.deadline = self.way.send_timeout().map(|limit| clock::now() + limit);
        }
        self.deadline
    }

    /// What is left of a request's time; it begins to run at the first question.
    fn time_left(&mut self) -> Option<Duration> {
        let timeout = self.timeout?;
        match self.deadline {
            Some(deadline) => Some(deadline.saturating_duration_since(clock::now())),
            None => {
                self.deadline = Some(clock::now() + timeout);
                Some(timeout)
            }
        }
    }

    /// A request is registered before it is submitted, so that no reply can come unknown.
    fn register(&mut self, link: LinkId, cx: &Context<'_>) -> Option<Key> {
        let deadline = self.deadline.filter(|_| self.timeout.is_some())?;
        match &self.waiting {
            Some(entry) => entry.on_link(link),
            None => self.waiting = Some(self.way.outbound.pending().register_on(deadline, link, cx)),
        }
        self.waiting.as_ref().map(Waiting::key)
    }

    /// A request that waits for room is with nobody yet: a stop does not wait for it, polled or not.
    fn in_line(&self, in_line: bool) {
        if let Some(entry) = &self.waiting {
            entry.in_line(in_line);
        }
    }

    /// As whom this host's own node is called.
    fn own_kind(&self) -> Kind {
        match (self.way.in_turn(), self.timeout) {
            (true, None) => Kind::Send,
            (true, Some(_)) => Kind::Request,
            (false, _) => Kind::Outside,
        }
    }

    /// Finds somebody without waiting; `None` where waiting may help.
    fn route(&mut self) -> Result<Option<Route>, Error> {
        match &self.way.target {
            Target::Nowhere(error) => Err(error.clone()),
            // What the call ends with says more.
            Target::Bad(error) => Err(Error::not_executed(ErrorKind::InvalidOperation, error.to_string())),
            Target::Channel(path) => match (path.pick(), &path.kind) {
                (Some(peer), _) => Ok(Some(Route::Link(peer))),
                (None, PathKind::ClientServer { .. }) => path.nobody().map_or(Ok(None), Err),
                (None, PathKind::RouteMesh(_)) => Err(path.no_server()),
                (None, PathKind::ServerOnly) => Err(Error::not_executed(
                    ErrorKind::NotConfigured,
                    format!(
                        "this process serves channel {:?} but is no client of it; register the client role",
                        path.name
                    ),
                )),
            },
            Target::Spot(spot) => {
                let Some((route, found)) = self.spot_route(spot)? else {
                    return Ok(None);
                };
                self.found = Some(found);
                Ok(Some(route))
            }
            Target::Node(mesh, rid) | Target::Control(mesh, rid, _) if rid == mesh.own.rid() => {
                Ok(Some(Route::Own(mesh.own.clone(), self.own_kind())))
            }
            Target::Node(mesh, rid) | Target::Control(mesh, rid, _) => {
                match mesh.path.links.upgrade().ok_or_else(Outbound::shutting_down)?.find(rid) {
                    Lookup::Ready(peer) => Ok(Some(Route::Link(peer))),
                    Lookup::Known => Ok(None),
                    Lookup::Client => Err(Error::not_executed(
                        ErrorKind::NotFound,
                        format!(
                            "{rid} is an Object Client of mesh {:?}, which takes no Node direct calls",
                            mesh.path.name
                        ),
                    )),
                    Lookup::Unknown => {
                        let text = format!("no node {rid} is a member of mesh {:?}", mesh.path.name);
                        Err(Error::not_executed(ErrorKind::NotFound, text))
                    }
                }
            }
        }
    }

    /// Whom it waited for in vain.
    fn nobody_in_time(&self) -> String {
        match &self.way.target {
            Target::Channel(path) => format!("no server of channel {:?} was ready in time", path.name),
            Target::Spot(spot) => format!("nobody who has the {:?} was found in time", spot.id),
            Target::Node(mesh, rid) | Target::Control(mesh, rid, _) => {
                format!("the link to {rid} in mesh {:?} was not ready in time", mesh.path.name)
            }
            Target::Nowhere(error) => error.message().to_owned(),
            Target::Bad(error) => error.to_string(),
        }
    }

    /// Waits for somebody: for a server of a ClientServer channel as long as the call lasts, for the link of a known
    /// node one second.
    fn find_route(&mut self, ended: Vec<LinkId>) -> BoxFuture<'static, Result<Ways, Error>> {
        let (outbound, in_turn) = (self.way.outbound.clone(), self.way.in_turn());
        let deadline = self.send_deadline();
        let (text, target) = (self.nobody_in_time(), self.way.target.clone());
        let (kind, limit) = match &self.way.target {
            Target::Channel(_) => (ErrorKind::DeadlineExceeded, deadline),
            Target::Spot(spot) => return self.find_spot(spot.clone(), ended),
            Target::Node(..) | Target::Control(..) => {
                let ready = clock::now() + ROUTE_READY_TIME;
                let (kind, limit) = match deadline.filter(|deadline| *deadline < ready) {
                    Some(deadline) => (ErrorKind::DeadlineExceeded, deadline),
                    None => (ErrorKind::Unavailable, ready),
                };
                (kind, Some(limit))
            }
            Target::Nowhere(error) => {
                let error = error.clone();
                return Box::pin(async move { Err(error) });
            }
            Target::Bad(error) => {
                let error = Error::not_executed(ErrorKind::InvalidOperation, error.to_string());
                return Box::pin(async move { Err(error) });
            }
        };
        Box::pin(async move {
            let found = async move {
                match target {
                    Target::Channel(path) => Some(path.pick_or_wait(ended).await),
                    Target::Node(mesh, rid) | Target::Control(mesh, rid, _) => {
                        Some(Ok(mesh.path.links.upgrade()?.ready(&rid, &ended).await))
                    }
                    Target::Spot(_) | Target::Nowhere(_) | Target::Bad(_) => None,
                }
            };
            let found = async {
                match limit {
                    None => found.await,
                    Some(limit) => tokio::time::timeout_at(limit, found).await.ok().flatten(),
                }
            };
            tokio::select! {
                biased;
                // A handler may call while its host drains; from outside, nothing is submitted then.
                () = outbound.refuses(in_turn) => Err(Outbound::shutting_down()),
                found = found => found
                    .unwrap_or_else(|| Err(Error::not_executed(kind, text)))
                    .map(|peer| (Route::Link(peer), None)),
            }
        })
    }

    /// Submits the encoded payload over the route that was found: once, and then the target is fixed. What waits after
    /// that wakes `cx`.
    pub(super) fn submit(&mut self, ready: Ready, payload: &[u8], cx: &mut Context<'_>) -> Step {
        if payload.len() > PAYLOAD_BYTES {
            return Step::Failed(too_large(payload.len(), PAYLOAD_BYTES).into());
        }
        let Ready { mut route, left } = ready;
        if self.found.is_some()
            && let Err(error) = self.note_spot(&route)
        {
            return Step::Failed(error.into());
        }
        self.note_flow();
        let mut head = HEAD.take();
        // Links that have just ended, which selection hears of in a moment.
        let mut ended = Vec::new();
        loop {
            head.clear();
            let key = self.register(route.id(), cx).map(|key| (key, left));
            self.note_target(&route);
            self.head(&mut head, &route, key, true);
            if self.traced.is_some() && head.len() + payload.len() > route.max_record() {
                // Whether a message fits must not depend on who looks.
                head.clear();
                self.head(&mut head, &route, key, false);
            }
            let record = Record { head: &head, payload };
            match route.try_send(record) {
                Ok(()) => {
                    HEAD.set(head);
                    return self.accepted();
                }
                Err(Refused::TooLarge) => return Step::Failed(too_large(record.len(), route.max_record()).into()),
                Err(Refused::Full) => {
                    if self.would_wait_in_vain(&route) {
                        return Step::Failed(refusal(Refused::Full));
                    }
                    self.note_crowd();
                    head.extend_from_slice(payload);
                    self.stage = self.wait_for_room(&route, head);
                    self.in_line(true);
                    return self.poll(cx);
                }
                Err(Refused::Closed) => {
                    // What the lost link ended was never submitted.
                    self.waiting = None;
                    ended.push(route.id());
                    match (&self.way.target, &route) {
                        (Target::Channel(path), _) => match path.pick_but(&ended) {
                            Some(next) => route = Route::Link(next),
                            None if matches!(path.kind, PathKind::ClientServer { .. }) => {
                                return self.wait_for_route(ended, cx);
                            }
                            None => return Step::Failed(refusal(Refused::Closed)),
                        },
                        (_, route) if !route.is_own() => return self.wait_for_route(ended, cx),
                        _ => return Step::Failed(Outbound::shutting_down().into()),
                    }
                }
            }
        }
    }

    /// Whether all of this host has stood still for as long as a turn may wait to send to its own node: turns that wait
    /// for permits may be what keeps the jobs that hold them from starting.
    fn would_wait_in_vain(&self, route: &Route) -> bool {
        match (route, self.way.send_timeout()) {
            (Route::Own(own, Kind::Send), Some(limit)) => own.is_stalled(limit),
            _ => false,
        }
    }

    fn wait_for_room(&mut self, route: &Route, record: Vec<u8>) -> Stage {
        let (outbound, in_turn) = (self.way.outbound.clone(), self.way.in_turn());
        let ((mut room, claim), link, deadline) = (route.send(record), route.id(), self.send_deadline());
        let path = match &self.way.target {
            Target::Channel(path) => Some(path.clone()),
            _ => None,
        };
        let taken = claim.clone();
        let sending = async move {
            let passed_over = async {
                match path {
                    Some(path) => path.passed_over(link).await,
                    None => std::future::pending().await,
                }
            };
            let sending = async {
                tokio::select! {
                    biased;
                    sent = &mut room => Ok(sent),
                    () = passed_over => Err(Refused::Closed),
                    // What goes on from there hears of the stop.
                    () = outbound.refuses(in_turn) => Err(Refused::Closed),
                }
            };
            let ended = match deadline {
                None => sending.await,
                Some(at) => tokio::time::timeout_at(at, sending).await.unwrap_or(Err(Refused::Full)),
            };
            match ended {
                Ok(sent) => sent,
                Err(gives_up) if taken.is_none_or(|taken| taken.withdraw()) => Err(gives_up),
                // The own node has taken it at this moment.
                Err(_) => room.await,
            }
        };
        Stage::Room(Box::pin(sending), claim)
    }

    fn channel(&self) -> Option<&ChannelName> {
        self.way.channel.as_ref().map(|channel| &channel.name)
    }

    /// The number under which that peer lists the operation, if it does.
    fn number_at(&self, route: &Route) -> Option<u32> {
        match route {
            Route::Link(peer) if self.found.is_none() => {
                peer.operation(self.way.channel.as_ref(), self.method.packet(), self.method.hash())
            }
            Route::Link(_) | Route::Own(..) => None,
        }
    }

    fn head(&self, out: &mut Vec<u8>, route: &Route, request: Option<(Key, u32)>, with_flow: bool) {
        let operation = match self.number_at(route) {
            Some(number) => OperationRef::Number(number),
            None => OperationRef::Named {
                channel: self.channel().map_or("", ChannelName::as_str),
                packet: self.method.packet(),
            },
        };
        let request = request.map(|(key, left)| (key.to_wire(), left));
        let to = match (&self.way.target, &self.found) {
            (Target::Spot(spot), Some(found)) => To::Object {
                space: spot.id.space(),
                target: found.target,
                id: spot.id.as_str(),
                activation: found.activation.as_deref(),
            },
            (Target::Control(_, _, kind), _) => To::Control(*kind),
            _ if self.way.channel.is_some() => To::Channel,
            _ => To::Node,
        };
        let metadata = self.metadata.as_bytes();
        let flow = self
            .traced
            .as_ref()
            .filter(|_| with_flow)
            .map(|traced| traced.flow.to_wire());
        wire::call(
            out,
            &CallHead {
                to,
                request,
                operation,
                metadata,
                content_type: "",
                flow,
            },
        );
    }
}

fn too_large(bytes: usize, most: usize) -> ArgumentError {
    ArgumentError::new(
        "message",
        format!("needs {bytes} bytes on the wire; this link carries at most {most}"),
    )
}

fn refusal(refused: Refused) -> CallError {
    match refused {
        Refused::Full => Error::not_executed(
            ErrorKind::DeadlineExceeded,
            "no room to send appeared within the send timeout",
        )
        .into(),
        Refused::TooLarge => ArgumentError::new("message", "exceeds what the link carries").into(),
        Refused::Closed => {
            Error::not_executed(ErrorKind::Unavailable, "the link was lost before it took the call").into()
        }
    }
}
