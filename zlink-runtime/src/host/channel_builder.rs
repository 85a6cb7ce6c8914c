//! What a ClientServer channel is told before it starts.

use crate::channel::ChannelServer;
use crate::id::ChannelName;
use crate::limit::CLIENT_SERVER_MESSAGE_BYTES;

use super::socket::{SocketOptions, socket_methods};

/// Collects the roles of one ClientServer channel.
#[derive(Debug)]
#[must_use = "a channel builder does nothing unless it is returned"]
pub struct ClientServerBuilder {
    pub(super) socket: SocketOptions,
    pub(super) servers: Vec<ChannelServer>,
    pub(super) clients: Vec<ChannelName>,
}

impl Default for ClientServerBuilder {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            clients: Vec::new(),
            socket: SocketOptions::new(CLIENT_SERVER_MESSAGE_BYTES),
        }
    }
}

impl ClientServerBuilder {
    socket_methods!();

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

    /// The greatest record this side takes, in bytes: 16 MiB where it is not set, at least 4 KiB; 0 for no bound
    /// but the codec's 2 GiB − 1. Between client and server the smaller of both holds.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.socket.max_message = bytes;
        self
    }
}
