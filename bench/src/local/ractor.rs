//! ractor: an actor per object, all with open mailboxes, as it has no others.

use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{Body, Mailbox, Object, Peer};
use crate::Failure;
use crate::schema::Move;

pub struct Holder;

pub enum Message {
    Tell(Move),
    Ask(Move, RpcReplyPort<u64>),
}

impl Actor for Holder {
    type Msg = Message;
    type State = Body;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<Body, ActorProcessingErr> {
        Ok(Body::default())
    }

    async fn handle(&self, _: ActorRef<Message>, message: Message, body: &mut Body) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Tell(message) => {
                body.apply(&message);
            }
            Message::Ask(message, reply) => reply.send(body.apply(&message))?,
        }
        Ok(())
    }
}

pub struct Ractor;

impl Peer for Ractor {
    const NAME: &'static str = "ractor";
    type Object = ActorRef<Message>;

    async fn start(mailbox: Mailbox) -> Result<Option<Self>, Failure> {
        Ok((mailbox == Mailbox::Open).then_some(Self))
    }

    async fn make(&self, count: usize) -> Result<Vec<ActorRef<Message>>, Failure> {
        let mut actors = Vec::with_capacity(count);
        for _ in 0..count {
            // Started once it is returned.
            let (actor, _) = Holder::spawn(None, Holder, ()).await?;
            actors.push(actor);
        }
        Ok(actors)
    }
}

impl Object for ActorRef<Message> {
    async fn tell(&self, message: Move) -> Result<(), Failure> {
        self.cast(Message::Tell(message)).map_err(|error| error.to_string().into())
    }

    async fn ask(&self, message: Move) -> Result<u64, Failure> {
        match self.call(|reply| Message::Ask(message, reply), None).await {
            Ok(CallResult::Success(count)) => Ok(count),
            _ => Err("no reply".into()),
        }
    }

    fn end(self) {
        self.stop(None);
    }
}
