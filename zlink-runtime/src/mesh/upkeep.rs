//! What an admitted link needs while it lives: changes told, probes sent and answered, and an end once it is given up.
//! It must not know how links are made.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;
use crate::message::codec;
use crate::transport::{CloseReason, Lane, Record, Refused};
use crate::wire::{self, RecordKind};

use super::info::NodeInfo;
use super::links::{Inner, PEER_MEMORY, TICK};
use super::liveness::Action;
use super::peer::{Owed, PeerLink};

impl Inner {
    /// Sends what this side owes a peer, after `what` was added. Where there is no room, one record of each lane waits
    /// in line, and what comes up meanwhile goes behind it, the newest of each kind: a link holds few of these.
    pub(super) fn owe(&self, peer: &Arc<PeerLink>, what: impl FnOnce(&mut Owed)) {
        let mut owed = peer.owed();
        what(&mut owed);
        for lane in [Lane::Data, Lane::Completion] {
            self.send_owed(peer, &mut owed, lane);
        }
    }

    fn send_owed(&self, peer: &Arc<PeerLink>, owed: &mut Owed, lane: Lane) {
        if *owed.waits(lane) {
            return;
        }
        while let Some(record) = self.next_owed(owed, lane) {
            let sent = peer.link().try_send(
                lane,
                Record {
                    head: &record,
                    payload: &[],
                },
            );
            match sent {
                Ok(()) => {}
                Err(Refused::Full) => {
                    if let Some(links) = self.this.upgrade() {
                        *owed.waits(lane) = true;
                        self.runtime
                            .spawn(links.send_when_there_is_room(peer.clone(), lane, record));
                    }
                    return;
                }
                Err(Refused::Closed) => return,
                Err(Refused::TooLarge) => {
                    tracing::error!(target: "zlink::runtime", peer = %peer.rid(), "a service record exceeds the link's limit");
                }
            }
        }
    }

    async fn send_when_there_is_room(self: Arc<Self>, peer: Arc<PeerLink>, lane: Lane, mut record: Vec<u8>) {
        // A link that ends takes what waits for it along.
        while peer.link().send(lane, record).await.is_ok() {
            let mut owed = peer.owed();
            match self.next_owed(&mut owed, lane) {
                Some(next) => record = next,
                None => {
                    *owed.waits(lane) = false;
                    return;
                }
            }
        }
    }

    /// Takes what goes next on that lane. A change goes where replies do, past what pressure holds back: who asks less
    /// of this side must hear all the more that it drains. On the data lane nothing may follow a retire.
    fn next_owed(&self, owed: &mut Owed, lane: Lane) -> Option<Vec<u8>> {
        if lane == Lane::Completion {
            let (revision, record) = self.change_since(owed.told)?;
            owed.told = revision;
            return Some(record);
        }
        owed.answers = false;
        if std::mem::take(&mut owed.ready) {
            return Some(wire::service(RecordKind::Ready, &[]));
        }
        if let Some(id) = owed.answer.take() {
            owed.answers = true;
            return Some(wire::probe(RecordKind::ProbeAck, id));
        }
        if let Some(id) = owed.probe.take() {
            return Some(wire::probe(RecordKind::Probe, id));
        }
        std::mem::take(&mut owed.retire).then(|| wire::service(RecordKind::Retire, &[]))
    }

    /// What has changed on this side since that revision, as a record, and its revision.
    fn change_since(&self, told: u64) -> Option<(u64, Vec<u8>)> {
        let local = self.local.lock();
        if local.revision == told {
            return None;
        }
        Some((local.revision, update_of(&local)?))
    }

    /// Closes a link that both sides have given up.
    pub(super) fn settle(&self, peer: &Arc<PeerLink>) {
        if peer.is_quiet(clock::now(), TICK) && !self.upcall.waits_on(peer.id()) && peer.mark_retire_sent() {
            self.owe(peer, |owed| owed.retire = true);
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
            let (held, moved) = (peer.link().held().any(), peer.link().stats().moved);
            let action = peer.liveness().lock().tick(now, held, moved);
            match action {
                Action::Nothing => {}
                Action::Probe(id) => self.owe(&peer, |owed| owed.probe = Some(id)),
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
    match codec::encode(&local.to_update(), |body| wire::service(RecordKind::Update, body)) {
        Ok(record) => Some(record),
        Err(error) => {
            tracing::error!(target: "zlink::runtime", %error, "an update cannot be encoded");
            None
        }
    }
}
