//! Objects with a state within one process: telling them, asking them, making them. One load, whoever has the objects.

mod kameo;
mod mpsc;
mod ractor;
mod zlink;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use crate::Failure;
use crate::memory::Memory;
use crate::sample::{Effort, emit};
use crate::schema::Move;

/// What happens to messages that an object has not come to yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mailbox {
    /// As many wait as come.
    Open,
    /// Whoever tells it more waits. Only zlink counts those of all objects of a host together.
    Bounded(usize),
}

/// Somebody's objects.
pub trait Peer: Sized + 'static {
    const NAME: &'static str;
    type Object: Object;

    /// What objects with such mailboxes need; nothing where there are none.
    fn start(mailbox: Mailbox) -> impl Future<Output = Result<Option<Self>, Failure>>;

    /// Makes so many, each ready to be asked.
    fn make(&self, count: usize) -> impl Future<Output = Result<Vec<Self::Object>, Failure>>;

    /// Ends what `start` began, once all objects have ended.
    fn end(self) -> impl Future<Output = Result<(), Failure>> {
        std::future::ready(Ok(()))
    }
}

/// An object's address.
pub trait Object: Clone + Send + Sync + 'static {
    fn tell(&self, message: Move) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns how many messages the object has had with this one.
    fn ask(&self, message: Move) -> impl Future<Output = Result<u64, Failure>> + Send;

    /// Ends the object, where it does not end with its last address.
    fn end(self) {}
}

/// Senders that are told apart.
const SENDERS: u32 = 4;
/// No sender whose messages are numbered.
const NOBODY: u32 = u32::MAX;

/// The state of every object; a handler applies a message to it, and nothing else.
#[derive(Debug, Default)]
pub struct Body {
    moves: u64,
    at: [f32; 3],
    last: [u32; SENDERS as usize],
    disordered: bool,
}

impl Body {
    /// Applies a message. Returns how many there were; far too many once one was out of its order.
    pub fn apply(&mut self, message: &Move) -> u64 {
        for (at, to) in self.at.iter_mut().zip([message.x, message.y, message.z]) {
            *at += to;
        }
        if let Some(last) = self.last.get_mut(message.sender as usize) {
            self.disordered |= message.number != *last + 1;
            *last = message.number;
        }
        self.moves += 1;
        if self.disordered { u64::MAX } else { self.moves }
    }
}

fn message(sender: u32, number: u32) -> Move {
    Move { entity: 7, x: 1.0, y: 2.0, z: 3.0, sender, number }
}

/// One round of what `peer` does on `threads` threads.
pub fn measure(peer: &str, part: &str, threads: &str, effort: Effort) -> Result<(), Failure> {
    let (runtime, name) = match threads {
        "1" => (Builder::new_current_thread().enable_all().build()?, "one thread"),
        "2" => (Builder::new_multi_thread().worker_threads(2).enable_all().build()?, "two threads"),
        _ => return Err(format!("not on {threads} threads").into()),
    };
    match (part, peer) {
        ("messages", "mpsc") => messages::<mpsc::Mpsc>(&runtime, name, effort),
        ("messages", "kameo") => messages::<kameo::Kameo>(&runtime, name, effort),
        ("messages", "ractor") => messages::<ractor::Ractor>(&runtime, name, effort),
        ("messages", "zlink") => messages::<zlink::Zlink>(&runtime, name, effort),
        ("make", "mpsc") => runtime.block_on(making::<mpsc::Mpsc>(effort)),
        ("make", "kameo") => runtime.block_on(making::<kameo::Kameo>(effort)),
        ("make", "ractor") => runtime.block_on(making::<ractor::Ractor>(effort)),
        ("make", "zlink") => runtime.block_on(making::<zlink::Zlink>(effort)),
        _ => Err(format!("no {part:?} of peer {peer:?}").into()),
    }
}

fn messages<P: Peer>(runtime: &Runtime, threads: &str, effort: Effort) -> Result<(), Failure> {
    let total = effort.pick(1_000_000, 100_000);
    let bounded = Mailbox::Bounded(1_024);
    let cases = [
        ("tell 1 → 1", 1, 1, Mailbox::Open),
        ("tell 1 → 1, at most 1,024 wait", 1, 1, bounded),
        ("tell 4 → 1", SENDERS, 1, Mailbox::Open),
        ("tell 1 → 1,000", 1, 1_000, Mailbox::Open),
    ];
    for (case, senders, objects, mailbox) in cases {
        // On one thread, several senders are one that takes turns.
        if senders > 1 && threads == "one thread" {
            continue;
        }
        runtime.block_on(tells::<P>(senders, objects, mailbox, total / 10))?;
        if let Some(rate) = runtime.block_on(tells::<P>(senders, objects, mailbox, total))? {
            emit(&format!("local {case}, {threads}"), P::NAME, "M/s", rate / 1e6);
        }
    }
    let window = Duration::from_millis(effort.pick(400, 100));
    for in_flight in [1, 64] {
        let asks = runtime.block_on(asks::<P>(in_flight, window))?;
        let table = format!("local request x{in_flight}, {threads}");
        if in_flight == 1 {
            emit(&table, P::NAME, "p50 ns", asks.at_percent(50));
            emit(&table, P::NAME, "p99 ns", asks.at_percent(99));
        }
        emit(&table, P::NAME, "M/s", asks.per_second / 1e6);
    }
    Ok(())
}

/// A sender yields once in so many, so that on one thread the objects get to run at all.
const BURST: u32 = 256;

/// How many messages a second are told and handled, in all; nothing where there are no such mailboxes.
async fn tells<P: Peer>(senders: u32, objects: u32, mailbox: Mailbox, total: u32) -> Result<Option<f64>, Failure> {
    let Some(home) = P::start(mailbox).await? else { return Ok(None) };
    let told: Arc<[P::Object]> = home.make(objects as usize).await?.into();
    for object in told.iter() {
        object.ask(message(NOBODY, 0)).await?;
    }
    let each = total / senders;
    let begin = Instant::now();
    let tasks: Vec<_> = (0..senders)
        .map(|sender| {
            let told = told.clone();
            tokio::spawn(async move {
                for (number, object) in (0..each).zip(told.iter().cycle()) {
                    object.tell(message(sender, number / objects + 1)).await?;
                    if mailbox == Mailbox::Open && number % BURST == BURST - 1 {
                        tokio::task::yield_now().await;
                    }
                }
                Ok::<_, Failure>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    for (at, object) in (0..objects).zip(told.iter()) {
        let of_each = each / objects + u32::from(at < each % objects);
        let messages = u64::from(senders * of_each);
        // What comes behind them was asked after them, and the question before.
        let handled = object.ask(message(NOBODY, 0)).await?;
        if handled != messages + 2 {
            return Err(format!("{handled} messages in place of {} in order", messages + 2).into());
        }
    }
    let took = begin.elapsed();
    told.iter().cloned().for_each(Object::end);
    home.end().await?;
    Ok(Some(f64::from(each * senders) / took.as_secs_f64()))
}

struct Asks {
    per_second: f64,
    /// Rising; only where one request is in flight.
    nanoseconds: Vec<u32>,
}

impl Asks {
    fn at_percent(&self, percent: usize) -> f64 {
        let at = self.nanoseconds.len() * percent / 100;
        self.nanoseconds.get(at).copied().map_or(f64::NAN, f64::from)
    }
}

/// Keeps so many requests to one object going.
async fn asks<P: Peer>(in_flight: usize, window: Duration) -> Result<Asks, Failure> {
    let home = P::start(Mailbox::Open).await?.ok_or("there are no open mailboxes")?;
    let object = home.make(1).await?.pop().ok_or("no object was made")?;
    let warm = Instant::now();
    while warm.elapsed() < window / 4 {
        object.ask(message(NOBODY, 0)).await?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let tasks: Vec<_> = (0..in_flight)
        .map(|_| {
            let (object, stop, timed) = (object.clone(), stop.clone(), in_flight == 1);
            tokio::spawn(async move {
                let (mut count, mut nanoseconds, mut before) = (0_u64, Vec::new(), Instant::now());
                while !stop.load(Ordering::Relaxed) {
                    object.ask(message(NOBODY, 0)).await?;
                    count += 1;
                    // A timer might not get to run beside requests that never wait.
                    if timed || count.is_multiple_of(16) {
                        let now = Instant::now();
                        if timed {
                            nanoseconds.push(u32::try_from((now - before).as_nanos())?);
                        }
                        before = now;
                        if now - begin > window {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
                Ok::<_, Failure>((count, nanoseconds))
            })
        })
        .collect();
    let (mut count, mut nanoseconds) = (0, Vec::new());
    for task in tasks {
        let (more, times) = task.await??;
        count += more;
        nanoseconds.extend(times);
    }
    let per_second = count as f64 / begin.elapsed().as_secs_f64();
    nanoseconds.sort_unstable();
    object.end();
    home.end().await?;
    Ok(Asks { per_second, nanoseconds })
}

/// What an object costs that has been made and does nothing.
async fn making<P: Peer>(effort: Effort) -> Result<(), Failure> {
    let count = effort.pick(100_000, 20_000);
    let home = P::start(Mailbox::Open).await?.ok_or("there are no open mailboxes")?;
    let first = home.make(100).await?;
    let (before, begin) = (Memory::now()?, Instant::now());
    let objects = home.make(count).await?;
    let took = begin.elapsed();
    let grown = before.grown()?;
    emit("local make", P::NAME, "ns", took.as_nanos() as f64 / count as f64);
    emit("local make", P::NAME, "bytes each", grown.resident / count as f64);
    if let Some(object) = objects.last()
        && object.ask(message(NOBODY, 0)).await? != 1
    {
        return Err("the last object has had messages".into());
    }
    first.into_iter().chain(objects).for_each(Object::end);
    home.end().await
}
