//! What a store that loses or delays answers can do to a Spot that is being made: each was found by a storm over Spots.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use zlink_runtime::error::{CallError, Execution};
use zlink_runtime::location::{Fault, Operation};
use zlink_runtime::rt::SpotCreated;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::kit::*;

/// The store knows that it is Ready before its owner does: whoever has read that is served, once its owner knows it too.
///
/// REQ: SP-083, SP-050, LS-100
#[tokio::test(start_paused = true)]
async fn what_was_found_ready_is_not_refused_by_an_owner_that_waits_for_its_own_answer() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 70).await?;
        let faults = cluster.store_faults("owner");
        faults.next(Operation::Write, None);
        faults.next(Operation::Write, Fault::DelayAnswer(Duration::from_secs(2)));
        let making = tokio::spawn(room_spots(&host).get_or_create("one", text("x")).into_future());
        world.until("initialize one").await;
        cluster.advance(Duration::from_millis(100)).await;
        let found = room_spots(&host).get_or_create("one", text("y")).await?;
        assert!(matches!(found, SpotCreated::Existing(_)), "{found:?}");
        assert!(!making.is_finished(), "its owner has no answer yet");
        let one = room_spots(&host).of("one");
        one.say(text("early")).await?;
        assert_eq!(look(&one, "lines").await?, "x,early");
        assert!(room_spots(&host).close(found.reference().unwrap()).await?);
        making.await??;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A reservation whose answer was lost, and which others have taken since, makes nothing.
///
/// REQ: LS-033, LS-036, LS-100
#[tokio::test(start_paused = true)]
async fn a_reservation_that_was_taken_before_its_host_heard_of_it_runs_no_factory() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 71).await?;
        let faults = cluster.store_faults("owner");
        faults.cut();
        faults.next(Operation::Write, Fault::LostAnswer);
        let rooms = room_spots(&host);
        let asked = rooms
            .get_or_create("one", text("first"))
            .timeout(Duration::from_secs(2));
        assert_eq!(asked.await.unwrap_err().execution(), Execution::Unknown);
        serves(&cluster, &world, "other");
        cluster.start("other").await?;
        cluster.advance(Duration::from_secs(30)).await;
        let (one, _) = room(&cluster.host("other"), "one", "second").await?;
        assert_eq!(world.count("create one on other"), 1, "{:?}", world.log());
        faults.heal();
        cluster.advance(Duration::from_secs(30)).await;
        assert_eq!(world.count("create one on owner"), 0, "{:?}", world.log());
        assert_eq!(look(&one, "lines").await?, "second");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What is being made when its host is cut off, and taken meanwhile, is not made any further.
///
/// REQ: LS-033, LS-036
#[tokio::test(start_paused = true)]
async fn a_factory_whose_reservation_was_taken_goes_no_further() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 72).await?;
        world.holds("create");
        let making = tokio::spawn(room_spots(&host).get_or_create("one", text("first")).into_future());
        world.until("held in create").await;
        cluster.store_faults("owner").cut();
        serves(&cluster, &world, "other");
        cluster.start("other").await?;
        cluster.advance(Duration::from_secs(30)).await;
        world.open_build(2);
        let (one, _) = room(&cluster.host("other"), "one", "second").await?;
        let initialized = world.count("initialize one");
        cluster.store_faults("owner").heal();
        cluster.advance(Duration::from_secs(30)).await;
        assert_eq!(
            (initialized, world.count("initialize one")),
            (1, 1),
            "{:?}",
            world.log()
        );
        assert_eq!(look(&one, "lines").await?, "second");
        assert!(making.await?.is_err(), "nothing was made for it");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Whoever stops while something of a create may have run does not say that nothing has.
///
/// REQ: SP-056
#[tokio::test(start_paused = true)]
async fn a_create_that_a_stopping_host_gives_up_may_have_run() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 73).await?;
        world.holds("create");
        let making = tokio::spawn(room_spots(&host).get_or_create("one", text("x")).into_future());
        world.until("held in create").await;
        cluster.stop("caller").await?;
        let error = making.await?.unwrap_err();
        assert_eq!(error.execution(), Execution::Unknown, "{error}");
        world.open_build(1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What closes when its host is cut off, and is taken meanwhile, does not even end there.
///
/// REQ: LS-033, LS-036
#[tokio::test(start_paused = true)]
async fn a_close_under_way_of_what_was_taken_goes_no_further() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 81).await?;
        calls(&cluster, "other");
        cluster.start("other").await?;
        let (one, spot) = room(&host, "one", "x").await?;
        one.say(text("gate")).await?;
        world.until("say waits").await;
        cluster.store_faults("owner").cut();
        cluster.advance(Duration::from_secs(5)).await;
        let closing = tokio::spawn(
            room_spots(&host)
                .close(&spot)
                .timeout(Duration::from_secs(2))
                .into_future(),
        );
        cluster.advance(Duration::from_secs(20)).await;
        assert!(closing.await?.is_err());
        assert!(room_spots(&cluster.host("other")).release(&spot).await?);
        world.open(1);
        cluster.store_faults("owner").heal();
        cluster.advance(Duration::from_secs(40)).await;
        assert_eq!(world.count("closing one"), 0, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// How late the caller hears of what it reads in the store.
const READ: Duration = Duration::from_millis(300);

/// A cart that the node `winner` has, while the host `caller` sends the first message that it has for it to the node `loser`,
/// since it was told that there is none.
struct Race {
    carts: CartSpots,
    won: CartSpotClient,
    making: JoinHandle<Result<Line, CallError>>,
    began: Instant,
}

impl Race {
    async fn begin(cluster: &Cluster, world: &World) -> Result<Self, Failure> {
        for name in ["loser", "winner"] {
            serves_with(cluster, world, name, move |objects| {
                all(objects).placement_weight(if name == "winner" { 100 } else { 0 })
            });
        }
        calls(cluster, "caller");
        start(cluster).await?;
        let carts = cart_spots(&cluster.host("caller"));
        let faults = cluster.store_faults("caller");
        faults.every(Operation::Read, Fault::DelayAnswer(READ));
        let began = Instant::now();
        let making = tokio::spawn(carts.of("cart").view(text("second")).activating().into_future());
        cluster.advance(READ / 3).await;
        let won = cart_spots(&cluster.host("winner")).of("cart");
        won.add(text("first")).activating().await?;
        world.until("cart has first").await;
        // For what is made from here on.
        for (name, weight) in [("winner", 0), ("loser", 100)] {
            cluster.host(name).mesh("world")?.set_placement_weight(weight)?;
        }
        Ok(Self {
            carts,
            won,
            making,
            began,
        })
    }
}

/// While the store tells a call where a cart is, another call of the same host, which was told that there is none, begins to
/// make it elsewhere. Both are sent on from there, and nobody waits until the time to make it is over.
///
/// REQ: SP-067, SP-068
#[tokio::test(start_paused = true)]
async fn a_call_that_finds_the_winner_while_its_host_sends_to_the_loser_does_not_wait() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 82);
        let Race { carts, won, making, .. } = Race::begin(&cluster, &world).await?;
        cluster.advance(READ / 3).await;
        let began = Instant::now();
        let finding = carts
            .of("cart")
            .view(text("third"))
            .activating()
            .timeout(Duration::from_secs(120));
        assert_eq!(finding.await?.text, "first,second,third");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(making.await??.text, "first,second");
        assert!(won.view(text("where")).await?.text.starts_with("winner"));
        assert_eq!(world.count("activate cart"), 1, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// The last message that went by the loser of a race may still be on its way when the next one goes to the winner.
///
/// REQ: SP-067
#[tokio::test(start_paused = true)]
async fn what_goes_to_the_winner_comes_behind_what_the_loser_sends_on() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 83);
        let Race {
            carts,
            won,
            making,
            began,
        } = Race::begin(&cluster, &world).await?;
        assert_eq!(making.await??.text, "first,second");
        cluster.store_faults("caller").heal();
        // The caller sends there for thirty seconds, from when it was told that there is no cart.
        tokio::time::sleep_until(began + READ + Duration::from_millis(29_800)).await;
        cluster.network().delay("loser", "winner", Duration::from_millis(700));
        carts.of("cart").add(text("third")).activating().await?;
        cluster.advance(Duration::from_millis(300)).await;
        carts.of("cart").add(text("fourth")).activating().await?;
        cluster.advance(Duration::from_secs(3)).await;
        assert_eq!(won.view(text("")).await?.text, "first,second,third,fourth");
        assert_eq!(world.count("activate cart"), 1, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What the winner had is gone: the loser, which has nothing to send there any more, makes what is asked for next under that ID,
/// of another type even.
///
/// REQ: SP-083
#[tokio::test(start_paused = true)]
async fn the_loser_of_a_race_makes_the_next_of_that_id() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 85);
        let Race { won, making, .. } = Race::begin(&cluster, &world).await?;
        assert_eq!(making.await??.text, "first,second");
        cluster.store_faults("caller").heal();
        won.add(text("close")).await?;
        cluster.advance(Duration::from_secs(1)).await;
        let began = Instant::now();
        let rooms = room_spots(&cluster.host("caller"));
        let made = rooms.get_or_create("cart", text("x")).timeout(Duration::from_secs(20));
        assert!(matches!(made.await?, SpotCreated::Created(..)));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert!(look(&rooms.of("cart"), "where").await?.starts_with("loser"));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Nor is what closes polled on while its host cannot prove that it has it.
///
/// REQ: LS-033
#[tokio::test(start_paused = true)]
async fn a_close_under_way_stands_still_with_its_host() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 84).await?;
        let (_, spot) = room(&host, "one", "x").await?;
        world.holds("closing");
        let call = room_spots(&host).close(&spot).timeout(Duration::from_secs(60));
        let closing = tokio::spawn(call.into_future());
        world.until("held in closing").await;
        cluster.store_faults("owner").cut();
        cluster.advance(Duration::from_secs(12)).await;
        world.open_build(1);
        cluster.advance(Duration::from_secs(2)).await;
        assert_eq!(world.count("room dropped"), 0, "{:?}", world.log());
        assert!(!closing.is_finished());
        cluster.store_faults("owner").heal();
        assert!(closing.await??);
        assert_eq!(world.count("room dropped"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}
