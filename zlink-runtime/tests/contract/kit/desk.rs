//! A handler that does as its message says, and remembers what it was told.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use zlink_generated::contract::{
    Brief, DeskHandler, Note, OrdersHandler, StockHandler, Strict, StrictHandler, desk_server, stock_client,
};
use zlink_runtime::error::HandlerError;
use zlink_runtime::prelude::*;
use zlink_runtime::{MessageKind, Metadata};

use super::until;

/// Holds handlers back until a test lets them go.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets `count` of those through that wait, now or later.
    pub(crate) fn release(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.0.close();
    }

    /// Waits to be let through.
    pub(crate) async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

/// What one handler run was told.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `orders`, `stock`, `desk` or `strict`.
    pub(crate) scope: &'static str,
    pub(crate) kind: MessageKind,
    pub(crate) text: String,
    pub(crate) number: u64,
    pub(crate) bytes: usize,
    pub(crate) packet: String,
    pub(crate) content_type: String,
    pub(crate) metadata: Metadata,
    pub(crate) correlation: Option<String>,
    pub(crate) channel: Option<ChannelName>,
    pub(crate) source: Option<(MeshName, Rid)>,
}

/// The handler. Clones share everything. A message's text tells it what to do:
///
/// - `hold`: wait at the gate;  `never`: wait for ever
/// - `fail`, `panic`: do that;  `cancelled`: fail with a text that sounds like something else
/// - `weigh`: reply with `number` bytes;  `long`: reply with more than the schema allows
/// - `relay`: ask `stock` and reply with what it says;  `relay-failed`: ask a channel that is not there, and reply
///   with the kind of that failure
/// - anything else: reply at once
#[derive(Clone)]
pub(crate) struct Desk(Arc<Inner>);

struct Inner {
    name: String,
    gate: Gate,
    seen: Mutex<Vec<Seen>>,
    ended: Mutex<Vec<u64>>,
    dropped: Mutex<Vec<u64>>,
}

/// Notes that the future of a handler is gone, and whether it had ended.
struct Running<'a>(&'a Inner, u64, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let list = if self.2 { &self.0.ended } else { &self.0.dropped };
        list.lock().push(self.1);
    }
}

impl Desk {
    pub(crate) fn new(name: &str) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            gate: Gate::new(),
            seen: Mutex::default(),
            ended: Mutex::default(),
            dropped: Mutex::default(),
        }))
    }

    /// Its Node direct side.
    pub(crate) fn node(&self) -> zlink_runtime::rt::NodeServer {
        desk_server(self.clone())
    }

    /// How many there are of it, this one included.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// Every run so far, in the order of their starts.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.seen.lock().clone()
    }

    pub(crate) fn runs(&self) -> usize {
        self.0.seen.lock().len()
    }

    /// The numbers of the runs so far, in the order of their starts.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.0.seen.lock().iter().map(|seen| seen.number).collect()
    }

    /// The numbers of the runs that have come to their end.
    pub(crate) fn ended(&self) -> Vec<u64> {
        self.0.ended.lock().clone()
    }

    /// The numbers of the runs that were dropped before their end.
    pub(crate) fn dropped(&self) -> Vec<u64> {
        self.0.dropped.lock().clone()
    }

    /// Waits until `count` runs have started.
    #[track_caller]
    pub(crate) fn reached(&self, count: usize) -> impl Future<Output = ()> + use<> {
        let desk = self.clone();
        until(&format!("{count} handler runs at {}", self.0.name), move || {
            desk.runs() >= count
        })
    }

    fn note(&self, seen: Seen) {
        self.0.seen.lock().push(seen);
    }

    async fn act(&self, text: &str, number: u64) -> Result<(), HandlerError> {
        let mut running = Running(&self.0, number, false);
        match text {
            "hold" => self.0.gate.pass().await,
            "never" => std::future::pending::<()>().await,
            "fail" => return Err(HandlerError::new("told to fail, with the secret 4711")),
            "cancelled" => return Err(HandlerError::new("cancelled: deadline exceeded, not found")),
            "panic" => panic!("told to panic, with the secret 4711"),
            "late" => tokio::time::sleep(Duration::from_millis(number)).await,
            _ => {}
        }
        running.2 = true;
        Ok(())
    }

    async fn reply(&self, note: Note) -> Result<Note, HandlerError> {
        self.act(&note.text, note.number).await?;
        let body = if note.text == "weigh" {
            vec![0x5a; usize::try_from(note.number).unwrap()]
        } else {
            Vec::new()
        };
        Ok(Note {
            text: self.0.name.clone(),
            number: note.number,
            body,
        })
    }
}

macro_rules! seen {
    ($scope:literal, $context:ident, $text:expr, $number:expr, $bytes:expr) => {
        Seen {
            scope: $scope,
            kind: $context.kind(),
            text: $text.clone(),
            number: $number,
            bytes: $bytes,
            packet: $context.packet_name().as_str().to_owned(),
            content_type: $context.content_type().to_owned(),
            metadata: $context.metadata().to_metadata(),
            correlation: $context.correlation().map(|correlation| correlation.to_string()),
            channel: None,
            source: None,
        }
    };
    ($scope:literal, $context:ident, $note:ident) => {
        seen!($scope, $context, $note.text, $note.number, $note.body.len())
    };
}

impl OrdersHandler for Desk {
    async fn ask(&self, context: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.note(Seen {
            channel: Some(context.channel().clone()),
            ..seen!("orders", context, request)
        });
        match request.text.as_str() {
            "relay" => Ok(stock_client(context)
                .ask(Note {
                    text: String::new(),
                    ..request
                })
                .await?),
            "relay-failed" => {
                let nowhere = stock_client(context).on(ChannelName::from_static("nowhere"));
                let failed = nowhere.ask(request).await.unwrap_err();
                Ok(super::note(&failed.kind().unwrap().to_string(), 0))
            }
            _ => self.reply(request).await,
        }
    }

    async fn hurry(&self, context: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.note(Seen {
            channel: Some(context.channel().clone()),
            ..seen!("orders", context, request)
        });
        self.reply(request).await
    }

    async fn brief(&self, context: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        self.note(seen!("orders", context, request.text, 0, 0));
        let text = if request.text == "long" {
            "far too long"
        } else {
            "short"
        };
        Ok(Brief { text: text.into() })
    }

    async fn tell(&self, context: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.note(Seen {
            channel: Some(context.channel().clone()),
            ..seen!("orders", context, message)
        });
        self.act(&message.text, message.number).await
    }
}

impl StockHandler for Desk {
    async fn ask(&self, context: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.note(Seen {
            channel: Some(context.channel().clone()),
            ..seen!("stock", context, request)
        });
        self.reply(request).await
    }

    async fn tell(&self, context: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.note(Seen {
            channel: Some(context.channel().clone()),
            ..seen!("stock", context, message)
        });
        self.act(&message.text, message.number).await
    }
}

impl DeskHandler for Desk {
    async fn ask(&self, context: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.note(Seen {
            source: Some((context.mesh().clone(), context.source().clone())),
            ..seen!("desk", context, request)
        });
        self.reply(request).await
    }

    async fn tell(&self, context: &NodeContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.note(Seen {
            source: Some((context.mesh().clone(), context.source().clone())),
            ..seen!("desk", context, message)
        });
        self.act(&message.text, message.number).await
    }
}

impl StrictHandler for Desk {
    async fn ask(&self, context: &ChannelContext<'_>, request: Strict) -> Result<Note, HandlerError> {
        self.note(seen!(
            "strict",
            context,
            request.text,
            request.number,
            request.body.len()
        ));
        Ok(super::note(&self.0.name, request.number))
    }

    async fn tell(&self, context: &ChannelContext<'_>, message: Strict) -> Result<(), HandlerError> {
        self.note(seen!(
            "strict",
            context,
            message.text,
            message.number,
            message.body.len()
        ));
        Ok(())
    }
}
