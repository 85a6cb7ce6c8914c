//! The calling side of a host: its paths, what waits for replies, and whether calls are taken at all.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::call::Pending;
use crate::error::{Error, ErrorKind};
use crate::id::{ChannelName, MeshName};
use crate::mesh::PeerLink;

use super::objects::Objects;
use super::own::OwnPeer;
use super::path::{ChannelPath, MeshPath};

/// Anything that calls can start from: a host, or the context of a running handler.
pub trait Caller: sealed::Caller {}

pub(crate) mod sealed {
    /// Keeps [`super::Caller`] ours to extend.
    #[allow(unnameable_types, reason = "that is what seals it")]
    pub trait Caller {
        /// The calling side of its host.
        fn outbound(&self) -> &super::Outbound;

        /// Of a handler, which may still call while its host drains: alive as long as its turn.
        fn running(&self) -> Option<std::sync::Weak<()>>;
    }
}

/// Whether calls are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostState {
    Serving,
    /// Handlers that run may still call; new calls from outside are refused.
    Draining,
    Stopped,
}

/// The calling side of one host.
#[derive(Clone)]
pub struct Outbound(Arc<Inner>);

struct Inner {
    pending: Pending,
    state: AtomicU8,
    changed: Notify,
    request_timeout: Duration,
    send_timeout: Option<Duration>,
    /// The number of the next handler scope.
    scopes: AtomicU64,
    paths: OnceLock<Paths>,
    objects: OnceLock<Weak<dyn Objects>>,
    fanouts: OnceLock<Arc<dyn Any + Send + Sync>>,
}

struct Paths {
    channels: HashMap<ChannelName, Arc<ChannelPath>>,
    meshes: HashMap<MeshName, LocalMesh>,
}

/// A mesh that this process is a node of.
#[derive(Clone, Debug)]
pub(super) struct LocalMesh {
    pub(super) path: Arc<MeshPath>,
    /// This node itself, for what is sent to its own RID.
    pub(super) own: Arc<OwnPeer>,
}

impl Outbound {
    pub(crate) fn new(request_timeout: Duration, send_timeout: Option<Duration>) -> Self {
        Self(Arc::new(Inner {
            pending: Pending::new(),
            state: AtomicU8::new(HostState::Serving as u8),
            changed: Notify::new(),
            request_timeout,
            send_timeout,
            scopes: AtomicU64::new(1),
            paths: OnceLock::new(),
            objects: OnceLock::new(),
            fanouts: OnceLock::new(),
        }))
    }

    /// Sets the paths, once, before the first call.
    pub(crate) fn set_paths(
        &self,
        channels: impl IntoIterator<Item = Arc<ChannelPath>>,
        meshes: impl IntoIterator<Item = (Arc<MeshPath>, Arc<OwnPeer>)>,
    ) {
        let channels = channels.into_iter().map(|path| (path.name.clone(), path)).collect();
        let meshes = meshes
            .into_iter()
            .map(|(path, own)| (path.name.clone(), LocalMesh { path, own }))
            .collect();
        // A second call would be a bug of the host builder; the first one holds.
        let _ = self.0.paths.set(Paths { channels, meshes });
    }

    /// Sets who knows the Spots, once, before the first call. It outlives every call of its host.
    pub(crate) fn set_objects(&self, objects: Weak<dyn Objects>) {
        let _ = self.0.objects.set(objects);
    }

    /// Who knows the Spots; `None` where this process has no object role.
    pub(crate) fn objects(&self) -> Option<Arc<dyn Objects>> {
        self.0.objects.get()?.upgrade()
    }

    /// The same as the type that it is.
    pub(crate) fn objects_as<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.objects()?.as_any().downcast().ok()
    }

    /// Sets what its fanouts publish through, once, before the first call. What that is, fanouts know.
    pub(crate) fn set_fanouts(&self, fanouts: Arc<dyn Any + Send + Sync>) {
        let _ = self.0.fanouts.set(fanouts);
    }

    /// The same as the type that it is.
    pub(crate) fn fanouts_as<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.fanouts.get()?.downcast_ref()
    }

    pub(crate) fn channels(&self) -> impl Iterator<Item = &Arc<ChannelPath>> {
        self.0.paths.get().into_iter().flat_map(|paths| paths.channels.values())
    }

    /// The nodes that a publish to that channel goes to now; `None` where it leads through no mesh.
    pub(crate) fn members(&self, name: &ChannelName) -> Option<Vec<Arc<PeerLink>>> {
        self.channel(name)?.members()
    }

    pub(crate) fn path(&self, name: &ChannelName) -> Option<Arc<ChannelPath>> {
        self.channel(name)
    }

    pub(super) fn channel(&self, name: &ChannelName) -> Option<Arc<ChannelPath>> {
        self.0.paths.get()?.channels.get(name).cloned()
    }

    pub(super) fn mesh(&self, name: &MeshName) -> Option<LocalMesh> {
        self.0.paths.get()?.meshes.get(name).cloned()
    }

    /// This host's own node in that mesh.
    pub(crate) fn own_node(&self, name: &MeshName) -> Option<&Arc<OwnPeer>> {
        Some(&self.0.paths.get()?.meshes.get(name)?.own)
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.0.pending
    }

    /// A number that no other handler scope of this host has.
    pub(crate) fn next_scope(&self) -> u64 {
        self.0.scopes.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.0.request_timeout
    }

    pub(super) fn send_timeout(&self) -> Option<Duration> {
        self.0.send_timeout
    }

    pub(crate) fn state(&self) -> HostState {
        match self.0.state.load(Ordering::Acquire) {
            0 => HostState::Serving,
            1 => HostState::Draining,
            _ => HostState::Stopped,
        }
    }

    /// Whether a call may begin now; while this host drains, only what a running handler calls.
    ///
    /// # Errors
    /// `ShuttingDown` where it may not.
    pub(crate) fn takes(&self, in_turn: bool) -> Result<(), Error> {
        match self.state() {
            HostState::Serving => Ok(()),
            HostState::Draining if in_turn => Ok(()),
            HostState::Draining | HostState::Stopped => Err(Self::shutting_down()),
        }
    }

    /// Moves on; a state never goes back.
    pub(crate) fn set_state(&self, state: HostState) {
        self.0.state.fetch_max(state as u8, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }

    /// Waits until calls are refused: from outside handlers with the begin of the host's stop, `in_turn` with its end.
    pub(crate) async fn refuses(&self, in_turn: bool) {
        self.until(|state| state == HostState::Stopped || !in_turn && state != HostState::Serving)
            .await;
    }

    /// Waits for the begin of its stop.
    pub(crate) async fn stopping(&self) {
        self.until(|state| state != HostState::Serving).await;
    }

    async fn until(&self, is_so: impl Fn(HostState) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(self.state()) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn shutting_down() -> Error {
        Error::not_executed(ErrorKind::ShuttingDown, "this host is shutting down")
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
