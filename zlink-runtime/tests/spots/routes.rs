//! How calls find a Spot: behind the message that made it, by what is remembered, and anew where that is wrong.

use std::task::Poll;
use std::time::Duration;

use zlink_runtime::HostBuilder;
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::location::{Fault, Operation};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::SpotRef;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

async fn view(cart: &CartSpotClient) -> Result<String, CallError> {
    Ok(cart.view(text("")).await?.text)
}

/// Makes `name` a node that only calls, and remembers where Spots are for an hour.
fn remembers(cluster: &Cluster, name: &'static str) {
    calls_with(cluster, name, |host| host.route_cache_max_age(HOUR));
}

/// The room `id` on a node whose name begins so: closed and created by `host` until it comes to be there.
async fn room_on(host: &Host, id: &str, node: &str) -> Result<(RoomSpotClient, SpotRef), Failure> {
    loop {
        let (one, spot) = room(host, id, node).await?;
        if look(&one, "where").await?.starts_with(node) {
            return Ok((one, spot));
        }
        assert!(room_spots(host).close(&spot).await?);
    }
}

/// REQ: RT-007, SP-067
#[tokio::test(start_paused = true)]
async fn a_plain_call_comes_behind_what_its_own_host_has_sent() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 80).await?;
        calls(&cluster, "stranger");
        cluster.start("stranger").await?;
        cluster.advance(3 * SECOND).await;
        world.holds("activate");
        let cart = cart_spots(&host).of("cart");
        cart.add(text("first")).activating().await?;
        world.until("held in activate").await;
        cart.add(text("second")).await?;
        let viewed = tokio::spawn(cart.view(text("third")).into_future());
        cluster.advance(SECOND).await;
        assert!(!viewed.is_finished(), "it waits for the cart");
        let strange = view(&cart_spots(&cluster.host("stranger")).of("cart"))
            .await
            .unwrap_err();
        assert_eq!(
            strange.kind(),
            Some(ErrorKind::NotFound),
            "another host has sent nothing: {strange}"
        );
        world.open_build(1);
        assert_eq!(viewed.await??.text, "first,second,third");
        cart.add(text("fourth")).activating().await?;
        cart.add(text("fifth")).await?;
        assert_eq!(view(&cart).await?, "first,second,third,fourth,fifth");
        assert_eq!(world.count("activate cart"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Also where the first call went by a route to the cart that was there before.
///
/// REQ: RT-007, SP-067
#[tokio::test(start_paused = true)]
async fn a_plain_call_comes_behind_what_makes_a_cart_anew() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 79).await?;
        let cart = cart_spots(&host).of("cart");
        cart.add(text("old")).activating().await?;
        // So that it is found in the store, not where the first message went.
        cluster.advance(40 * SECOND).await;
        assert_eq!(view(&cart).await?, "old");
        cart.add(text("close")).await?;
        world.until("cart dropped").await;
        cluster.advance(SECOND).await;
        world.holds("activate");
        cart.add(text("first")).activating().await?;
        world.until("held in activate").await;
        cart.add(text("second")).await?;
        let viewed = tokio::spawn(cart.view(text("third")).into_future());
        cluster.advance(SECOND).await;
        assert!(!viewed.is_finished(), "it waits for the cart");
        world.open_build(1);
        assert_eq!(viewed.await??.text, "first,second,third", "{place:?}");
        assert_eq!(world.count("activate cart"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Also where it had begun to ask for the cart before that, and is answered after.
///
/// REQ: RT-007
#[tokio::test(start_paused = true)]
async fn a_plain_call_that_asks_meanwhile_comes_behind_what_is_sent() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 184).await?;
        let caller = match place.0 {
            Placement::Local => "owner",
            Placement::Remote => "caller",
        };
        world.holds("activate");
        let cart = cart_spots(&host).of("cart");
        let faults = cluster.store_faults(caller);
        faults.every(Operation::Read, Fault::DelayAnswer(SECOND));
        let asking = tokio::spawn(cart.view(text("second")).into_future());
        cluster.advance(SECOND / 4).await;
        faults.heal();
        cart.add(text("first")).activating().await?;
        world.until("held in activate").await;
        cluster.advance(SECOND).await;
        assert!(!asking.is_finished(), "{place:?}: it waits for the cart");
        world.open_build(1);
        assert_eq!(asking.await??.text, "first,second", "{place:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What is heard of an earlier first message, however late, says nothing of the next one: calls go behind that.
///
/// REQ: RT-005, RT-007
#[tokio::test(start_paused = true)]
async fn a_late_refusal_of_an_earlier_first_message_leaves_the_next_alone() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 181).await?;
        let cart = cart_spots(&host).of("cart");
        let faults = cluster.store_faults("owner");
        faults.every(Operation::Write, Fault::Error);
        cart.add(text("never")).activating().await?;
        let mut late = std::pin::pin!(cart.view(text("never")).into_future());
        // It is sent behind that, and is not looked at again until its answer is old.
        let sent = std::future::poll_fn(|cx| Poll::Ready(late.as_mut().poll(cx))).await;
        assert!(sent.is_pending());
        let refused = view(&cart).await.unwrap_err();
        assert_eq!(refused.execution(), Execution::NotExecuted, "{refused}");
        cluster.advance(SECOND).await;
        faults.heal();
        world.holds("activate");
        cart.add(text("first")).activating().await?;
        world.until("held in activate").await;
        let refused = late.await.unwrap_err();
        assert_eq!(refused.execution(), Execution::NotExecuted, "{refused}");
        cart.add(text("second")).await?;
        let viewed = tokio::spawn(cart.view(text("third")).into_future());
        cluster.advance(SECOND).await;
        assert!(!viewed.is_finished(), "{place:?}: it waits for the cart");
        world.open_build(1);
        assert_eq!(viewed.await??.text, "first,second,third", "{place:?}");
        assert_eq!(world.count("activate cart"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-060, SP-052, RT-007
#[tokio::test(start_paused = true)]
async fn a_plain_call_makes_nothing_where_what_it_follows_made_nothing() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 81).await?;
        world.holds("activate");
        let cart = cart_spots(&host).of("broken");
        cart.add(text("first")).activating().await?;
        world.until("held in activate").await;
        let behind = tokio::spawn(cart.view(text("")).into_future());
        cluster.advance(SECOND).await;
        world.open_build(1);
        let failed = behind.await?.unwrap_err();
        assert_eq!(
            failed.kind(),
            Some(ErrorKind::InternalFailure),
            "as the first one: {failed}"
        );
        for _ in 0..2 {
            let gone = view(&cart).await.unwrap_err();
            assert_eq!(
                (gone.kind(), gone.execution()),
                (Some(ErrorKind::NotFound), Execution::NotExecuted),
                "{gone}"
            );
        }
        assert_eq!(world.count("activate broken"), 1, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-068, SP-091
#[tokio::test(start_paused = true)]
async fn what_may_make_a_cart_waits_until_the_old_one_is_gone() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 82).await?;
        let cart = cart_spots(&host).of("cart");
        cart.add(text("old")).activating().await?;
        world.holds("closing");
        cart.add(text("close")).await?;
        world.until("held in closing").await;
        let refused = view(&cart).await.unwrap_err();
        assert_eq!(
            refused.kind(),
            Some(ErrorKind::Unavailable),
            "without an intent: {refused}"
        );
        cart.add(text("one")).activating().await?;
        let late = cart.view(text("never")).activating().timeout(SECOND).await.unwrap_err();
        assert_eq!(late.kind(), Some(ErrorKind::DeadlineExceeded), "{late}");
        let viewed = tokio::spawn(cart.view(text("two")).activating().into_future());
        cluster.advance(SECOND).await;
        assert!(!viewed.is_finished());
        world.open_build(1);
        assert_eq!(viewed.await??.text, "one,two", "{:?}", world.log());
        assert_eq!((world.count("activate cart"), world.count("has never")), (2, 0));
        world.open_build(1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: RT-006
#[tokio::test(start_paused = true)]
async fn that_there_is_none_is_not_remembered() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 185).await?;
        calls(&cluster, "another");
        cluster.start("another").await?;
        cluster.advance(3 * SECOND).await;
        let one = room_spots(&host).of("one");
        let missing = look(&one, "lines").await.unwrap_err();
        assert_eq!(missing.kind(), Some(ErrorKind::NotFound), "{missing}");
        world.holds("create");
        let creating = room_spots(&cluster.host("another")).get_or_create("one", text("x"));
        let creating = tokio::spawn(creating.into_future());
        world.until("held in create").await;
        let missing = look(&one, "lines").await.unwrap_err();
        assert_eq!(missing.kind(), Some(ErrorKind::NotFound), "it is being made: {missing}");
        world.open_build(1);
        creating.await??;
        assert_eq!(look(&one, "lines").await?, "x", "{place:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: RT-002
#[tokio::test(start_paused = true)]
async fn an_id_that_looks_like_a_node_is_an_id() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 83).await?;
        let id = host.mesh("world")?.rid().to_string();
        let (one, _) = room(&host, &id, "x").await?;
        assert!(look(&one, "where").await?.starts_with("owner"));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A room of the own host is asked for as often as another.
///
/// REQ: RT-001, RT-004, RT-006, RT-008
#[tokio::test(start_paused = true)]
async fn a_route_that_is_known_needs_no_store() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 141).await?;
        let (one, spot) = room(&host, "one", "x").await?;
        look(&one, "lines").await?;
        let faults = cluster.store_faults(place.caller());
        faults.cut();
        for _ in 0..3 {
            assert_eq!(look(&one, "lines").await?, "x", "nobody was asked");
        }
        faults.heal();
        cluster.advance(16 * SECOND).await;
        faults.cut();
        // That the store fails does not say that there is none.
        let unknown = one.look(text("lines")).timeout(2 * SECOND).await.unwrap_err();
        assert_eq!(unknown.execution(), Execution::NotExecuted, "{unknown}");
        assert_ne!(unknown.kind(), Some(ErrorKind::NotFound), "{unknown}");
        faults.heal();
        cluster.advance(5 * SECOND).await;
        assert_eq!(look(&one, "lines").await?, "x");
        assert!(faults.begun(Operation::Read) > 0);
        // The same client finds whatever has the ID.
        assert!(room_spots(&host).close(&spot).await?);
        let gone = look(&one, "lines").await.unwrap_err();
        assert_eq!(gone.kind(), Some(ErrorKind::NotFound), "{gone}");
        room(&host, "one", "anew").await?;
        assert_eq!(look(&one, "lines").await?, "anew");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: RT-004, RT-005, LS-102
#[tokio::test(start_paused = true)]
async fn a_route_ends_with_what_is_known_of_its_owners_lease() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 84);
        serves(&cluster, &world, "owner");
        remembers(&cluster, "caller");
        start(&cluster).await?;
        let (one, _) = room(&cluster.host("caller"), "one", "x").await?;
        look(&one, "lines").await?;
        cluster.advance(60 * SECOND).await;
        // The lease was renewed, and seen to be, for all that its host owns.
        cluster.store_faults("caller").cut();
        assert_eq!(look(&one, "lines").await?, "x", "nobody was asked");
        cluster.advance(3 * SECOND).await;
        assert_eq!(look(&one, "lines").await?, "x");
        cluster.advance(8 * SECOND).await;
        let unknown = look(&one, "lines").await.unwrap_err();
        assert_eq!(
            (unknown.kind(), unknown.execution()),
            (Some(ErrorKind::Unavailable), Execution::NotExecuted),
            "it may have no owner any more, and nobody can be asked: {unknown}"
        );
        cluster.store_faults("caller").heal();
        cluster.advance(5 * SECOND).await;
        assert_eq!(look(&one, "lines").await?, "x", "a failure is not remembered");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What is known of where a room is holds for sends as for requests: once its owner may not be it any more, nothing is sent
/// there that would be dropped in silence.
///
/// REQ: RT-004, LS-032, SP-054
#[tokio::test(start_paused = true)]
async fn a_send_goes_by_what_is_known_while_the_store_is_down_and_is_refused_afterwards() -> Tested {
    for provider in PROVIDERS {
        // Whose way to the store is cut.
        for cut in [&["caller"][..], &["owner"], &["caller", "owner"]] {
            let (cluster, world) = on(provider, 89);
            serves(&cluster, &world, "owner");
            remembers(&cluster, "caller");
            start(&cluster).await?;
            let (one, _) = room(&cluster.host("caller"), "one", "x").await?;
            look(&one, "lines").await?;
            cut.iter().for_each(|name| cluster.store_faults(name).cut());
            one.say(text("known")).await?;
            world.until("one heard known").await;
            // The lease was renewed five seconds ago at most, and was seen to be a second later at most: by then it has ended.
            cluster.advance(12 * SECOND).await;
            for _ in 0..3 {
                let refused = one.say(text("never")).await.unwrap_err();
                assert_eq!(
                    (refused.kind(), refused.execution()),
                    (Some(ErrorKind::Unavailable), Execution::NotExecuted),
                    "{cut:?}: {refused}"
                );
                cluster.advance(SECOND).await;
            }
            cut.iter().for_each(|name| cluster.store_faults(name).heal());
            cluster.advance(20 * SECOND).await;
            one.say(text("again")).await?;
            assert_eq!(look(&one, "lines").await?, "x,known,again", "{cut:?}");
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// A store that has lost records may have lost that of any Spot: nothing that was found before counts.
///
/// REQ: RT-005, LS-067
#[tokio::test(start_paused = true)]
async fn what_was_found_before_a_loss_is_asked_for_anew() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 180).await?;
        let faults = cluster.store_faults(place.caller());
        let (one, _) = room(&host, "one", "x").await?;
        let is_known = async || {
            faults.cut();
            let known = look(&one, "lines").await;
            faults.heal();
            known.is_ok()
        };
        look(&one, "lines").await?;
        assert!(is_known().await, "{place:?}");
        faults.every(Operation::Read, Fault::Lost);
        look(&room_spots(&host).of("other"), "lines").await.unwrap_err();
        faults.heal();
        assert!(!is_known().await, "{place:?}");

        // Nor does what was read before, and comes after.
        faults.every(Operation::Read, Fault::DelayAnswer(SECOND));
        let looking = tokio::spawn(one.look(text("lines")).into_future());
        cluster.advance(SECOND / 4).await;
        faults.heal();
        faults.every(Operation::Read, Fault::Lost);
        look(&room_spots(&host).of("other"), "lines").await.unwrap_err();
        faults.heal();
        assert_eq!(looking.await??.text, "x");
        assert!(!is_known().await, "{place:?}: found before the loss");
        look(&one, "lines").await?;
        assert!(is_known().await, "{place:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A host that finds that the store has lost records makes nothing until who had what was lost must have ended it.
///
/// REQ: LS-067
#[tokio::test(start_paused = true)]
async fn nothing_is_made_soon_after_a_loss() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 181).await?;
        let (one, _) = room(&host, "one", "x").await?;
        cluster.store_faults("owner").next(Operation::Write, Fault::Lost);
        // By its next renewal the host knows.
        cluster.advance(6 * SECOND).await;
        let refused = async || {
            let made = room_spots(&host).get_or_create("two", text("x")).await.map(drop);
            let activated = cart_spots(&host)
                .of("cart")
                .view(text("x"))
                .activating()
                .await
                .map(drop);
            for refused in [made, activated] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.kind(), Some(ErrorKind::Unavailable), "{place:?} {refused:?}");
                assert_eq!(refused.execution(), Execution::NotExecuted, "{place:?} {refused:?}");
            }
        };
        refused().await;
        cluster.advance(13 * SECOND).await;
        refused().await;
        assert_eq!(look(&one, "lines").await?, "x", "what is there goes on");
        cluster.advance(7 * SECOND).await;
        room(&host, "two", "y").await?;
        cart_spots(&host).of("cart").view(text("x")).activating().await?;
        cluster.shutdown().await?;
        drop(world);
    }
    Ok(())
}

/// REQ: RT-010
#[tokio::test(start_paused = true)]
async fn another_age_of_routes_is_for_those_that_are_found_later() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world) = on(place.1, 85);
        let ages = |host: HostBuilder| host.route_cache_max_age(6 * SECOND);
        serves_on(&cluster, &world, "owner", ages, all);
        calls_with(&cluster, "caller", ages);
        start(&cluster).await?;
        let host = cluster.host(place.caller());
        let (one, _) = room(&host, "one", "x").await?;
        cluster.advance(7 * SECOND).await;
        look(&one, "lines").await?;
        host.set_route_cache_max_age(SECOND)?;
        let faults = cluster.store_faults(place.caller());
        faults.cut();
        cluster.advance(4 * SECOND).await;
        assert_eq!(look(&one, "lines").await?, "x", "the old one has its old age");
        cluster.advance(3 * SECOND).await;
        look(&one, "lines").await.unwrap_err();
        faults.heal();
        cluster.advance(5 * SECOND).await;
        look(&one, "lines").await?;
        faults.cut();
        assert_eq!(look(&one, "lines").await?, "x");
        cluster.advance(2 * SECOND).await;
        look(&one, "lines").await.unwrap_err();
        faults.heal();
        cluster.advance(5 * SECOND).await;
        host.set_route_cache_max_age(Duration::ZERO)?;
        look(&one, "lines").await?;
        faults.cut();
        look(&one, "lines").await.unwrap_err();
        faults.heal();
        let wrong = host.set_route_cache_max_age(Duration::MAX).unwrap_err();
        assert!(wrong.to_string().contains("route_cache_max_age"), "{wrong}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Whose node is gone, in whatever way, is asked for anew before anything is sent: no call is lost to that.
///
/// REQ: RT-005, RT-009
#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_costs_no_call() -> Tested {
    for provider in PROVIDERS {
        for dies in [false, true] {
            let (cluster, world) = on(provider, 86);
            serves(&cluster, &world, "owner");
            calls(&cluster, "caller");
            remembers(&cluster, "reader");
            start(&cluster).await?;
            let host = cluster.host("caller");
            let (_, spot) = room(&host, "one", "x").await?;
            let one = room_spots(&cluster.host("reader")).of("one");
            assert_eq!(look(&one, "lines").await?, "x");
            serves(&cluster, &world, "other");
            cluster.start("other").await?;
            cluster.advance(3 * SECOND).await;
            if dies {
                cluster.kill("owner");
                assert!(room_spots(&host).release(&spot).await?);
            } else {
                cluster.stop("owner").await?;
            }
            room(&host, "one", "again").await?;
            assert_eq!(look(&one, "lines").await?, "again", "dies: {dies}");
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: RT-005, RT-008, RT-009, LS-035
#[tokio::test(start_paused = true)]
async fn a_room_that_is_elsewhere_by_now_costs_one_call_at_most() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 87);
        for name in ["owner", "other"] {
            serves(&cluster, &world, name);
        }
        calls(&cluster, "caller");
        remembers(&cluster, "reader");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let (_, old) = room_on(&host, "one", "owner").await?;
        let one = room_spots(&cluster.host("reader")).of("one");
        assert_eq!(look(&one, "lines").await?, "owner");
        let another = room_spots(&cluster.host("reader")).of("one");
        assert_eq!(look(&another, "lines").await?, "owner");
        assert!(room_spots(&host).close(&old).await?);
        room_on(&host, "one", "other").await?;
        let heard = world.count("heard");
        let stale = look(&one, "lines").await.unwrap_err();
        assert_eq!(
            (stale.kind(), stale.execution()),
            (Some(ErrorKind::Unavailable), Execution::NotExecuted),
            "{stale}"
        );
        assert_eq!(
            look(&another, "lines").await?,
            "other",
            "the next one asks, whoever calls"
        );
        assert_eq!(look(&one, "lines").await?, "other");
        assert_eq!(world.count("heard"), heard);
        // Where it is nowhere, that is said.
        let there = room_spots(&host).find("one").await?.unwrap();
        assert!(room_spots(&host).close(&there).await?);
        let gone = look(&one, "lines").await.unwrap_err();
        assert_eq!(gone.kind(), Some(ErrorKind::NotFound), "{gone}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A message makes what is not there, and takes nothing from whoever has it, dead or alive.
///
/// REQ: RT-007, LS-104, LS-045
#[tokio::test(start_paused = true)]
async fn the_cart_of_a_dead_host_is_made_anew_by_no_message() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 183).await?;
        let cart = cart_spots(&host).of("cart");
        cart.add(text("old")).activating().await?;
        assert_eq!(view(&cart).await?, "old");
        serves(&cluster, &world, "other");
        cluster.start("other").await?;
        // So that it is looked for, and not where the first message went.
        cluster.advance(40 * SECOND).await;
        let spot = cart_spots(&host).find("cart").await?.unwrap();
        cluster.kill("owner");
        for second in 0..40 {
            let refused = cart
                .view(text("new"))
                .activating()
                .timeout(10 * SECOND)
                .await
                .unwrap_err();
            assert_eq!(
                refused.kind(),
                Some(ErrorKind::Unavailable),
                "{refused} after {second} s"
            );
            cluster.advance(SECOND).await;
        }
        assert_eq!(world.count("activate cart"), 1, "{:?}", world.log());
        assert_eq!(
            cart_spots(&host).find("cart").await?.as_ref(),
            Some(&spot),
            "it is kept"
        );
        assert!(cart_spots(&host).release(&spot).await?);
        assert_eq!(cart.view(text("new")).activating().await?.text, "new");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: RT-011, LS-103
#[tokio::test(start_paused = true)]
async fn a_reply_needs_no_store() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 88).await?;
        let (one, _) = room(&host, "one", "x").await?;
        let looking = tokio::spawn(one.look(text("gate")).into_future());
        world.until("look waits").await;
        for name in ["owner", "caller"] {
            cluster.store_faults(name).cut();
        }
        cluster.advance(2 * SECOND).await;
        world.open(1);
        assert_eq!(looking.await??.text, "passed");
        for name in ["owner", "caller"] {
            cluster.store_faults(name).heal();
        }
        cluster.shutdown().await?;
    }
    Ok(())
}
