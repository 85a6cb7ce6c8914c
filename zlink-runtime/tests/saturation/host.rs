//! The host under load: it works, counts what it ran and whether the order was kept, floods itself, and asks its light peer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use zlink_generated::contract::{
    Brief, DeskHandler, Note, OrdersHandler, STOCK, desk_client, desk_server, orders_server, stock_client,
};
use zlink_runtime::error::ErrorKind;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, Created};

use crate::object::{self, ASK, BUSY, FAR, NEAR, NOTE, Target};
use crate::process::{on_cpu, resident, tell, told};
use crate::{PERMITS, SENDERS};

pub(crate) const SHOP: MeshName = MeshName::from_static("shop");
/// How long a handler works: the host can do about a thousand a second.
const WORK: Duration = Duration::from_millis(1);
/// How long all is held at first.
const HELD: Duration = Duration::from_secs(1);

/// What ran, by source, and what came out of order.
#[derive(Default)]
pub(crate) struct Journal {
    next: Mutex<HashMap<String, u64>>,
    disorder: AtomicU64,
}

impl Journal {
    /// The next of a source; each numbers its own from 0.
    pub(crate) fn note(&self, source: &str, number: u64) {
        let mut next = self.next.lock();
        let expected = next.entry(source.to_owned()).or_default();
        if *expected != number {
            self.disorder.fetch_add(1, Ordering::Relaxed);
        }
        *expected = number + 1;
    }

    /// How many ran of all sources whose names begin so.
    pub(crate) fn ran(&self, begin: &str) -> u64 {
        let next = self.next.lock();
        let own = next
            .iter()
            .filter(|(source, _)| source.split('-').next() == Some(begin));
        own.map(|(_, ran)| ran).sum()
    }

    pub(crate) fn disorder(&self) -> u64 {
        self.disorder.load(Ordering::Relaxed)
    }
}

/// All that the host does.
#[derive(Clone)]
pub(crate) struct Handler(Arc<State>);

struct State {
    journal: Arc<Journal>,
    /// Closed once work may begin.
    gate: Semaphore,
    relays: AtomicU64,
    relays_failed: AtomicU64,
}

impl Handler {
    /// One that waits until it is opened.
    pub(crate) fn new() -> Self {
        Self(Arc::new(State {
            journal: Arc::default(),
            gate: Semaphore::new(0),
            relays: AtomicU64::new(0),
            relays_failed: AtomicU64::new(0),
        }))
    }

    pub(crate) fn open(&self) {
        self.0.gate.close();
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.0.journal
    }

    async fn work(&self) {
        // Fails where it is closed: go on.
        let _ = self.0.gate.acquire().await;
        tokio::time::sleep(WORK).await;
    }
}

/// The Spot that is flooded: with its gate held, it awaits a send to a Spot of its host and one to a Spot of a peer.
struct Busy(Handler);

impl Busy {
    async fn create(context: object::Context, request: Note) -> Result<Created<Self, Note>, HandlerError> {
        let handler = context.shared::<Handler>().cloned();
        let handler = handler.ok_or_else(|| HandlerError::new("no handler is shared"))?;
        Ok(Created::Accepted(Self(handler), request))
    }

    async fn note(&mut self, turn: &mut object::Turn<'_>, message: Note) -> Result<(), HandlerError> {
        let state = &self.0.0;
        state.journal.note(&message.text, message.number);
        self.0.work().await;
        let number = state.relays.fetch_add(1, Ordering::Relaxed);
        let note = || Note {
            text: "relay".into(),
            number,
            ..Note::default()
        };
        for of in [NEAR, FAR] {
            if let Err(error) = object::send(turn, of, note()).await {
                tell_error("a relay", &error);
                state.relays_failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    async fn ask(&mut self, _: &mut object::Turn<'_>, request: Note) -> Result<Note, HandlerError> {
        self.0.work().await;
        Ok(request)
    }
}

fn busy() -> rt::SpotFactory {
    rt::SpotFactory::user(BUSY, Busy::create)
        .send(NOTE, Busy::note)
        .request(ASK, Busy::ask)
        .relocation(rt::Relocation::Recreate)
        .build()
}

fn tell_error(what: &str, error: &CallError) {
    eprintln!("{what} failed: {error}");
}

impl OrdersHandler for Handler {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.work().await;
        Ok(request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.0.journal.note(&message.text, message.number);
        self.work().await;
        Ok(())
    }
}

impl DeskHandler for Handler {
    async fn ask(&self, _: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &NodeContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.0.journal.note(&message.text, message.number);
        self.work().await;
        Ok(())
    }
}

/// What was seen of the host while it ran.
#[derive(Default)]
struct Watched {
    most: AtomicU64,
    /// Resident memory, twice a second.
    memory: Mutex<Vec<u64>>,
}

/// The host; with a store, it has Spots, and what is flooded is one of them.
pub(crate) async fn run(store: Option<&str>) {
    let handler = Handler::new();
    let (orders, desk) = (orders_server(handler.clone()), desk_server(handler.clone()));
    let host = Host::builder().max_queued_jobs(PERMITS);
    let host = match store {
        Some(store) => host.location_store(store).location_timing(object::patient()),
        None => host,
    };
    let host = host.shared(handler.clone()).shared(handler.0.journal.clone());
    let host = host.mesh("shop", |mesh| {
        let mesh = mesh.rid_prefix("s").listen("tcp://127.0.0.1:0").client(STOCK);
        match store {
            Some(_) => mesh.object_server(|objects| objects.spot(busy()).spot(object::notes(NEAR))),
            None => mesh.serve(orders.dispatch_limit(1)).serve_node(desk.dispatch_limit(1)),
        }
    });
    let host = host.start().await.unwrap();
    if store.is_some() {
        object::create(&host, BUSY).await;
        object::create(&host, NEAR).await;
    }
    let rid = host.mesh("shop").unwrap().rid();
    tell(&format!("endpoint {}", host.mesh("shop").unwrap().endpoint()));
    tell(&format!("rid {rid}"));
    told("flood").await;
    let target = match store {
        Some(_) => Target::busy(&host),
        None => Target::Desk(desk_client(&host, &SHOP, rid)),
    };

    let stop = Arc::new(AtomicBool::new(false));
    let (sent, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut own = JoinSet::new();
    for sender in 0..SENDERS {
        let (target, stop, sent, refused) = (target.clone(), stop.clone(), sent.clone(), refused.clone());
        own.spawn(async move {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                let text = format!("own-{sender}");
                let note = Note {
                    text,
                    number,
                    ..Note::default()
                };
                match target.tell(note).await {
                    Ok(()) => number += 1,
                    Err(error) => {
                        tell_error("an own send", &error);
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            sent.fetch_add(number, Ordering::Relaxed);
        });
    }
    let watched = Arc::new(Watched::default());
    let watching = tokio::spawn(watch(host.clone(), watched.clone()));
    let asking = tokio::spawn(ask(host.clone(), stop.clone()));

    // Who is paused sends no more: whether what was on its way fills the rest is chance.
    let is_paused = || host.status().jobs.paused;
    while !is_paused() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (begin, before, paused) = (Instant::now(), on_cpu(), host.status().jobs.transitions);
    tokio::time::sleep(HELD).await;
    let (took, cpu) = (begin.elapsed(), on_cpu() - before);
    assert!(
        is_paused() && host.status().jobs.transitions == paused,
        "it is paused all the while"
    );
    tell(&format!(
        "held cpu_percent={}",
        100 * cpu.as_micros() / took.as_micros()
    ));
    handler.open();
    let (begin, before) = (Instant::now(), on_cpu());

    told("stop").await;
    let (took, cpu) = (begin.elapsed(), on_cpu() - before);
    stop.store(true, Ordering::Relaxed);
    while let Some(end) = own.join_next().await {
        end.unwrap();
    }
    let (answered, unanswered, slowest) = asking.await.unwrap();
    let (sent, refused) = (sent.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
    tell(&format!(
        "own sent={sent} refused={refused} answered={answered} unanswered={unanswered} slowest_ms={slowest}"
    ));
    let state = &handler.0;
    // A turn that has begun holds no permit, and may still be about to send on.
    let goes_on = || {
        let noted: u64 = ["a", "b", "own"].map(|source| state.journal.ran(source)).iter().sum();
        store.is_some() && state.journal.ran("relay") + state.relays_failed.load(Ordering::Relaxed) < noted
    };
    while host.status().jobs.in_use() > 0 || state.journal.ran("own") < sent || goes_on() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.shutdown().await.unwrap();
    watching.abort();
    let jobs = host.status().jobs;
    let memory = watched.memory.lock().clone();
    let ran = |source| state.journal.ran(source);
    tell(&format!(
        "host ran_a={} ran_b={} ran_own={} ran_relay={} disorder={} relays_failed={} most={} pauses={} paused_ms={} left={} \
         rss_third={} rss_end={} cpu_percent={}",
        ran("a"),
        ran("b"),
        ran("own"),
        ran("relay"),
        state.journal.disorder(),
        state.relays_failed.load(Ordering::Relaxed),
        watched.most.load(Ordering::Relaxed),
        jobs.transitions.div_ceil(2),
        jobs.paused_total.as_millis(),
        jobs.in_use(),
        memory.get(memory.len() / 3).copied().unwrap_or_default(),
        memory.last().copied().unwrap_or_default(),
        100 * cpu.as_micros() / took.as_micros(),
    ));
}

async fn watch(host: Host, watched: Arc<Watched>) {
    for look in 0_u64.. {
        watched
            .most
            .fetch_max(host.status().jobs.in_use().into(), Ordering::Relaxed);
        if look.is_multiple_of(100) {
            watched.memory.lock().push(resident());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Asks the light peer all the while: answered, not answered, and how long that took at most, in milliseconds.
async fn ask(host: Host, stop: Arc<AtomicBool>) -> (u64, u64, u128) {
    let (mut answered, mut unanswered, mut slowest) = (0, 0, 0);
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        match stock_client(&host)
            .ask(Note::default())
            .timeout(Duration::from_secs(20))
            .await
        {
            Ok(_) => answered += 1,
            // The peer has not come yet, or has gone.
            Err(error) if error.kind() == Some(ErrorKind::NotFound) => {}
            Err(error) => {
                tell_error("a request to the light peer", &error);
                unanswered += 1;
            }
        }
        slowest = begin.elapsed().as_millis().max(slowest);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (answered, unanswered, slowest)
}
