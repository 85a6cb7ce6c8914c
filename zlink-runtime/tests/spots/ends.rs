//! How Spots end: with their host, in its time, in order; when they are idle; and what waits for that.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::SpotId;
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);

/// Makes `owner` a host that has twelve seconds for its stop.
fn hasty(cluster: &Cluster, world: &World) {
    serves_on(cluster, world, "owner", |host| host.drain_timeout(12 * SECOND), all);
}

/// REQ: SP-034, SP-036, SP-160
#[tokio::test(start_paused = true)]
async fn a_room_is_found_until_its_host_has_closed_it() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 170);
        hasty(&cluster, &world);
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let (one, spot) = room(&host, "one", "x").await?;
        world.holds("closing");
        one.say(text("gate")).await?;
        world.until("say waits").await;
        let stopping = tokio::spawn(cluster.stop("owner"));
        cluster.advance(5 * SECOND).await;
        let refused = one.look(text("lines")).timeout(SECOND).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Unavailable), "{refused}");
        world.open(1);
        world.until("held in closing").await;
        let log = world.log();
        let told = log.iter().find(|line| line.starts_with("closing one")).unwrap();
        assert!(
            ["closing one HostShutdown within 5", "closing one HostShutdown within 6"].contains(&&**told),
            "with what is left of twelve seconds: {told}"
        );
        assert_eq!(world.count("one heard gate"), 1);
        assert_eq!(room_spots(&host).find("one").await?, Some(spot), "it is not gone yet");
        assert_eq!(world.count("room dropped"), 0);
        world.open_build(1);
        stopping.await??;
        assert_eq!(world.count("room dropped"), 1);
        let gone = look(&one, "lines").await.unwrap_err();
        assert_eq!(gone.kind(), Some(ErrorKind::NotFound), "{gone}");
        assert_eq!(room_spots(&host).find("one").await?, None);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-036
#[tokio::test(start_paused = true)]
async fn what_is_not_done_in_the_time_of_a_stop_makes_it_an_error() -> Tested {
    for provider in PROVIDERS {
        for never in ["turn", "close"] {
            let (cluster, world) = on(provider, 171);
            hasty(&cluster, &world);
            start(&cluster).await?;
            let (one, _) = room(&cluster.host("owner"), "one", "x").await?;
            if never == "turn" {
                one.say(text("gate")).await?;
                one.say(text("behind")).await?;
                world.until("say waits").await;
            } else {
                world.holds("closing");
            }
            let began = tokio::time::Instant::now();
            let failed = cluster.stop("owner").await.unwrap_err();
            let took = began.elapsed();
            assert!((12 * SECOND..16 * SECOND).contains(&took), "{never}: {took:?}");
            let ended = (failed.failed_spots(), failed.unfinished_jobs());
            assert_eq!(
                ended,
                if never == "turn" { (0, 2) } else { (1, 0) },
                "{never}: {failed}"
            );
            assert_eq!(world.count("heard"), 0);
        }
    }
    Ok(())
}

/// Neither has found the room closing before: whoever seals it closes it.
///
/// REQ: SP-093, SP-092, SP-033
#[tokio::test(start_paused = true)]
async fn of_two_that_close_a_room_at_one_moment_one_does() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 178).await?;
        let (_, spot) = room(&host, "one", "x").await?;
        let closing: Vec<_> = (0..4)
            .map(|_| tokio::spawn(room_spots(&host).close(&spot).into_future()))
            .collect();
        let mut closed = 0;
        for close in closing {
            closed += usize::from(close.await??);
        }
        assert_eq!(
            (closed, world.count("closing one"), world.count("room dropped")),
            (1, 1, 1)
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A cart that asks a room, in its own time.
struct Late(World);

impl CartSpot for Late {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let world = context.shared::<World>().cloned();
        Ok(Self(world.ok_or_else(|| HandlerError::new("no world was shared"))?))
    }

    async fn add(&mut self, _: &mut CartTurn<'_>, _: Line) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn view(&mut self, turn: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.0.note("view waits");
        self.0.gate().await;
        Ok(room_spots(turn).of(&request.text).look(text("lines")).await?)
    }
}

/// What was accepted is finished with all that it needs, calls of its own included.
///
/// REQ: SP-160
#[tokio::test(start_paused = true)]
async fn a_turn_under_way_calls_others_while_its_host_stops() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 177);
        serves_with(&cluster, &world, "owner", |objects| objects.spot(cart_spot::<Late>()));
        serves_with(&cluster, &world, "other", |objects| objects.spot(room_spot::<Room>()));
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        room(&host, "room", "x").await?;
        let cart = cart_spots(&host).of("cart");
        let viewed = tokio::spawn(cart.view(text("room")).activating().into_future());
        world.until("view waits").await;
        let stopping = tokio::spawn(cluster.stop("owner"));
        cluster.advance(SECOND).await;
        world.open(1);
        assert_eq!(viewed.await??.text, "x");
        stopping.await??;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-068, EX-88
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_cart_to_be_gone_gives_its_permit_back_in_time() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 172).await?;
        let cart = cart_spots(&host).of("cart");
        cart.add(text("old")).activating().await?;
        world.holds("closing");
        cart.add(text("close")).await?;
        world.until("held in closing").await;
        let jobs = || cluster.host("owner").status().jobs.in_use();
        let wait = |what, time| tokio::spawn(cart.view(text(what)).activating().timeout(time).into_future());
        let patient = wait("anew", 20 * SECOND);
        cluster.advance(SECOND / 10).await;
        let late = wait("never", 2 * SECOND);
        cluster.advance(SECOND).await;
        assert_eq!(jobs(), 2, "they wait with their permits");
        let late = late.await?.unwrap_err();
        assert_eq!(late.kind(), Some(ErrorKind::DeadlineExceeded), "{late}");
        cluster.advance(SECOND).await;
        assert_eq!(jobs(), 1, "{place:?}: its caller waits no more");
        world.open_build(1);
        assert_eq!(patient.await??.text, "anew");
        assert_eq!(jobs(), 0);
        assert_eq!(world.count("has never"), 0);
        world.open_build(1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A host that cannot prove that it lives closes nothing either: what was idle meanwhile serves once it can.
///
/// REQ: SP-140, LS-032
#[tokio::test(start_paused = true)]
async fn an_idle_cart_is_not_closed_by_a_host_without_a_lease() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 173);
        serves_with(&cluster, &world, "owner", |objects| {
            all(objects).instance_idle_timeout(40 * SECOND)
        });
        start(&cluster).await?;
        let owner = cluster.host("owner");
        let cart = cart_spots(&owner).of("cart");
        let admits = || {
            owner
                .status()
                .location
                .is_some_and(|location| location.admits_owned_work)
        };
        cart.add(text("tea")).activating().await?;
        cluster.advance(20 * SECOND).await;
        cluster.store_faults("owner").cut();
        cluster.advance(40 * SECOND).await;
        assert!(!admits());
        cluster.store_faults("owner").heal();
        while !admits() {
            cluster.advance(Duration::from_millis(10)).await;
        }
        // It looks for those that are idle every ten seconds.
        assert_eq!(cart.view(text("")).await?.text, "tea");
        cluster.advance(30 * SECOND).await;
        assert_eq!(world.count("closing"), 0, "{:?}", world.log());
        cluster.advance(21 * SECOND).await;
        assert_eq!(world.count("closing cart IdleEvicted"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-140
#[tokio::test(start_paused = true)]
async fn a_cart_stays_however_idle_where_nobody_says_how_long() -> Tested {
    for place in LOCAL {
        let (cluster, world, host) = placed(place, 175).await?;
        let cart = cart_spots(&host).of("cart");
        cart.add(text("tea")).activating().await?;
        cluster.advance(3_600 * SECOND).await;
        assert_eq!(cart.view(text("")).await?.text, "tea");
        assert_eq!(world.count("closing"), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-054
#[tokio::test(start_paused = true)]
async fn a_host_that_stops_sends_nothing_to_a_room() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 176).await?;
        calls(&cluster, "other");
        cluster.start("other").await?;
        let (one, spot) = room(&host, "one", "x").await?;
        one.say(text("gate")).await?;
        world.until("say waits").await;
        let stopping = tokio::spawn(cluster.stop(place.caller()));
        cluster.advance(Duration::from_millis(1)).await;
        for round in 0..2 {
            let refused = [
                one.say(text("never")).await.unwrap_err(),
                look(&one, "lines").await.unwrap_err(),
                room_spots(&host).close(&spot).await.unwrap_err(),
            ];
            for refused in refused {
                assert_eq!(
                    (refused.kind(), refused.execution()),
                    (Some(ErrorKind::ShuttingDown), Execution::NotExecuted),
                    "{round}: {refused}"
                );
            }
            world.open(1);
            cluster.advance(5 * SECOND).await;
        }
        stopping.await??;
        assert_eq!(world.count("heard never"), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Nor does a tick wait there for it to end: it takes no permit, and there is none when the host has recovered.
///
/// REQ: SP-133, EX-66
#[tokio::test(start_paused = true)]
async fn a_host_without_a_lease_has_no_ticks() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 174);
        serves(&cluster, &world, "owner");
        start(&cluster).await?;
        let owner = cluster.host("owner");
        let admits = || {
            owner
                .status()
                .location
                .is_some_and(|location| location.admits_owned_work)
        };
        for number in 0..5 {
            room(&owner, &number.to_string(), "ticks").await?;
        }
        cluster.store_faults("owner").cut();
        cluster.advance(20 * SECOND).await;
        assert!(!admits());
        let ticks = world.count("ticks");
        cluster.advance(20 * SECOND).await;
        assert_eq!((world.count("ticks"), owner.status().jobs.in_use()), (ticks, 0));
        cluster.store_faults("owner").heal();
        while !admits() {
            cluster.advance(Duration::from_millis(10)).await;
        }
        cluster.advance(2 * SECOND).await;
        assert!(world.count("ticks") >= ticks + 5, "{:?}", world.log());
        let found = owner.find_spot(&SpotId::from_static("0")).await?;
        assert!(found.is_some());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A room that panics wherever it can: as its creation says, and as it is dropped.
struct Grenade(&'static str);

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("as told");
    }
}

impl Grenade {
    async fn create(_: RoomContext, request: Line) -> Result<rt::Created<Self, Line>, HandlerError> {
        let panics = ["begin", "end"].into_iter().find(|when| *when == request.text);
        Ok(rt::Created::Accepted(Self(panics.unwrap_or("drop")), request))
    }

    async fn on_initialize(&mut self, _: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
        assert_ne!(self.0, "begin", "as told");
        Ok(())
    }

    async fn on_closing(
        &mut self,
        _: &mut RoomTurn<'_>,
        _: rt::CloseReason,
        _: rt::Instant,
    ) -> Result<(), HandlerError> {
        assert_ne!(self.0, "end", "as told");
        Ok(())
    }
}

/// A panic of a callback, and then one of the drop of the state that it had, end that Spot and not the process.
///
/// REQ: SP-084, SP-034
#[tokio::test(start_paused = true)]
async fn a_state_that_panics_twice_ends_nothing_but_its_spot() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed_with(place, 107, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                let rooms = rt::SpotFactory::user(ROOM, Grenade::create).initialize(Grenade::on_initialize);
                let rooms = rooms.closing(Grenade::on_closing).relocation(rt::Relocation::Disabled);
                objects.spot(rooms.build())
            });
        })
        .await?;
        let rooms = room_spots(&host);
        let failed = rooms.get_or_create("one", text("begin")).await.unwrap_err();
        assert_eq!(failed.kind(), Some(ErrorKind::InternalFailure), "{failed}");
        for how in ["end", "drop"] {
            let (_, spot) = room(&host, "one", how).await?;
            assert!(rooms.close(&spot).await?, "{how}");
            assert_eq!(rooms.find("one").await?, None, "{how}");
        }
        cluster.shutdown().await?;
    }
    Ok(())
}
