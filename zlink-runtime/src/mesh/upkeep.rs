//! What an admitted link needs while it lives: changes told, probes sent and answered, and an end once it is given up.
//! It must not know how links are made.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;
use crate::message::codec;
use crate::transport::{CloseReason, Lane, Record, Refused};
use crate::wire::{self, RecordKind};

use super::info::{NodeInfo, channels_to_wire};
use super::links::{Inner, PEER_MEMORY, TICK};
use super::liveness::Action;
use super::peer::PeerLink;

impl Inner {
    /// Tells a peer how this side stands now, unless it knows. One update at most waits for room; where more has changed
    /// until it is sent, one more follows it, with the newest values.
    pub(super) fn tell_changes(&self, peer: &Arc<PeerLink>) {
        let mut told = peer.told();
        if told.waits {
            return;
        }
        let Some((revision, record)) = self.change_since(told.revision) else {
            return;
        };
        match peer.link().try_send(
            Lane::Data,
            Record {
                head: &record,
                payload: &[],
            },
        ) {
            Ok(()) => told.revision = revision,
            Err(Refused::Full) => {
                told.waits = true;
                drop(told);
                if let Some(links) = self.this.upgrade() {
                    self.runtime
                        .spawn(links.tell_when_there_is_room(peer.clone(), revision, record));
                }
            }
            Err(Refused::Closed) => {}
            Err(Refused::TooLarge) => {
                tracing::error!(target: "zlink::runtime", peer = %peer.rid(), "an update exceeds the link's limit");
            }
        }
    }

    async fn tell_when_there_is_room(self: Arc<Self>, peer: Arc<PeerLink>, mut revision: u64, mut record: Vec<u8>) {
        // A link that ends takes what waits for it along.
        while peer.send(Lane::Data, record).await.is_ok() {
            let mut told = peer.told();
            told.revision = revision;
            match self.change_since(revision) {
                Some(next) => (revision, record) = next,
                None => {
                    told.waits = false;
                    return;
                }
            }
        }
    }

    /// What has changed on this side since that revision, as a record, and its revision.
    fn change_since(&self, told: u64) -> Option<(u64, Vec<u8>)> {
        let local = self.local.lock();
        if local.revision == told {
            return None;
        }
        Some((local.revision, update_of(&local)?))
    }

    /// Sends a record of the mesh itself. Where there is no room now it waits on its own; a link holds few of these.
    pub(super) fn control(&self, peer: &Arc<PeerLink>, record: Vec<u8>) {
        match peer.link().try_send(
            Lane::Data,
            Record {
                head: &record,
                payload: &[],
            },
        ) {
            Ok(()) | Err(Refused::Closed) => {}
            Err(Refused::Full) => {
                let sending = peer.send(Lane::Data, record);
                self.runtime.spawn(async move {
                    // A link that ends takes what waits for it along.
                    let _ = sending.await;
                });
            }
            Err(Refused::TooLarge) => {
                tracing::error!(target: "zlink::runtime", peer = %peer.rid(), "a service record exceeds the link's limit");
            }
        }
    }

    /// Answers a probe. One answer at most waits for room: until it comes, a peer only repeats what it asked.
    pub(super) fn answer_probe(&self, peer: &Arc<PeerLink>, id: u64) {
        let record = wire::probe(RecordKind::ProbeAck, id);
        let sent = peer.link().try_send(
            Lane::Data,
            Record {
                head: &record,
                payload: &[],
            },
        );
        if sent == Err(Refused::Full) && !peer.set_answering(true) {
            let (peer, sending) = (peer.clone(), peer.send(Lane::Data, record));
            self.runtime.spawn(async move {
                // A link that ends takes what waits for it along.
                let _ = sending.await;
                peer.set_answering(false);
            });
        }
    }

    /// Closes a link that both sides have given up.
    pub(super) fn settle(&self, peer: &Arc<PeerLink>) {
        if peer.is_quiet(clock::now(), TICK) && !self.upcall.waits_on(peer.id()) && peer.mark_retire_sent() {
            self.control(peer, wire::service(RecordKind::Retire, &[]));
        }
        if peer.is_retired() {
            peer.close(CloseReason::Local("another link is used"), TICK);
        }
    }

    pub(super) fn tick(&self, now: Instant) {
        let links: Vec<_> = self.table.lock().links().cloned().collect();
        for peer in links {
            if peer.is_retiring() {
                self.settle(&peer);
            }
            let held = peer.link().held().any();
            let action = peer.liveness().lock().tick(now, held);
            match action {
                Action::Nothing => {}
                Action::Probe(id) => {
                    let record = wire::probe(RecordKind::Probe, id);
                    // Without room it is sent again at the next interval.
                    let _ = peer.link().try_send(
                        Lane::Data,
                        Record {
                            head: &record,
                            payload: &[],
                        },
                    );
                }
                Action::Expired => {
                    peer.close(
                        CloseReason::Timeout("no probe was acknowledged for 15 s"),
                        Duration::ZERO,
                    );
                }
            }
        }
        let forgotten = match now.checked_sub(PEER_MEMORY) {
            Some(before) => self.table.lock().forget(before, |rid| self.wants(rid)),
            None => false,
        };
        if forgotten {
            self.publish();
        }
    }
}

/// What of a side can change while it lives, as a record.
fn update_of(local: &NodeInfo) -> Option<Vec<u8>> {
    let update = wire::Update {
        revision: local.revision,
        state: local.state,
        channels: channels_to_wire(&local.channels),
    };
    match codec::encode(&update, |body| wire::service(RecordKind::Update, body)) {
        Ok(record) => Some(record),
        Err(error) => {
            tracing::error!(target: "zlink::runtime", %error, "an update cannot be encoded");
            None
        }
    }
}
