//! One host's way to a store that others share: it can be cut, hang, and lose or delay what comes back.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use zlink_runtime::location::{
    Batch, BoxFuture, Key, LocationStore, MemoryStore, ReadMany, Scan, Scanned, StoreError, Written,
};

/// What the way does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Whole,
    /// Everything fails at once.
    Cut,
    /// Nothing is answered until the mode changes; then it fails.
    Hangs,
    /// Each write is applied, and its first answer lost.
    LosesAnswers,
    /// Each write is answered as unknown once, and applied only when the next operation begins.
    DelaysWrites,
}

#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: MemoryStore,
    mode: watch::Sender<Mode>,
    /// The write whose answer was lost last.
    lost: Mutex<Option<Batch>>,
    /// A write under way.
    late: Mutex<Option<Batch>>,
    counts: Mutex<Counts>,
}

/// What went over the line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) writes: usize,
    pub(crate) reads: usize,
    /// Writes whose answers were lost.
    pub(crate) lost: usize,
}

impl Line {
    pub(crate) fn new(store: &MemoryStore) -> Self {
        Self(Arc::new(Inner {
            store: store.clone(),
            mode: watch::Sender::new(Mode::Whole),
            lost: Mutex::new(None),
            late: Mutex::new(None),
            counts: Mutex::default(),
        }))
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.0.mode.send_replace(mode);
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.0.counts.lock()
    }

    async fn pass(&self) -> Result<Mode, StoreError> {
        let late = self.0.late.lock().take();
        if let Some(batch) = late {
            // Whether it applies is its own affair.
            let _ = self.0.store.write(&batch).await?;
        }
        let mode = *self.0.mode.borrow();
        let down = || StoreError::Unavailable("the line is cut".into());
        match mode {
            Mode::Cut => Err(down()),
            Mode::Hangs => {
                let mut mode = self.0.mode.subscribe();
                let _ = mode.wait_for(|mode| *mode != Mode::Hangs).await;
                Err(down())
            }
            mode => Ok(mode),
        }
    }

    /// Whether the answer to `batch` gets lost: the first one does.
    fn loses(&self, batch: &Batch) -> bool {
        let mut lost = self.0.lost.lock();
        if lost.as_ref() == Some(batch) {
            return false;
        }
        *lost = Some(batch.clone());
        self.0.counts.lock().lost += 1;
        true
    }
}

impl LocationStore for Line {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        Box::pin(async move {
            self.0.counts.lock().reads += 1;
            self.pass().await?;
            self.0.store.read_many(keys).await
        })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            self.0.counts.lock().writes += 1;
            let unknown = || StoreError::Unknown("the answer is lost".into());
            match self.pass().await? {
                Mode::LosesAnswers => {
                    let lost = self.loses(batch);
                    let written = self.0.store.write(batch).await?;
                    if lost { Err(unknown()) } else { Ok(written) }
                }
                Mode::DelaysWrites if self.loses(batch) => {
                    *self.0.late.lock() = Some(batch.clone());
                    Err(unknown())
                }
                _ => self.0.store.write(batch).await,
            }
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        Box::pin(async move {
            self.0.counts.lock().reads += 1;
            self.pass().await?;
            self.0.store.scan(scan).await
        })
    }
}
