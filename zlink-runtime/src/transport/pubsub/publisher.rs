//! A PUB socket: a listener, and a task for each connection, which reads what its subscriber wants and writes what there is.
//!
//! It must not know what is published, nor who may subscribe.

use std::future::poll_fn;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::Connections;
use super::pipe::{Batch, Id, Message, Pipes};
use crate::limit::{COMMAND_BYTES, HANDSHAKE_TIME};
use crate::transport::link::greet::{SOCKET_TYPE, shake};
use crate::transport::link::listener::accept;
use crate::transport::link::stream::{ReadHalf, Stream, WriteHalf};
use crate::transport::zmtp::{Command, Decoder, FrameLimits, Head, Properties, Role, Security, ZmtpError};
use crate::transport::{Endpoint, TransportError};

/// Why a message was not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpublished {
    /// Some subscriber that wants it has no room.
    Full,
    /// The publisher has ended.
    Closed,
}

/// A bound PUB socket. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared(Mutex<Pipes>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipes({})", self.0.lock().len())
    }
}

impl Connections {
    /// Binds a PUB socket.
    ///
    /// # Errors
    /// Where the endpoint cannot be bound.
    pub(crate) async fn publish(&self, endpoint: &Endpoint) -> Result<Publisher, TransportError> {
        let bound = self.sockets.bind(endpoint).await;
        let (socket, endpoint) = bound.map_err(|error| TransportError::bind(endpoint, &error))?;
        let shared = Arc::<Shared>::default();
        let places = Arc::new(Semaphore::new(self.config.connections.min(Semaphore::MAX_PERMITS)));
        // The connections end with the task that accepts them.
        let mut connections = JoinSet::new();
        let (pipes, config) = (shared.clone(), self.config.clone());
        let serve = move |stream: Stream, place| {
            while connections.try_join_next().is_some() {}
            connections.spawn(serve(pipes.clone(), config.security.clone(), stream, place));
        };
        let task = tokio::spawn(accept(socket, endpoint.clone(), places, serve));
        Ok(Publisher {
            shared,
            endpoint,
            task: Mutex::new(Some(task)),
        })
    }
}

impl Publisher {
    /// What was really bound.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// How many subscribers are connected.
    pub(crate) fn subscribers(&self) -> usize {
        self.shared.0.lock().len()
    }

    /// Hands it to each subscriber that wants it; who has no room does without.
    ///
    /// # Errors
    /// [`Unpublished::Closed`].
    pub(crate) fn offer(&self, message: &Message) -> Result<(), Unpublished> {
        let mut pipes = self.shared.0.lock();
        if pipes.is_closed() {
            return Err(Unpublished::Closed);
        }
        pipes.offer(message);
        Ok(())
    }

    /// Hands it to all that want it, or to none.
    ///
    /// # Errors
    /// Why it went to none.
    pub(crate) fn offer_to_all(&self, message: &Message) -> Result<(), Unpublished> {
        let mut pipes = self.shared.0.lock();
        if pipes.is_closed() {
            return Err(Unpublished::Closed);
        }
        pipes.offer_to_all(message).map_err(|_| Unpublished::Full)
    }

    /// The same as soon as all have room, unless that comes before. Dropping the future withdraws it.
    ///
    /// # Errors
    /// It went to none: what came before, or nothing where the publisher has ended.
    pub(crate) async fn publish_to_all<E>(
        &self,
        message: Message,
        ends: impl Future<Output = E>,
    ) -> Result<(), Option<E>> {
        let (id, mut told) = {
            let mut pipes = self.shared.0.lock();
            if pipes.is_closed() {
                return Err(None);
            }
            match pipes.offer_to_all(&message) {
                Ok(()) => return Ok(()),
                Err(on) => pipes.wait(message, on),
            }
        };
        let waiting = Withdraws(&self.shared, id);
        let ended = tokio::select! {
            biased;
            told = &mut told => return told.map_err(|_| None),
            ended = ends => ended,
        };
        if waiting.now() {
            return Err(Some(ended));
        }
        // It was decided in this very moment.
        told.await.map_err(|_| None)
    }

    /// Ends it at once: what it holds is lost. The endpoint is free for others once the future is ready.
    pub(crate) async fn close(&self) {
        self.abandon();
        let task = self.task.lock().take();
        if let Some(task) = task {
            // Cancelled, which is what was asked for; with the task its socket is gone.
            let _ = task.await;
        }
    }

    /// The same without waiting.
    pub(crate) fn abandon(&self) {
        self.shared.0.lock().close();
        if let Some(task) = &*self.task.lock() {
            task.abort();
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// A message that waits, as long as somebody waits for it.
struct Withdraws<'a>(&'a Shared, Id);

impl Withdraws<'_> {
    /// Whether it was withdrawn now.
    fn now(&self) -> bool {
        self.0.0.lock().withdraw(self.1)
    }
}

impl Drop for Withdraws<'_> {
    fn drop(&mut self) {
        self.now();
    }
}

/// A subscriber's pipe, as long as its connection lives.
struct Entered<'a>(&'a Shared, Id);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.0.lock().leave(self.1);
    }
}

async fn serve(shared: Arc<Shared>, security: Security, stream: Stream, place: OwnedSemaphorePermit) {
    let address = stream.address;
    let problem = match timeout(HANDSHAKE_TIME, greet(stream, &security)).await {
        Ok(Ok((stream, leftover))) => connected(&shared, stream, leftover).await,
        Ok(Err(problem)) => problem,
        Err(_) => "the handshake took longer than two seconds".to_owned(),
    };
    drop(place);
    tracing::info!(target: "zlink::fanout", ?address, problem, "a subscriber's connection has ended");
}

async fn greet(stream: Stream, security: &Security) -> Result<(Stream, Vec<u8>), String> {
    let properties = Properties::new().with(SOCKET_TYPE, *b"PUB");
    let (stream, leftover, ready) = shake(stream, Role::Server, security, &properties).await?;
    match ready.properties.get(SOCKET_TYPE) {
        Some(b"SUB" | b"XSUB") => Ok((stream, leftover)),
        other => Err(format!(
            "a PUB cannot talk to a {}",
            other.unwrap_or_default().escape_ascii()
        )),
    }
}

/// Until the connection ends; why it did.
async fn connected(shared: &Shared, stream: Stream, leftover: Vec<u8>) -> String {
    let id = shared.0.lock().enter();
    let _entered = Entered(shared, id);
    tokio::select! {
        biased;
        why = read(shared, id, stream.read, leftover) => why,
        why = write(shared, id, stream.write) => why,
    }
}

async fn write(shared: &Shared, id: Id, mut write: Box<dyn WriteHalf>) -> String {
    let mut batch = Batch::default();
    while let Some(()) = poll_fn(|cx| shared.0.lock().poll_take(id, &mut batch, cx)).await {
        for bytes in [&batch.joined[..], &batch.alone[..]] {
            if let Err(error) = write.write_all(bytes).await {
                return error.to_string();
            }
        }
    }
    "closed by this host".to_owned()
}

/// Reads what a subscriber wants. It has nothing else to say.
async fn read(shared: &Shared, id: Id, mut read: Box<dyn ReadHalf>, mut held: Vec<u8>) -> String {
    let mut decoder = Decoder::new();
    loop {
        match heard(shared, id, &mut decoder, &held) {
            Ok(taken) => drop(held.drain(..taken)),
            Err(error) => return error.to_string(),
        }
        // What is left is less than a frame, and that is bounded.
        let room = COMMAND_BYTES;
        held.reserve(room);
        match read.read_buf(&mut bytes::BufMut::limit(&mut held, room)).await {
            Ok(0) => return "the subscriber has closed it".to_owned(),
            Ok(_) => {}
            Err(error) => return error.to_string(),
        }
    }
}

/// Takes all whole frames; how many bytes they were.
fn heard(shared: &Shared, id: Id, decoder: &mut Decoder, held: &[u8]) -> Result<usize, ZmtpError> {
    let mut at = 0;
    loop {
        let mut next = decoder.clone();
        let rest = held.get(at..).unwrap_or_default();
        let Some((from, head)) = next.head(rest, FrameLimits::new(COMMAND_BYTES))? else {
            return Ok(at);
        };
        let (Head::Command { len } | Head::Frame { len, .. }) = head;
        let Some(body) = rest.get(from..from + len) else {
            return Ok(at);
        };
        *decoder = next;
        at += from + len;
        let wants = match head {
            Head::Command { .. } => match Command::decode(body)? {
                Command::Subscribe(topic) => Some((true, topic)),
                Command::Cancel(topic) => Some((false, topic)),
                Command::Ping { context, .. } => {
                    shared.0.lock().pong(id, context);
                    None
                }
                _ => None,
            },
            // So does ZMTP 3.0.
            Head::Frame {
                first: true,
                more: false,
                ..
            } => match body {
                [1, topic @ ..] => Some((true, topic)),
                [0, topic @ ..] => Some((false, topic)),
                _ => None,
            },
            Head::Frame { .. } => None,
        };
        match wants {
            Some((true, topic)) if !shared.0.lock().subscribe(id, topic) => {
                return Err(ZmtpError::Unexpected("subscription beyond those that may be"));
            }
            Some((false, topic)) => shared.0.lock().cancel(id, topic),
            _ => {}
        }
    }
}
