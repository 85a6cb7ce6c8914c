//! Work that waits: tasks of the host's runtime, of which so many may be under way. None of them takes a thread.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use super::{AbortOnDrop, Submitted, WorkCall, failed};
use crate::error::{Error, ErrorKind, HandlerError};
use crate::execution::guarded;
use crate::limit::IO_WORK;

/// The IO workers of one host. Clones are the same.
#[derive(Clone)]
pub(crate) struct IoPool {
    runtime: Handle,
    places: Arc<Semaphore>,
    limit: usize,
}

impl IoPool {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self::with(runtime, IO_WORK)
    }

    pub(crate) fn with(runtime: Handle, limit: usize) -> Self {
        Self {
            runtime,
            places: Arc::new(Semaphore::new(limit)),
            limit,
        }
    }

    /// Work that waits for something outside. Dropping the call ends it where it waits.
    ///
    /// # Errors
    /// Of the call: `CapacityExceeded` where 4,096 are under way, `DeadlineExceeded`, `InternalFailure` where it fails or
    /// panics, `ShuttingDown`.
    pub(crate) fn run<T, F>(&self, work: F) -> WorkCall<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, HandlerError>> + Send + 'static,
    {
        let pool = self.clone();
        WorkCall::new(move || {
            let Ok(place) = pool.places.clone().try_acquire_owned() else {
                let text = format!("{} pieces of IO work are under way already", pool.limit);
                return Err(Error::not_executed(ErrorKind::CapacityExceeded, text));
            };
            let (tell, outcome) = oneshot::channel();
            let mut work = Box::pin(work);
            let running = pool.runtime.spawn(async move {
                let _place = place;
                let polled = |cx: &mut Context<'_>| match guarded(|| work.as_mut().poll(cx)) {
                    Ok(poll) => poll.map_err(|error| failed(Ok(error))),
                    Err(panic) => Poll::Ready(Err(failed(Err(panic)))),
                };
                // A result that comes late is thrown away.
                drop(tell.send(poll_fn(polled).await));
            });
            let task = AbortOnDrop(running.abort_handle());
            Ok(Submitted {
                outcome,
                _task: Some(task),
            })
        })
    }
}

impl fmt::Debug for IoPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoPool")
            .field("free", &self.places.available_permits())
            .finish()
    }
}
