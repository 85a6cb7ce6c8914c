//! Work that handlers hand off: computing on threads of a bounded pool, waiting in tasks. It must not know who waits for
//! it, or how.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Yields;
use crate::clock;
use crate::error::{CallError, Error, ErrorKind, HandlerError};

mod cpu;
mod io;

pub(crate) use cpu::CpuPool;
pub(crate) use io::IoPool;

type Outcome<T> = Result<T, Error>;
type Waiting<T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send>>;

/// Work that is not submitted yet. `.await` submits it, once, and so does a turn's `yield_for`.
#[must_use = "work does nothing until it is awaited"]
pub struct WorkCall<T> {
    submit: Box<dyn FnOnce() -> Outcome<Submitted<T>> + Send>,
    timeout: Option<Duration>,
    refused: Option<CallError>,
}

/// Work that was accepted; dropping it withdraws it, or lets nobody hear of its end.
struct Submitted<T> {
    outcome: oneshot::Receiver<Outcome<T>>,
    /// Ends a task whose outcome nobody waits for.
    _task: Option<AbortOnDrop>,
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Send + 'static> WorkCall<T> {
    fn new(submit: impl FnOnce() -> Outcome<Submitted<T>> + Send + 'static) -> Self {
        Self {
            submit: Box::new(submit),
            timeout: None,
            refused: None,
        }
    }

    /// Ends the wait after this long, 1 ms to `i32::MAX` ms. What then still computes, computes for nobody.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        match clock::timeout("timeout", timeout) {
            Ok(timeout) => self.timeout = Some(timeout),
            Err(error) => self.refused = Some(error.into()),
        }
        self
    }
}

impl<T: Send + 'static> IntoFuture for WorkCall<T> {
    type Output = Result<T, CallError>;
    type IntoFuture = Waiting<T>;

    fn into_future(self) -> Waiting<T> {
        Box::pin(async move {
            if let Some(refused) = self.refused {
                return Err(refused);
            }
            let deadline = self.timeout.map(|timeout| clock::now() + timeout);
            let submitted = (self.submit)()?;
            Ok(wait(submitted, deadline).await?)
        })
    }
}

async fn wait<T>(mut submitted: Submitted<T>, deadline: Option<Instant>) -> Outcome<T> {
    let outcome = &mut submitted.outcome;
    let outcome = match deadline {
        None => outcome.await,
        Some(deadline) => match tokio::time::timeout_at(deadline, outcome).await {
            Ok(outcome) => outcome,
            Err(_) => return Err(Error::unknown(ErrorKind::DeadlineExceeded, "the work took too long")),
        },
    };
    // Its sender is gone without a word only where the work was thrown away with its pool.
    outcome.unwrap_or_else(|_| {
        Err(Error::unknown(
            ErrorKind::ShuttingDown,
            "the host stopped before the work ended",
        ))
    })
}

impl<T: Send + 'static> Yields for WorkCall<T> {
    type Reply = T;
}

impl<T> fmt::Debug for WorkCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkCall")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What is said of work that failed or panicked.
fn failed(result: Result<HandlerError, String>) -> Error {
    let text = match result {
        Ok(error) => format!("the work failed: {error}"),
        Err(panic) => format!("the work panicked: {panic}"),
    };
    Error::unknown(ErrorKind::InternalFailure, text)
}
