//! Streams and listening sockets of one node, as the link layer asks for them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::network::{Inner, Listening};
use super::state::{EndId, NodeId};
use super::trace::Happened;
use crate::clock;
use crate::transport::link::stream::{ReadHalf, Socket, Sockets, Stream};
use crate::transport::{BoxFuture, Endpoint};

/// The first port that is given to those who take any.
const FIRST_FREE_PORT: u16 = 49_152;
/// How many connections wait to be accepted; more are refused.
const BACKLOG: usize = 1_024;

/// What one run of one node connects and binds with.
#[derive(Debug)]
pub(super) struct NodeSockets {
    pub(super) network: Arc<Inner>,
    pub(super) node: NodeId,
    pub(super) run: u64,
}

impl NodeSockets {
    fn is_dead(&self) -> bool {
        self.network.places.lock().run(self.node) != self.run
    }

    /// Waits as long as something small takes from one node to another, and as long as the way is cut.
    async fn travel(&self, from: NodeId, to: NodeId) {
        let delay = self.network.state.lock().delay(from, to);
        tokio::time::sleep(delay).await;
        loop {
            let healed = self.network.healed.notified();
            if !self.network.state.lock().is_cut(from, to) {
                return;
            }
            healed.await;
        }
    }

    async fn refused(&self, endpoint: &Endpoint, by: NodeId) -> io::Error {
        self.travel(by, self.node).await;
        self.network.state.lock().note(
            clock::now(),
            Happened::Refused {
                from: self.node,
                to: endpoint.to_string(),
            },
        );
        io::ErrorKind::ConnectionRefused.into()
    }

    fn stream(&self, connection: u64, side: usize) -> Stream {
        stream(&self.network, EndId { connection, side })
    }
}

/// Where an endpoint is to be found: a wildcard listens under the name of its node.
fn place(endpoint: &Endpoint, node: &str) -> String {
    if endpoint.is_wildcard() {
        let port = endpoint.port().unwrap_or_default();
        format!("tcp://{node}:{port}")
    } else {
        endpoint.as_str().to_owned()
    }
}

impl Sockets for NodeSockets {
    fn is_one_place(&self, _: &Endpoint) -> bool {
        true
    }

    fn connect<'a>(&'a self, endpoint: &'a Endpoint, _: Option<SocketAddr>) -> BoxFuture<'a, io::Result<Stream>> {
        Box::pin(async move {
            self.network.drive();
            let listener = |inner: &Inner| {
                let places = inner.places.lock();
                places.listeners.get(endpoint.as_str()).map(|listening| listening.node)
            };
            // Where nobody listens, the answer comes from as far as from oneself.
            let to = listener(&self.network).unwrap_or(self.node);
            let fails = {
                let mut state = self.network.state.lock();
                state.note(
                    clock::now(),
                    Happened::Dialled {
                        from: self.node,
                        to: endpoint.to_string(),
                    },
                );
                let refusals = state.conditions(self.node, to).refusals;
                state.happens(refusals)
            };
            self.travel(self.node, to).await;
            let connection = {
                let mut places = self.network.places.lock();
                if places.run(self.node) != self.run {
                    return Err(io::ErrorKind::NetworkDown.into());
                }
                match places.listeners.get_mut(endpoint.as_str()) {
                    Some(listening) if !fails && listening.node == to && listening.backlog.len() < BACKLOG => {
                        let connection = self.network.state.lock().connect(self.node, to, clock::now());
                        listening.backlog.push_back(connection);
                        let waiting = std::mem::take(&mut listening.waiting);
                        drop(places);
                        waiting.into_iter().for_each(std::task::Waker::wake);
                        Some(connection)
                    }
                    _ => None,
                }
            };
            match connection {
                Some(connection) => {
                    let stream = self.stream(connection, 0);
                    self.travel(to, self.node).await;
                    Ok(stream)
                }
                None => Err(self.refused(endpoint, to).await),
            }
        })
    }

    fn bind<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, io::Result<(Box<dyn Socket>, Endpoint)>> {
        Box::pin(async move {
            self.network.drive();
            if self.is_dead() {
                return Err(io::ErrorKind::NetworkDown.into());
            }
            let mut places = self.network.places.lock();
            let mut bound = endpoint.clone();
            if endpoint.port() == Some(0) {
                let ports = (0..=u16::MAX - FIRST_FREE_PORT).map(|n| FIRST_FREE_PORT + n);
                let first = places.next_port;
                let free = ports
                    .map(|port| endpoint.with_port(port.wrapping_add(first).max(FIRST_FREE_PORT)))
                    .find(|one| !places.listeners.contains_key(&place(one, places.name(self.node))));
                bound = free.ok_or(io::ErrorKind::AddrInUse)?;
                places.next_port = places.next_port.wrapping_add(1);
            }
            let place = place(&bound, places.name(self.node));
            if places.listeners.contains_key(&place) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            places.next_listener += 1;
            let id = places.next_listener;
            places.listeners.insert(
                place.clone(),
                Listening {
                    id,
                    node: self.node,
                    backlog: VecDeque::new(),
                    waiting: Vec::new(),
                },
            );
            let socket = SimulatedSocket {
                network: self.network.clone(),
                place,
                id,
            };
            Ok((Box::new(socket) as Box<dyn Socket>, bound))
        })
    }
}

struct SimulatedSocket {
    network: Arc<Inner>,
    place: String,
    id: u64,
}

impl Socket for SimulatedSocket {
    fn accept(&self) -> BoxFuture<'_, io::Result<Stream>> {
        Box::pin(poll_fn(|cx| {
            let mut places = self.network.places.lock();
            let listening = places.listeners.get_mut(&self.place);
            let Some(listening) = listening.filter(|listening| listening.id == self.id) else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            match listening.backlog.pop_front() {
                Some(connection) => Poll::Ready(Ok(stream(&self.network, EndId { connection, side: 1 }))),
                None => {
                    listening.waiting.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }
}

impl Drop for SimulatedSocket {
    fn drop(&mut self) {
        let backlog = {
            let mut places = self.network.places.lock();
            match places.listeners.get(&self.place) {
                Some(listening) if listening.id == self.id => {
                    places.listeners.remove(&self.place).map(|listening| listening.backlog)
                }
                _ => None,
            }
        };
        // Nobody will accept them: they close as any stream does that is dropped.
        for connection in backlog.into_iter().flatten() {
            drop(stream(&self.network, EndId { connection, side: 1 }));
        }
    }
}

fn stream(network: &Arc<Inner>, end: EndId) -> Stream {
    Stream {
        read: Box::new(Reading(network.clone(), end)),
        write: Box::new(Writing(network.clone(), end)),
        address: None,
    }
}

struct Reading(Arc<Inner>, EndId);

impl ReadHalf for Reading {
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.state.lock().poll_readable(self.1, cx)
    }

    fn ended(&self) -> BoxFuture<'_, bool> {
        Box::pin(poll_fn(|cx| self.0.state.lock().poll_ended(self.1, cx)))
    }
}

impl AsyncRead for Reading {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = buf.remaining();
        let read = self.0.change(|state, wakes| state.poll_read(self.1, cx, most, wakes));
        read.map_ok(|bytes| buf.put_slice(&bytes))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.change(|state, _| state.close_read(self.1, clock::now()));
    }
}

struct Writing(Arc<Inner>, EndId);

impl AsyncWrite for Writing {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0
            .change(|state, _| state.poll_write(self.1, cx, bytes, clock::now()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.change(|state, _| state.close_write(self.1, clock::now()));
        Poll::Ready(Ok(()))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.change(|state, _| state.close_write(self.1, clock::now()));
    }
}
