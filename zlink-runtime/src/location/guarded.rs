//! A provider whose panics end in the operation that they come from: whoever uses a store goes on, as after any failure.
//!
//! It must not know what the operations are for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::execution::guarded;

use super::{Batch, BoxFuture, Key, LocationStore, Read, ReadMany, Scan, Scanned, StoreError, Written};

/// A provider, which may be somebody else's.
#[derive(Debug)]
pub(crate) struct Guarded(pub(crate) Arc<dyn LocationStore>);

/// One operation under way. What a provider begins, polls and drops is its own code, each time.
struct Operation<'a, T> {
    begun: Option<BoxFuture<'a, Result<T, StoreError>>>,
    failed: fn(String) -> StoreError,
}

impl<T> Future for Operation<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let failed = self.failed;
        let polled = match &mut self.begun {
            Some(begun) => guarded(|| begun.as_mut().poll(cx)),
            None => Err("its future was polled after its end".to_owned()),
        };
        polled.unwrap_or_else(|panic| Poll::Ready(Err(failed(told(&panic)))))
    }
}

impl<T> Drop for Operation<'_, T> {
    fn drop(&mut self) {
        let begun = self.begun.take();
        if let Err(panic) = guarded(|| drop(begun)) {
            tracing::warn!(target: "zlink::runtime", panic, "a provider panicked in the end of an operation");
        }
    }
}

fn told(panic: &str) -> String {
    format!("its provider panicked: {panic}")
}

fn run<'a, T: 'a>(
    begin: impl FnOnce() -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    failed: fn(String) -> StoreError,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move {
        let begun = guarded(begin).map_err(|panic| failed(told(&panic)))?;
        let begun = Some(begun);
        Operation { begun, failed }.await
    })
}

impl LocationStore for Guarded {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        run(|| self.0.read_many(keys), StoreError::Unavailable)
    }

    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Read, StoreError>> {
        run(|| self.0.read(key), StoreError::Unavailable)
    }

    /// Nobody knows how far it had come.
    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        run(|| self.0.write(batch), StoreError::Unknown)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        run(|| self.0.scan(scan), StoreError::Unavailable)
    }
}
