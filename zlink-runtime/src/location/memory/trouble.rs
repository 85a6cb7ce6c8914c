//! A handle with which something goes wrong, and which state it is shown.

use parking_lot::Mutex;

use super::faults::{Fault, Faults};
use super::table::Table;
use crate::location::Revision;

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

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
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
