//! Changes of Spots: an older client at hosts of the newer version, and the reverse, in one mesh each.
//!
//! It must not know which rules there are.

use std::future::IntoFuture;
use std::time::Duration;

use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{Created, ObjectServerBuilder};

use crate::services::{Endings, end};
use crate::{after, before};

/// Each kind of handler answers with the name of the method.
#[derive(Debug)]
pub(crate) struct Thing;

/// Spots that their first message makes, and those that are created.
macro_rules! things {
    ($($side:ident::$spot:ident: $context:ident, $turn:ident $(, create($request:ident))? $(, activate $activate:ident)?;
        $($method:ident)* ($message:ident) $(, $tick:ident)?;)*) => {
        $(impl $side::$spot for Thing {
            $(async fn create(_: $side::$context, _: $side::$request) -> Result<Created<Self, ()>, HandlerError> {
                Ok(Created::Accepted(Thing, ()))
            })?
            $(async fn $activate(_: $side::$context) -> Result<Self, HandlerError> {
                Ok(Thing)
            })?
            $(async fn $method(&mut self, _: &mut $side::$turn<'_>, _: $side::$message) -> Result<$side::$message, HandlerError> {
                Ok($side::$message { word: stringify!($method).to_owned() })
            })*
            $(async fn $tick(&mut self, _: &mut $side::$turn<'_>, _: zlink_runtime::rt::Tick) -> Result<(), HandlerError> {
                Ok(())
            })?
        })*
    };
}

things! {
    before::SpotActivatesNoMoreSpot: SpotActivatesNoMoreContext, SpotActivatesNoMoreTurn, activate activate; ask keep (SpotActivatesNoMore);
    after::SpotActivatesNoMoreSpot: SpotActivatesNoMoreContext, SpotActivatesNoMoreTurn, activate activate; ask keep (SpotActivatesNoMore);
    before::SpotClosesNowSpot: SpotClosesNowContext, SpotClosesNowTurn, activate activate; ask (SpotClosesNow);
    after::SpotClosesNowSpot: SpotClosesNowContext, SpotClosesNowTurn, activate activate; ask (SpotClosesNow);
    before::SpotRunsOtherwiseSpot: SpotRunsOtherwiseContext, SpotRunsOtherwiseTurn, create(SpotRunsOtherwise); ask (SpotRunsOtherwise);
    after::SpotRunsOtherwiseSpot: SpotRunsOtherwiseContext, SpotRunsOtherwiseTurn, create(SpotRunsOtherwise); ask (SpotRunsOtherwise);
    before::SpotTimerRemovedSpot: SpotTimerRemovedContext, SpotTimerRemovedTurn, create(SpotTimerRemoved); ask (SpotTimerRemoved), on_tick;
    after::SpotTimerRemovedSpot: SpotTimerRemovedContext, SpotTimerRemovedTurn, create(SpotTimerRemoved); ask (SpotTimerRemoved);
    before::SpotIsMadeOtherwiseSpot: SpotIsMadeOtherwiseContext, SpotIsMadeOtherwiseTurn, create(SpotIsMadeOtherwise); ask (SpotIsMadeOtherwise);
    after::SpotIsMadeOtherwiseSpot: SpotIsMadeOtherwiseContext, SpotIsMadeOtherwiseTurn, create(SpotIsMadeOtherwiseNow); ask (SpotIsMadeOtherwise);
}

/// A node that has the Spots, and one that only calls.
async fn cluster(
    seed: u64,
    objects: impl Fn(ObjectServerBuilder) -> ObjectServerBuilder + Send + Sync + 'static,
) -> Result<Cluster, Box<dyn std::error::Error>> {
    let cluster = Cluster::new(seed);
    let (of_server, of_client) = (cluster.store("server"), cluster.store("client"));
    cluster.node("server", move |host| {
        let host = host.location_store(of_server.clone());
        host.mesh("shop", |mesh| mesh.listen("tcp://server:1").object_server(&objects))
    });
    cluster.node("client", move |host| {
        let host = host.location_store(of_client.clone());
        host.mesh("shop", |mesh| mesh.listen("tcp://client:1").object_client())
    });
    cluster.start_all().await?;
    cluster.advance(Duration::from_secs(3)).await;
    Ok(cluster)
}

/// A Spot of one version is made, where a change lets it be, and asked.
macro_rules! created {
    ($side:ident, $host:ident, $endings:ident: $($name:literal: $spots:ident($request:expr, $message:ident);)*) => {
        $({
            let spots = $side::$spots(&$host);
            let mut ended = end(spots.get_or_create($name, $request).into_future(), |_| String::new()).await;
            if ended.answer.is_ok() {
                ended = end(spots.of($name).ask($side::$message::default()), |reply| reply.word).await;
            }
            $endings.entry($name).or_default().push(ended);
        })*
    };
}

/// Adds how the calls of an older client at a newer host end.
pub(crate) async fn older_at_newer(endings: &mut Endings) -> Result<(), Box<dyn std::error::Error>> {
    let cluster = cluster(3, |objects| {
        objects
            .spot(after::spot_activates_no_more_spot::<Thing>())
            .spot(after::spot_closes_now_spot::<Thing>())
            .spot(after::spot_runs_otherwise_spot::<Thing>())
            .spot(after::spot_timer_removed_spot::<Thing>())
            .spot(after::spot_is_made_otherwise_spot::<Thing>())
    })
    .await?;
    let host = cluster.host("client");
    let spot = before::spot_activates_no_more_spots(&host).of("a cart");
    let call = spot.ask(before::SpotActivatesNoMore::default()).activating();
    let ended = end(call, |reply| reply.word).await;
    endings.entry("spot_activates_no_more").or_default().push(ended);
    let spot = before::spot_closes_now_spots(&host).of("another cart");
    for _ in 0..2 {
        let ended = end(spot.ask(before::SpotClosesNow::default()).activating(), |reply| {
            reply.word
        })
        .await;
        endings.entry("spot_closes_now").or_default().push(ended);
    }
    created!(before, host, endings:
        "spot_runs_otherwise": spot_runs_otherwise_spots(before::SpotRunsOtherwise::default(), SpotRunsOtherwise);
        "spot_timer_removed": spot_timer_removed_spots(before::SpotTimerRemoved::default(), SpotTimerRemoved);
        "spot_is_made_otherwise": spot_is_made_otherwise_spots(before::SpotIsMadeOtherwise { word: "x".to_owned() }, SpotIsMadeOtherwise););
    Ok(cluster.shutdown().await?)
}

/// Adds how the calls of a newer client at an older host end.
pub(crate) async fn newer_at_older(endings: &mut Endings) -> Result<(), Box<dyn std::error::Error>> {
    let cluster = cluster(4, |objects| {
        objects
            .spot(before::spot_activates_no_more_spot::<Thing>())
            .spot(before::spot_closes_now_spot::<Thing>())
            .spot(before::spot_runs_otherwise_spot::<Thing>())
            .spot(before::spot_timer_removed_spot::<Thing>())
            .spot(before::spot_is_made_otherwise_spot::<Thing>())
    })
    .await?;
    let host = cluster.host("client");
    let spot = after::spot_activates_no_more_spots(&host).of("a cart");
    spot.keep(after::SpotActivatesNoMore::default()).activating().await?;
    let ended = end(spot.ask(after::SpotActivatesNoMore::default()), |reply| reply.word).await;
    endings.entry("spot_activates_no_more").or_default().push(ended);
    let spot = after::spot_closes_now_spots(&host).of("another cart");
    let ended = end(spot.ask(after::SpotClosesNow::default()).activating(), |reply| {
        reply.word
    })
    .await;
    endings.entry("spot_closes_now").or_default().push(ended);
    created!(after, host, endings:
        "spot_runs_otherwise": spot_runs_otherwise_spots(after::SpotRunsOtherwise::default(), SpotRunsOtherwise);
        "spot_timer_removed": spot_timer_removed_spots(after::SpotTimerRemoved::default(), SpotTimerRemoved);
        "spot_is_made_otherwise": spot_is_made_otherwise_spots(after::SpotIsMadeOtherwiseNow { more: "x".to_owned(), ..Default::default() }, SpotIsMadeOtherwise););
    Ok(cluster.shutdown().await?)
}
