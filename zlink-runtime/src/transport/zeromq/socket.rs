//! The tasks that own the crate's sockets: one receives and sends for each. And how a link is dialled.
//!
//! It must not know what becomes of a record.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use zeromq::util::PeerIdentity;
use zeromq::{DealerSocket, RouterSocket, Socket, SocketEvent, SocketOptions, SocketRecv, SocketSend, ZmqMessage};

use super::Engine;
use super::lane::LaneIo;
use super::link::{self, Parts};
use super::message::{Hello, Message, Nonce, Part};
use crate::limit::HANDSHAKE_TIME;
use crate::transport::{CloseReason, Endpoint, Lanes, Link, Offer, Peer, SocketType, TransportError};

/// What others have a socket's task do.
pub(super) enum Work {
    /// Send what waits there.
    Serve(Arc<LaneIo>),
    /// End that connection.
    Close(Bytes),
    /// Free the endpoint.
    Unbind(oneshot::Sender<()>),
}

/// A socket, however it names its connections.
pub(super) enum Either {
    Router(RouterSocket),
    Dealer(DealerSocket),
}

impl Either {
    async fn recv(&mut self) -> Option<(Bytes, Bytes)> {
        let message = match self {
            Self::Router(socket) => socket.recv().await,
            Self::Dealer(socket) => socket.recv().await,
        };
        let mut frames = message.ok()?.into_vecdeque();
        let body = frames.pop_back()?;
        // One frame is what all messages of this transport are; another number is answered like a broken one.
        match (&*self, frames.len()) {
            (Self::Router(_), 1) => Some((frames.pop_front()?, body)),
            (Self::Dealer(_), 0) => Some((Bytes::new(), body)),
            _ => Some((frames.pop_front().unwrap_or_default(), Bytes::new())),
        }
    }

    /// Whether the message was taken. The connection is gone where not, which is told by its end.
    async fn send(&mut self, identity: &Bytes, body: Bytes) -> bool {
        let mut message = ZmqMessage::from(body);
        match self {
            Self::Router(socket) => {
                message.push_front(identity.clone());
                socket.send(message).await.is_ok()
            }
            Self::Dealer(socket) => socket.send(message).await.is_ok(),
        }
    }

    fn close(&self, identity: &Bytes) {
        if let (Self::Router(socket), Ok(identity)) = (self, PeerIdentity::try_from(identity.clone())) {
            socket.backend().peer_disconnected(&identity);
        }
    }

    async fn unbind(&mut self) {
        if let Self::Router(socket) = self {
            // What cannot be unbound any more is not bound.
            drop(socket.unbind_all().await);
        }
    }
}

/// Hears what a socket's task receives.
pub(super) trait Hears: Send {
    fn message(&mut self, identity: Bytes, body: Bytes);
    fn gone(&mut self, identity: &[u8]);
    /// Called every two seconds.
    fn tick(&mut self) {}
}

/// Runs until nobody has work for it any more.
pub(super) async fn run(
    _engine: Arc<Engine>,
    mut socket: Either,
    mut monitor: impl Monitor,
    mut work: mpsc::UnboundedReceiver<Work>,
    mut hears: impl Hears,
) {
    let mut ticks = tokio::time::interval(HANDSHAKE_TIME);
    loop {
        tokio::select! {
            received = socket.recv() => match received {
                Some((identity, body)) => hears.message(identity, body),
                // A connection's own error: its end is told beside.
                None => tokio::task::yield_now().await,
            },
            _ = ticks.tick() => hears.tick(),
            event = monitor.next() => {
                if let Some(SocketEvent::Disconnected(identity)) = event {
                    hears.gone(&identity);
                }
            }
            work = work.recv() => match work {
                None => return,
                Some(Work::Close(identity)) => socket.close(&identity),
                Some(Work::Unbind(done)) => {
                    socket.unbind().await;
                    // Whoever asked may have gone.
                    let _ = done.send(());
                }
                Some(Work::Serve(lane)) => {
                    while let Some(message) = lane.take() {
                        if !socket.send(&lane.identity, message).await {
                            lane.end();
                            break;
                        }
                    }
                }
            },
        }
    }
}

/// The crate's own channel of events, whose type it does not export.
pub(super) trait Monitor: Send {
    fn next(&mut self) -> impl Future<Output = Option<SocketEvent>> + Send;
}

macro_rules! monitor {
    ($socket:expr) => {{
        let mut events = $socket.monitor();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                if sender.send(event).await.is_err() {
                    break;
                }
            }
        });
        receiver
    }};
}
pub(super) use monitor;

impl Monitor for mpsc::Receiver<SocketEvent> {
    async fn next(&mut self) -> Option<SocketEvent> {
        match self.recv().await {
            Some(event) => Some(event),
            None => std::future::pending().await,
        }
    }
}

/// A message on a lane that is known.
pub(super) fn heard(lane: &Arc<LaneIo>, body: Bytes) {
    lane.heard.fetch_add(1, Ordering::Relaxed);
    let link = lane.link.get().and_then(Weak::upgrade);
    let broken = match Message::decode(body) {
        Some(Message::Records(records)) => lane.came(records).err(),
        Some(Message::Room(bytes)) => {
            lane.room(bytes);
            None
        }
        Some(Message::Flow(flow)) => {
            match &link {
                Some(link) => link.peer_told(flow),
                None => lane.inbox.lock().flow = Some(flow),
            }
            None
        }
        Some(Message::Ping) => {
            lane.control(Message::Pong);
            None
        }
        Some(Message::Pong) => None,
        Some(Message::End) => {
            lane.end();
            None
        }
        Some(Message::Hello(_)) | None => Some("unexpected message"),
    };
    if let (Some(broken), Some(link)) = (broken, link) {
        link.close(CloseReason::Protocol(broken.to_owned()));
    }
}

pub(super) fn options(identity: &Bytes) -> SocketOptions {
    let mut options = SocketOptions::default();
    options.connect_timeout(HANDSHAKE_TIME);
    if let Ok(identity) = PeerIdentity::try_from(identity.clone()) {
        options.peer_identity(identity);
    }
    options
}

/// A link that is being dialled: its lanes' answers, and who waits.
struct Dialling {
    engine: Arc<Engine>,
    offer: Offer,
    since: Instant,
    lanes: Vec<(Weak<LaneIo>, Option<Hello>)>,
    done: Option<oneshot::Sender<Result<Arc<dyn Link>, String>>>,
}

impl Dialling {
    fn answered(&mut self, index: usize, hello: Hello) {
        if let Some((lane, answer)) = self.lanes.get_mut(index) {
            if let Some(lane) = lane.upgrade() {
                lane.limit(hello.budget);
            }
            *answer = Some(hello);
        }
        let told = |hello: &Hello| (hello.identity.clone(), hello.generation, hello.socket);
        let answers: Vec<_> = self.lanes.iter().filter_map(|(_, answer)| answer.as_ref()).collect();
        let lanes: Vec<_> = self.lanes.iter().filter_map(|(lane, _)| lane.upgrade()).collect();
        let (Some(first), true) = (answers.first(), answers.len() == self.lanes.len()) else {
            return;
        };
        let result = if answers.iter().any(|answer| told(answer) != told(first)) {
            Err("the lanes lead to two different peers".to_owned())
        } else if self.offer.socket != SocketType::Router && first.socket != SocketType::Router {
            Err("two DEALERs cannot talk".to_owned())
        } else {
            let peer = Peer {
                identity: Some(first.identity.clone()),
                generation: Some(first.generation),
                socket: first.socket,
                lanes: self.offer.lanes,
                dialled: true,
                address: None,
            };
            let parts = Parts {
                peer,
                lanes,
                since: self.since,
            };
            Ok(link::open(&self.engine, parts, &self.offer))
        };
        if let Some(done) = self.done.take() {
            // Where the dial was given up the link ends with its last user, who is gone.
            let _ = done.send(result);
        }
    }
}

/// One lane of a dialled link.
struct Dialled {
    lane: Weak<LaneIo>,
    index: usize,
    dialling: Arc<Mutex<Dialling>>,
    greeted: bool,
}

impl Hears for Dialled {
    fn message(&mut self, _: Bytes, body: Bytes) {
        let Some(lane) = self.lane.upgrade() else { return };
        if self.greeted {
            heard(&lane, body);
        } else if let Some(Message::Hello(hello)) = Message::decode(body) {
            self.greeted = true;
            self.dialling.lock().answered(self.index, hello);
        } else {
            self.gone(&[]);
        }
    }

    fn gone(&mut self, _: &[u8]) {
        let waits = self.dialling.lock().done.take();
        if let Some(waits) = waits {
            let _ = waits.send(Err("the peer closed the connection in the handshake".to_owned()));
        }
        if let Some(lane) = self.lane.upgrade() {
            lane.end();
        }
    }
}

/// Connects each lane with a DEALER of its own, and waits for the answer on all.
pub(super) async fn dial(
    engine: Arc<Engine>,
    endpoint: Endpoint,
    offer: Offer,
) -> Result<Result<Arc<dyn Link>, TransportError>, String> {
    let name = endpoint.to_string();
    let failed = |cause| TransportError::Handshake {
        endpoint: name.clone(),
        cause,
    };
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
    let parts: &[Part] = match offer.lanes {
        Lanes::One => &[Part::Whole],
        Lanes::Two => &[Part::Data, Part::Completion],
    };
    let (sender, answer) = oneshot::channel();
    let dialling = Arc::new(Mutex::new(Dialling {
        engine: engine.clone(),
        offer: offer.clone(),
        since: Instant::now(),
        lanes: Vec::new(),
        done: Some(sender),
    }));
    let (mut lanes, mut sockets) = (Vec::new(), Vec::new());
    for (index, part) in parts.iter().enumerate() {
        let identity: Bytes = [&nonce[..], &[*part as u8]].concat().into();
        let mut socket = DealerSocket::with_options(options(&identity));
        let monitor = monitor!(socket);
        socket.connect(&name).await.map_err(|error| error.to_string())?;
        let (work, works) = mpsc::unbounded_channel();
        let lane = Arc::new(LaneIo::new(Bytes::new(), work, &offer));
        dialling.lock().lanes.push((Arc::downgrade(&lane), None));
        let hears = Dialled {
            lane: Arc::downgrade(&lane),
            index,
            dialling: dialling.clone(),
            greeted: false,
        };
        sockets.push((Either::Dealer(socket), monitor, works, hears));
        lanes.push((lane, *part));
    }
    for (lane, part) in &lanes {
        lane.control(Message::Hello(Hello::of(&offer, *part, nonce)));
    }
    for (socket, monitor, works, hears) in sockets {
        engine.handle.spawn(run(engine.clone(), socket, monitor, works, hears));
    }
    let deadline = dialling.lock().since + HANDSHAKE_TIME;
    Ok(match timeout_at(deadline, answer).await {
        Ok(Ok(answered)) => answered.map_err(failed),
        Ok(Err(_)) => Err(failed("its lanes ended".to_owned())),
        Err(_) => Err(failed("it took longer than two seconds".to_owned())),
    })
}
