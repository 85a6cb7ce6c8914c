//! What may make a Spot that closes: it waits for the end, and then makes it anew, in the order in which it came.
//!
//! Whatever waits keeps its permit, so that a host bounds how much does. It must not know how a Spot is made or closed.

use std::sync::{Arc, Weak};

use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::limit::ACTIVATION_TIME;

use super::desk::Incoming;
use super::object::Object;
use super::spots::Inner;

impl Inner {
    /// `object` closes, and `incoming` may make it anew: it waits. Handed back where the end has come meanwhile.
    pub(super) fn wait_for_end(self: &Arc<Self>, object: &Arc<Object>, incoming: Incoming) -> Option<Incoming> {
        let until = incoming.deadline.unwrap_or_else(|| clock::now() + ACTIVATION_TIME);
        match object.waits_for_end(until, incoming) {
            Ok(true) => {
                self.runtime.spawn(end_waits(Arc::downgrade(object)));
                None
            }
            Ok(false) => None,
            Err(incoming) => Some(*incoming),
        }
    }

    /// Takes that very object out of the table: it is gone. What waited for that comes next.
    pub(super) fn remove(self: &Arc<Self>, object: &Arc<Object>) {
        let mut table = self.table.lock();
        table.remove(object);
        let now = clock::now();
        for (until, incoming) in object.end() {
            if until > now {
                self.activate_in(&mut table, incoming);
            } else {
                self.waited_too_long(incoming);
            }
        }
        drop(table);
        self.subscribers.remove(object);
    }

    fn waited_too_long(&self, incoming: Incoming) {
        let text = "the Spot, which closes, was not gone in time";
        let error = Error::not_executed(ErrorKind::DeadlineExceeded, text);
        self.refuse("late", error, incoming.reply);
    }
}

/// Ends waits at the end of their time, until there is none.
async fn end_waits(object: Weak<Object>) {
    loop {
        let Some(next) = object.upgrade().and_then(|object| object.next_wait()) else {
            return;
        };
        tokio::time::sleep_until(next).await;
        let Some(object) = object.upgrade() else { return };
        for incoming in object.waited_too_long(clock::now()) {
            object.spots.waited_too_long(incoming);
        }
    }
}
