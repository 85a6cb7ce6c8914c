//! zlink: a Spot per object, called by its ID through the generated client: typed call, route, permit, turn, typed reply.

use futures::{StreamExt, TryStreamExt, stream};
use zlink_runtime::JobProfile;
use zlink_runtime::location::MemoryStore;
use zlink_runtime::prelude::*;

use super::{Mailbox, Object, Peer};
use crate::Failure;
use crate::schema::{self, CellSpotClient, Move, Nothing};
use crate::spots;

/// Spots that are made at once.
const AT_ONCE: usize = 256;

pub struct Zlink(Host);

impl Peer for Zlink {
    const NAME: &'static str = "zlink Spot";
    type Object = CellSpotClient;

    async fn start(mailbox: Mailbox) -> Result<Option<Self>, Failure> {
        let host = spots::host(MemoryStore::new());
        let host = match mailbox {
            Mailbox::Open => host.job_profile(JobProfile::Throughput),
            Mailbox::Bounded(messages) => host.max_queued_jobs(u32::try_from(messages)?),
        };
        Ok(Some(Self(host.start().await?)))
    }

    async fn make(&self, count: usize) -> Result<Vec<CellSpotClient>, Failure> {
        let cells = schema::cell_spots(&self.0);
        let made = stream::iter(0..count).map(async |_| {
            let created = cells.create(Nothing::default()).await?;
            let spot = created.reference().ok_or("the Spot was rejected")?;
            Ok::<_, Failure>(cells.of(&spot.id))
        });
        made.buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn end(self) -> Result<(), Failure> {
        Ok(self.0.shutdown().await?)
    }
}

impl Object for CellSpotClient {
    async fn tell(&self, message: Move) -> Result<(), Failure> {
        Ok(CellSpotClient::tell(self, message).await?)
    }

    async fn ask(&self, message: Move) -> Result<u64, Failure> {
        Ok(CellSpotClient::ask(self, message).await?.value)
    }
}
