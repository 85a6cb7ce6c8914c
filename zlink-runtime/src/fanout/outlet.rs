//! The publisher of one channel: what it was told about full subscribers, and its beacon. It must not know what is published.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval_at, sleep};

use crate::channel::Outbound;
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::limit::PROBE_INTERVAL;
use crate::transport::{Connections, Endpoint, Message, Publisher, TransportError, Unpublished};

use super::topic::beacon;

/// What a publisher is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutletConfig {
    /// To all that want an event, or to none.
    pub(crate) no_drop: bool,
    /// How long that may take.
    pub(crate) send_timeout: Duration,
    /// The greatest record, in bytes.
    pub(crate) max_record: usize,
}

/// The publisher of one channel.
#[derive(Debug)]
pub(crate) struct Outlet {
    publisher: Publisher,
    config: OutletConfig,
    beats: Mutex<Option<JoinHandle<()>>>,
}

impl Outlet {
    /// Binds it, and begins to beat.
    pub(super) async fn bind(
        connections: &Connections,
        endpoint: &Endpoint,
        config: OutletConfig,
        runtime: &Handle,
    ) -> Result<Arc<Self>, TransportError> {
        let outlet = Arc::new(Self {
            publisher: connections.publish(endpoint).await?,
            config,
            beats: Mutex::new(None),
        });
        let beating = Arc::downgrade(&outlet);
        let beats = runtime.spawn(async move {
            let beacon = beacon();
            let mut ticks = interval_at(clock::now() + PROBE_INTERVAL, PROBE_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let Some(outlet) = beating.upgrade() else { return };
                let beaten = match outlet.try_publish(&beacon) {
                    // Others may wait at all times: behind them it is its turn, too.
                    Err(Unpublished::Full) => outlet
                        .publisher
                        .publish_to_all(beacon.clone(), pending::<()>())
                        .await
                        .is_ok(),
                    beaten => beaten.is_ok(),
                };
                if !beaten {
                    return;
                }
            }
        });
        *outlet.beats.lock() = Some(beats);
        Ok(outlet)
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        self.publisher.endpoint()
    }

    pub(super) fn subscribers(&self) -> usize {
        self.publisher.subscribers()
    }

    pub(super) fn max_record(&self) -> usize {
        self.config.max_record
    }

    fn try_publish(&self, message: &Message) -> Result<(), Unpublished> {
        if self.config.no_drop {
            self.publisher.offer_to_all(message)
        } else {
            self.publisher.offer(message)
        }
    }

    /// Publishes; where all are to have it, once all have room. A call of a handler that runs may wait while its host
    /// drains.
    pub(super) async fn publish(&self, message: Message, outbound: &Outbound, in_turn: bool) -> Result<(), Error> {
        let closed = Outbound::shutting_down;
        match self.try_publish(&message) {
            Ok(()) => return Ok(()),
            Err(Unpublished::Closed) => return Err(closed()),
            Err(Unpublished::Full) => {}
        }
        let at_most = self.config.send_timeout;
        let ends = async {
            tokio::select! {
                biased;
                () = outbound.refuses(in_turn) => closed(),
                () = sleep(at_most) => {
                    let text = format!("a subscriber of that topic had no room within {at_most:?}");
                    Error::not_executed(ErrorKind::DeadlineExceeded, text)
                }
            }
        };
        match self.publisher.publish_to_all(message, ends).await {
            Ok(()) => Ok(()),
            Err(ended) => Err(ended.unwrap_or_else(closed)),
        }
    }

    /// Ends at once, whatever it holds.
    pub(super) async fn close(&self) {
        self.abandon();
        self.publisher.close().await;
    }

    pub(super) fn abandon(&self) {
        if let Some(beats) = self.beats.lock().take() {
            beats.abort();
        }
        self.publisher.abandon();
    }
}
