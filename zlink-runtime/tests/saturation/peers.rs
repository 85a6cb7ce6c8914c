//! The peers of the host: two that send as much as they can, and one that wants little.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zlink_generated::contract::{Note, ORDERS, StockHandler, orders_client, stock_server};
use zlink_runtime::error::ErrorKind;
use zlink_runtime::prelude::*;

use crate::SENDERS;
use crate::host::Journal;
use crate::object::{self, FAR, Target};
use crate::process::{tell, told};

/// Bytes of a message: few of them fill what links and the system hold, so that what is under way at the end is worked off
/// soon.
const BODY: usize = 30_000;
/// Bytes that a link of a peer holds.
const BUDGET: usize = 64 << 10;
/// How long a request of the light peer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one may take that is meant to expire: less than the line in front of it needs.
const HASTE: Duration = Duration::from_millis(20);

/// Does what the host asks for, and keeps account of it.
#[derive(Clone, Default)]
struct Stock(Arc<Journal>);

impl StockHandler for Stock {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.0.note(&message.text, message.number);
        Ok(())
    }
}

/// A host of a peer that has linked with the one under load, and what it calls there.
async fn linked(name: &str, [endpoint, rid]: [&str; 2], store: Option<&str>, stock: Option<Stock>) -> (Host, Target) {
    let host = match store {
        Some(store) => Host::builder().location_store(store).location_timing(object::patient()),
        None => Host::builder(),
    };
    let host = host.shared(stock.as_ref().map(|stock| stock.0.clone()).unwrap_or_default());
    let host = host.mesh("shop", |mesh| {
        let mesh = mesh
            .rid_prefix(name)
            .listen("tcp://127.0.0.1:0")
            .connect(endpoint)
            .link_budget(BUDGET);
        let mesh = match (store, &stock) {
            (Some(_), Some(_)) => mesh.object_server(|objects| objects.spot(object::notes(FAR))),
            (Some(_), None) => mesh.object_client(),
            (None, _) => mesh.client(ORDERS),
        };
        match stock {
            Some(stock) => mesh.serve(stock_server(stock).dispatch_limit(1)),
            None => mesh,
        }
    });
    let host = host.start().await.unwrap();
    let rid = Rid::new(rid).unwrap();
    host.mesh("shop").unwrap().linked(&rid, PATIENCE).await.unwrap();
    let target = match store {
        Some(_) => Target::busy(&host),
        None => Target::Orders(orders_client(&host)),
    };
    (host, target)
}

/// Sends from many tasks, each of which numbers its own, until it is told to stop; then waits until all was taken.
pub(crate) async fn flood(name: &str, to: [&str; 2], store: Option<&str>) {
    let (host, target) = linked(name, to, store, None).await;
    let (sent, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (target, stop) = (target.clone(), stop.clone());
        let (sent, refused, text) = (sent.clone(), refused.clone(), format!("{name}-{sender}"));
        senders.spawn(async move {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                let note = Note {
                    text: text.clone(),
                    number,
                    body: vec![0; BODY],
                };
                match target.tell(note).await {
                    Ok(()) => number += 1,
                    Err(error) => {
                        eprintln!("a send failed: {error}");
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            sent.fetch_add(number, Ordering::Relaxed);
        });
    }
    tell("ready");
    told("stop").await;
    stop.store(true, Ordering::Relaxed);
    while let Some(end) = senders.join_next().await {
        end.unwrap();
    }
    // Behind all that was sent: once it is answered, everything before it has arrived.
    target.ask(Duration::from_secs(300)).await.unwrap();
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    tell(&format!("flood sent={} refused={}", count(&sent), count(&refused)));
    host.shutdown().await.unwrap();
}

/// Asks for something now and then, and in between for something that cannot come in time.
pub(crate) async fn light(to: [&str; 2], store: Option<&str>) {
    let stock = Stock::default();
    let (host, target) = linked("light", to, store, Some(stock.clone())).await;
    if store.is_some() {
        object::create(&host, FAR).await;
    }
    tell("ready");
    let stop = tokio::spawn(told("stop"));
    let (mut served, mut failed, mut slowest) = (0, 0, Duration::ZERO);
    let (mut expired, mut on_time, mut other_ends, mut late) = (0, 0, 0, Duration::ZERO);
    while !stop.is_finished() {
        let begin = Instant::now();
        match target.ask(PATIENCE).await {
            Ok(_) => served += 1,
            Err(error) => {
                eprintln!("the light peer: {error}");
                failed += 1;
            }
        }
        slowest = slowest.max(begin.elapsed());
        let begin = Instant::now();
        match target.ask(HASTE).await {
            Ok(_) => on_time += 1,
            Err(error) if error.kind() == Some(ErrorKind::DeadlineExceeded) => expired += 1,
            Err(error) => {
                eprintln!("the light peer, in haste: {error}");
                other_ends += 1;
            }
        }
        late = late.max(begin.elapsed().saturating_sub(HASTE));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tell(&format!(
        "light served={served} failed={failed} slowest_ms={} expired={expired} on_time={on_time} other_ends={other_ends} \
         late_ms={}",
        slowest.as_millis(),
        late.as_millis()
    ));
    told("end").await;
    tell(&format!(
        "relayed ran={} disorder={}",
        stock.0.ran("relay"),
        stock.0.disorder()
    ));
    host.shutdown().await.unwrap();
}
