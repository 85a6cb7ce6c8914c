//! The Spots of these tests, as the generator would write them: one that is flooded, and those that it sends on to.

use std::sync::Arc;
use std::time::Duration;

use zlink_generated::contract::{DeskClient, Note, OrdersClient};
use zlink_runtime::location::LocationTiming;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, Created};

use crate::host::Journal;

/// What is flooded.
pub(crate) const BUSY: rt::SpotType = rt::SpotType::from_static("saturation.busy");
/// On the same host.
pub(crate) const NEAR: rt::SpotType = rt::SpotType::from_static("saturation.near");
/// On another one.
pub(crate) const FAR: rt::SpotType = rt::SpotType::from_static("saturation.far");
pub(crate) const NOTE: &str = "saturation.note";
pub(crate) const ASK: &str = "saturation.ask";

pub(crate) type Context = rt::SpotContext<rt::UserSpot>;
pub(crate) type Turn<'t> = rt::SpotTurn<'t, rt::UserSpot>;

/// Spots of one type, each called as its type is.
fn spot(caller: &impl rt::Caller, of: rt::SpotType) -> rt::SpotClient {
    rt::SpotRoute::new(caller, of.clone()).of(of.as_str())
}

/// Makes the one Spot of a type.
pub(crate) async fn create(host: &Host, of: rt::SpotType) {
    let route = rt::SpotRoute::new(host, of.clone());
    let call = route.get_or_create::<Note, Note>(of.as_str(), Note::default());
    assert!(matches!(call.await.unwrap(), rt::SpotCreated::Created(..)), "{of}");
}

pub(crate) fn send(caller: &impl rt::Caller, of: rt::SpotType, note: Note) -> rt::SendCall<Note> {
    spot(caller, of).send(const { rt::Method::send(NOTE) }, note)
}

/// No stalled machine ends a lease.
pub(crate) fn patient() -> LocationTiming {
    LocationTiming {
        renew_timeout: Duration::from_secs(10),
        lease_ttl: Duration::from_secs(60),
        ..LocationTiming::default()
    }
}

/// A Spot that notes what it is sent in the journal of its host.
struct Notes(Arc<Journal>);

impl Notes {
    async fn create(context: Context, request: Note) -> Result<Created<Self, Note>, HandlerError> {
        let journal = context.shared::<Arc<Journal>>();
        let journal = journal.ok_or_else(|| HandlerError::new("no journal is shared"))?;
        Ok(Created::Accepted(Self(journal.clone()), request))
    }

    async fn note(&mut self, _: &mut Turn<'_>, message: Note) -> Result<(), HandlerError> {
        self.0.note(&message.text, message.number);
        Ok(())
    }
}

pub(crate) fn notes(of: rt::SpotType) -> rt::SpotFactory {
    rt::SpotFactory::user(of, Notes::create)
        .send(NOTE, Notes::note)
        .relocation(rt::Relocation::Recreate)
        .build()
}

/// What is called, by whatever name.
#[derive(Clone)]
pub(crate) enum Target {
    Orders(OrdersClient),
    Desk(DeskClient),
    Busy(rt::SpotClient),
}

impl Target {
    pub(crate) fn busy(caller: &impl rt::Caller) -> Self {
        Self::Busy(spot(caller, BUSY))
    }

    pub(crate) async fn tell(&self, note: Note) -> Result<(), CallError> {
        match self {
            Self::Orders(orders) => orders.tell(note).await,
            Self::Desk(desk) => desk.tell(note).await,
            Self::Busy(spot) => spot.send(const { rt::Method::send(NOTE) }, note).await,
        }
    }

    pub(crate) async fn ask(&self, timeout: Duration) -> Result<Note, CallError> {
        let note = Note::default();
        match self {
            Self::Orders(orders) => orders.ask(note).timeout(timeout).await,
            Self::Desk(desk) => desk.ask(note).timeout(timeout).await,
            Self::Busy(spot) => {
                let method = const { rt::Method::request(ASK, rt::None) };
                let call: rt::RequestCall<Note, Note> = spot.request(method, note);
                call.timeout(timeout).await
            }
        }
    }
}
