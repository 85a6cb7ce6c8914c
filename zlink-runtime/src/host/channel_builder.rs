//! What a ClientServer channel is told before it starts.

use crate::channel::ChannelServer;
use crate::id::ChannelName;
use crate::limit::{CLIENT_SERVER_MESSAGE_BYTES, LINK_BUDGET_BYTES};

/// Collects the roles of one ClientServer channel.
#[derive(Debug)]
#[must_use = "a channel builder does nothing unless it is returned"]
pub struct ClientServerBuilder {
    pub(super) servers: Vec<ChannelServer>,
    pub(super) clients: Vec<ChannelName>,
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    pub(super) connect: Vec<(String, Option<Vec<u8>>)>,
    pub(super) max_message: usize,
    pub(super) link_budget: usize,
    pub(super) security_identity: String,
}

impl Default for ClientServerBuilder {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            clients: Vec::new(),
            listen: None,
            advertise: None,
            connect: Vec::new(),
            max_message: CLIENT_SERVER_MESSAGE_BYTES,
            link_budget: LINK_BUDGET_BYTES,
            security_identity: String::new(),
        }
    }
}

impl ClientServerBuilder {
    /// Takes the Server role: requests of clients run here. Once per channel.
    pub fn serve(mut self, server: ChannelServer) -> Self {
        self.servers.push(server);
        self
    }

    /// Takes the Client role: calls to the channel start here. Once per channel. Where this host serves the channel too,
    /// its own server is one of those that calls are spread over, through a real link like the others.
    pub fn client(mut self, channel: impl Into<ChannelName>) -> Self {
        self.clients.push(channel.into());
        self
    }

    /// Where the server listens, such as `tcp://127.0.0.1:7001` or `ipc:///run/billing.sock`. A server whose only
    /// client is this host may leave it out; it then takes a free port of the loopback address.
    pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
        self.listen = Some(endpoint.into());
        self
    }

    /// The host name or address that clients are told, where it is not the one of `listen`.
    pub fn advertise(mut self, host: impl Into<String>) -> Self {
        self.advertise = Some(host.into());
        self
    }

    /// Keeps a link to the server at that endpoint, whoever it is.
    pub fn connect(mut self, endpoint: impl Into<String>) -> Self {
        self.connect.push((endpoint.into(), None));
        self
    }

    /// Keeps a link to the server at that endpoint, and admits none but `rid` there.
    pub fn connect_to(mut self, endpoint: impl Into<String>, rid: impl AsRef<[u8]>) -> Self {
        self.connect.push((endpoint.into(), Some(rid.as_ref().to_vec())));
        self
    }

    /// The greatest record this side takes, in bytes: 16 MiB where it is not set; 0 for no bound but the codec's
    /// 2 GiB − 1. Between client and server the smaller of both holds.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Bytes that each link holds per direction before senders, or the peer, wait: 4 MiB where it is not set.
    pub fn link_budget(mut self, bytes: usize) -> Self {
        self.link_budget = bytes;
        self
    }

    /// A text that both sides must have been given alike; at most 255 bytes.
    pub fn security_identity(mut self, identity: impl Into<String>) -> Self {
        self.security_identity = identity.into();
        self
    }
}
