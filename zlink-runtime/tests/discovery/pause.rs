//! A host that was away: stopped by a signal, or by a clock that jumped. It starts no owned work before it has renewed
//! its lease and read again what it keeps in the store.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use zlink_generated::contract::STOCK;
use zlink_runtime::location::{
    Batch, BootClock, BoxFuture, Faults, Key, LocationStore, LocationTiming, MemoryStore, ReadMany, Scan, Scanned,
    StoreError, Written,
};
use zlink_runtime::prelude::*;

use crate::kit::line::Mode;
use crate::kit::{Line, SHORT, admits, caller, server, until};

/// REQ: LS-031, LS-032, LS-033
#[tokio::test]
async fn a_clock_that_jumps_past_the_deadline_closes_until_the_lease_is_renewed() {
    let millis = Arc::new(AtomicU64::new(1_000_000));
    let reads = millis.clone();
    let clock = BootClock::new(move || Duration::from_millis(reads.load(Ordering::Relaxed)));
    let line = Line::new(&MemoryStore::new());
    let host = Host::builder()
        .location_store(line.clone())
        .location_timing(SHORT)
        .boot_clock(clock);
    let host = host.start().await.unwrap();
    assert!(admits(&host));
    line.set(Mode::Hangs);
    let begun = line.counts().writes;
    let at = line.clone();
    until("a renewal to hang", move || at.counts().writes > begun).await;
    let usable = u64::try_from((SHORT.lease_ttl - SHORT.fencing_margin).as_millis()).unwrap();
    millis.fetch_add(usable - 1, Ordering::Relaxed);
    assert!(admits(&host), "its deadline counts from its last renewal");
    millis.fetch_add(1, Ordering::Relaxed);
    assert!(!admits(&host), "no timer has to notice");
    line.set(Mode::Whole);
    let at = host.clone();
    until("owned work again", move || admits(&at)).await;
    host.shutdown().await.unwrap();
}

/// A way to a store that notes which keys each batch changed that was applied.
#[derive(Debug)]
struct Noted(MemoryStore, Arc<Mutex<Vec<Vec<String>>>>);

impl LocationStore for Noted {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        self.0.read_many(keys)
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let written = self.0.write(batch).await?;
            if matches!(written, Written::Applied { .. }) {
                let keys = batch.mutations().iter().map(|mutation| mutation.key().to_string());
                self.1.lock().push(keys.collect());
            }
            Ok(written)
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        self.0.scan(scan)
    }
}

/// What it publishes waits, until it has its lease again and knows that what it keeps is its own.
///
/// REQ: LS-032
#[tokio::test(start_paused = true)]
async fn a_host_past_its_deadline_renews_first_and_publishes_then() {
    let (faults, written) = (Faults::new(1), Arc::default());
    let store = Noted(MemoryStore::new().with_faults(faults.clone()), Arc::clone(&written));
    let host = server(store, "s")
        .location_timing(LocationTiming::default())
        .boot_clock(BootClock::of_tokio());
    let host = host.start().await.unwrap();
    faults.cut();
    while admits(&host) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    written.lock().clear();
    host.mesh("shop").unwrap().set_weight(STOCK, 7).unwrap();
    // It is wanted in the store by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    faults.heal();
    let publishes = |keys: &Vec<String>| keys.iter().any(|key| key.starts_with("node/"));
    while !written.lock().iter().any(publishes) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let written = written.lock().clone();
    assert!(
        written[0].len() == 1 && written[0][0].starts_with("lease/"),
        "{written:?}"
    );
    host.shutdown().await.unwrap();
}

/// REQ: LS-032
#[tokio::test(start_paused = true)]
async fn without_renewals_owned_work_stops_after_the_ttl_less_the_margin() {
    let line = Line::new(&MemoryStore::new());
    let host = Host::builder()
        .location_store(line.clone())
        .boot_clock(BootClock::of_tokio());
    let host = host.start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(admits(&host));
    line.set(Mode::Cut);
    // It renewed at second 60.
    tokio::time::sleep(Duration::from_millis(8_500)).await;
    assert!(admits(&host));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!admits(&host));
    line.set(Mode::Whole);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(admits(&host));
    host.shutdown().await.unwrap();
}

/// Renewal has a thread of its own: whoever blocks the runtime does not lose the lease.
///
/// REQ: LS-031
#[tokio::test]
async fn a_handler_that_blocks_its_runtime_does_not_cost_the_host_its_lease() {
    let store = MemoryStore::new();
    let host = caller(store, "a").location_timing(SHORT).start().await.unwrap();
    let began = Instant::now();
    while began.elapsed() < 2 * SHORT.lease_ttl {
        assert!(admits(&host), "after {:?}", began.elapsed());
        // The only thread of this runtime.
        std::thread::sleep(Duration::from_millis(1));
    }
    host.shutdown().await.unwrap();
}

/// Not a test of its own: what the next one stops and lets go on. It obeys what it reads.
#[test]
fn child() {
    if std::env::var_os("ZLINK_PAUSED_CHILD").is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let line = Line::new(&MemoryStore::new());
    let host = caller(line.clone(), "child").location_timing(SHORT);
    let host = runtime.block_on(host.start()).unwrap();
    for order in std::io::stdin().lines() {
        match order.unwrap().as_str() {
            "hang" => line.set(Mode::Hangs),
            "go on" => line.set(Mode::Whole),
            _ => {}
        }
        println!("\nadmits={}", admits(&host));
    }
}

struct Paused {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Paused {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pause::child", "--nocapture"])
            .env("ZLINK_PAUSED_CHILD", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            orders: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    /// Gives an order, and returns whether the host admits owned work after it.
    async fn order(&mut self, order: &str) -> bool {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.unwrap();
        loop {
            let line = crate::kit::within(crate::kit::SOON, self.answers.next_line()).await;
            let line = line.expect("an answer in time").unwrap().expect("the child lives");
            if let Some(admits) = line.strip_prefix("admits=") {
                return admits == "true";
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    async fn until_it_admits(&mut self) {
        let watch = crate::kit::Stopwatch::start();
        while !self.order("tell").await {
            assert!(!watch.is_past(crate::kit::SOON), "not in time: owned work");
        }
    }
}

/// REQ: LS-033, LS-031
#[tokio::test]
async fn a_process_that_was_stopped_past_its_lease_starts_no_owned_work_before_it_has_renewed() {
    let mut child = Paused::start();
    child.until_it_admits().await;
    // Renewals hang, so that whatever is admitted later is admitted by what came before.
    assert!(child.order("hang").await);
    child.signal(Signal::STOP);
    let stopped = Instant::now();
    until("the lease to end", move || stopped.elapsed() > SHORT.lease_ttl).await;
    child.signal(Signal::CONT);
    for _ in 0..100 {
        assert!(!child.order("tell").await);
    }
    child.order("go on").await;
    child.until_it_admits().await;
}
