//! A second transport, over the `zeromq` crate's sockets, for trusted networks. Cargo feature `zeromq`.
//!
//! All its sockets live on one current-thread runtime in a thread of its own: the crate's ROUTER can deadlock on a
//! runtime with several. A listener is one ROUTER; whoever dials has a DEALER per lane. The crate cannot send READY
//! properties of ours, count bytes or pause one peer, so each message begins with a tag (`message`): a first one says
//! identity, run and lane; records are joined behind a tag as the default transport joins them; and a receiver gives
//! a sender its bytes back when records are handed on, which bounds what either side holds. Each connection has an
//! identity of its own, made at random, so that the late end of one never ends another.
//!
//! It talks to itself only, not to the default transport nor to plain ZeroMQ peers. What it does not keep, because
//! the crate does not: no bound on a message before it is allocated, on half-open handshakes or on connections; no
//! address of a peer. One packet of an unknown can end the process: use it among friends.
//!
//! It must not know who is admitted, nor what a record says beyond its kind.

mod deliver;
mod lane;
mod link;
mod listener;
mod message;
mod socket;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::{Acceptor, BoxFuture, Endpoint, Link, Listener, Offer, Transport, TransportError};
use crate::id::LinkId;

/// The transport over the `zeromq` crate. Clones share its thread, which ends with the last link.
#[derive(Clone, Debug, Default)]
pub struct ZeromqTransport {
    engine: Arc<Mutex<Option<Arc<Engine>>>>,
}

impl ZeromqTransport {
    /// A transport; its thread starts with the first endpoint that is bound or dialled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn engine(&self) -> std::io::Result<Arc<Engine>> {
        let mut engine = self.engine.lock();
        if let Some(engine) = &*engine {
            return Ok(engine.clone());
        }
        Ok(engine.insert(Arc::new(Engine::start()?)).clone())
    }
}

impl Transport for ZeromqTransport {
    fn bind<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
        acceptor: Arc<dyn Acceptor>,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, TransportError>> {
        Box::pin(async move {
            let failed = |cause: String| TransportError::Bind {
                endpoint: endpoint.to_string(),
                cause,
            };
            let engine = self.engine().map_err(|error| failed(error.to_string()))?;
            let binding = listener::bind(engine.clone(), endpoint.clone(), offer, acceptor);
            engine.run(binding).await.map_err(failed)
        })
    }

    fn dial<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
    ) -> BoxFuture<'a, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async move {
            let failed = |cause: String| TransportError::Dial {
                endpoint: endpoint.to_string(),
                cause,
            };
            endpoint.check_dialable().map_err(|error| failed(error.to_string()))?;
            let engine = self.engine().map_err(|error| failed(error.to_string()))?;
            let dialling = socket::dial(engine.clone(), endpoint.clone(), offer);
            match engine.run(dialling).await {
                Ok(dialled) => dialled,
                Err(cause) => Err(failed(cause)),
            }
        })
    }
}

/// The thread that all sockets live on. It ends when nobody holds this.
#[derive(Debug)]
struct Engine {
    handle: Handle,
    links: AtomicU64,
    _stop: oneshot::Sender<()>,
}

impl Engine {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("zlink-zeromq".to_owned())
            // Nothing is ever sent: it ends when the sender is dropped.
            .spawn(move || drop(runtime.block_on(stopped)))?;
        Ok(Self {
            handle,
            links: AtomicU64::new(0),
            _stop: stop,
        })
    }

    /// Runs it there. Dropping the future ends it.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<T, String> {
        let mut task = AbortOnDrop(self.handle.spawn(work));
        match (&mut task.0).await {
            Ok(result) => result,
            Err(error) => Err(error.to_string()),
        }
    }

    fn next_id(&self) -> LinkId {
        LinkId(self.links.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
