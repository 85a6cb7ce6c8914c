//! Logical multicast: one record per node that serves the channel, and on each node the Spots that subscribe.
//!
//! Nothing here waits for a target but the handing out of what came in: there each match has its own permit, taken one
//! after the other. It must not know what is published.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::channel::{Flow, Outbound, is_traced};
use crate::error::{Error, ErrorKind};
use crate::id::{ChannelName, MeshName, ObjectId};
use crate::permit::Permit;
use crate::transport::{Lane, Record};
use crate::wire::{self, OperationName, Publish};

use super::job::{Call, SpotJob, Work};
use super::object::Object;
use super::spots::Inner;

/// What is subscribed to: channel, topic and packet.
type Key = (String, String, String);

/// The Spots of this host that subscribe, by what to.
#[derive(Default)]
pub(super) struct Subscribers(Mutex<BTreeMap<Key, BTreeMap<ObjectId, Arc<Object>>>>);

impl Subscribers {
    fn keys(object: &Object) -> impl Iterator<Item = Key> {
        object.factory.parts().subscriptions.iter().map(|one| {
            let (channel, topic, packet) = (&one.channel, &one.topic, &one.packet);
            (
                channel.as_str().to_owned(),
                topic.as_str().to_owned(),
                (*packet).to_owned(),
            )
        })
    }

    /// It is Ready: what is published from here on is for it, too.
    pub(super) fn add(&self, object: &Arc<Object>) {
        for key in Self::keys(object) {
            self.0
                .lock()
                .entry(key)
                .or_default()
                .insert(object.id.clone(), object.clone());
        }
    }

    pub(super) fn remove(&self, object: &Arc<Object>) {
        for key in Self::keys(object) {
            let mut all = self.0.lock();
            if let Some(spots) = all.get_mut(&key) {
                if spots.get(&object.id).is_some_and(|there| Arc::ptr_eq(there, object)) {
                    spots.remove(&object.id);
                }
                if spots.is_empty() {
                    all.remove(&key);
                }
            }
        }
    }

    fn of(&self, key: &Key) -> Vec<Arc<Object>> {
        let all = self.0.lock();
        all.get(key)
            .map(|spots| spots.values().cloned().collect())
            .unwrap_or_default()
    }
}

/// Something that was published, as a record.
struct Published {
    /// Over which mesh it came; `None` where this host has published it itself.
    mesh: Option<MeshName>,
    record: Bytes,
    publish: Publish,
}

impl Published {
    fn key(&self) -> Option<Key> {
        let OperationName::Named { channel, packet } = self.publish.call.operation else {
            return None;
        };
        let text = |span: wire::Span| std::str::from_utf8(span.of(&self.record)).ok().map(str::to_owned);
        Some((text(channel)?, text(self.publish.topic)?, text(packet)?))
    }

    /// Whether a Spot is one of those that it is for.
    fn is_for(&self, object: &Object) -> bool {
        self.mesh.as_ref().is_none_or(|mesh| *mesh == object.home.mesh)
    }

    /// Puts it into the queue of one Spot.
    fn deliver(&self, key: &Key, object: &Arc<Object>, permit: Permit) {
        let subscriptions = &object.factory.parts().subscriptions;
        let found = subscriptions
            .iter()
            .find(|one| (one.channel.as_str(), one.topic.as_str(), one.packet) == (&*key.0, &*key.1, &*key.2));
        let Some(subscription) = found else { return };
        let call = Call {
            handler: subscription.dispatch.clone(),
            packet: subscription.packet,
            record: self.record.clone(),
            metadata: self.publish.call.metadata,
            content_type: self.publish.call.content_type,
            payload: self.publish.call.payload,
            deadline: None,
            reply: None,
            activates: false,
            is_first: false,
            flow: is_traced().then(|| Flow::of_record(self.publish.call.flow.of(&self.record))),
        };
        let job = SpotJob::new(object.clone(), Work::Call(Box::new(call)));
        // One that closes takes nothing more, and is no subscriber once it is gone.
        drop(object.lane().admit(job, permit));
    }
}

/// What came in to be handed out. As many wait here as have permits.
pub(super) struct Fanout(mpsc::UnboundedSender<(Published, Permit)>);

/// Hands out, one record after the other.
pub(super) struct Publishes(mpsc::UnboundedReceiver<(Published, Permit)>);

impl Fanout {
    pub(super) fn new() -> (Self, Publishes) {
        let (give, take) = mpsc::unbounded_channel();
        (Self(give), Publishes(take))
    }

    pub(super) fn take(&self, mesh: MeshName, record: Bytes, publish: Publish, permit: Permit) {
        let mesh = Some(mesh);
        let published = Published { mesh, record, publish };
        // Where nobody takes it, the host stops.
        let _ = self.0.send((published, permit));
    }
}

impl Publishes {
    pub(super) async fn run(mut self, spots: Weak<Inner>) {
        let Some(mut source) = spots.upgrade().map(|spots| spots.permits.source()) else {
            return;
        };
        while let Some((published, permit)) = self.0.recv().await {
            let Some(spots) = spots.upgrade() else { return };
            let Some(key) = published.key().filter(|_| spots.fence.is_open()) else {
                continue;
            };
            let mut objects = spots.subscribers.of(&key);
            objects.retain(|object| published.is_for(object));
            let served = source.serve_each(Some(permit), objects, |object, permit| {
                published.deliver(&key, &object, permit);
            });
            if served.await.is_err() {
                return;
            }
        }
    }
}

/// Publishes: to each node that serves the channel now, and to the Spots of this host, if it has any. What has no room is
/// left out.
pub(super) fn publish(
    outbound: &Outbound,
    channel: &ChannelName,
    (topic, packet): (&str, &str),
    metadata: &[u8],
    payload: &[u8],
) -> Result<(), Error> {
    let Some(members) = outbound.members(channel) else {
        let text = format!("channel {channel:?} leads through no mesh of this process");
        return Err(Error::not_executed(ErrorKind::NotFound, text));
    };
    let mut head = Vec::new();
    wire::publish_head(&mut head, channel.as_str(), packet, topic, metadata);
    for peer in members {
        // Whom a publish leaves out is told nobody (SP-108).
        let _ = peer.try_send(Lane::Data, Record { head: &head, payload });
    }
    match outbound.objects_as::<Inner>() {
        Some(spots) => spots.publish_here((channel.as_str(), topic, packet), head, payload),
        None => Ok(()),
    }
}

impl Inner {
    fn publish_here(
        &self,
        (channel, topic, packet): (&str, &str, &str),
        mut head: Vec<u8>,
        payload: &[u8],
    ) -> Result<(), Error> {
        let key = (channel.to_owned(), topic.to_owned(), packet.to_owned());
        let here = if self.fence.is_open() {
            self.subscribers.of(&key)
        } else {
            Vec::new()
        };
        if here.is_empty() {
            return Ok(());
        }
        head.extend_from_slice(payload);
        let record = Bytes::from(head);
        let Ok(wire::Incoming::Publish(publish)) = wire::parse(&record) else {
            return Err(Error::not_executed(
                ErrorKind::InternalFailure,
                "a publish cannot be read",
            ));
        };
        let mesh = None;
        let published = Published { mesh, record, publish };
        let source = self.permits.source();
        for object in here {
            // One that is free, and that nobody waits for.
            let Some(permit) = source.try_acquire(1).and_then(|mut grant| grant.take()) else {
                break;
            };
            published.deliver(&key, &object, permit);
        }
        Ok(())
    }
}
