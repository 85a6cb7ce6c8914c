//! Instance Spots: made by their first message, once, wherever it is sent from; closed when they are idle.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::HandlerError;
use zlink_runtime::rt::{CloseReason, Instant};
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::carts::as_a_cart;
use crate::far;
use crate::kit::*;

async fn view(cart: &CartSpotClient) -> Result<String, zlink_runtime::error::CallError> {
    Ok(cart.view(text("")).await?.text)
}

/// REQ: SP-031, SP-060, SP-063, SP-066
#[tokio::test(start_paused = true)]
async fn the_first_message_makes_the_cart() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 40).await?;
        world.holds("activate");
        let cart = cart_spots(&host).of("cart");
        let began = Instant::now();
        cart.add(text("first")).activating().await?;
        assert_eq!(began.elapsed(), Duration::ZERO, "it is on its way, and that is its end");
        world.until("held in activate").await;
        cart.add(text("second")).activating().await?;
        let asked = tokio::spawn(cart.view(text("third")).activating().into_future());
        cluster.advance(Duration::from_secs(1)).await;
        world.open_build(1);
        assert_eq!(asked.await??.text, "first,second,third");
        cart.add(text("fourth")).await?;
        assert_eq!(view(&cart).await?, "first,second,third,fourth", "{:?}", world.log());
        assert_eq!(world.count("activate cart"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-065, SP-067, SP-068, LS-041
#[tokio::test(start_paused = true)]
async fn of_many_that_would_make_it_one_does_and_all_are_served_in_order() -> Tested {
    for provider in PROVIDERS {
        for seed in 41..49 {
            let (cluster, world) = on(provider, seed);
            let names = ["one", "two", "three"];
            for name in names {
                serves(&cluster, &world, name);
            }
            start(&cluster).await?;
            let mut sending = Vec::new();
            for caller in 0..12 {
                let host = cluster.host(names[caller % 3]);
                sending.push(tokio::spawn(async move {
                    for number in 0..5 {
                        for cart in 0..4 {
                            let cart = cart_spots(&host).of(format!("cart-{cart}"));
                            let item = text(&format!("{caller:02}:{number}"));
                            if number % 2 == 0 {
                                cart.add(item).activating().await.unwrap();
                            } else {
                                cart.view(item).activating().await.unwrap();
                            }
                        }
                    }
                }));
            }
            for sender in sending {
                sender.await?;
            }
            cluster.advance(Duration::from_secs(5)).await;
            for cart in 0..4 {
                let id = format!("cart-{cart}");
                assert_eq!(
                    world.count(&format!("activate {id}")),
                    1,
                    "seed {seed}: {:?}",
                    world.log()
                );
                let items = view(&cart_spots(&cluster.host("one")).of(&id)).await?;
                let items: Vec<_> = items.split(',').collect();
                assert_eq!(items.len(), 60, "seed {seed}, {id}: {items:?}");
                for caller in 0..12 {
                    let of_caller = items.iter().filter(|item| item.starts_with(&format!("{caller:02}:")));
                    let numbers: Vec<_> = of_caller.map(|item| item[3..].to_owned()).collect();
                    assert_eq!(
                        numbers,
                        ["0", "1", "2", "3", "4"],
                        "seed {seed}, {id}, caller {caller}: {items:?}"
                    );
                }
            }
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// A Spot around another, with nothing but what every Spot has.
struct Stage<S>(S);

impl<S: CartSpot> CartSpot for Stage<S> {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        Ok(Self(S::activate(context).await?))
    }

    async fn on_initialize(&mut self, turn: &mut CartTurn<'_>) -> Result<(), HandlerError> {
        self.0.on_initialize(turn).await
    }

    async fn on_closing(
        &mut self,
        turn: &mut CartTurn<'_>,
        reason: CloseReason,
        deadline: Instant,
    ) -> Result<(), HandlerError> {
        self.0.on_closing(turn, reason, deadline).await
    }

    as_a_cart!();
}

/// REQ: SP-159
#[tokio::test(start_paused = true)]
async fn a_spot_around_a_spot_is_as_good_as_one() -> Tested {
    for place in EVERYWHERE {
        let mut logs = Vec::new();
        for wrapped in [false, true] {
            let serves = |cluster: &Cluster, world: &World| {
                serves_with(cluster, world, "owner", move |objects| match wrapped {
                    true => objects.spot(cart_spot::<Stage<Cart>>()),
                    false => objects.spot(cart_spot::<Cart>()),
                });
            };
            let (cluster, world, host) = placed_with(place, 54, serves).await?;
            let cart = cart_spots(&host).of("cart");
            for number in 0..20 {
                cart.add(text(&number.to_string())).activating().await?;
            }
            assert_eq!(view(&cart).await?.split(',').count(), 20);
            cart.add(text("close")).await?;
            world.until("closing cart ExplicitClose").await;
            assert_eq!(cart.view(text("anew")).activating().await?.text, "anew");
            cluster.shutdown().await?;
            logs.push(world.log());
        }
        assert_eq!(logs[0], logs[1]);
    }
    Ok(())
}

/// REQ: SP-060
#[tokio::test(start_paused = true)]
async fn a_cart_that_fails_to_be_made_fails_its_first_message_once() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 50).await?;
        for id in ["broken", "panics"] {
            let cart = cart_spots(&host).of(id);
            for attempt in 1..3 {
                let failed = cart.view(text("")).activating().await.unwrap_err();
                assert_eq!(failed.kind(), Some(ErrorKind::InternalFailure), "{failed}");
                assert_eq!(
                    world.count(&format!("activate {id}")),
                    attempt,
                    "the next one tries anew"
                );
            }
            assert_eq!(cart_spots(&host).find(id).await?, None);
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// One whose factory panics as it is called, before there is anything to be polled.
struct Sudden(Cart);

impl CartSpot for Sudden {
    fn activate(context: CartContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        if let Some(world) = context.shared::<World>() {
            world.note(format!("called for {}", context.id()));
        }
        assert_ne!(context.id().as_str(), "sudden", "as told");
        async move { Ok(Self(Cart::activate(context).await?)) }
    }

    as_a_cart!();
}

/// REQ: SP-060, SP-084
#[tokio::test(start_paused = true)]
async fn a_factory_that_panics_as_it_is_called_fails_its_first_message_once() -> Tested {
    for place in EVERYWHERE {
        let serves = |cluster: &Cluster, world: &World| {
            serves_with(cluster, world, "owner", |objects| objects.spot(cart_spot::<Sudden>()));
        };
        let (cluster, world, host) = placed_with(place, 55, serves).await?;
        let cart = cart_spots(&host).of("sudden");
        for attempt in 1..3 {
            let failed = cart.view(text("")).activating().await.unwrap_err();
            assert_eq!(failed.kind(), Some(ErrorKind::InternalFailure), "{failed}");
            assert_eq!(world.count("called for sudden"), attempt, "the next one tries anew");
        }
        assert_eq!(cart_spots(&host).find("sudden").await?, None);
        assert_eq!(
            cart_spots(&host).of("other").view(text("one")).activating().await?.text,
            "one"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-061, SP-062, ERR-604
#[tokio::test(start_paused = true)]
async fn where_a_cart_is_made_is_told_or_clear() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world) = on(place.1, 51);
        let (with_store, shared) = (far::with_store(&cluster, "owner"), world.clone());
        cluster.node("owner", move |host| {
            let host = with_store(host).shared(shared.clone());
            let host = host.mesh("world", |mesh| mesh.listen("tcp://owner:1").object_server(all));
            host.mesh("other", |mesh| {
                mesh.listen("tcp://owner:2")
                    .object_server(|objects| objects.spot(room_spot::<Room>()))
            })
        });
        let with_store = far::with_store(&cluster, "caller");
        cluster.node("caller", move |host| {
            let host = with_store(host);
            let host = host.mesh("world", |mesh| mesh.listen("tcp://caller:1").object_client());
            host.mesh("other", |mesh| mesh.listen("tcp://caller:2").object_client())
        });
        start(&cluster).await?;
        let host = cluster.host(place.caller());
        let cart = || cart_spots(&host).of("cart").view(text("")).activating();
        assert_eq!(
            cart().await.unwrap_err().kind(),
            Some(ErrorKind::InvalidOperation),
            "two meshes"
        );
        assert_eq!(
            cart().in_mesh("nowhere").await.unwrap_err().kind(),
            Some(ErrorKind::NotFound)
        );
        assert_eq!(
            cart().in_mesh("other").await.unwrap_err().kind(),
            Some(ErrorKind::NotFound),
            "no such type there"
        );
        cart().in_mesh("world").await?;
        cart().in_mesh("other").await?;
        assert_eq!(world.count("activate"), 1, "what is there is not moved");
        cluster.node("plain", |host| host.mesh("world", |mesh| mesh.listen("tcp://plain:1")));
        let plain = cart_spots(&cluster.start("plain").await?).of("cart");
        let none = plain.view(text("")).activating().await.unwrap_err();
        assert_eq!(
            none.kind(),
            Some(ErrorKind::NotConfigured),
            "no mesh has an object role"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Whoever waits for a cart that another host has begun to make does not wait for ever, a send either.
///
/// REQ: SP-067, RT-007
#[tokio::test(start_paused = true)]
async fn a_send_waits_thirty_seconds_for_a_cart_that_others_make() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 55).await?;
        calls(&cluster, "stranger");
        cluster.start("stranger").await?;
        cluster.advance(Duration::from_secs(3)).await;
        world.holds("activate");
        cart_spots(&host).of("cart").add(text("first")).activating().await?;
        world.until("held in activate").await;
        let began = Instant::now();
        let strange = cart_spots(&cluster.host("stranger")).of("cart");
        let late = tokio::time::timeout(
            Duration::from_secs(60),
            strange.add(text("late")).activating().into_future(),
        );
        let late = late.await?.unwrap_err();
        assert_eq!(
            (late.kind(), late.execution()),
            (Some(ErrorKind::DeadlineExceeded), Execution::NotExecuted),
            "{late}"
        );
        let waited = began.elapsed().as_secs_f32();
        assert!((30.0..31.0).contains(&waited), "{waited}");
        world.open_build(1);
        world.until("cart has first").await;
        strange.add(text("second")).activating().await?;
        assert_eq!(view(&strange).await?, "first,second");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-140, SP-141, SP-142, SP-143
#[tokio::test(start_paused = true)]
async fn an_idle_cart_is_closed_and_made_anew() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 52, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                all(objects).instance_idle_timeout(Duration::from_secs(10))
            });
        })
        .await?;
        room(&host, "room", "x").await?;
        let cart = cart_spots(&host).of("cart");
        let first = cart.view(text("generation")).activating().await?.text;
        cart.add(text("gate")).await?;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(world.count("closing"), 0, "it is busy");
        world.open(1);
        cluster.advance(Duration::from_secs(9)).await;
        assert_eq!(world.count("closing"), 0);
        cluster.advance(Duration::from_secs(6)).await;
        assert_eq!(
            (world.count("closing cart IdleEvicted"), world.count("cart dropped")),
            (1, 1),
            "{:?}",
            world.log()
        );
        assert_eq!(view(&cart).await.unwrap_err().kind(), Some(ErrorKind::NotFound));
        let second = cart.view(text("generation")).activating().await?.text;
        assert_ne!(first, second);
        assert_eq!(
            look(&room_spots(&host).of("room"), "lines").await?,
            "x",
            "a room is never evicted"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-027
#[tokio::test(start_paused = true)]
async fn a_cart_closes_itself() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 53).await?;
        let cart = cart_spots(&host).of("cart");
        cart.view(text("one")).activating().await?;
        cart.add(text("close")).await?;
        world.until("closing cart ExplicitClose").await;
        cluster.advance(Duration::from_secs(1)).await;
        assert_eq!(cart_spots(&host).find("cart").await?, None);
        assert_eq!(
            cart.view(text("two")).activating().await?.text,
            "two",
            "a new one has nothing of the old"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}
