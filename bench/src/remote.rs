//! Remote requests and sends between two processes over loopback TCP: one load, whoever carries it.

pub mod grpc;
mod raw;
mod rpc;
mod spot;
mod zlink;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use zlink_runtime::Host;

use crate::Failure;
use crate::process::{Mode, Server, Side};
use crate::sample::{Effort, emit};

/// A way to call another process.
pub trait Peer: 'static {
    const NAME: &'static str;
    type Caller: Caller;

    /// Listens on a free loopback port, tells where, and echoes until it is dropped.
    fn serve(tell: impl FnOnce(String) + Send) -> impl Future<Output = Result<(), Failure>>;

    /// Connects, once; all callers share that connection.
    fn connect(address: &str) -> impl Future<Output = Result<Self::Caller, Failure>>;
}

/// A caller of one connection. Clones are for other tasks.
pub trait Caller: Clone + Send + 'static {
    /// Sends a fresh copy of the payload and returns the length of what comes back.
    fn call(&mut self, payload: &'static [u8]) -> impl Future<Output = Result<usize, Failure>> + Send;
}

/// A caller that can also send without a reply.
pub trait OneWay: Caller {
    /// Sends a fresh copy of the payload.
    fn put(&mut self, payload: &'static [u8]) -> impl Future<Output = Result<(), Failure>> + Send;

    /// How many the server has taken since it started.
    fn taken(&mut self) -> impl Future<Output = Result<u64, Failure>> + Send;
}

/// Runs the serving process of `peer`.
pub fn serve(peer: &str, mode: Mode) -> Result<(), Failure> {
    match peer {
        "raw" => serve_as::<raw::Raw>(mode),
        "tonic" => serve_as::<grpc::Grpc>(mode),
        "tarpc" => serve_as::<rpc::Rpc>(mode),
        "zlink" => serve_as::<zlink::ClientServer>(mode),
        "mesh" => serve_as::<zlink::Mesh>(mode),
        "spot" => serve_as::<spot::Spot>(mode),
        _ => Err(format!("no peer {peer:?}").into()),
    }
}

fn serve_as<P: Peer>(mode: Mode) -> Result<(), Failure> {
    let runtime = mode.enter(Side::Server)?;
    runtime.block_on(async {
        let mut input = tokio::io::stdin();
        let mut nothing = [0];
        tokio::select! {
            ended = P::serve(|address| println!("{address}")) => ended,
            _ = input.read(&mut nothing) => Ok(()),
        }
    })?;
    // The thread that reads the input would keep the runtime.
    runtime.shutdown_background();
    Ok(())
}

/// Runs the calling process of `peer`.
pub fn drive(peer: &str, mode: Mode, part: &str, effort: Effort) -> Result<(), Failure> {
    match (part, peer) {
        ("remote", "raw") => requests::<raw::Raw>(peer, mode, effort),
        ("remote", "tonic") => requests::<grpc::Grpc>(peer, mode, effort),
        ("remote", "tarpc") => requests::<rpc::Rpc>(peer, mode, effort),
        ("remote", "zlink") => requests::<zlink::ClientServer>(peer, mode, effort),
        ("remote", "mesh") => requests::<zlink::Mesh>(peer, mode, effort),
        ("remote", "spot") => requests::<spot::Spot>(peer, mode, effort),
        ("oneway", "raw") => sends::<raw::Raw>(peer, mode, effort),
        ("oneway", "zlink") => sends::<zlink::ClientServer>(peer, mode, effort),
        ("oneway", "mesh") => sends::<zlink::Mesh>(peer, mode, effort),
        ("oneway", "spot") => sends::<spot::Spot>(peer, mode, effort),
        _ => Err(format!("no {part:?} of peer {peer:?}").into()),
    }
}

/// Both sides in one thread of one process, so that a tool can count every instruction of a request, or of a one-way
/// send.
pub fn in_process(part: &str, count: u64, tasks: u64) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match part {
            "remote" | "oneway" => load(zlink::client_server_pair().await?, part == "oneway", count, tasks).await,
            "mesh-request" | "mesh-send" => load(zlink::mesh_pair().await?, part == "mesh-send", count, tasks).await,
            "far-request" | "far-send" => load(spot::pair().await?, part == "far-send", count, tasks).await,
            _ => Err(format!("no part {part:?}").into()),
        }
    })
}

async fn load<C: OneWay>((_server, caller): (Host, C), sends: bool, count: u64, tasks: u64) -> Result<(), Failure> {
    if sends {
        return all_taken(&caller, count / tasks, tasks).await;
    }
    let payload = payload(64);
    let calls = (0..tasks).map(|_| {
        let mut caller = caller.clone();
        tokio::spawn(async move {
            for _ in 0..count / tasks {
                caller.call(payload).await?;
            }
            Ok::<_, Failure>(())
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await??;
    }
    Ok(())
}

/// Bytes of a payload, and what they are called.
const SIZES: [(&str, usize); 2] = [("64 B", 64), ("1 KiB", 1024)];
/// Requests in flight.
const IN_FLIGHT: [usize; 3] = [1, 64, 1024];
/// A request that takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(5);

fn payload(bytes: usize) -> &'static [u8] {
    vec![0x5a; bytes].leak()
}

fn requests<P: Peer>(peer: &str, mode: Mode, effort: Effort) -> Result<(), Failure> {
    let server = Server::start(peer, mode)?;
    let runtime = mode.enter(Side::Caller)?;
    let ended = runtime.block_on(async {
        let caller = P::connect(&server.address).await?;
        for in_flight in IN_FLIGHT {
            for (size, bytes) in SIZES {
                // What has no budget is left to the full set.
                if !effort.full && bytes != 64 && in_flight != 64 {
                    continue;
                }
                let window = window(&caller, &server, in_flight, payload(bytes), effort).await?;
                let table = format!("request {size} {} x{in_flight}", mode.name());
                if in_flight == 1 {
                    emit(&table, P::NAME, "p50 µs", window.at_percent(50));
                    emit(&table, P::NAME, "p99 µs", window.at_percent(99));
                } else {
                    emit(&table, P::NAME, "k/s", window.per_second / 1e3);
                }
                emit(&table, P::NAME, "CPU s/M", window.cpu_per_million);
            }
        }
        Ok(())
    });
    runtime.shutdown_background();
    ended
}

/// What one stretch of time gave.
struct Window {
    per_second: f64,
    cpu_per_million: f64,
    /// Rising; only where one request is in flight.
    nanoseconds: Vec<u64>,
}

impl Window {
    /// Microseconds that so many percent of the requests stayed below.
    fn at_percent(&self, percent: usize) -> f64 {
        let at = (self.nanoseconds.len() * percent / 100).min(self.nanoseconds.len() - 1);
        self.nanoseconds[at] as f64 / 1e3
    }
}

/// What the tasks of a window and the one that measures share.
#[derive(Default)]
struct Signals {
    measuring: AtomicBool,
    stop: AtomicBool,
}

/// A counter that only its task writes, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

async fn window<C: Caller>(
    caller: &C,
    server: &Server,
    in_flight: usize,
    payload: &'static [u8],
    effort: Effort,
) -> Result<Window, Failure> {
    let signals = Arc::new(Signals::default());
    let counters: Vec<Arc<Counter>> = (0..in_flight).map(|_| Arc::default()).collect();
    let sum = || counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum::<u64>();
    let tasks: Vec<_> = counters
        .iter()
        .map(|counter| {
            let (mut caller, signals, counter) = (caller.clone(), signals.clone(), counter.clone());
            let timed = in_flight == 1;
            tokio::spawn(async move {
                let mut nanoseconds = Vec::new();
                let mut done = 0;
                while !signals.stop.load(Ordering::Relaxed) {
                    let begin = timed.then(Instant::now);
                    let length = caller.call(payload).await?;
                    if length != payload.len() {
                        return Err(format!("{length} bytes came back of {}", payload.len()).into());
                    }
                    if let Some(begin) = begin
                        && signals.measuring.load(Ordering::Relaxed)
                    {
                        nanoseconds.push(u64::try_from(begin.elapsed().as_nanos())?);
                    }
                    done += 1;
                    counter.0.store(done, Ordering::Relaxed);
                }
                Ok::<_, Failure>(nanoseconds)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(effort.pick(150, 50))).await;
    signals.measuring.store(true, Ordering::Relaxed);
    let (begin, cpu, count) = (Instant::now(), server.cpu()?, sum());
    tokio::time::sleep(Duration::from_millis(effort.pick(800, 160))).await;
    let (took, cpu, count) = (begin.elapsed(), server.cpu()? - cpu, sum() - count);
    signals.stop.store(true, Ordering::Relaxed);
    let mut nanoseconds = Vec::new();
    for task in tasks {
        nanoseconds.extend(tokio::time::timeout(PATIENCE, task).await.map_err(|_| "a request got no reply")???);
    }
    if count == 0 {
        return Err("no reply came".into());
    }
    nanoseconds.sort_unstable();
    let per_second = count as f64 / took.as_secs_f64();
    let cpu_per_million = cpu.as_secs_f64() * 1e6 / count as f64;
    Ok(Window { per_second, cpu_per_million, nanoseconds })
}

/// Tasks that send at once.
const SENDERS: u64 = 64;

fn sends<P: Peer<Caller: OneWay>>(peer: &str, mode: Mode, effort: Effort) -> Result<(), Failure> {
    let server = Server::start(peer, mode)?;
    let runtime = mode.enter(Side::Caller)?;
    let ended = runtime.block_on(async {
        let caller = P::connect(&server.address).await?;
        let each = effort.pick(60_000, 15_000);
        all_taken(&caller, each / 8, SENDERS).await?;
        let (begin, cpu) = (Instant::now(), server.cpu()?);
        all_taken(&caller, each, SENDERS).await?;
        let (took, cpu) = (begin.elapsed(), server.cpu()? - cpu);
        let count = (each * SENDERS) as f64;
        let table = format!("send 64 B {}", mode.name());
        emit(&table, P::NAME, "M/s", count / 1e6 / took.as_secs_f64());
        emit(&table, P::NAME, "CPU s/M", cpu.as_secs_f64() * 1e6 / count);
        Ok(())
    });
    runtime.shutdown_background();
    ended
}

/// Each of the senders sends so many; done when the server has taken every one.
async fn all_taken<C: OneWay>(caller: &C, each: u64, senders: u64) -> Result<(), Failure> {
    let payload = payload(64);
    let mut counting = caller.clone();
    let goal = counting.taken().await? + each * senders;
    let tasks: Vec<_> = (0..senders)
        .map(|_| {
            let mut caller = caller.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    caller.put(payload).await?;
                }
                Ok::<_, Failure>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let begin = Instant::now();
    loop {
        let taken = counting.taken().await?;
        if taken == goal {
            return Ok(());
        }
        if taken > goal || begin.elapsed() > PATIENCE {
            return Err(format!("the server took {taken} sends in place of {goal}").into());
        }
        tokio::task::yield_now().await;
    }
}
