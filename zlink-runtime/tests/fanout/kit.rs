//! What the fanout tests share: a fanout as generated code has one, a handler that notes what it gets and waits where it is
//! told to, and hosts that publish and subscribe. It must not judge anything.

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../shared/events.rs"]
mod events;
mod raw;
#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../shared/wait.rs"]
mod wait;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use zlink_generated::contract::Note;
use zlink_runtime::error::{CallError, StartError};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, FanoutEvent};
use zlink_runtime::testing::Cluster;
use zlink_runtime::{FanoutBuilder, HostBuilder, PeerState};

pub(crate) use events::Events;
pub(crate) use raw::{Came, Raw, event, message};
pub(crate) use wait::{until, within};

/// What a schema would bring: a fanout with the events `flash`, under its name, and `order`, under `order.`.
pub(crate) const NEWS: ChannelName = ChannelName::from_static("news");
pub(crate) const FLASH: FanoutEvent = const { FanoutEvent::new("test.news.flash", None) };
pub(crate) const ORDER: FanoutEvent = const { FanoutEvent::new("test.news.order", Some("order.")) };

pub(crate) trait NewsHandler: Send + Sync + 'static {
    fn flash(
        &self,
        context: &rt::FanoutContext<'_>,
        event: Note,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
    fn order(
        &self,
        context: &rt::FanoutContext<'_>,
        event: Note,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

pub(crate) fn news_subscriber<H: NewsHandler>(handler: H) -> rt::FanoutSubscriber {
    rt::FanoutSubscriber::builder(NEWS, handler)
        .event("test.news.flash", <H as NewsHandler>::flash)
        .event("test.news.order", <H as NewsHandler>::order)
        .build()
}

pub(crate) fn news_publisher(caller: &impl rt::Caller) -> NewsPublisher {
    NewsPublisher(rt::FanoutRoute::new(caller, NEWS))
}

#[derive(Clone, Debug)]
pub(crate) struct NewsPublisher(pub(crate) rt::FanoutRoute);

impl NewsPublisher {
    pub(crate) fn on(self, channel: ChannelName) -> Self {
        Self(self.0.on(channel))
    }

    pub(crate) fn flash(&self, event: Note) -> rt::FanoutCall<Note> {
        self.0.publish(FLASH, event)
    }

    pub(crate) fn order(&self, event: Note) -> rt::FanoutCall<Note> {
        self.0.publish(ORDER, event)
    }
}

pub(crate) fn note(number: u64) -> Note {
    Note {
        number,
        ..Note::default()
    }
}

/// One of about 1 KiB.
pub(crate) fn heavy(number: u64) -> Note {
    Note {
        body: vec![0x5a; 1000],
        ..note(number)
    }
}

/// What a handler was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) channel: String,
    pub(crate) topic: String,
    pub(crate) packet: String,
    pub(crate) number: u64,
}

/// Notes what it gets, behind a gate.
#[derive(Clone)]
pub(crate) struct Reader {
    got: Arc<Mutex<Vec<Got>>>,
    gate: Arc<watch::Sender<bool>>,
    pause: Arc<Mutex<Duration>>,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self {
            got: Arc::default(),
            gate: Arc::new(watch::channel(true).0),
            pause: Arc::default(),
        }
    }

    /// From now on each event takes so long.
    pub(crate) fn pause(&self, pause: Duration) {
        *self.pause.lock() = pause;
    }

    /// Opens the gate, or closes it.
    pub(crate) fn open(&self, open: bool) {
        self.gate.send_replace(open);
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().clone()
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.got.lock().iter().map(|got| got.number).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.got.lock().len()
    }

    async fn take(&self, context: &rt::FanoutContext<'_>, event: Note) -> Result<(), HandlerError> {
        self.got.lock().push(Got {
            channel: context.channel().to_string(),
            topic: context.topic().to_owned(),
            packet: context.packet_name().to_string(),
            number: event.number,
        });
        let mut gate = self.gate.subscribe();
        gate.wait_for(|open| *open).await?;
        let pause = *self.pause.lock();
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        match event.text.as_str() {
            "panic" => panic!("as it was told"),
            "fail" => Err(HandlerError::new("as it was told")),
            _ => Ok(()),
        }
    }
}

impl NewsHandler for Reader {
    async fn flash(&self, context: &rt::FanoutContext<'_>, event: Note) -> Result<(), HandlerError> {
        self.take(context, event).await
    }

    async fn order(&self, context: &rt::FanoutContext<'_>, event: Note) -> Result<(), HandlerError> {
        self.take(context, event).await
    }
}

/// Long enough for what happens at once on a network of a millisecond.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(100);
/// Longer than a beacon takes.
pub(crate) const BEAT: Duration = Duration::from_secs(6);

/// Where the publisher `name` of a cluster listens.
pub(crate) fn at(name: &str) -> String {
    format!("tcp://{name}:1")
}

/// Adds a publisher of `news` to a cluster.
pub(crate) fn publisher(
    cluster: &Cluster,
    name: &'static str,
    configure: impl Fn(FanoutBuilder) -> FanoutBuilder + Send + Sync + 'static,
) {
    cluster.node(name, move |host| {
        // Of a host's own send timeout, publishers take nothing.
        host.send_timeout(Duration::from_millis(7))
            .fanout(|fanout| configure(fanout.publisher(NEWS).listen(at(name))))
    });
}

/// Adds a subscriber of what `publishers` publish.
pub(crate) fn subscriber(
    cluster: &Cluster,
    name: &'static str,
    publishers: &'static [&'static str],
    reader: &Reader,
    configure: impl Fn(FanoutBuilder) -> FanoutBuilder + Send + Sync + 'static,
) {
    subscribing(cluster, name, publishers, reader, configure, |host| host);
}

/// The same with further settings of its host.
pub(crate) fn subscribing(
    cluster: &Cluster,
    name: &'static str,
    publishers: &'static [&'static str],
    reader: &Reader,
    configure: impl Fn(FanoutBuilder) -> FanoutBuilder + Send + Sync + 'static,
    host: impl Fn(HostBuilder) -> HostBuilder + Send + Sync + 'static,
) {
    let reader = reader.clone();
    cluster.node(name, move |builder| {
        host(builder).fanout(|fanout| {
            let fanout = fanout.subscriber(news_subscriber(reader.clone()).dispatch_limit(1));
            configure(publishers.iter().fold(fanout, |fanout, name| fanout.connect(at(name))))
        })
    });
}

/// A subscriber that takes hardly anything as long as its gate is closed: the publisher's pipe fills, and what lies before it.
pub(crate) fn slow(cluster: &Cluster, name: &'static str, topic: &'static str, reader: &Reader) {
    let configure = move |fanout: FanoutBuilder| fanout.subscribe(topic);
    let host = |host: HostBuilder| host.max_queued_jobs(1);
    subscribing(cluster, name, &["p"], reader, configure, host);
}

/// Whether `host` counts the publisher at that place as ready.
pub(crate) fn is_ready(host: &Host, publisher: &str) -> bool {
    let intents = host.fanout("news").unwrap().intents();
    let at = at(publisher);
    intents
        .iter()
        .any(|one| one.endpoint.as_str() == at && one.state == PeerState::Ready)
}

/// Waits until so many are connected to the publisher `p`, and what they have said was heard.
pub(crate) async fn connected(cluster: &Cluster, subscribers: usize) {
    let p = cluster.host("p");
    let connected = move || p.fanout("news").unwrap().subscribers() == subscribers;
    cluster.until("subscribers", BEAT, connected).await;
    cluster.advance(AT_ONCE).await;
}

/// Waits until a reader has so many.
pub(crate) async fn read(cluster: &Cluster, reader: &Reader, count: usize) {
    let seen = reader.clone();
    cluster
        .until(&format!("{count} events"), BEAT, move || seen.count() >= count)
        .await;
}

pub(crate) async fn refused(builder: HostBuilder) -> StartError {
    match builder.start().await {
        Ok(host) => panic!("{host:?} started"),
        Err(error) => error,
    }
}

/// The kind of a failure.
#[track_caller]
pub(crate) fn failure(result: Result<(), CallError>) -> ErrorKind {
    match result {
        Err(CallError::Failed(error)) => error.kind(),
        other => panic!("no failure of the call: {other:?}"),
    }
}

/// Which argument was refused.
#[track_caller]
pub(crate) fn argument(result: Result<(), CallError>) -> &'static str {
    match result {
        Err(CallError::Argument(error)) => error.argument(),
        other => panic!("no argument was refused: {other:?}"),
    }
}
