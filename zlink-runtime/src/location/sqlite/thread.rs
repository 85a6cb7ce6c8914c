//! Threads that own a connection, and the queues that lead to them. It must not know what is asked.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::file::{File, Kind};
use crate::location::{OpenError, StoreError};

/// Operations that wait for a thread; more wait for room.
const WAITING: usize = 256;

/// The way to a thread.
pub(super) struct Queue<J>(mpsc::Sender<J>);

impl<J> Queue<J> {
    /// Asks the thread; `None` where it has ended.
    pub(super) async fn ask<T>(
        &self,
        timeout: Duration,
        job: impl FnOnce(Ticket<T>) -> J,
    ) -> Option<Result<T, StoreError>> {
        let room = self.0.reserve().await.ok()?;
        let (answer, answered) = oneshot::channel();
        // Too long a time is none.
        let deadline = Instant::now().checked_add(timeout);
        room.send(job(Ticket { answer, deadline }));
        answered.await.ok()
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
        let text = "other writers held the file all the time".to_owned();
        self.answer(Err(StoreError::DeadlineExceeded(text)));
    }
}

/// Starts a thread that opens the file and then does `work`, until nobody can ask it any more.
pub(super) fn spawn<J: Send + 'static>(
    name: &str,
    path: &Path,
    kind: Kind,
    work: impl FnOnce(File, mpsc::Receiver<J>) + Send + 'static,
) -> impl Future<Output = Result<Queue<J>, OpenError>> {
    let (jobs, waiting) = mpsc::channel(WAITING);
    let (opened, open) = oneshot::channel();
    let shown = path.display().to_string();
    let path = path.to_owned();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        match File::open(&path, kind) {
            Ok(file) => {
                if opened.send(Ok(())).is_ok() {
                    work(file, waiting);
                }
            }
            Err(problem) => drop(opened.send(Err(problem))),
        };
    });
    async move {
        started.map_err(|error| OpenError::new(&shown, format!("no thread for it: {error}")))?;
        match open.await {
            Ok(Ok(())) => Ok(Queue(jobs)),
            Ok(Err(problem)) => Err(OpenError::new(&shown, problem)),
            Err(_) => Err(OpenError::new(&shown, "its thread ended while it was opened")),
        }
    }
}
