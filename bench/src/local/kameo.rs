//! kameo: an actor per object.

use std::convert::Infallible;

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::mailbox;
use kameo::message::{Context, Message};

use super::{Body, Mailbox, Object, Peer};
use crate::Failure;
use crate::schema::Move;

pub struct Holder(Body);

impl Actor for Holder {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(holder: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(holder)
    }
}

struct Tell(Move);
struct Ask(Move);

impl Message<Tell> for Holder {
    type Reply = ();

    async fn handle(&mut self, message: Tell, _: &mut Context<Self, ()>) {
        self.0.apply(&message.0);
    }
}

impl Message<Ask> for Holder {
    type Reply = u64;

    async fn handle(&mut self, message: Ask, _: &mut Context<Self, u64>) -> u64 {
        self.0.apply(&message.0)
    }
}

pub struct Kameo(Mailbox);

impl Peer for Kameo {
    const NAME: &'static str = "kameo";
    type Object = ActorRef<Holder>;

    async fn start(mailbox: Mailbox) -> Result<Option<Self>, Failure> {
        Ok(Some(Self(mailbox)))
    }

    async fn make(&self, count: usize) -> Result<Vec<ActorRef<Holder>>, Failure> {
        let actors: Vec<_> = (0..count)
            .map(|_| {
                let holder = Holder(Body::default());
                match self.0 {
                    Mailbox::Open => Holder::spawn_with_mailbox(holder, mailbox::unbounded()),
                    Mailbox::Bounded(messages) => Holder::spawn_with_mailbox(holder, mailbox::bounded(messages)),
                }
            })
            .collect();
        for actor in &actors {
            actor.wait_for_startup().await;
        }
        Ok(actors)
    }
}

impl Object for ActorRef<Holder> {
    async fn tell(&self, message: Move) -> Result<(), Failure> {
        ActorRef::tell(self, Tell(message)).await.map_err(|error| error.to_string().into())
    }

    async fn ask(&self, message: Move) -> Result<u64, Failure> {
        ActorRef::ask(self, Ask(message)).await.map_err(|error| error.to_string().into())
    }
}
