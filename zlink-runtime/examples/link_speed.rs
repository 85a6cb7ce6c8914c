//! What a link costs beside raw TCP that joins its records alike: one way, and echoed with 1, 64 and 1,024 in flight.
//!
//! `cargo run --release -p zlink-runtime --example link_speed`; with `taskset -c 0` in front, both sides share one
//! processor. Each side is one thread with a single-threaded runtime. Rows are medians of interleaved rounds; the
//! ratio to raw TCP of the same run is what counts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement may stop at the first surprise"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of a measurement"
)]

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zlink_runtime::id::{Generation, Rid};
use zlink_runtime::permit::{HostPermits, Permit};
use zlink_runtime::transport::{
    Acceptor, CloseReason, Endpoint, Flow, Lane, Lanes, Link, LinkConfig, LinkTransport, Offer, Record, Refused, Sink,
    SocketType, Transport,
};

/// Where replies find who waits for them.
#[derive(Default)]
struct Waiting {
    slots: Vec<Mutex<(bool, Option<Waker>)>>,
    arrived: AtomicU64,
    expected: AtomicU64,
    all: Mutex<Option<Waker>>,
}

impl Waiting {
    fn new(count: usize) -> Self {
        Self {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            ..Self::default()
        }
    }

    fn reply(&self, record: &[u8]) {
        let id = u32::from_le_bytes(*record[2..].first_chunk().unwrap()) as usize;
        let mut slot = self.slots[id].lock();
        slot.0 = true;
        let waker = slot.1.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn answered(&self, id: usize) {
        poll_fn(|cx| {
            let mut slot = self.slots[id].lock();
            if std::mem::take(&mut slot.0) {
                return Poll::Ready(());
            }
            slot.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn count(&self) {
        if self.arrived.fetch_add(1, Ordering::Relaxed) + 1 == self.expected.load(Ordering::Relaxed)
            && let Some(waker) = self.all.lock().take()
        {
            waker.wake();
        }
    }

    async fn all(&self) {
        poll_fn(|cx| {
            *self.all.lock() = Some(cx.waker().clone());
            if self.arrived.load(Ordering::Relaxed) >= self.expected.load(Ordering::Relaxed) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// One side's way to send.
trait Wire: Send + Sync + 'static {
    fn send(&self, record: &[u8]) -> impl Future<Output = ()> + Send;
}

fn request(id: usize, size: usize) -> Vec<u8> {
    let mut record = vec![1, 16];
    record.extend((id as u32).to_le_bytes());
    record.resize(size.max(6), 0);
    record
}

async fn echo(
    wire: &Arc<impl Wire>,
    waiting: &Arc<Waiting>,
    in_flight: usize,
    size: usize,
    time: Duration,
) -> (f64, f64) {
    let end = Instant::now() + time;
    let tasks: Vec<_> = (0..in_flight)
        .map(|id| {
            let (wire, waiting) = (wire.clone(), waiting.clone());
            tokio::spawn(async move {
                let record = request(id, size);
                let (mut done, mut times) = (0u64, Vec::new());
                loop {
                    let start = Instant::now();
                    if start >= end {
                        return (done, times);
                    }
                    wire.send(&record).await;
                    waiting.answered(id).await;
                    done += 1;
                    if in_flight == 1 {
                        times.push(start.elapsed().as_secs_f64() * 1e6);
                    }
                }
            })
        })
        .collect();
    let start = Instant::now();
    let (mut done, mut times) = (0, Vec::new());
    for task in tasks {
        let (count, more) = task.await.unwrap();
        done += count;
        times.extend(more);
    }
    times.sort_by(f64::total_cmp);
    (
        done as f64 / start.elapsed().as_secs_f64(),
        times.get(times.len() / 2).copied().unwrap_or_default(),
    )
}

async fn one_way(wire: &Arc<impl Wire>, far: &Waiting, size: usize, count: u64) -> f64 {
    far.arrived.store(0, Ordering::Relaxed);
    far.expected.store(count, Ordering::Relaxed);
    let record = request(0, size);
    let start = Instant::now();
    for n in 0..count {
        wire.send(&record).await;
        if n % 256 == 255 {
            tokio::task::yield_now().await;
        }
    }
    far.all().await;
    count as f64 / start.elapsed().as_secs_f64()
}

// ---- raw TCP

#[derive(Default)]
struct Outgoing {
    bytes: BytesMut,
    records: usize,
    writer: Option<Waker>,
    sender: Option<Waker>,
}

/// What both raw sides send through: one buffer, one writer.
#[derive(Default)]
struct Raw(Mutex<Outgoing>);

impl Wire for Raw {
    async fn send(&self, record: &[u8]) {
        poll_fn(|cx| {
            let mut out = self.0.lock();
            if out.bytes.len() > 4 << 20 {
                out.sender = Some(cx.waker().clone());
                return Poll::Pending;
            }
            out.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
            out.bytes.extend_from_slice(record);
            out.records += 1;
            let writer = out.writer.take();
            drop(out);
            if let Some(writer) = writer {
                writer.wake();
            }
            Poll::Ready(())
        })
        .await;
    }
}

async fn raw_write(raw: Arc<Raw>, mut write: tokio::net::tcp::OwnedWriteHalf) {
    let mut batched = false;
    let mut bytes = BytesMut::new();
    loop {
        let records = poll_fn(|cx| {
            let mut out = raw.0.lock();
            if out.bytes.is_empty() {
                out.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(out.records)
        })
        .await;
        if records > 1 || batched {
            tokio::task::yield_now().await;
        }
        let sender = {
            let mut out = raw.0.lock();
            std::mem::swap(&mut bytes, &mut out.bytes);
            batched = std::mem::take(&mut out.records) > 1;
            out.sender.take()
        };
        if let Some(sender) = sender {
            sender.wake();
        }
        if write.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
    }
}

async fn raw_read(mut read: tokio::net::tcp::OwnedReadHalf, mut on: impl FnMut(Bytes)) {
    let mut bytes = BytesMut::new();
    loop {
        bytes.reserve(64 << 10);
        if !read.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
            return;
        }
        while let Some(len) = bytes.first_chunk().map(|len| u32::from_le_bytes(*len) as usize) {
            if bytes.len() < 4 + len {
                break;
            }
            bytes.advance(4);
            on(bytes.split_to(len).freeze());
        }
    }
}

fn raw_side(stream: TcpStream, on: impl Fn(&Raw, Bytes) + Send + 'static) -> Arc<Raw> {
    stream.set_nodelay(true).unwrap();
    let (read, write) = stream.into_split();
    let raw = Arc::new(Raw::default());
    tokio::spawn(raw_write(raw.clone(), write));
    let replies = raw.clone();
    tokio::spawn(raw_read(read, move |record| on(&replies, record)));
    raw
}

/// Puts a reply without waiting, as an echo does.
fn put(raw: &Raw, record: &[u8]) {
    let mut out = raw.0.lock();
    out.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
    out.bytes.extend_from_slice(record);
    out.records += 1;
    let writer = out.writer.take();
    drop(out);
    if let Some(writer) = writer {
        writer.wake();
    }
}

// ---- links

struct LinkWire(Arc<dyn Link>);

impl Wire for LinkWire {
    async fn send(&self, record: &[u8]) {
        match self.0.try_send(
            Lane::Data,
            Record {
                head: &record[..6],
                payload: &record[6..],
            },
        ) {
            Ok(()) => {}
            Err(Refused::Full) => self.0.send(Lane::Data, record.to_vec()).await.unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

struct Replies(Arc<Waiting>);

impl Sink for Replies {
    fn record(&self, _: Lane, record: Bytes, _: Option<Permit>, _: tokio::time::Instant) {
        self.0.reply(&record);
    }
    fn closed(&self, _: &CloseReason) {}
}

/// The far side: counts, or echoes.
struct Far {
    link: Mutex<Option<Arc<dyn Link>>>,
    waiting: Arc<Waiting>,
    echoes: bool,
}

impl Sink for Far {
    fn record(&self, _: Lane, record: Bytes, permit: Option<Permit>, _: tokio::time::Instant) {
        drop(permit);
        if self.echoes {
            let link = self.link.lock();
            link.as_ref()
                .unwrap()
                .try_send(
                    Lane::Completion,
                    Record {
                        head: &record,
                        payload: &[],
                    },
                )
                .unwrap();
        } else {
            self.waiting.count();
        }
    }
    fn closed(&self, _: &CloseReason) {
        *self.link.lock() = None;
    }
}

struct Accept {
    waiting: Arc<Waiting>,
    echoes: bool,
}

impl Acceptor for Accept {
    fn accepted(&self, link: Arc<dyn Link>) {
        let far = Far {
            link: Mutex::new(Some(link.clone())),
            waiting: self.waiting.clone(),
            echoes: self.echoes,
        };
        link.start(Arc::new(far));
        link.admit(1 << 24);
    }
}

fn offer(identity: &str) -> Offer {
    Offer {
        socket: SocketType::Router,
        identity: Rid::new(identity).unwrap(),
        generation: Generation::random(),
        lanes: if std::env::var_os("ONE_LANE").is_some() {
            Lanes::One
        } else {
            Lanes::Two
        },
        max_record: 1 << 24,
        budget: 4 << 20,
        receive_budget: None,
        permits: HostPermits::new(4096),
        flow: Flow::default(),
    }
}

fn transport() -> LinkTransport {
    LinkTransport::new(LinkConfig::default())
}

// ---- runs

#[derive(Clone, Copy)]
enum Row {
    Echo { in_flight: usize, size: usize },
    OneWay { size: usize, count: u64 },
}

fn on_thread<F: Future<Output = ()> + 'static>(make: impl FnOnce() -> F + Send + 'static) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(make());
    });
}

fn run(row: Row, raw: bool, time: Duration) -> (f64, f64, f64) {
    let (echoes, in_flight) = match row {
        Row::Echo { in_flight, .. } => (true, in_flight),
        Row::OneWay { .. } => (false, 1),
    };
    let far = Arc::new(Waiting::new(0));
    let near = Arc::new(Waiting::new(in_flight));
    let (tell, bound) = std::sync::mpsc::channel();
    let counted = far.clone();
    on_thread(move || async move {
        if raw {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap().to_string()).unwrap();
            let stream = listener.accept().await.unwrap().0;
            raw_side(
                stream,
                move |raw, record| if echoes { put(raw, &record) } else { counted.count() },
            );
            return std::future::pending().await;
        }
        let endpoint: Endpoint = "tcp://127.0.0.1:0".parse().unwrap();
        let accept = Accept {
            waiting: counted,
            echoes,
        };
        let listener = transport()
            .bind(&endpoint, offer("far"), Arc::new(accept))
            .await
            .unwrap();
        tell.send(listener.endpoint().to_string()).unwrap();
        std::future::pending::<()>().await;
    });
    let address = bound.recv().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let cpu = cpu();
    let (rate, p50, done) = runtime.block_on(async {
        if raw {
            let replies = near.clone();
            let stream = TcpStream::connect(address).await.unwrap();
            let wire = raw_side(stream, move |_, record| replies.reply(&record));
            measure(row, wire, &near, &far, time).await
        } else {
            let link = transport()
                .dial(&address.parse().unwrap(), offer("near"))
                .await
                .unwrap();
            link.start(Arc::new(Replies(near.clone())));
            link.admit(1 << 24);
            measure(row, Arc::new(LinkWire(link)), &near, &far, time).await
        }
    });
    (rate, p50, (self::cpu() - cpu) / done * 1e6)
}

async fn measure(
    row: Row,
    wire: Arc<impl Wire>,
    near: &Arc<Waiting>,
    far: &Waiting,
    time: Duration,
) -> (f64, f64, f64) {
    match row {
        Row::Echo { in_flight, size } => {
            let (rate, p50) = echo(&wire, near, in_flight, size, time).await;
            (rate, p50, rate * time.as_secs_f64())
        }
        Row::OneWay { size, count } => (one_way(&wire, far, size, count).await, 0.0, count as f64),
    }
}

/// Seconds of processor time of this process.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(5, |rounds| rounds.parse().unwrap());
    let only = std::env::args().nth(2).unwrap_or_default();
    let rows = [
        ("echo 64 B x1", Row::Echo { in_flight: 1, size: 64 }),
        (
            "echo 64 B x64",
            Row::Echo {
                in_flight: 64,
                size: 64,
            },
        ),
        (
            "echo 64 B x1024",
            Row::Echo {
                in_flight: 1024,
                size: 64,
            },
        ),
        (
            "echo 1 KiB x64",
            Row::Echo {
                in_flight: 64,
                size: 1024,
            },
        ),
        (
            "one-way 64 B",
            Row::OneWay {
                size: 64,
                count: 4_000_000,
            },
        ),
        (
            "one-way 1 KiB",
            Row::OneWay {
                size: 1024,
                count: 600_000,
            },
        ),
        (
            "one-way 64 KiB",
            Row::OneWay {
                size: 64 << 10,
                count: 20_000,
            },
        ),
    ];
    println!(
        "{:<16} {:>12} {:>12} {:>6} {:>9} {:>9} {:>8} {:>8}",
        "", "raw/s", "link/s", "ratio", "raw µs", "link µs", "raw cpu", "link cpu"
    );
    for (name, row) in rows.into_iter().filter(|(name, _)| name.ends_with(&only)) {
        let mut samples = [const { Vec::new() }; 6];
        for _ in 0..rounds {
            for (side, raw) in [true, false].into_iter().enumerate() {
                let (rate, p50, cpu) = run(row, raw, Duration::from_millis(700));
                for (at, value) in [rate, p50, cpu].into_iter().enumerate() {
                    samples[at * 2 + side].push(value);
                }
            }
        }
        let [raw, link, raw_p50, link_p50, raw_cpu, link_cpu] = samples.map(median);
        println!(
            "{name:<16} {raw:>12.0} {link:>12.0} {:>6.2} {raw_p50:>9.1} {link_p50:>9.1} {raw_cpu:>8.2} {link_cpu:>8.2}",
            link / raw
        );
    }
}
