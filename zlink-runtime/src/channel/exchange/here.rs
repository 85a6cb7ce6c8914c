//! An exchange with a Spot of the own host: what is asked there stays the value that it is.
//!
//! Only what is plain goes this way, and whatever is not is as if it had never been tried: so a record, which is made then,
//! is the one place where anything is refused.

use std::task::Context;

use crate::clock;
use crate::message::codec::{self, Message};
use crate::permit::Permit;

use super::super::found::Lead;
use super::super::objects::{Asked, Here, OwnCall};
use super::super::own::{LOCAL, OwnPeer};
use super::super::reply::{ReplyRoute, ReplyTo};
use super::super::way::Target;
use super::{Arc, Exchange, Step};

/// What stands before a payload in a record, beside the metadata, at most.
const HEAD: usize = 2048;

impl Exchange {
    /// Hands `message` to a Spot of this host. `None`: the call goes as a record, and the message is where it was.
    #[inline]
    pub(in crate::channel) fn hand_over<M: Message>(
        &mut self,
        message: &mut Option<M>,
        cx: &Context<'_>,
    ) -> Option<Step> {
        let (here, handler) = self.here()?;
        let size = codec::measure(message.as_ref()?)?;
        let own = here.own()?;
        let permit = self.room_here(own, size)?;
        let reply = self.begins_here(own, here.mesh(), cx);
        let call: Box<OwnCall> = OwnCall::boxed(OwnCall {
            packet: self.method.packet(),
            handler,
            metadata: std::mem::take(&mut self.metadata),
            deadline: self.deadline.filter(|_| reply.is_some()),
            reply,
            flow: self.traced.as_ref().map(|traced| Box::new(traced.flow)),
            size,
            message: message.take(),
        });
        match here.take(call, permit) {
            Ok(()) => Some(self.accepted()),
            Err(mut call) => {
                *message = codec::take(&mut call.message);
                self.comes_back(&mut call);
                None
            }
        }
    }

    fn here(&mut self) -> Option<(Arc<dyn Here>, u32)> {
        let Target::Spot(spot) = &self.way.target else {
            return None;
        };
        if spot.fixed.is_some() || spot.is_elsewhere() || self.way.outbound.takes(self.way.in_turn()).is_err() {
            return None;
        }
        let asked = Asked {
            id: &spot.id,
            packet: self.method.packet(),
            hash: self.method.hash(),
            request: self.timeout.is_some(),
        };
        let (here, handler) = spot.here(&self.way.outbound, &asked)?;
        self.sent_by = Lead::Record(here.version());
        if let Some(timeout) = self.timeout {
            self.deadline.get_or_insert_with(|| clock::now() + timeout);
        }
        Some((here, handler))
    }

    /// A permit, where that many bytes fit by all means.
    fn room_here(&self, own: &OwnPeer, size: usize) -> Option<Permit> {
        let beside = HEAD + self.metadata.as_bytes().len();
        if size > own.most_beside(beside) {
            return None;
        }
        own.try_queued(self.own_kind())
    }

    /// It is registered, where it is a request, before anybody can answer it.
    fn begins_here(&mut self, own: &Arc<OwnPeer>, mesh: &str, cx: &Context<'_>) -> Option<ReplyTo> {
        self.note_flow();
        let key = self.register(LOCAL, cx);
        self.note_selected(own.rid(), Some(mesh));
        key.map(|key| ReplyTo::new(ReplyRoute::Local(own.clone()), key.to_wire()))
    }

    /// Its Spot takes nothing any more: nobody has had it.
    fn comes_back(&mut self, call: &mut OwnCall) {
        self.metadata = std::mem::take(&mut call.metadata);
        if let Some(reply) = call.reply.take() {
            reply.withdraw();
        }
        self.waiting = None;
    }
}
