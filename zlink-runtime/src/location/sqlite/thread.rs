//! Threads that own a connection, and the queues that lead to them. It must not know what is asked.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::file::{File, Kind};
use crate::location::{OpenError, StoreError};

/// Operations that wait for a thread; more wait for room.
const WAITING: usize = 256;
/// The same of those that go first.
const URGENT: usize = 16;

/// The way to a thread.
pub(super) struct Queue<J> {
    urgent: mpsc::Sender<J>,
    ordinary: mpsc::Sender<J>,
}

/// The thread's end of it.
pub(super) struct Jobs<J> {
    urgent: mpsc::Receiver<J>,
    ordinary: mpsc::Receiver<J>,
}

impl<J> Queue<J> {
    fn new() -> (Self, Jobs<J>) {
        let (urgent, urgent_jobs) = mpsc::channel(URGENT);
        let (ordinary, ordinary_jobs) = mpsc::channel(WAITING);
        let jobs = Jobs {
            urgent: urgent_jobs,
            ordinary: ordinary_jobs,
        };
        (Self { urgent, ordinary }, jobs)
    }

    /// Asks the thread; `None` where it has ended.
    pub(super) async fn ask<T>(
        &self,
        timeout: Duration,
        job: impl FnOnce(Ticket<T>) -> J,
    ) -> Option<Result<T, StoreError>> {
        Self::wait(&self.ordinary, timeout, job).await
    }

    /// The same, before all that is not urgent, however much of that waits.
    pub(super) async fn ask_first<T>(
        &self,
        timeout: Duration,
        job: impl FnOnce(Ticket<T>) -> J,
    ) -> Option<Result<T, StoreError>> {
        Self::wait(&self.urgent, timeout, job).await
    }

    async fn wait<T>(
        queue: &mpsc::Sender<J>,
        timeout: Duration,
        job: impl FnOnce(Ticket<T>) -> J,
    ) -> Option<Result<T, StoreError>> {
        // Too long a time is none. The wait for room counts: what comes late out of it does not wait once more.
        let deadline = Instant::now().checked_add(timeout);
        let room = queue.reserve().await.ok()?;
        let (answer, answered) = oneshot::channel();
        room.send(job(Ticket { answer, deadline }));
        answered.await.ok()
    }
}

impl<J> Jobs<J> {
    /// The next job, once there is one; `None` once nobody can ask any more.
    pub(super) fn wait(&mut self) -> Option<J> {
        let next = poll_fn(|cx| match self.urgent.poll_recv(cx) {
            Poll::Ready(Some(job)) => Poll::Ready(Some(job)),
            // Both close together: what has come to the first since then is for nobody any more.
            Poll::Ready(None) | Poll::Pending => self.ordinary.poll_recv(cx),
        });
        block_on(next)
    }

    /// The next job, if there is one now.
    pub(super) fn next(&mut self) -> Option<J> {
        self.urgent.try_recv().or_else(|_| self.ordinary.try_recv()).ok()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on a thread that has no runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

/// Who waits for an answer, and until when it may be begun.
pub(super) struct Ticket<T> {
    answer: oneshot::Sender<Result<T, StoreError>>,
    deadline: Option<Instant>,
}

impl<T> Ticket<T> {
    pub(super) fn answer(self, answer: Result<T, StoreError>) {
        // Nobody there: the future was dropped, and its user must take every outcome for possible.
        let _ = self.answer.send(answer);
    }

    /// Whether nobody waits any more, so that it need not be begun.
    pub(super) fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Answers one that waited too long, before it was begun.
    pub(super) fn too_late(self) {
        let text = "its turn did not come in time".to_owned();
        self.answer(Err(StoreError::DeadlineExceeded(text)));
    }
}

/// Starts a thread that opens the file and then does `work`, until nobody can ask it any more.
pub(super) fn spawn<J: Send + 'static>(
    name: &str,
    path: &Path,
    kind: Kind,
    work: impl FnOnce(File, Jobs<J>) + Send + 'static,
) -> impl Future<Output = Result<Queue<J>, OpenError>> {
    let (queue, jobs) = Queue::new();
    let (opened, open) = oneshot::channel();
    let shown = path.display().to_string();
    let path = path.to_owned();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        match File::open(&path, kind) {
            Ok(file) => {
                if opened.send(Ok(())).is_ok() {
                    work(file, jobs);
                }
            }
            Err(problem) => drop(opened.send(Err(problem))),
        };
    });
    async move {
        started.map_err(|error| OpenError::new(&shown, format!("no thread for it: {error}")))?;
        match open.await {
            Ok(Ok(())) => Ok(queue),
            Ok(Err(problem)) => Err(OpenError::new(&shown, problem)),
            Err(_) => Err(OpenError::new(&shown, "its thread ended while it was opened")),
        }
    }
}
