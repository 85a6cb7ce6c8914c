//! Owners with a state that check the order of what they get: what a Spot costs before it is addressed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::execution::{
    Callback, Ended, Job, Mode, Owner, Resting, Scope, StateCell, StateTurn, States, Unit, Workers, YieldTurn,
};
use crate::permit::{Grant, HostPermits, Source};

/// Owners of one host, all idle at first.
pub struct Objects {
    /// Ends with the owners.
    _workers: Workers,
    permits: HostPermits,
    objects: Vec<Arc<Object>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    handled: AtomicU64,
    disordered: AtomicU64,
}

/// The state of one: the number of the last message, and who counts.
struct Last(u64, Arc<Counts>);

struct Object {
    owner: Owner<Message>,
    cell: StateCell<Last>,
}

struct Message {
    number: u64,
    to: Arc<Object>,
}

impl Job for Message {
    type Turn = StateTurn;

    fn start(self, _: Instant) -> Option<StateTurn> {
        let scope = Scope::new(&self.to.owner, Mode::SpotWide.offers(Callback::Unit, false));
        Some(StateTurn::given(self.to, scope, false, Check(self.number)))
    }

    fn abandon(self) {}
}

impl States<Last> for Arc<Object> {
    fn cell(&self) -> Option<&Resting<Last>> {
        self.cell.cell()
    }
}

/// A handler: it takes its turn's state and looks at the order.
struct Check(u64);

impl<'t> crate::execution::HandlerOf<'t, Last, Arc<Object>> for Check {
    type Running = std::future::Ready<Ended>;

    fn begin(self, turn: &'t mut YieldTurn<'t, Last>, _: &'t Arc<Object>) -> Self::Running {
        let last = turn.state();
        if self.0 != last.0 + 1 {
            last.1.disordered.fetch_add(1, Ordering::Relaxed);
        }
        last.0 = self.0;
        last.1.handled.fetch_add(1, Ordering::Release);
        std::future::ready(Ended::Well)
    }
}

impl Objects {
    /// So many owners, each under a gate of its own, on `workers` workers of the runtime that this is called on.
    #[must_use]
    pub fn new(count: usize, workers: usize, permits: u32) -> Self {
        let workers = Workers::spawn(&Handle::current(), workers);
        let counts = Arc::<Counts>::default();
        let objects = (0..count).map(|_| {
            let unit = Unit::on(&workers.handle(), Mode::SpotWide);
            Arc::new(Object {
                cell: StateCell::new(unit.lane(), Last(0, counts.clone())),
                owner: unit.lane().clone(),
            })
        });
        Self {
            objects: objects.collect(),
            _workers: workers,
            permits: HostPermits::new(permits),
            counts,
        }
    }

    /// Who sends to them.
    #[must_use]
    pub fn sender(&self) -> Sender {
        Sender {
            source: self.permits.source(),
            granted: None,
        }
    }

    /// Sends message `number`, from 1 without a gap, to one of them; waits while the host is full. It may keep up to
    /// `batch` permits for the messages that follow.
    ///
    /// # Errors
    /// Where it is not admitted.
    pub async fn send(&self, sender: &mut Sender, to: usize, number: u64, batch: u32) -> Result<(), &'static str> {
        let permit = loop {
            if let Some(permit) = sender.granted.as_mut().and_then(Grant::take) {
                break permit;
            }
            sender.granted = Some(
                sender
                    .source
                    .acquire(batch)
                    .await
                    .map_err(|_| "the permits are closed")?,
            );
        };
        let object = self.objects.get(to).ok_or("there is no such owner")?;
        let to = object.clone();
        let message = Message { number, to };
        object.owner.admit(message, permit).map_err(|_| "not admitted")?;
        Ok(())
    }

    /// Messages handled so far, and how many of them out of their order.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let handled = self.counts.handled.load(Ordering::Acquire);
        (handled, self.counts.disordered.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.objects.len())
    }
}

/// One that sends, with the permits it has.
pub struct Sender {
    source: Source,
    granted: Option<Grant>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}
