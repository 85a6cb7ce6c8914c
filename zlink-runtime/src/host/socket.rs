//! What MeshNodes and ClientServer channels are told alike: where they listen, whom they dial, what a link may hold.

/// The part of a registration that concerns sockets.
#[derive(Debug)]
pub(super) struct SocketOptions {
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    /// Endpoints, and the RID that is expected at each.
    pub(super) connect: Vec<(String, Option<Vec<u8>>)>,
    pub(super) max_message: usize,
    /// As the host's profile says, where it is not set.
    pub(super) link_budget: Option<usize>,
    pub(super) receive_budget: Option<usize>,
    pub(super) security_identity: String,
    /// Kept out of the Location Store.
    pub(super) manual: bool,
}

impl SocketOptions {
    pub(super) fn new(max_message: usize) -> Self {
        Self {
            listen: None,
            advertise: None,
            connect: Vec::new(),
            max_message,
            link_budget: None,
            receive_budget: None,
            security_identity: String::new(),
            manual: false,
        }
    }

    /// For sending, and for receiving.
    pub(super) fn budgets(&self) -> (Option<usize>, Option<usize>) {
        (self.link_budget, self.receive_budget)
    }
}

/// The methods that set them, for a builder with a field `socket`.
macro_rules! socket_methods {
    () => {
        /// Where it listens, such as `tcp://127.0.0.1:7001` or `ipc:///run/shop.sock`. Port 0 takes a free one.
        ///
        /// With a Location Store, it is a free port of the loopback address where it is not set, and the port may be left
        /// out: `tcp://10.0.0.7`. Without one a node needs it, and so does a channel's server, unless its only client is
        /// this host.
        pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
            self.socket.listen = Some(endpoint.into());
            self
        }

        /// The host name or address that peers are told, where it is not the one of `listen`: `0.0.0.0` and `::` need it.
        pub fn advertise(mut self, host: impl Into<String>) -> Self {
            self.socket.advertise = Some(host.into());
            self
        }

        /// Keeps it out of the host's Location Store: nobody finds it there, and it finds nobody. Links are made by
        /// `connect` alone, here or on the other side.
        pub fn manual(mut self) -> Self {
            self.socket.manual = true;
            self
        }

        /// Keeps a link to whoever listens at that endpoint.
        pub fn connect(mut self, endpoint: impl Into<String>) -> Self {
            self.socket.connect.push((endpoint.into(), None));
            self
        }

        /// Keeps a link to that endpoint, and admits none but `rid` there.
        pub fn connect_to(mut self, endpoint: impl Into<String>, rid: impl AsRef<[u8]>) -> Self {
            self.socket
                .connect
                .push((endpoint.into(), Some(rid.as_ref().to_vec())));
            self
        }

        /// Bytes that each link holds for sending before senders wait: what the host's
        /// [`link_profile`](crate::HostBuilder::link_profile) says where it is not set. What waits goes before a
        /// probe and its answer, and a link ends after 15 s without one: over a network that carries less than this in
        /// some seconds, set less.
        pub fn link_budget(mut self, bytes: usize) -> Self {
            self.socket.link_budget = Some(bytes);
            self
        }

        /// Bytes that each connection of a link reads ahead of what was handed on, beside one record: 64 KiB where it is not
        /// set, at least 4 KiB. What exceeds it waits in the system's buffers, and at the peer. Less saves memory where there
        /// are many peers, more saves calls of the system.
        pub fn receive_budget(mut self, bytes: usize) -> Self {
            self.socket.receive_budget = Some(bytes);
            self
        }

        /// A text that both sides of a link must have been given alike; at most 255 bytes.
        pub fn security_identity(mut self, identity: impl Into<String>) -> Self {
            self.socket.security_identity = identity.into();
            self
        }
    };
}
pub(super) use socket_methods;
