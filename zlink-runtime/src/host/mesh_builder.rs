//! What a MeshNode is told before it starts.

use std::time::Duration;

use crate::channel::{ChannelServer, NodeServer};
use crate::id::ChannelName;
use crate::limit::MESH_MESSAGE_BYTES;
use crate::mesh::ObjectRole;

use super::objects_builder::ObjectServerBuilder;
use super::socket::{SocketOptions, socket_methods};

/// Collects what a node of one mesh is and does.
#[derive(Debug)]
#[must_use = "a mesh builder does nothing unless it is returned"]
pub struct MeshBuilder {
    pub(super) name: String,
    pub(super) socket: SocketOptions,
    pub(super) role: ObjectRole,
    pub(super) rid: Option<Vec<u8>>,
    pub(super) rid_prefix: Option<String>,
    pub(super) servers: Vec<ChannelServer>,
    pub(super) clients: Vec<ChannelName>,
    pub(super) node: Vec<NodeServer>,
    pub(super) request_timeout: Option<Duration>,
    pub(super) send_timeout: Option<Duration>,
    pub(super) objects: ObjectServerBuilder,
}

impl MeshBuilder {
    socket_methods!();

    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            role: ObjectRole::None,
            rid: None,
            rid_prefix: None,
            servers: Vec::new(),
            clients: Vec::new(),
            node: Vec::new(),
            socket: SocketOptions::new(MESH_MESSAGE_BYTES),
            request_timeout: None,
            send_timeout: None,
            objects: ObjectServerBuilder::default(),
        }
    }

    /// What the node may do with Spots and Actors; `None` where it is not set.
    pub fn role(mut self, role: ObjectRole) -> Self {
        self.role = role;
        self
    }

    /// Makes the node one that can have Spots: its Entry Spot, and those that its factories make. It needs a Location Store.
    pub fn object_server(mut self, configure: impl FnOnce(ObjectServerBuilder) -> ObjectServerBuilder) -> Self {
        self.role = ObjectRole::Server;
        self.objects = configure(self.objects);
        self
    }

    /// Makes the node one that calls, creates and finds Spots, and has none. It needs a Location Store.
    pub fn object_client(self) -> Self {
        self.role(ObjectRole::Client)
    }

    /// Gives the node a fixed RID, 1 to 255 bytes. Without it, each start makes a new one. A node that is found through the
    /// Location Store needs a made one.
    pub fn rid(mut self, rid: impl AsRef<[u8]>) -> Self {
        self.rid = Some(rid.as_ref().to_vec());
        self
    }

    /// What a made RID begins with: 1 to 64 ASCII letters, digits, `.`, `_` or `-`. `node` where it is not set.
    pub fn rid_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.rid_prefix = Some(prefix.into());
        self
    }

    /// Takes part in a channel as a Server: its calls may be selected to run here. A node never selects itself.
    pub fn serve(mut self, server: ChannelServer) -> Self {
        self.servers.push(server);
        self
    }

    /// Takes part in a channel of which this node handles no call: what is published there reaches the Spots of this
    /// node that subscribe to it. Calls that are selected to run here end with `NotFound`: keep such a channel for events.
    pub fn take_part(self, channel: impl Into<ChannelName>) -> Self {
        self.serve(ChannelServer::builder(channel.into(), ()).build())
    }

    /// Takes part in a channel as a Client: calls to it go out through this mesh.
    pub fn client(mut self, channel: impl Into<ChannelName>) -> Self {
        self.clients.push(channel.into());
        self
    }

    /// Handles what is sent to this node by its RID. Several schemas may add theirs.
    pub fn serve_node(mut self, server: NodeServer) -> Self {
        self.node.push(server);
        self
    }

    /// The greatest record this node takes, in bytes: 64 MiB where it is not set, at least 4 KiB, at most 2 GiB − 1.
    /// Between two nodes the smaller of both holds.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.socket.max_message = bytes;
        self
    }

    /// How long a request through this mesh may take where neither the call nor its schema says.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Ends sends through this mesh that find no room in time with `DeadlineExceeded`; as the host says where it is not set.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = Some(timeout);
        self
    }
}
