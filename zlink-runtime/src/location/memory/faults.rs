//! What a test lets go wrong with a handle on a store, by script or drawn from a seed. It must not know the data.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::location::StoreError;

/// What a fault is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `read` and `read_many`.
    Read,
    /// `write`.
    Write,
    /// `scan`.
    Scan,
    /// `get` of a blob.
    BlobRead,
    /// `put`, `renew` and `delete` of a blob.
    BlobWrite,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 5] = [
        Operation::Read,
        Operation::Write,
        Operation::Scan,
        Operation::BlobRead,
        Operation::BlobWrite,
    ];

    /// Whether a lost answer leaves open what came of it.
    const fn changes(self) -> bool {
        matches!(self, Operation::Write | Operation::BlobWrite)
    }

    /// The error where its answer was lost.
    pub(crate) fn lost(self) -> StoreError {
        let text = "the answer was lost, a test wanted it so".to_owned();
        if self.changes() {
            StoreError::Unknown(text)
        } else {
            StoreError::Unavailable(text)
        }
    }
}

/// What goes wrong with one operation. Spans are tokio's time, which tests may pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is done only after that span, and then answered.
    Delay(Duration),
    /// It is done at once, and answered after that span.
    DelayAnswer(Duration),
    /// It is not done; the store is unavailable.
    Error,
    /// It is not done; the store is found to have lost records.
    Lost,
    /// It is done, but the answer is lost: its outcome is unknown, or, where it changes nothing, the store seems
    /// unavailable.
    LostAnswer,
    /// The answer is lost at once, and a `write` is done only after that span. Other operations are not done at all.
    LateWrite(Duration),
    /// A read or scan shows an older state, as far back as this handle's earlier answers, and the 64 batches that are
    /// remembered, allow. Other operations go well.
    Stale,
}

impl Fault {
    /// The same with its span, if it has one, drawn from zero up to what was given.
    fn drawn(self, random: &mut Random) -> Self {
        let mut draw = |span: Duration| {
            let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            Duration::from_nanos(random.below(nanos.saturating_add(1)))
        };
        match self {
            Fault::Delay(span) => Fault::Delay(draw(span)),
            Fault::DelayAnswer(span) => Fault::DelayAnswer(draw(span)),
            Fault::LateWrite(span) => Fault::LateWrite(draw(span)),
            Fault::Error | Fault::Lost | Fault::LostAnswer | Fault::Stale => self,
        }
    }
}

/// What goes wrong with one handle on a store: a [`MemoryStore`](super::MemoryStore), or any other within a
/// `testing::Faulty`. Clones steer the same handle. The same
/// seed and the same operations in the same order meet the same faults.
#[derive(Clone)]
pub struct Faults(Arc<Mutex<State>>);

struct State {
    random: Random,
    plans: [Plan; Operation::ALL.len()],
}

/// What is planned for one kind of operation.
#[derive(Default)]
struct Plan {
    next: VecDeque<Option<Fault>>,
    every: Option<Fault>,
    /// Each with its chance in a thousand.
    sometimes: Vec<(Fault, u32)>,
    met: u64,
}

impl Faults {
    /// None, until they are set. What is drawn comes from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: Random(seed),
            plans: Default::default(),
        })))
    }

    /// Appends to the script of `operation`: its next one that has no fault in the script meets `fault`, or none.
    /// The script goes before all else.
    pub fn next(&self, operation: Operation, fault: impl Into<Option<Fault>>) {
        self.plan(operation, |plan| plan.next.push_back(fault.into()));
    }

    /// Lets every `operation` meet `fault`, until [`Faults::heal`].
    pub fn every(&self, operation: Operation, fault: Fault) {
        self.plan(operation, |plan| plan.every = Some(fault));
    }

    /// Makes the store unavailable for every operation, until [`Faults::heal`].
    pub fn cut(&self) {
        for operation in Operation::ALL {
            self.every(operation, Fault::Error);
        }
    }

    /// Lets `operation` meet `fault` in `per_mille` of 1,000 cases, with its span drawn anew each time from zero up
    /// to the one given. Where several are set, the first that is drawn counts.
    pub fn sometimes(&self, operation: Operation, fault: Fault, per_mille: u32) {
        self.plan(operation, |plan| plan.sometimes.push((fault, per_mille)));
    }

    /// Forgets all that was set; operations under way keep what they have met.
    pub fn heal(&self) {
        for operation in Operation::ALL {
            self.plan(operation, |plan| {
                let met = plan.met;
                *plan = Plan { met, ..Plan::default() };
            });
        }
    }

    /// How many such operations were begun through the handle, with or without a fault.
    #[must_use]
    pub fn begun(&self, operation: Operation) -> u64 {
        self.plan(operation, |plan| plan.met)
    }

    /// Begins an operation: waits, fails, or tells what goes wrong inside or afterwards.
    pub(crate) async fn before(&self, operation: Operation) -> Result<Option<Fault>, StoreError> {
        let fault = self.meet(operation);
        match fault {
            Some(Fault::Delay(span)) => tokio::time::sleep(span).await,
            Some(Fault::Error) => return Err(StoreError::Unavailable("a test wanted it so".to_owned())),
            Some(Fault::Lost) => return Err(StoreError::Lost("a test wanted it so".to_owned())),
            Some(Fault::LateWrite(_)) if operation != Operation::Write => return Err(operation.lost()),
            _ => {}
        }
        Ok(fault)
    }

    /// Ends an operation that was done.
    pub(crate) async fn after(&self, operation: Operation, fault: Option<Fault>) -> Result<(), StoreError> {
        match fault {
            Some(Fault::DelayAnswer(span)) => tokio::time::sleep(span).await,
            Some(Fault::LostAnswer) => return Err(operation.lost()),
            _ => {}
        }
        Ok(())
    }

    /// What the operation that begins now meets.
    fn meet(&self, operation: Operation) -> Option<Fault> {
        let State { random, plans } = &mut *self.0.lock();
        let plan = &mut plans[operation as usize];
        plan.met += 1;
        if let Some(scripted) = plan.next.pop_front() {
            return scripted;
        }
        if plan.every.is_some() {
            return plan.every;
        }
        let drawn = plan
            .sometimes
            .iter()
            .find(|(_, chance)| random.below(1000) < u64::from(*chance));
        drawn.copied().map(|(fault, _)| fault.drawn(random))
    }

    /// A number below `bound`, or 0.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.0.lock().random.below(bound)
    }

    fn plan<T>(&self, operation: Operation, act: impl FnOnce(&mut Plan) -> T) -> T {
        act(&mut self.0.lock().plans[operation as usize])
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(bound).unwrap_or(0)
    }
}
