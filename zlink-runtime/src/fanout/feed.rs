//! What one publisher sends to a subscriber, from dialling to the end: a socket of its own and a loop of its own, so that no
//! publisher's silence is another's. It must not know why that publisher was chosen.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::clock;
use crate::limit::PROBE_LIMIT;
use crate::mesh::{Backoff, PeerState};
use crate::random::Random;
use crate::transport::{Connections, Endpoint, Incoming};

use super::intake::{Heard, Intake};

/// How a publisher stands, as a subscriber sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedStatus {
    /// Whether it has proved within the last 15 s that it publishes.
    pub(crate) ready: bool,
    /// Why the last attempt or connection ended, until it is ready again.
    pub(crate) failure: Option<String>,
}

impl FeedStatus {
    pub(crate) fn state(&self) -> PeerState {
        match (self.ready, &self.failure) {
            (true, _) => PeerState::Ready,
            (false, None) => PeerState::Connecting,
            (false, Some(_)) => PeerState::NotConnected,
        }
    }
}

/// What dialling needs.
#[derive(Clone)]
pub(super) struct Dialler {
    pub(super) intake: Arc<Intake>,
    pub(super) connections: Connections,
    pub(super) random: Random,
    pub(super) runtime: Handle,
}

/// One publisher. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Feed {
    status: Arc<Mutex<FeedStatus>>,
    task: JoinHandle<()>,
}

impl Feed {
    /// Dials that publisher; where it was found, only while the list that names it is current.
    pub(super) fn start(dialler: &Dialler, endpoint: Endpoint, current: Option<watch::Receiver<bool>>) -> Self {
        let status = Arc::<Mutex<FeedStatus>>::default();
        let running = Running {
            dialler: dialler.clone(),
            endpoint,
            current,
            status: status.clone(),
        };
        Self {
            status,
            task: dialler.runtime.spawn(running.run()),
        }
    }

    pub(super) fn status(&self) -> FeedStatus {
        self.status.lock().clone()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Running {
    dialler: Dialler,
    endpoint: Endpoint,
    /// Whether the list that names it is current.
    current: Option<watch::Receiver<bool>>,
    status: Arc<Mutex<FeedStatus>>,
}

impl Running {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        let Dialler {
            intake,
            connections,
            random,
            ..
        } = self.dialler.clone();
        loop {
            if let Some(current) = &mut self.current {
                // Where nobody tells any more, this ends next.
                let _ = current.wait_for(|current| *current).await;
            }
            let dialled = connections.subscribe(&self.endpoint, intake.subscribed.all(), intake.max_record);
            let dialled = dialled.await;
            let began = clock::now();
            let why = match dialled {
                Ok(incoming) => self.take(incoming).await,
                // A status shows it, which names no endpoint.
                Err(error) => error.without_endpoint(),
            };
            let before = std::mem::replace(
                &mut *self.status.lock(),
                FeedStatus {
                    ready: false,
                    failure: Some(why.clone()),
                },
            );
            if before.ready {
                backoff.ready_for(began.elapsed());
            }
            if before.ready || before.failure.is_none() {
                self.tell("unavailable", &why);
            }
            sleep(backoff.next(random.bits())).await;
        }
    }

    fn tell(&self, state: &str, why: &str) {
        tracing::info!(
            target: "zlink::runtime", event_id = "zlink.runtime.fanout.publisher_changed",
            channel_name = self.dialler.intake.channel.as_str(), endpoint = %self.endpoint, state, why
        );
    }

    fn fresh(&self) -> Instant {
        let became = {
            let mut status = self.status.lock();
            let became = !status.ready;
            if became {
                *status = FeedStatus {
                    ready: true,
                    failure: None,
                };
            }
            became
        };
        if became {
            self.tell("ready", "");
        }
        clock::now() + PROBE_LIMIT
    }

    /// Takes what comes over one connection, until it ends; why it did. Nothing is read without a permit in hand, and none is
    /// held while the publisher is waited for.
    async fn take(&self, mut incoming: Incoming) -> String {
        const SILENT: &str = "it gave no sign of life for 15 s, or this host could not read it";
        let intake = &self.dialler.intake;
        let mut source = intake.permits.source();
        let mut permit = None;
        let mut deadline = clock::now() + PROBE_LIMIT;
        loop {
            let next = match incoming.next() {
                Ok(next) => next,
                Err(error) => return self.broken(&error.to_string()),
            };
            if let Some(received) = next {
                match intake.hear(received) {
                    Heard::Beacon | Heard::Unwanted => deadline = self.fresh(),
                    Heard::Event(event) => {
                        let given = permit.take().or_else(|| source.try_one());
                        let given = match given {
                            Some(given) => Some(given),
                            None => match timeout_at(deadline, source.acquire(1)).await {
                                Ok(Ok(mut grant)) => grant.take(),
                                Ok(Err(closed)) => return closed.to_string(),
                                Err(_) => return SILENT.to_owned(),
                            },
                        };
                        deadline = self.fresh();
                        if let Some(given) = given {
                            intake.admit(event, given);
                        }
                    }
                    Heard::Dropped => {}
                    Heard::Broken(why) => return self.broken(why),
                }
                incoming.rotate().await;
                continue;
            }
            drop(permit.take());
            // What comes without a pause, and proves nothing, would never let the time be up.
            if clock::now() >= deadline {
                return SILENT.to_owned();
            }
            match timeout_at(deadline, incoming.readable()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return SILENT.to_owned(),
            }
            permit = match timeout_at(deadline, source.acquire(1)).await {
                Ok(Ok(mut grant)) => grant.take(),
                Ok(Err(closed)) => return closed.to_string(),
                Err(_) => return SILENT.to_owned(),
            };
            match incoming.read().await {
                Ok(true) => {}
                Ok(false) => return "the publisher has closed it".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }

    fn broken(&self, why: &str) -> String {
        tracing::warn!(
            target: "zlink::fanout", channel_name = self.dialler.intake.channel.as_str(), endpoint = %self.endpoint, why,
            "the publisher broke the protocol"
        );
        format!("protocol error: {why}")
    }
}
