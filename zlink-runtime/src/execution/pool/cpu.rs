//! Threads for computing: a bounded number, a bounded queue before them, and none of them while nothing is to be done.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{Outcome, Submitted, WorkCall, failed};
use crate::error::{Error, ErrorKind, HandlerError};
use crate::execution::{finish, guarded, let_go};
use crate::limit::{CPU_IDLE, CPU_QUEUE};

/// The CPU workers of one host. Clones are the same pool; with the last one, its threads end.
#[derive(Clone)]
pub(crate) struct CpuPool(Arc<Handle>);

struct Handle(Arc<Inner>);

struct Inner {
    threads: usize,
    queue: usize,
    idle: Duration,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Box<dyn Work>>,
    threads: usize,
    /// Of these, those that run nothing: each takes one of what waits, once it comes to it.
    free: usize,
    closed: bool,
}

trait Work: Send {
    /// Whether anybody waits for it.
    fn is_wanted(&self) -> bool;

    fn run(self: Box<Self>);
}

struct Task<T, F> {
    work: F,
    tell: oneshot::Sender<Outcome<T>>,
}

impl<T, F> Work for Task<T, F>
where
    T: Send,
    F: FnOnce() -> Result<T, HandlerError> + Send,
{
    fn is_wanted(&self) -> bool {
        !self.tell.is_closed()
    }

    fn run(self: Box<Self>) {
        if !self.is_wanted() {
            return let_go(None, self);
        }
        let Self { work, tell } = *self;
        let result = match guarded(work) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failed(Ok(error))),
            Err(panic) => Err(failed(Err(panic))),
        };
        // A result that comes late is thrown away, by whoever drops it.
        let_go(None, tell.send(result));
    }
}

impl CpuPool {
    /// As many threads as the machine bears: twice its processors, at least two.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with((2 * processors).max(2), CPU_QUEUE, CPU_IDLE)
    }

    pub(crate) fn with(threads: usize, queue: usize, idle: Duration) -> Self {
        Self(Arc::new(Handle(Arc::new(Inner {
            threads: threads.max(1),
            queue,
            idle,
            state: Mutex::new(State::default()),
            work: Condvar::new(),
        }))))
    }

    /// Work that computes.
    ///
    /// # Errors
    /// Of the call: `CapacityExceeded` where 1,024 wait, `DeadlineExceeded`, `InternalFailure` where it fails or panics,
    /// `ShuttingDown`.
    pub(crate) fn run<T, F>(&self, work: F) -> WorkCall<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, HandlerError> + Send + 'static,
    {
        let pool = self.clone();
        WorkCall::new(move || {
            let (tell, outcome) = oneshot::channel();
            pool.0.0.submit(Box::new(Task { work, tell }))?;
            Ok(Submitted { outcome, _task: None })
        })
    }

    /// Threads at work or waiting for some.
    pub(crate) fn threads(&self) -> usize {
        self.0.0.state.lock().threads
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(|work| let_go(None, work));
        self.0.work.notify_all();
    }
}

impl Inner {
    fn is_full(&self, state: &State) -> bool {
        state.waiting.len() >= self.queue + state.free && state.threads == self.threads
    }

    fn submit(self: &Arc<Self>, work: Box<dyn Work>) -> Result<(), Error> {
        let mut state = self.state.lock();
        let mut given_up = VecDeque::new();
        if self.is_full(&state) {
            if state.waiting.iter().all(|work| work.is_wanted()) {
                drop(state);
                let text = format!("{} pieces of CPU work wait already", self.queue);
                return Err(Error::not_executed(ErrorKind::CapacityExceeded, text));
            }
            // Whoever has given up takes nobody's place.
            let waiting = std::mem::take(&mut state.waiting);
            (state.waiting, given_up) = waiting.into_iter().partition(|work| work.is_wanted());
        }
        let begins = state.free <= state.waiting.len() && state.threads < self.threads;
        state.threads += usize::from(begins);
        state.free += usize::from(begins);
        state.waiting.push_back(work);
        drop(state);
        given_up.into_iter().for_each(|work| let_go(None, work));
        if begins {
            return self.spawn();
        }
        self.work.notify_one();
        Ok(())
    }

    fn spawn(self: &Arc<Self>) -> Result<(), Error> {
        let inner = self.clone();
        let thread = std::thread::Builder::new().name("zlink-cpu".into());
        let Err(error) = thread.spawn(move || inner.work()) else {
            return Ok(());
        };
        let mut state = self.state.lock();
        state.threads -= 1;
        state.free -= 1;
        // With other threads it waits for one of them; alone it would wait for nobody.
        if state.threads > 0 {
            return Ok(());
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(|work| let_go(None, work));
        let text = format!("the system gives no thread for CPU work: {error}");
        Err(Error::not_executed(ErrorKind::InternalFailure, text))
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                state.free -= 1;
                drop(state);
                finish(None, || work.run());
                state = self.state.lock();
                state.free += 1;
                continue;
            }
            if state.closed {
                break;
            }
            let late = self.work.wait_until(&mut state, Instant::now() + self.idle).timed_out();
            if late && state.waiting.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        state.free -= 1;
    }
}

impl fmt::Debug for CpuPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuPool").field("threads", &self.threads()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Refusing costs no more than to look who waits: nothing is copied, nor moved.
    #[tokio::test]
    async fn a_full_queue_stays_where_it_is() {
        let pool = CpuPool::with(1, 64, Duration::from_secs(30));
        let (release, released) = mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let held = pool.run(move || {
            let _ = begin.send(());
            // Until it is let go.
            let _ = released.recv();
            Ok(())
        });
        let mut calls = vec![tokio::spawn(held.into_future())];
        begun.await.unwrap();
        calls.extend((0..64).map(|_| tokio::spawn(pool.run(|| Ok(())).into_future())));
        let waiting = || {
            let state = pool.0.0.state.lock();
            (state.waiting.as_slices().0.as_ptr().addr(), state.waiting.len())
        };
        while waiting().1 < 64 {
            tokio::task::yield_now().await;
        }
        let before = waiting();
        let refused = pool.run(|| Ok(())).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::CapacityExceeded));
        assert_eq!(waiting(), before);
        drop(release);
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(()));
        }
    }
}
