//! The decision that a link to an endpoint is wanted, and the loop that keeps making it. It must not judge peers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::clock;
use crate::id::Rid;
use crate::transport::{CloseReason, Endpoint, Link, TransportError};
use crate::wire::{RecordKind, RejectReason};

use super::PeerState;
use super::backoff::{Backoff, after_refusal};
use super::links::Inner;
use super::sink::{Ended, LinkSink};

/// An intent.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) endpoint: Endpoint,
    /// The only RID that is accepted there, where one is expected.
    pub(crate) expected: Option<Rid>,
    /// The Location Store wants it, and nobody else.
    pub(super) automatic: bool,
    progress: Mutex<Progress>,
    /// Somebody wants it to dial now.
    asked: Notify,
}

#[derive(Debug)]
struct Progress {
    state: PeerState,
    /// Whom it led to last.
    rid: Option<Rid>,
    /// Why the last attempt failed.
    failure: Option<String>,
    /// The link that it made, from its handshake on, while that lives.
    link: Option<Arc<dyn Link>>,
    /// Nobody wants it any more.
    released: bool,
    /// Who is there has answered that it is something else: a server of another channel, a node of a mesh.
    elsewhere: bool,
}

impl Intent {
    pub(super) fn new(endpoint: Endpoint, expected: Option<Rid>) -> Arc<Self> {
        Self::with(endpoint, expected, false)
    }

    /// For a peer that the Location Store names.
    pub(super) fn automatic(endpoint: Endpoint, rid: Rid) -> Arc<Self> {
        Self::with(endpoint, Some(rid), true)
    }

    fn with(endpoint: Endpoint, expected: Option<Rid>, automatic: bool) -> Arc<Self> {
        let progress = Progress {
            state: PeerState::Connecting,
            rid: expected.clone(),
            failure: None,
            link: None,
            released: false,
            elsewhere: false,
        };
        Arc::new(Self {
            endpoint,
            expected,
            automatic,
            progress: Mutex::new(progress),
            asked: Notify::new(),
        })
    }

    /// Ends the pause before the next attempt.
    pub(super) fn ask(&self) {
        self.asked.notify_one();
    }

    pub(crate) fn state(&self) -> PeerState {
        self.progress.lock().state
    }

    /// The peer it leads to, as far as that is known.
    pub(crate) fn rid(&self) -> Option<Rid> {
        self.progress.lock().rid.clone()
    }

    /// Why its last attempt failed, until one succeeds.
    pub(crate) fn failure(&self) -> Option<String> {
        self.progress.lock().failure.clone()
    }

    /// It has led to that peer. Returns whom it led to before.
    pub(super) fn is_ready(&self, rid: &Rid) -> Option<Rid> {
        let mut progress = self.progress.lock();
        (progress.state, progress.failure, progress.elsewhere) = (PeerState::Ready, None, false);
        progress.rid.replace(rid.clone())
    }

    /// It has dialled that link. Returns whether anybody still wants it.
    fn made(&self, link: &Arc<dyn Link>) -> bool {
        let mut progress = self.progress.lock();
        if !progress.released {
            progress.link = Some(link.clone());
        }
        !progress.released
    }

    /// Its link has ended.
    fn lost_its_link(&self) {
        self.progress.lock().link = None;
    }

    /// Nobody wants it any more. The link that it made ends, in its handshake too, unless it leads to a peer that may
    /// `stay`.
    pub(super) fn release(&self, why: &'static str, stay: impl FnOnce(&Rid) -> bool) {
        let mut progress = self.progress.lock();
        progress.released = true;
        let stays = progress.state == PeerState::Ready && progress.rid.as_ref().is_some_and(stay);
        let link = progress.link.take().filter(|_| !stays);
        drop(progress);
        if let Some(link) = link {
            link.close(CloseReason::Local(why), Duration::ZERO);
        }
    }

    fn failed(&self, state: PeerState, why: impl ToString) {
        let mut progress = self.progress.lock();
        progress.state = state;
        progress.failure = Some(why.to_string());
        progress.elsewhere = false;
    }

    /// As [`Intent::failed`]; what is wanted is not at that endpoint.
    fn led_elsewhere(&self, why: &str) {
        self.failed(PeerState::NotConnected, why);
        self.progress.lock().elsewhere = true;
    }
}

/// What is at the endpoints of the intents, where there are any and each was answered that what is wanted is not there.
/// What they answered stands until another attempt ends otherwise.
pub(super) fn elsewhere(intents: &[Arc<Intent>]) -> Option<String> {
    let answers = intents.iter().map(|intent| {
        let progress = intent.progress.lock();
        let failure = progress.failure.as_ref().filter(|_| progress.elsewhere)?;
        Some(format!("{}: {failure}", intent.endpoint))
    });
    let answers: Vec<_> = answers.collect::<Option<_>>()?;
    (!answers.is_empty()).then(|| answers.join("; "))
}

/// What an intent does after an attempt.
enum Next {
    /// Dials again soon.
    Soon,
    /// Dials again in about a minute: the answer stands until somebody changes something.
    Seldom,
}

/// Makes the link of an intent again and again, until it is dropped.
pub(super) async fn run(links: Arc<Inner>, intent: Arc<Intent>) {
    let mut backoff = Backoff::default();
    let mut reported = None;
    loop {
        let began = clock::now();
        let ended = attempt(&links, &intent).await;
        if let Ok(Ended::AfterReady(..)) = &ended {
            backoff.ready_for(began.elapsed());
        }
        let next = settle(&links, &intent, ended, &mut reported).await;
        if links.local().scope.is_channel_client() {
            // Whether there is anybody left to wait for.
            links.publish();
        }
        let random = links.random().bits();
        let pause = match next {
            Next::Soon => backoff.next(random),
            Next::Seldom => after_refusal(random),
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep(pause) => {}
            () = intent.asked.notified() => {}
        }
    }
}

/// Notes how an attempt ended. What hinders an intent is reported once, until something else does.
async fn settle(
    links: &Arc<Inner>,
    intent: &Intent,
    ended: Result<Ended, TransportError>,
    reported: &mut Option<String>,
) -> Next {
    let mut is_news = |text: &str| reported.replace(text.to_owned()).as_deref() != Some(text);
    match ended {
        Ok(Ended::AfterReady(rid, run, reason)) => {
            *reported = None;
            // Where both sides had dialled, the other link is used now, and this intent has what it wanted. A later run
            // may listen elsewhere: who is at the endpoint then only an attempt tells.
            links.until_no_link_to(&rid, run).await;
            intent.failed(PeerState::NotConnected, reason);
            Next::Soon
        }
        Ok(Ended::BeforeReady(reason)) => {
            intent.failed(PeerState::NotConnected, reason);
            Next::Soon
        }
        Ok(Ended::NotRequired) => {
            let text = "neither side needs the link";
            intent.failed(PeerState::NotRequired, text);
            if is_news(text) {
                tracing::info!(
                    target: "zlink::runtime", endpoint = %intent.endpoint, "{text}; it is asked again about once a minute"
                );
            }
            Next::Seldom
        }
        Ok(Ended::Refused { refusal, run, .. }) if refusal.reason == RejectReason::Duplicate => {
            // Another link leads there; this intent has nothing to do until that one ends.
            if let Some((rid, run)) = run {
                intent.is_ready(&rid);
                links.until_no_link_to(&rid, run).await;
            }
            Next::Soon
        }
        Ok(Ended::Refused { refusal, by_peer, .. }) => {
            let who = if by_peer { "the peer refused" } else { "refused" };
            let text = format!("{who}: {:?}: {}", refusal.reason, refusal.text);
            match refusal.reason {
                RejectReason::Channel | RejectReason::Topology => intent.led_elsewhere(&text),
                _ => intent.failed(PeerState::NotConnected, &text),
            }
            if refusal.reason != RejectReason::Identity {
                return Next::Soon;
            }
            if is_news(&text) {
                tracing::warn!(
                    target: "zlink::runtime", endpoint = %intent.endpoint, text,
                    "the endpoint leads to another identity; it is asked again about once a minute"
                );
            }
            Next::Seldom
        }
        Err(error) => {
            // A status shows it, which names no endpoint.
            intent.failed(PeerState::NotConnected, error.without_endpoint());
            if is_news(&error.to_string()) {
                tracing::info!(target: "zlink::runtime", endpoint = %intent.endpoint, %error, "not reachable yet");
            }
            Next::Soon
        }
    }
}

async fn attempt(links: &Arc<Inner>, intent: &Arc<Intent>) -> Result<Ended, TransportError> {
    links.discovered.may_dial(intent).await;
    let link = links.transport().dial(&intent.endpoint, links.offer()).await?;
    let (tell, ended) = oneshot::channel();
    let sink = LinkSink::dialled(links.clone(), link.clone(), intent.clone(), tell);
    links.remember(&link);
    link.start(sink);
    if intent.made(&link) {
        links.say(&link, RecordKind::Hello, &links.local().to_wire());
    } else {
        link.close(CloseReason::Local("its intent was released"), Duration::ZERO);
    }
    // Nothing but the intent may keep a link that has ended.
    drop(link);
    // The sink always tells; were it lost, the link would be gone too.
    let ended = ended.await;
    intent.lost_its_link();
    Ok(ended.unwrap_or(Ended::BeforeReady(CloseReason::Local("abandoned"))))
}

#[cfg(test)]
mod tests;
