//! How many creations and closes each node has under way here. They hold no permit meanwhile, since what they wait for may
//! need some; so they have a bound of their own. It must not know what they do.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::id::{MeshName, Rid};
use crate::limit::CONTROLS;

/// Whose they are: a node of a mesh.
type From = (MeshName, Rid);

/// The counts of one host. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls(Arc<Mutex<HashMap<From, usize>>>);

/// One that is under way, until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    controls: Controls,
    from: From,
}

impl Controls {
    /// Counts one more of `from`, where it may have more.
    pub(super) fn begin(&self, from: From) -> Option<UnderWay> {
        let mut counts = self.0.lock();
        let count = counts.entry(from.clone()).or_default();
        if *count >= CONTROLS {
            return None;
        }
        *count += 1;
        let controls = self.clone();
        Some(UnderWay { controls, from })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = self.controls.0.lock();
        if let Some(count) = counts.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.from);
            }
        }
    }
}
