//! What the transport tests share: sinks that remember, ends of links, records, waits with a deadline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use zlink_runtime::id::{Generation, Rid};
use zlink_runtime::permit::{HostPermits, Permit};
use zlink_runtime::transport::{
    Acceptor, CloseReason, Endpoint, Flow, Lane, Lanes, Link, LinkConfig, LinkTransport, Listener, Offer, Peer, Record,
    Sink, SocketType, Transport,
};

/// The kind byte that tests use for completions.
pub(crate) const COMPLETION: u8 = 32;
/// The kind byte that tests use for everything else.
pub(crate) const ORDINARY: u8 = 16;

pub(crate) fn transport() -> LinkTransport {
    LinkTransport::new(config())
}

pub(crate) fn config() -> LinkConfig {
    LinkConfig::default()
}

pub(crate) fn offer(identity: &str, permits: &HostPermits) -> Offer {
    Offer {
        socket: SocketType::Router,
        identity: Rid::new(identity).unwrap(),
        generation: Generation::random(),
        lanes: Lanes::Two,
        max_record: 1 << 20,
        budget: 4 << 20,
        permits: permits.clone(),
        flow: Flow::default(),
    }
}

/// A record of a kind, with a number and `padding` more bytes.
pub(crate) fn record(kind: u8, number: u32, padding: usize) -> Vec<u8> {
    let mut record = vec![1, kind];
    record.extend(number.to_le_bytes());
    record.resize(6 + padding, 0x5a);
    record
}

/// The number of a record, and whether all the rest is as it was made.
pub(crate) fn number(record: &[u8]) -> u32 {
    assert!(record[6..].iter().all(|byte| *byte == 0x5a), "the padding is damaged");
    u32::from_le_bytes(record[2..6].try_into().unwrap())
}

/// What a sink has heard.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) records: Vec<(Lane, Bytes, Option<Permit>)>,
    pub(crate) endings: usize,
    pub(crate) closed: Vec<CloseReason>,
}

/// A sink that remembers; `keep` decides whether permits and records are kept.
#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Heard>>, Arc<tokio::sync::Notify>);

impl Sink for Collector {
    fn record(&self, lane: Lane, record: Bytes, permit: Option<Permit>, _: tokio::time::Instant) {
        self.0.lock().records.push((lane, record, permit));
        self.1.notify_one();
    }

    fn ending(&self) {
        self.0.lock().endings += 1;
    }

    fn closed(&self, reason: &CloseReason) {
        self.0.lock().closed.push(reason.clone());
    }
}

impl Collector {
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Heard) -> T) -> T {
        look(&mut self.0.lock())
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|heard| heard.records.len())
    }

    pub(crate) fn numbers(&self, on: Lane) -> Vec<u32> {
        self.with(|heard| {
            heard
                .records
                .iter()
                .filter(|(lane, ..)| *lane == on)
                .map(|(_, r, _)| number(r))
                .collect()
        })
    }

    /// Waits until there are more records than that, for at most ten seconds.
    pub(crate) async fn more_than(&self, count: usize) {
        let more = async {
            while self.len() <= count {
                self.1.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), more)
            .await
            .expect("a record in time");
    }

    /// Gives all permits back.
    pub(crate) fn release(&self) {
        self.with(|heard| heard.records.iter_mut().for_each(|(.., permit)| *permit = None));
    }

    pub(crate) fn reason(&self) -> Option<CloseReason> {
        self.with(|heard| heard.closed.first().cloned())
    }
}

/// Hands accepted links to whoever waits.
pub(crate) struct Accepted(tokio::sync::mpsc::UnboundedSender<Arc<dyn Link>>);

impl Acceptor for Accepted {
    fn accepted(&self, link: Arc<dyn Link>) {
        let _ = self.0.send(link);
    }
}

/// A bound endpoint and what it accepts.
pub(crate) struct Server {
    pub(crate) listener: Box<dyn Listener>,
    links: tokio::sync::mpsc::UnboundedReceiver<Arc<dyn Link>>,
}

impl Server {
    pub(crate) async fn bind(transport: &dyn Transport, endpoint: &str, offer: Offer) -> Self {
        let (sender, links) = tokio::sync::mpsc::unbounded_channel();
        let endpoint: Endpoint = endpoint.parse().unwrap();
        let listener = transport
            .bind(&endpoint, offer, Arc::new(Accepted(sender)))
            .await
            .unwrap();
        Self { listener, links }
    }

    pub(crate) async fn accept(&mut self) -> Arc<dyn Link> {
        tokio::time::timeout(Duration::from_secs(10), self.links.recv())
            .await
            .expect("a link in time")
            .unwrap()
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }
}

/// One end of an admitted link.
pub(crate) struct End {
    pub(crate) link: Arc<dyn Link>,
    pub(crate) heard: Collector,
    pub(crate) permits: HostPermits,
}

impl End {
    pub(crate) fn new(link: Arc<dyn Link>, permits: &HostPermits, max_record: usize) -> Self {
        let heard = Collector::default();
        link.start(Arc::new(heard.clone()));
        link.admit(max_record);
        Self {
            link,
            heard,
            permits: permits.clone(),
        }
    }
}

/// Two admitted ends over `endpoint`: the dialler, the listener, and what keeps it bound.
pub(crate) async fn linked(endpoint: &str, change: impl Fn(&mut Offer)) -> (End, End, Server) {
    let (ours, theirs) = (HostPermits::new(1000), HostPermits::new(1000));
    let made = |name, permits| {
        let mut offer = offer(name, permits);
        change(&mut offer);
        offer
    };
    let (client, listening) = (made("client", &ours), made("server", &theirs));
    let listening = Offer {
        socket: SocketType::Router,
        ..listening
    };
    let max = client.max_record;
    let transport = transport();
    let mut server = Server::bind(&transport, endpoint, listening).await;
    let link = transport.dial(server.endpoint(), client).await.unwrap();
    let accepted = server.accept().await;
    (End::new(link, &ours, max), End::new(accepted, &theirs, max), server)
}

/// Waits until `condition` holds; says what was missed if it does not within ten seconds.
#[track_caller]
pub(crate) fn until(what: &'static str, mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let at = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "{at}: not in time: {what}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Polls a future once, outside any task.
pub(crate) fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

/// Runs futures in this task until all are done.
pub(crate) async fn futures_all<F: Future>(futures: impl IntoIterator<Item = F>) {
    let mut running: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(|cx| {
        for slot in &mut running {
            if slot.as_mut().is_some_and(|future| future.as_mut().poll(cx).is_ready()) {
                *slot = None;
            }
        }
        if running.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

impl End {
    /// Sends numbered records, and waits for each to come back as a completion.
    pub(crate) async fn round_trips(&self, count: u32) {
        for n in 0..count {
            let before = self.heard.len();
            self.link
                .send(Lane::Data, record(ORDINARY, n, 100))
                .await
                .expect("an open link");
            self.heard.more_than(before).await;
            assert_eq!(self.heard.with(|heard| number(&heard.records[before].1)), n);
        }
    }
}

/// Sends each record back as a completion, and gives its permit back.
pub(crate) struct EchoSink(Arc<dyn Link>, Arc<Mutex<Numbers>>);

#[derive(Default)]
struct Numbers {
    links: Vec<Arc<dyn Link>>,
    peer: Option<Peer>,
    accepted: usize,
    closed: usize,
}

impl EchoSink {
    pub(crate) fn new(link: Arc<dyn Link>) -> Arc<Self> {
        Arc::new(Self(link, Arc::default()))
    }
}

impl Sink for EchoSink {
    fn record(&self, _: Lane, record: Bytes, _: Option<Permit>, _: tokio::time::Instant) {
        let mut reply = record.to_vec();
        if let Some(kind) = reply.get_mut(1) {
            *kind = COMPLETION;
        }
        // A peer that floods without reading gets no echo: a sink must not wait.
        let _ = self.0.try_send(
            Lane::Completion,
            Record {
                head: &reply,
                payload: &[],
            },
        );
    }

    fn closed(&self, _: &CloseReason) {
        let mut numbers = self.1.lock();
        numbers.closed += 1;
        numbers.links.retain(|link| link.id() != self.0.id());
    }
}

struct EchoAcceptor(Arc<Mutex<Numbers>>);

impl Acceptor for EchoAcceptor {
    fn accepted(&self, link: Arc<dyn Link>) {
        let mut numbers = self.0.lock();
        numbers.accepted += 1;
        numbers.links.push(link.clone());
        numbers.peer = Some(link.peer().clone());
        drop(numbers);
        link.start(Arc::new(EchoSink(link.clone(), self.0.clone())));
        link.admit(1 << 20);
    }
}

/// A listener that admits everybody and echoes.
pub(crate) struct Echo {
    listener: Box<dyn Listener>,
    numbers: Arc<Mutex<Numbers>>,
    pub(crate) permits: HostPermits,
}

impl Echo {
    pub(crate) async fn bind(transport: &dyn Transport, endpoint: &str) -> Self {
        let (numbers, permits) = (Arc::default(), HostPermits::new(1000));
        let acceptor = Arc::new(EchoAcceptor(Arc::clone(&numbers)));
        let listener = transport
            .bind(&endpoint.parse().unwrap(), offer("echo", &permits), acceptor)
            .await
            .unwrap();
        Self {
            listener,
            numbers,
            permits,
        }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    pub(crate) fn acceptor(&self) -> Arc<dyn Acceptor> {
        Arc::new(EchoAcceptor(self.numbers.clone()))
    }

    pub(crate) fn accepted(&self) -> usize {
        self.numbers.lock().accepted
    }

    pub(crate) fn closed(&self) -> usize {
        self.numbers.lock().closed
    }

    /// Who came last.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.numbers.lock().peer.clone()
    }

    pub(crate) fn links(&self) -> Vec<Arc<dyn Link>> {
        self.numbers.lock().links.clone()
    }

    pub(crate) async fn client(&self, identity: &str) -> End {
        self.client_by(&transport(), identity).await
    }

    pub(crate) async fn client_by(&self, transport: &dyn Transport, identity: &str) -> End {
        let permits = HostPermits::new(1000);
        let link = transport
            .dial(self.endpoint(), offer(identity, &permits))
            .await
            .unwrap();
        End::new(link, &permits, 1 << 20)
    }
}

/// Another process of this test program, in a role of `crowd::child`. It is killed when it is dropped.
pub(crate) struct Child {
    process: tokio::process::Child,
    lines: tokio::io::Lines<tokio::io::BufReader<tokio::process::ChildStdout>>,
}

/// What a child says starts so; the test harness in it says other things.
const SAYS: &str = "child: ";

impl Child {
    pub(crate) async fn start(role: &str, endpoint: &str) -> Self {
        use tokio::io::AsyncBufReadExt;
        let mut process = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_child_of_another_test", "--ignored", "--nocapture"])
            .env("ZLINK_TEST_CHILD", format!("{role} {endpoint}"))
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = tokio::io::BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    pub(crate) fn say(what: impl std::fmt::Display) {
        println!("\n{SAYS}{what}");
    }

    pub(crate) async fn line(&mut self) -> String {
        let next = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the child has ended");
                if let Some(said) = line.strip_prefix(SAYS) {
                    return said.to_owned();
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), next)
            .await
            .expect("a word from the child")
    }

    fn id(&self) -> u32 {
        self.process.id().expect("it runs")
    }

    pub(crate) fn signal(&self, name: &str) {
        let killed = std::process::Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.id().to_string())
            .status();
        assert!(killed.unwrap().success());
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// What it has used so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

/// This process's resident memory, in bytes.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Lets this process have as many descriptors as it may.
pub(crate) fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Lets this process have so many descriptors.
pub(crate) fn limit_descriptors(count: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(count);
    setrlimit(Resource::Nofile, limit).unwrap();
}
