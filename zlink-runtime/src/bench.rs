//! What only the benchmarks of this repository may see; no part of the interface, behind the feature `bench`.
//!
//! It owns nothing: it shows single steps of a call that users have no name for.

use std::fmt;
use std::sync::Arc;

mod objects;
mod route;

use crate::id::Rid;
pub use objects::{Objects, Sender};
pub use route::Lookup;

use crate::routing::select::{Candidate, Selector};

/// Select-one over members with these weights.
pub struct Selection(Selector<Arc<usize>>);

impl Selection {
    /// Prepares the order.
    #[must_use]
    pub fn new(weights: &[u16]) -> Self {
        let candidates = weights.iter().enumerate().filter_map(|(number, weight)| {
            Some(Candidate {
                id: Rid::new(number.to_be_bytes()).ok()?,
                weight: *weight,
                target: Arc::new(number),
            })
        });
        let selector = Selector::new();
        selector.update(candidates.collect());
        Self(selector)
    }

    /// The number of the member that is next.
    #[must_use]
    pub fn pick(&self) -> Option<Arc<usize>> {
        self.0.pick()
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Selection")
    }
}
