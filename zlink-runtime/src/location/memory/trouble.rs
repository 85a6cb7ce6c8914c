//! A handle with which something goes wrong: before an operation, after it, and which state it is shown.

use parking_lot::Mutex;

use super::faults::{Fault, Faults, Operation};
use super::table::Table;
use crate::location::{Revision, StoreError};

pub(super) struct Trouble {
    faults: Faults,
    /// The newest state that was shown or told: nothing older may be shown any more.
    seen: Mutex<Option<Revision>>,
}

impl Trouble {
    pub(super) fn new(faults: Faults, table: &Table) -> Self {
        let seen = Mutex::new(table.last());
        Self { faults, seen }
    }

    /// Begins an operation: waits, fails, or tells what goes wrong inside or afterwards.
    pub(super) async fn before(&self, operation: Operation) -> Result<Option<Fault>, StoreError> {
        let fault = self.faults.meet(operation);
        match fault {
            Some(Fault::Delay(span)) => tokio::time::sleep(span).await,
            Some(Fault::Error) => return Err(StoreError::Unavailable("a test wanted it so".to_owned())),
            Some(Fault::LateWrite(_)) if operation != Operation::Write => return Err(lost(operation)),
            _ => {}
        }
        Ok(fault)
    }

    /// Ends an operation that was done.
    pub(super) async fn after(&self, operation: Operation, fault: Option<Fault>) -> Result<(), StoreError> {
        match fault {
            Some(Fault::DelayAnswer(span)) => tokio::time::sleep(span).await,
            Some(Fault::LostAnswer) => return Err(lost(operation)),
            _ => {}
        }
        Ok(())
    }

    /// The handle has learned of the present state.
    pub(super) fn saw(&self, table: &Table) {
        *self.seen.lock() = table.last();
    }

    /// The older state that a read is shown: drawn from those that are left, `None` for the present one.
    pub(super) fn state_to_show(&self, table: &Table, fault: Option<Fault>) -> Option<Option<Revision>> {
        let mut seen = self.seen.lock();
        let older: Vec<_> = match fault {
            Some(Fault::Stale) => table.states(*seen).collect(),
            _ => Vec::new(),
        };
        let drawn = usize::try_from(self.faults.below(older.len() as u64)).unwrap_or(0);
        let shown = older.get(drawn).copied();
        *seen = shown.unwrap_or_else(|| table.last());
        shown
    }
}

/// The error of an operation whose answer was lost.
pub(super) fn lost(operation: Operation) -> StoreError {
    let text = "the answer was lost, a test wanted it so".to_owned();
    if operation.changes() {
        StoreError::Unknown(text)
    } else {
        StoreError::Unavailable(text)
    }
}
