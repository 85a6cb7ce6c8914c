//! Who need not wait in line passes nobody that it comes behind: what was taken from a line is with its node before its caller
//! passes by any line.
//!
//! It must not know what is handed on. It knows no runtime, so that it can be model-checked.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};

/// One per host.
pub(super) struct Passing {
    /// Held while what was taken from a line goes to its node.
    handing_on: Mutex<()>,
    /// Whether it is held.
    hands_on: AtomicBool,
}

/// What is handed on is with its node, or will never be.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Passing {
    pub(super) fn new() -> Self {
        Self {
            handing_on: Mutex::new(()),
            hands_on: AtomicBool::new(false),
        }
    }

    /// Hands on what waited, as `work` does: first it tells the caller, who goes on then.
    pub(super) fn hand_on<T>(&self, work: impl FnOnce() -> T) -> T {
        let order = lock(&self.handing_on);
        self.hands_on.store(true, Ordering::Release);
        let done = Done(&self.hands_on);
        let result = work();
        drop(done);
        drop(order);
        result
    }

    /// Whether nothing is on its way that a caller may have heard of.
    pub(super) fn is_free(&self) -> bool {
        !self.hands_on.load(Ordering::Acquire)
    }
}

#[cfg(test)]
#[cfg(zlink_loom)]
mod model {
    //! `scripts/model loom loom_`

    use std::sync::Arc;

    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    use super::Passing;

    /// Two lines hand on at once, each a record whose caller then passes by where it may.
    ///
    /// REQ: EX-04
    #[test]
    fn loom_who_passes_by_comes_behind_what_it_sent_before() {
        loom::model(|| {
            let passing = Arc::new(Passing::new());
            let flags = || [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
            let (told, there) = (flags(), flags());
            let lines: Vec<_> = told
                .iter()
                .cloned()
                .zip(there.iter().cloned())
                .map(|(told, there)| {
                    let passing = passing.clone();
                    thread::spawn(move || {
                        passing.hand_on(|| {
                            told.store(true, Ordering::Release);
                            there.store(true, Ordering::Relaxed);
                        });
                    })
                })
                .collect();
            for (told, there) in told.iter().zip(&there) {
                if told.load(Ordering::Acquire) && passing.is_free() {
                    assert!(there.load(Ordering::Relaxed), "it passes its own record");
                }
            }
            for line in lines {
                line.join().unwrap();
            }
        });
    }
}
