//! Filters: what stands around handlers, of a host's channels and nodes or of the Spots of one node. A filter sees the context of a message, never
//! the message; it must not know which handler it stands before, nor how an answer travels.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use crate::error::{Error, ErrorKind, HandlerError};
use crate::id::{ActorId, ChannelName, MeshName, PacketName, Rid, SpotId};
use crate::message::metadata::MetadataView;
use crate::transport::BoxFuture;

use super::context::{CorrelationId, MessageKind};
use super::outbound::{Caller, Outbound, sealed};
use super::scope::HandlerScope;

/// Stands around every handler of a host's channels, nodes and fanouts: [`HostBuilder::filter`](crate::HostBuilder::filter)
/// registers one. Or around what the Spots of a node are sent, not their timers:
/// [`ObjectServerBuilder::filter`](crate::ObjectServerBuilder::filter). It runs within the message's turn, once its payload is decoded.
///
/// # Examples
/// ```
/// use std::time::Instant;
/// use zlink_runtime::prelude::*;
/// use zlink_runtime::{Filter, FilterContext, Next};
///
/// struct OnlyTenants;
///
/// impl Filter for OnlyTenants {
///     async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
///         if context.metadata().get("tenant").is_none() {
///             return Ok(()); // a request is answered with `Rejected`
///         }
///         let begun = Instant::now();
///         let ended = next.run().await; // the next filter, or the handler
///         println!("{} took {:?}", context.packet_name(), begun.elapsed());
///         ended
///     }
/// }
///
/// let host = Host::builder().filter(OnlyTenants);
/// ```
pub trait Filter: Send + Sync + 'static {
    /// Lets a message through by running `next`, or ends it by not doing so.
    ///
    /// A request is answered once the outermost filter has returned: with the handler's reply, if the handler came to one
    /// and no filter failed. Without a run of the handler it is answered with `Rejected`, whatever is returned here. A
    /// one-way message that is not let through ends.
    ///
    /// # Errors
    /// As a handler's: a request fails with `InternalFailure`, of a one-way message a record is left. A handler's own
    /// failure comes out of `next` and should be returned; held back, it stays one.
    fn handle(
        &self,
        context: &FilterContext<'_>,
        next: Next<'_>,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

/// The filters of a host, in the order in which they were registered. Empty where there is none.
pub(crate) type Filters = Arc<[Arc<dyn AnyFilter>]>;

/// A filter whose type is known inside only.
pub(crate) trait AnyFilter: Send + Sync {
    fn handle<'s, 'a: 's>(
        &'s self,
        context: &'s FilterContext<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'s, Result<(), HandlerError>>;
}

impl fmt::Debug for dyn AnyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter")
    }
}

impl<F: Filter> AnyFilter for F {
    fn handle<'s, 'a: 's>(
        &'s self,
        context: &'s FilterContext<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'s, Result<(), HandlerError>> {
        Box::pin(Filter::handle(self, context, next))
    }
}

/// What stands within all filters: a handler that has not begun.
type Within<'a> = Pin<&'a mut (dyn Future<Output = Result<(), HandlerError>> + Send)>;

/// The rest of a message's way: the filters after this one, then the handler. Running it uses it up, so that no handler
/// runs twice.
#[must_use = "a message is not handled unless this is run"]
pub struct Next<'a> {
    filters: &'a [Arc<dyn AnyFilter>],
    context: FilterContext<'a>,
    handler: Within<'a>,
}

impl<'a> Next<'a> {
    /// All of it, for the turn that `context` tells of.
    fn new(context: FilterContext<'a>, handler: Within<'a>) -> Self {
        Self {
            filters: context.0.filters(),
            context,
            handler,
        }
    }

    /// Goes on to the next filter or to the handler, and ends with its result. Dropped before its end, it ends the handler
    /// where that stands: a request then fails with `InternalFailure`.
    pub fn run(self) -> impl Future<Output = Result<(), HandlerError>> + Send + use<'a> {
        match self.filters.split_first() {
            Some((first, filters)) => Rest::Filter(Box::pin(async move {
                let context = self.context;
                first.handle(&context, Next { filters, ..self }).await
            })),
            None => Rest::Handler(self.handler),
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next")
            .field("filters", &self.filters.len())
            .finish_non_exhaustive()
    }
}

/// Why a handler came to no answer.
pub(crate) enum Stop {
    /// It failed, or a filter around it did.
    Failed(HandlerError),
    /// A filter did not let the message through, and may have said why.
    Filtered(Option<HandlerError>),
}

/// Runs a handler within the filters of its host.
pub(crate) async fn filtered<R: Send>(
    context: FilterContext<'_>,
    handler: impl Future<Output = Result<R, HandlerError>> + Send,
) -> Result<R, Stop> {
    let (mut has_begun, mut answer) = (false, None);
    let ended = {
        let within = pin!(async {
            has_begun = true;
            answer = Some(handler.await?);
            Ok(())
        });
        Next::new(context, within).run().await
    };
    match (ended, answer) {
        (Ok(()), Some(answer)) => Ok(answer),
        (ended, _) if !has_begun => Err(Stop::Filtered(ended.err())),
        (Err(error), _) => Err(Stop::Failed(error)),
        // A filter kept its failure back, or did not wait for its end.
        (Ok(()), None) => Err(Stop::Failed(HandlerError::new("no filter told of its failure"))),
    }
}

/// The answer to what a filter did not let through.
pub(crate) fn rejected(packet: &str, why: Option<&HandlerError>) -> Error {
    // What an application decides is no failure, so it is told as part of the message's way.
    tracing::debug!(
        target: "zlink::flow", phase = "filtered", packet_name = packet, error = why.map(tracing::field::display)
    );
    let text = format!("a filter of the target did not let {packet} through");
    Error::not_executed(ErrorKind::Rejected, text)
}

/// What a [`Next`] becomes.
enum Rest<'a> {
    Filter(BoxFuture<'a, Result<(), HandlerError>>),
    Handler(Within<'a>),
}

impl Future for Rest<'_> {
    type Output = Result<(), HandlerError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Rest::Filter(filter) => filter.as_mut().poll(cx),
            Rest::Handler(handler) => handler.as_mut().poll(cx),
        }
    }
}

/// What a filter can be told of a turn, whatever the turn is of. What a surface does not have, it does not say.
pub(crate) trait Told: fmt::Debug + Send + Sync {
    fn channel(&self) -> Option<&ChannelName> {
        None
    }
    fn mesh(&self) -> Option<&MeshName> {
        None
    }
    fn source(&self) -> Option<&Rid> {
        None
    }
    fn spot(&self) -> Option<&SpotId> {
        None
    }
    fn actor(&self) -> Option<&ActorId> {
        None
    }
    fn topic(&self) -> Option<&str> {
        None
    }
    fn packet_name(&self) -> &PacketName;
    fn metadata(&self) -> MetadataView<'_>;
    fn correlation(&self) -> Option<CorrelationId>;
    fn scope(&self) -> &HandlerScope;
    fn filters(&self) -> &[Arc<dyn AnyFilter>];
    fn outbound(&self) -> &Outbound;
    /// Alive as long as the turn.
    fn running(&self) -> Weak<()>;
}

/// What a filter is told of a message, and through which it calls others.
#[derive(Clone, Copy, Debug)]
pub struct FilterContext<'a>(&'a dyn Told);

impl<'a> FilterContext<'a> {
    pub(crate) fn new(turn: &'a dyn Told) -> Self {
        Self(turn)
    }

    /// The channel that was called; `None` for Node direct, Spots and Actors.
    #[must_use]
    pub fn channel(&self) -> Option<&'a ChannelName> {
        self.0.channel()
    }

    /// For Node direct the mesh that the caller named, for a Spot or an Actor the one that it lives in.
    #[must_use]
    pub fn mesh(&self) -> Option<&'a MeshName> {
        self.0.mesh()
    }

    /// For Node direct, the node that called.
    #[must_use]
    pub fn source(&self) -> Option<&'a Rid> {
        self.0.source()
    }

    /// The Spot that the message is for; `None` for channels, Node direct and Actors.
    #[must_use]
    pub fn spot(&self) -> Option<&'a SpotId> {
        self.0.spot()
    }

    /// The Actor that the message is for; `None` for everything else.
    #[must_use]
    pub fn actor(&self) -> Option<&'a ActorId> {
        self.0.actor()
    }

    /// Of a fanout's event, what it was published under.
    #[must_use]
    pub fn topic(&self) -> Option<&'a str> {
        self.0.topic()
    }

    /// Whether somebody waits for a reply.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        match self.0.correlation() {
            Some(_) => MessageKind::Request,
            None => MessageKind::Send,
        }
    }

    /// The name on the wire that chose the handler.
    #[must_use]
    pub fn packet_name(&self) -> &'a PacketName {
        self.0.packet_name()
    }

    /// The encoding the message came in.
    #[must_use]
    pub fn content_type(&self) -> &'a str {
        crate::message::CONTENT_TYPE
    }

    /// What the caller set, unchangeable.
    #[must_use]
    pub fn metadata(&self) -> MetadataView<'a> {
        self.0.metadata()
    }

    /// The request's correlation; `None` for a one-way message.
    #[must_use]
    pub fn correlation(&self) -> Option<CorrelationId> {
        self.0.correlation()
    }

    /// What the filters and the handler of this message share.
    #[must_use]
    pub fn scope(&self) -> &'a HandlerScope {
        self.0.scope()
    }
}

impl sealed::Caller for FilterContext<'_> {
    fn outbound(&self) -> &Outbound {
        self.0.outbound()
    }

    fn running(&self) -> Option<Weak<()>> {
        Some(self.0.running())
    }
}

impl Caller for FilterContext<'_> {}
