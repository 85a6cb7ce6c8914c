//! Flows: what has one cause bears one number, from the first call through every handler and further call. They exist only
//! while somebody traces `zlink::flow`; nothing is decided by them, and they say nothing of users or messages.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use pin_project_lite::pin_project;
use uuid::{Builder, Uuid};

use crate::wire::FLOW_BYTES;

/// What a flow began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowOrigin {
    /// A message that came in without one.
    Inbound,
    /// A timer.
    Timer,
    /// A call from outside any handler.
    Application,
    /// A lifecycle callback.
    Lifecycle,
}

impl FlowOrigin {
    fn number(self) -> u8 {
        match self {
            FlowOrigin::Inbound => 1,
            FlowOrigin::Timer => 2,
            FlowOrigin::Application => 3,
            FlowOrigin::Lifecycle => 4,
        }
    }
}

impl fmt::Display for FlowOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FlowOrigin::Inbound => "inbound",
            FlowOrigin::Timer => "timer",
            FlowOrigin::Application => "application",
            FlowOrigin::Lifecycle => "lifecycle",
        })
    }
}

/// Names a flow: a UUID of version 7, 36 lower-case characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(Uuid);

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// Both fields of a flow; there is never one without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    pub(crate) origin: FlowOrigin,
}

thread_local! {
    /// The flow of what is polled on this thread.
    static CURRENT: Cell<Option<Flow>> = const { Cell::new(None) };
}

/// Whether somebody traces. While nobody does, no flow is made, read or sent.
#[inline]
pub(crate) fn is_traced() -> bool {
    tracing::enabled!(target: "zlink::flow", tracing::Level::DEBUG)
}

impl Flow {
    /// A new one.
    pub(crate) fn begin(origin: FlowOrigin) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        // Not from the host's sequence: with a seed, a run must be the same whether or not it is traced.
        let [random @ .., _, _, _, _, _, _] = Uuid::new_v4().into_bytes();
        let id = Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        Self { id: FlowId(id), origin }
    }

    /// The one that a call made here belongs to: the running handler's, or one that begins with the call.
    pub(crate) fn of_call() -> Self {
        CURRENT.get().unwrap_or_else(|| Self::begin(FlowOrigin::Application))
    }

    /// The one that a received record names, or one that begins with it.
    pub(crate) fn of_record(flow: &[u8]) -> Self {
        Self::from_wire(flow).unwrap_or_else(|| Self::begin(FlowOrigin::Inbound))
    }

    fn from_wire(flow: &[u8]) -> Option<Self> {
        let (origin, id) = flow.split_last()?;
        let origin = match origin {
            1 => FlowOrigin::Inbound,
            2 => FlowOrigin::Timer,
            3 => FlowOrigin::Application,
            4 => FlowOrigin::Lifecycle,
            _ => return None,
        };
        let id = FlowId(Uuid::from_slice(id).ok()?);
        Some(Self { id, origin })
    }

    pub(crate) fn to_wire(self) -> [u8; FLOW_BYTES] {
        let mut bytes = [self.origin.number(); FLOW_BYTES];
        for (place, byte) in bytes.iter_mut().zip(self.id.0.as_bytes()) {
            *place = *byte;
        }
        bytes
    }
}

/// Makes a flow the current one of its thread until it is dropped.
pub(crate) struct Entered(Option<Flow>);

impl Entered {
    pub(crate) fn new(flow: Option<Flow>) -> Self {
        Self(CURRENT.replace(flow))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// The flow that a handler belongs to, to hand on. Calls that a handler awaits are part of its flow by themselves; a task
/// that it spawns is not, unless it runs in one of these.
///
/// # Examples
/// ```
/// use zlink_runtime::FlowContext;
///
/// # async fn handler(work: impl Future<Output = ()> + Send + 'static) {
/// let flow = FlowContext::capture();
/// tokio::spawn(flow.scope(work)); // what it calls belongs to the handler's flow
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowContext(Option<Flow>);

impl FlowContext {
    /// The flow of the handler that runs on this thread; an empty one outside handlers, and while nobody traces.
    #[must_use]
    pub fn capture() -> Self {
        Self(CURRENT.get())
    }

    /// Its name; `None` where it is empty.
    #[must_use]
    pub fn id(&self) -> Option<FlowId> {
        self.0.map(|flow| flow.id)
    }

    /// What it began with; `None` where it is empty.
    #[must_use]
    pub fn origin(&self) -> Option<FlowOrigin> {
        self.0.map(|flow| flow.origin)
    }

    /// Runs `future` in this flow, wherever it is polled.
    pub fn scope<F: Future>(self, future: F) -> InFlow<F> {
        InFlow { future, flow: self.0 }
    }
}

pin_project! {
    /// A future in a flow, made by [`FlowContext::scope`].
    #[derive(Debug)]
    #[must_use = "futures do nothing until they are polled"]
    pub struct InFlow<F> {
        #[pin]
        future: F,
        flow: Option<Flow>,
    }
}

impl<F: Future> Future for InFlow<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = Entered::new(*this.flow);
        this.future.poll(cx)
    }
}
