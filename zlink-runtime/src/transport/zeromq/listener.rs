//! A bound endpoint: one ROUTER, whose connections are paired to links by their first messages.
//!
//! It must not know what becomes of a link it has handed over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use zeromq::{RouterSocket, Socket};

use super::Engine;
use super::lane::LaneIo;
use super::link::{self, Parts};
use super::message::{Hello, Message, Nonce, Part};
use super::socket::{Either, Hears, Work, heard, monitor, options, run};
use crate::limit::HANDSHAKE_TIME;
use crate::transport::{Acceptor, BoxFuture, Endpoint, Lanes, Listener, Offer, Peer};

#[derive(Debug)]
struct Bound {
    endpoint: Endpoint,
    open: Arc<AtomicBool>,
    work: mpsc::UnboundedSender<Work>,
}

impl Listener for Bound {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.open.store(false, Ordering::Release);
            let (done, unbound) = oneshot::channel();
            if self.work.send(Work::Unbind(done)).is_ok() {
                // An error says that the socket is gone altogether.
                let _ = unbound.await;
            }
        })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.open.store(false, Ordering::Release);
        // Where nobody listens the socket is gone already.
        let _ = self.work.send(Work::Unbind(oneshot::channel().0));
    }
}

pub(super) async fn bind(
    engine: Arc<Engine>,
    endpoint: Endpoint,
    offer: Offer,
    acceptor: Arc<dyn Acceptor>,
) -> Result<Box<dyn Listener>, String> {
    let mut socket = RouterSocket::with_options(options(&Bytes::new()));
    let monitor = monitor!(socket);
    let endpoint = adopt(&mut socket, endpoint).await?;
    let (work, works) = mpsc::unbounded_channel();
    let open = Arc::new(AtomicBool::new(true));
    let hears = Accepting {
        engine: engine.clone(),
        offer,
        acceptor,
        open: open.clone(),
        work: work.downgrade(),
        lanes: HashMap::new(),
        halves: HashMap::new(),
    };
    engine
        .handle
        .spawn(run(engine.clone(), Either::Router(socket), monitor, works, hears));
    Ok(Box::new(Bound { endpoint, open, work }))
}

/// Binds by the system's own calls: the crate knows no `*`, and does not replace a socket file that nobody listens on.
async fn adopt(socket: &mut RouterSocket, endpoint: Endpoint) -> Result<Endpoint, String> {
    let failed = |error: std::io::Error| error.to_string();
    if let Some(path) = endpoint.path() {
        let stale = std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        if stale {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed)?;
        socket
            .bind_listener(listener)
            .await
            .map_err(|error| error.to_string())?;
        return Ok(endpoint);
    }
    let (host, port) = endpoint.host().zip(endpoint.port()).ok_or("it has no port")?;
    let host = if host == "*" { "::" } else { host };
    let listener = tokio::net::TcpListener::bind((host, port)).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let listener = listener.into_std().map_err(failed)?;
    socket
        .bind_listener(listener)
        .await
        .map_err(|error| error.to_string())?;
    Ok(endpoint.with_port(port))
}

/// A lane whose other one has yet to come.
struct Half {
    lane: Arc<LaneIo>,
    hello: Hello,
    since: Instant,
}

struct Accepting {
    engine: Arc<Engine>,
    offer: Offer,
    acceptor: Arc<dyn Acceptor>,
    open: Arc<AtomicBool>,
    work: mpsc::WeakUnboundedSender<Work>,
    lanes: HashMap<Bytes, Weak<LaneIo>>,
    halves: HashMap<Nonce, Half>,
}

impl Hears for Accepting {
    fn message(&mut self, identity: Bytes, body: Bytes) {
        if let Some(lane) = self.lanes.get(&identity).and_then(Weak::upgrade) {
            heard(&lane, body);
            return;
        }
        match Message::decode(body) {
            Some(Message::Hello(hello)) if self.open.load(Ordering::Acquire) => self.greeted(identity, hello),
            _ => self.refuse(identity),
        }
    }

    fn gone(&mut self, identity: &[u8]) {
        if let Some(lane) = self.lanes.remove(identity).as_ref().and_then(Weak::upgrade) {
            self.halves.retain(|_, half| !Arc::ptr_eq(&half.lane, &lane));
            lane.end();
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        self.halves.retain(|_, half| now < half.since + HANDSHAKE_TIME);
    }
}

impl Accepting {
    fn refuse(&self, identity: Bytes) {
        tracing::info!(target: "zlink::link", ?identity, "refused a connection");
        if let Some(work) = self.work.upgrade() {
            // It is this task's own, which runs.
            let _ = work.send(Work::Close(identity));
        }
    }

    fn greeted(&mut self, identity: Bytes, hello: Hello) {
        let Some(work) = self.work.upgrade() else { return };
        let now = Instant::now();
        let offer = &self.offer;
        let lane = Arc::new(LaneIo::new(identity.clone(), work, offer));
        lane.limit(hello.budget);
        self.lanes.insert(identity, Arc::downgrade(&lane));
        let half = Half {
            lane,
            hello,
            since: now,
        };
        if half.hello.part == Part::Whole {
            self.accepted(vec![half]);
            return;
        }
        let Some(other) = self.halves.remove(&half.hello.link) else {
            self.halves.insert(half.hello.link, half);
            return;
        };
        let told = |half: &Half| (half.hello.identity.clone(), half.hello.generation, half.hello.socket);
        if other.hello.part == half.hello.part || told(&other) != told(&half) {
            return;
        }
        self.accepted(if half.hello.part == Part::Data {
            vec![half, other]
        } else {
            vec![other, half]
        });
    }

    fn accepted(&self, halves: Vec<Half>) {
        let Some(Half { hello, since, .. }) = halves.first() else {
            return;
        };
        let peer = Peer {
            identity: Some(hello.identity.clone()),
            generation: Some(hello.generation),
            socket: hello.socket,
            lanes: if halves.len() == 2 { Lanes::Two } else { Lanes::One },
            dialled: false,
            address: None,
        };
        let since = *since;
        for half in &halves {
            let answer = Hello::of(&self.offer, half.hello.part, half.hello.link);
            half.lane.control(Message::Hello(answer));
        }
        let lanes = halves.into_iter().map(|half| half.lane).collect();
        let parts = Parts { peer, lanes, since };
        self.acceptor.accepted(link::open(&self.engine, parts, &self.offer));
    }
}
