//! The floor: a task with a channel, and a oneshot for a reply; no address, no limit of a host, no framework.

use tokio::sync::{mpsc, oneshot};

use super::{Body, Mailbox, Object, Peer};
use crate::Failure;
use crate::schema::Move;

pub enum Message {
    Tell(Move),
    Ask(Move, oneshot::Sender<u64>),
}

impl Message {
    fn handle(self, body: &mut Body) {
        match self {
            Message::Tell(message) => {
                body.apply(&message);
            }
            Message::Ask(message, reply) => {
                // Whoever asked may have gone.
                let _ = reply.send(body.apply(&message));
            }
        }
    }
}

pub struct Mpsc(Mailbox);

impl Peer for Mpsc {
    const NAME: &'static str = "tokio mpsc + task";
    type Object = Sender;

    async fn start(mailbox: Mailbox) -> Result<Option<Self>, Failure> {
        Ok(Some(Self(mailbox)))
    }

    async fn make(&self, count: usize) -> Result<Vec<Sender>, Failure> {
        let mut objects = Vec::with_capacity(count);
        for _ in 0..count {
            let (started, is_started) = oneshot::channel();
            objects.push((
                is_started,
                match self.0 {
                    Mailbox::Open => {
                        let (sender, mut messages) = mpsc::unbounded_channel::<Message>();
                        tokio::spawn(async move {
                            let mut body = Body::default();
                            let _ = started.send(());
                            while let Some(message) = messages.recv().await {
                                message.handle(&mut body);
                            }
                        });
                        Sender::Open(sender)
                    }
                    Mailbox::Bounded(messages) => {
                        let (sender, mut messages) = mpsc::channel::<Message>(messages);
                        tokio::spawn(async move {
                            let mut body = Body::default();
                            let _ = started.send(());
                            while let Some(message) = messages.recv().await {
                                message.handle(&mut body);
                            }
                        });
                        Sender::Bounded(sender)
                    }
                },
            ));
        }
        let mut ready = Vec::with_capacity(count);
        for (is_started, object) in objects {
            is_started.await?;
            ready.push(object);
        }
        Ok(ready)
    }
}

#[derive(Clone)]
pub enum Sender {
    Open(mpsc::UnboundedSender<Message>),
    Bounded(mpsc::Sender<Message>),
}

impl Sender {
    async fn send(&self, message: Message) -> Result<(), Failure> {
        match self {
            Sender::Open(sender) => sender.send(message).map_err(|_| "the task has ended".into()),
            Sender::Bounded(sender) => sender.send(message).await.map_err(|_| "the task has ended".into()),
        }
    }
}

impl Object for Sender {
    async fn tell(&self, message: Move) -> Result<(), Failure> {
        self.send(Message::Tell(message)).await
    }

    async fn ask(&self, message: Move) -> Result<u64, Failure> {
        let (reply, replied) = oneshot::channel();
        self.send(Message::Ask(message, reply)).await?;
        Ok(replied.await?)
    }
}
