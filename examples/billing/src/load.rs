//! The load: charges at a steady rate, and a note for the books beside every tenth. It judges nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use zlink_runtime::error::CallError;
use zlink_runtime::prelude::*;

use crate::billing::{self, AuditNote, BillingClient, Charge};
use crate::evidence::Phase;

/// How long a charge may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
/// How much later than that a busy machine may notice.
pub(crate) const TOLERANCE: Duration = Duration::from_secs(2);

const TICK: Duration = Duration::from_millis(5);
const CHARGES_PER_TICK: u64 = 10;

/// A charge that ended: with the name of the server that took it, or with an error.
pub(crate) struct Ended {
    pub(crate) order: u64,
    pub(crate) phase: Phase,
    pub(crate) took: Duration,
    pub(crate) end: Result<String, Failure>,
}

/// What an error says beside its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Failure {
    pub(crate) kind: String,
    /// Nobody ran it and nobody will; else somebody may have.
    pub(crate) not_executed: bool,
}

/// A note, and whether the client could send it. Nobody answers.
pub(crate) struct Sent {
    pub(crate) order: u64,
    pub(crate) phase: Phase,
    pub(crate) taken: bool,
}

/// All that the client saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) fired: u64,
    pub(crate) charges: Vec<Ended>,
    pub(crate) notes: Vec<Sent>,
    /// The most charges under way at once, by phase.
    pub(crate) at_once: [usize; Phase::ALL.len()],
}

/// A load that runs.
pub(crate) struct Load {
    phase: watch::Sender<Option<Phase>>,
    fired: Arc<AtomicU64>,
    running: JoinHandle<Seen>,
}

impl Load {
    pub(crate) fn start(host: &Host) -> Self {
        let (phase, now) = watch::channel(Some(Phase::Calm));
        let fired = Arc::new(AtomicU64::new(0));
        Self {
            phase,
            running: tokio::spawn(fire(billing::client(host), now, fired.clone())),
            fired,
        }
    }

    /// What is fired from here on belongs to `phase`.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(Some(phase));
    }

    /// How many charges were fired; the next has this number.
    pub(crate) fn fired(&self) -> u64 {
        self.fired.load(Ordering::SeqCst)
    }

    /// Fires no more, and waits for all that is under way as long as it may take.
    pub(crate) async fn stop(self) -> crate::Result<Seen> {
        self.phase.send_replace(None);
        Ok(self.running.await?)
    }
}

async fn fire(client: BillingClient, now: watch::Receiver<Option<Phase>>, fired: Arc<AtomicU64>) -> Seen {
    let mut seen = Seen::default();
    let (mut charges, mut notes) = (JoinSet::new(), JoinSet::new());
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        let Some(phase) = *now.borrow() else { break };
        for _ in 0..CHARGES_PER_TICK {
            let order = fired.fetch_add(1, Ordering::SeqCst);
            charges.spawn(charge(client.clone(), phase, order));
            if order.is_multiple_of(10) {
                notes.spawn(audit(client.clone(), phase, order));
            }
        }
        let most = &mut seen.at_once[phase as usize];
        *most = charges.len().max(*most);
        seen.charges
            .extend(std::iter::from_fn(|| charges.try_join_next()).flatten());
        seen.notes
            .extend(std::iter::from_fn(|| notes.try_join_next()).flatten());
    }
    seen.fired = fired.load(Ordering::SeqCst);
    // What has not ended by then never will: it is missing in what was seen, and the report says so.
    let _ = tokio::time::timeout(DEADLINE + TOLERANCE, async {
        while let Some(ended) = charges.join_next().await {
            seen.charges.extend(ended);
        }
        while let Some(sent) = notes.join_next().await {
            seen.notes.extend(sent);
        }
    })
    .await;
    seen
}

async fn charge(client: BillingClient, phase: Phase, order: u64) -> Ended {
    let begin = Instant::now();
    let end = client.charge(Charge { order, cents: 990 }).timeout(DEADLINE).await;
    let failure = |error: CallError| Failure {
        kind: error.kind().map_or("Argument".to_owned(), |kind| kind.to_string()),
        not_executed: error.execution() == Execution::NotExecuted,
    };
    Ended {
        order,
        phase,
        took: begin.elapsed(),
        end: end.map(|receipt| receipt.server).map_err(failure),
    }
}

async fn audit(client: BillingClient, phase: Phase, order: u64) -> Sent {
    let taken = client.audit(AuditNote { order }).await.is_ok();
    Sent { order, phase, taken }
}
