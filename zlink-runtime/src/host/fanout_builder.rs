//! What a fanout is told before it starts.

use std::time::Duration;

use crate::fanout::FanoutSubscriber;
use crate::id::ChannelName;
use crate::limit::CLIENT_SERVER_MESSAGE_BYTES;

/// Collects the roles of one fanout.
#[derive(Debug)]
#[must_use = "a fanout builder does nothing unless it is returned"]
pub struct FanoutBuilder {
    pub(super) publishers: Vec<ChannelName>,
    pub(super) subscribers: Vec<FanoutSubscriber>,
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    pub(super) no_drop: Option<bool>,
    pub(super) send_timeout: Option<Duration>,
    pub(super) topics: Vec<String>,
    pub(super) connect: Vec<String>,
    pub(super) manual: bool,
    pub(super) max_message: usize,
}

impl Default for FanoutBuilder {
    fn default() -> Self {
        Self {
            publishers: Vec::new(),
            subscribers: Vec::new(),
            listen: None,
            advertise: None,
            no_drop: None,
            send_timeout: None,
            topics: Vec::new(),
            connect: Vec::new(),
            manual: false,
            max_message: CLIENT_SERVER_MESSAGE_BYTES,
        }
    }
}

impl FanoutBuilder {
    /// Takes the Publisher role: events are published from here. Once per fanout.
    pub fn publisher(mut self, channel: impl Into<ChannelName>) -> Self {
        self.publishers.push(channel.into());
        self
    }

    /// Takes the Subscriber role: events are handled here. Once per fanout. It finds its publishers through the host's
    /// Location Store, unless [`connect`](Self::connect) names them or it is [`manual`](Self::manual). Where this host
    /// publishes too, it is a publisher like the others, and is not connected to by itself.
    pub fn subscriber(mut self, subscriber: FanoutSubscriber) -> Self {
        self.subscribers.push(subscriber);
        self
    }

    /// Of a publisher: where it listens, such as `tcp://127.0.0.1:7100` or `ipc:///run/events.sock`. Port 0 takes a free one.
    ///
    /// With a Location Store, it is a free port of the loopback address where it is not set, and the port may be left out.
    /// Without one it is needed.
    pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
        self.listen = Some(endpoint.into());
        self
    }

    /// Of a publisher: the host name or address that subscribers are told, where it is not the one of `listen`: `0.0.0.0` and
    /// `::` need it.
    pub fn advertise(mut self, host: impl Into<String>) -> Self {
        self.advertise = Some(host.into());
        self
    }

    /// Of a publisher: whether an event goes to all connected subscribers that want it or, as long as one of them has no room,
    /// to none. A publish then waits, for at most the send timeout. It promises no more than that: who connects later, or
    /// loses its connection, goes without. Where it is not set, a subscriber without room goes without, and no publish waits.
    pub fn no_drop(mut self, no_drop: bool) -> Self {
        self.no_drop = Some(no_drop);
        self
    }

    /// Of a publisher: how long a publish may wait, 1 ms to `i32::MAX` ms; 1 s where it is not set.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = Some(timeout);
        self
    }

    /// Of a subscriber: wants what is published under topics that begin so, byte for byte. Beside others, and all where none
    /// is named.
    pub fn subscribe(mut self, topic: impl Into<String>) -> Self {
        self.topics.push(topic.into());
        self
    }

    /// Of a subscriber: takes what is published at that endpoint, and at those named beside it, rather than find publishers.
    pub fn connect(mut self, endpoint: impl Into<String>) -> Self {
        self.connect.push(endpoint.into());
        self
    }

    /// Keeps it out of the host's Location Store: its publisher is not found there, and its subscriber finds nobody, but has
    /// those endpoints that are named here or while it runs.
    pub fn manual(mut self) -> Self {
        self.manual = true;
        self
    }

    /// The greatest record that is published, or taken, in bytes: 16 MiB where it is not set, at least 4 KiB; 0 for no bound
    /// but the codec's 2 GiB − 1.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }
}
