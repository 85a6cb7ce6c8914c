//! A chosen part of what Spots do, in real time: hosts that find each other through a store and talk over TCP, on every
//! store there is. What takes a fault or an exact moment stands in the files that have virtual time.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use zlink_runtime::ObjectServerBuilder;
use zlink_runtime::PeerState;
use zlink_runtime::error::{CallError, ErrorKind};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::SpotCreated;

use crate::arena::*;
use crate::kit::*;
use crate::store::Shared;
use crate::wait::{until_within, within};

/// How long anything may take; only failing tests wait that long.
const LIMIT: Duration = Duration::from_secs(30);

/// Hosts that are linked with each other: first those that have Spots, then one that only calls.
pub(crate) struct Hosts {
    pub(crate) world: World,
    pub(crate) hosts: Vec<Host>,
}

impl Hosts {
    async fn start(store: &Shared, owners: usize) -> Result<Self, Failure> {
        Self::start_with(store, owners, all).await
    }

    pub(crate) async fn start_with(
        store: &Shared,
        owners: usize,
        objects: fn(ObjectServerBuilder) -> ObjectServerBuilder,
    ) -> Result<Self, Failure> {
        // A failure is told with what was printed last.
        println!("{store:?}");
        let (world, mut hosts) = (World::new(), Vec::new());
        for at in 0..=owners {
            let host = Host::builder()
                .location_store(store.open())
                .shared(world.clone())
                .request_timeout(LIMIT);
            let host = host.mesh("world", |mesh| {
                let mesh = mesh.listen("tcp://127.0.0.1:0").rid_prefix(format!("host{at}"));
                let mesh = mesh.take_part(ChannelName::from_static("room-events"));
                if at == owners {
                    mesh.object_client()
                } else {
                    mesh.object_server(objects)
                }
            });
            hosts.push(host.start().await?);
        }
        for host in &hosts {
            let (host, all) = (host.clone(), owners);
            until_within(LIMIT, "links with all others", move || {
                let status = host.mesh("world").unwrap().status();
                let ready = status.peers.iter().filter(|peer| peer.state == PeerState::Ready);
                ready.count() == all
            })
            .await;
        }
        Ok(Self { world, hosts })
    }

    /// The one that only calls.
    pub(crate) fn caller(&self) -> &Host {
        self.hosts.last().unwrap()
    }

    /// Whichever: the same for the same number.
    pub(crate) fn any(&self, number: usize) -> &Host {
        &self.hosts[number % self.hosts.len()]
    }

    pub(crate) async fn stop(self) -> Tested {
        for host in self.hosts {
            soon(host.shutdown()).await?;
        }
        Ok(())
    }
}

/// Runs the same on each store, side by side: most of it is waiting.
pub(crate) async fn on_every_store(run: impl AsyncFn(&Shared) -> Tested) -> Tested {
    let [memory, sqlite, redis] = &Shared::every();
    let (one, two, three) = tokio::join!(run(memory), run(sqlite), run(redis));
    one.and(two).and(three)
}

/// The output of `future`, which must come in time.
#[track_caller]
pub(crate) fn soon<F: IntoFuture>(future: F) -> impl Future<Output = F::Output> {
    let at = Location::caller();
    let future = future.into_future();
    async move {
        let output = within(LIMIT * 2, future).await;
        output.unwrap_or_else(|| panic!("{at}: not in time"))
    }
}

/// What a call ends with, as far as it tells its kind.
pub(crate) fn kind<T: fmt::Debug>(result: Result<T, CallError>) -> Option<ErrorKind> {
    result.unwrap_err().kind()
}

/// REQ: SP-083, SP-082, LS-041
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_whoever_creates_at_once_gets_one_room() -> Tested {
    on_every_store(async |store| {
        let hosts = Hosts::start(store, 3).await?;
        hosts.world.holds("create");
        let creating: Vec<_> = (0..64)
            .map(|number| {
                let rooms = room_spots(hosts.any(number));
                tokio::spawn(rooms.get_or_create("room", text(&number.to_string())).into_future())
            })
            .collect();
        soon(hosts.world.until("held in create")).await;
        // Would there be others, they could go on too.
        hosts.world.open_build(64);
        let (mut created, mut references) = (Vec::new(), BTreeSet::new());
        for create in creating {
            let outcome = soon(create).await??;
            references.insert(outcome.reference().unwrap().clone());
            if let SpotCreated::Created(_, reply) = outcome {
                created.push(reply.text);
            }
        }
        let made = hosts.world.count("create room");
        assert_eq!((made, created.len(), references.len()), (1, 1, 1), "{store:?}");
        let lines = look(&room_spots(hosts.caller()).of("room"), "lines").await?;
        assert_eq!(created, [format!("created with {lines}")], "it is the winner's");
        hosts.stop().await?;
        Ok(())
    })
    .await
}

/// REQ: SP-050, SP-052, SP-080, LS-005
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_a_room_is_called_by_its_id_from_everywhere() -> Tested {
    on_every_store(async |store| {
        let hosts = Hosts::start(store, 2).await?;
        let mut spots = Vec::new();
        for number in 0..12 {
            let created = room_spots(hosts.any(number)).create(text("x")).await?;
            spots.push(created.reference().unwrap().clone());
        }
        for (number, host) in hosts.hosts.iter().enumerate() {
            for spot in &spots {
                let room = room_spots(host).of(&spot.id);
                assert_eq!(look(&room, "where").await?, spot.node.to_string(), "{store:?}");
                assert_eq!(room_spots(host).find(&spot.id).await?.as_ref(), Some(spot));
                room.say(text(&number.to_string())).await?;
                soon(hosts.world.until(&format!("{} heard {number}", spot.id))).await;
            }
        }
        for spot in &spots {
            let room = room_spots(hosts.caller()).of(&spot.id);
            assert_eq!(look(&room, "lines").await?, "x,0,1,2", "{store:?}");
        }
        let before = hosts.world.log().len();
        for host in &hosts.hosts {
            let (room, cart) = (room_spots(host).of("nowhere"), cart_spots(host).of("nowhere"));
            assert_eq!(kind(look(&room, "lines").await), Some(ErrorKind::NotFound));
            assert_eq!(kind(room.say(text("x")).await), Some(ErrorKind::NotFound));
            assert_eq!(kind(cart.add(text("x")).await), Some(ErrorKind::NotFound));
            assert_eq!(room_spots(host).find("nowhere").await?, None);
        }
        assert_eq!(hosts.world.log().len(), before, "nobody ran for it");
        hosts.stop().await?;
        Ok(())
    })
    .await
}

/// REQ: SP-065, SP-067, SP-068, LS-041
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_of_many_that_would_make_a_cart_one_does_and_all_are_served_in_order() -> Tested {
    const CALLERS: usize = 12;
    const CARTS: usize = 8;
    const NUMBERS: usize = 5;
    on_every_store(async |store| {
        let hosts = Hosts::start(store, 3).await?;
        let callers = (0..CALLERS).map(|caller| {
            let host = hosts.any(caller).clone();
            tokio::spawn(async move {
                for number in 0..NUMBERS {
                    for cart in 0..CARTS {
                        let cart = cart_spots(&host).of(format!("cart-{cart}"));
                        let item = text(&format!("{caller:02}:{number}"));
                        if (number + caller) % 2 == 0 {
                            cart.add(item).activating().await?;
                        } else {
                            cart.view(item).activating().await?;
                        }
                    }
                }
                Ok::<_, CallError>(())
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            soon(caller).await??;
        }
        let world = hosts.world.clone();
        until_within(LIMIT, "every message was handled", move || {
            world.count(" has ") >= CALLERS * CARTS * NUMBERS
        })
        .await;
        for cart in 0..CARTS {
            let id = format!("cart-{cart}");
            assert_eq!(hosts.world.count(&format!("activate {id}")), 1, "{store:?}");
            let items = cart_spots(hosts.caller()).of(&id).view(text("")).await?.text;
            let items: Vec<_> = items.split(',').collect();
            assert_eq!(items.len(), CALLERS * NUMBERS, "{store:?}, {id}: {items:?}");
            for caller in 0..CALLERS {
                let of_caller = items
                    .iter()
                    .filter_map(|item| item.strip_prefix(&format!("{caller:02}:")));
                let in_order = ["0", "1", "2", "3", "4"];
                assert!(of_caller.eq(in_order), "{store:?}, {id}, {caller}: {items:?}");
            }
        }
        hosts.stop().await?;
        Ok(())
    })
    .await
}

/// REQ: SP-027, SP-058, SP-091, SP-094, RT-008
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_what_was_closed_is_made_again_and_is_another() -> Tested {
    on_every_store(async |store| {
        let hosts = Hosts::start(store, 2).await?;
        let (caller, other) = (hosts.caller(), hosts.any(0));
        let (first, old) = room(caller, "room", "first").await?;
        assert_eq!(look(&first, "lines").await?, "first");
        // From elsewhere, so that the caller still remembers the first one.
        assert!(room_spots(other).close(&old).await?, "{store:?}");
        assert_eq!(hosts.world.count("closing room ExplicitClose"), 1);
        assert_eq!(room_spots(caller).find("room").await?, None);
        assert!(!room_spots(caller).close(&old).await?, "it is gone already");
        let (again, new) = room(other, "room", "second").await?;
        assert!(new.generation > old.generation, "{store:?}: {old:?}, {new:?}");
        assert_eq!(look(&again, "lines").await?, "second");
        assert_eq!(
            kind(room_spots(caller).close(&old).await),
            Some(ErrorKind::InvalidOperation)
        );
        assert_eq!(look(&again, "lines").await?, "second");

        let cart = cart_spots(caller).of("cart");
        let before = cart.view(text("generation")).activating().await?.text;
        cart.add(text("close")).await?;
        soon(hosts.world.until("cart dropped")).await;
        // Until its host has heard that the ID is free, whoever calls is told so.
        let after = soon(async {
            loop {
                match cart.view(text("generation")).activating().await {
                    Err(error) if error.kind() == Some(ErrorKind::Unavailable) => tokio::task::yield_now().await,
                    answer => break answer,
                }
            }
        })
        .await?
        .text;
        assert!(after.parse::<u64>()? > before.parse()?, "{store:?}: {before}, {after}");
        assert_eq!(cart.view(text("")).await?.text, "", "it has nothing of the old one");
        assert_eq!(hosts.world.count("activate cart"), 2);
        hosts.stop().await?;
        Ok(())
    })
    .await
}

/// REQ: SP-084, LS-040, LS-043
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_a_host_makes_no_more_rooms_than_it_may() -> Tested {
    on_every_store(async |store| {
        let hosts = Hosts::start_with(store, 1, |objects| all(objects).capacity(ROOM, 3)).await?;
        for how in ["reject", "fail", "panic", "fail late"] {
            let made = room_spots(hosts.caller()).get_or_create("room", text(how)).await;
            assert!(
                made.is_err() || made == Ok(SpotCreated::Rejected(text("no"))),
                "{how}: {made:?}"
            );
            assert_eq!(room_spots(hosts.caller()).find("room").await?, None, "{how}");
        }
        let creating: Vec<_> = (0..16)
            .map(|number| {
                let rooms = room_spots(hosts.any(number));
                tokio::spawn(rooms.create(text("x")).into_future())
            })
            .collect();
        let mut spots = Vec::new();
        for create in creating {
            match soon(create).await? {
                Ok(created) => spots.push(created.reference().unwrap().clone()),
                refused => assert_eq!(kind(refused), Some(ErrorKind::CapacityExceeded), "{store:?}"),
            }
        }
        assert_eq!(spots.len(), 3, "{store:?}");
        let next = || room_spots(hosts.caller()).create(text("x")).into_future();
        assert_eq!(kind(next().await), Some(ErrorKind::CapacityExceeded), "{store:?}");
        assert!(room_spots(hosts.caller()).close(&spots[0]).await?);
        next().await?;
        assert_eq!(kind(next().await), Some(ErrorKind::CapacityExceeded), "{store:?}");
        hosts.stop().await?;
        Ok(())
    })
    .await
}

/// REQ: LS-004, SP-066
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_first_messages_and_requests_may_be_large() -> Tested {
    on_every_store(async |store| {
        let hosts = Hosts::start(store, 2).await?;
        for (number, size) in [1 << 20, 70_000, 4 << 20].into_iter().enumerate() {
            let cart = cart_spots(hosts.any(number)).of(format!("cart-{number}"));
            let long = "x".repeat(size);
            cart.add(text(&long)).activating().await?;
            cart.add(text("second")).await?;
            let viewed = soon(cart.view(text(""))).await?.text;
            assert!(
                viewed == format!("{long},second"),
                "{store:?}, {size}: {} bytes",
                viewed.len()
            );
        }
        let (one, _) = room(hosts.caller(), "one", &"y".repeat(900_000)).await?;
        assert_eq!(look(&one, "lines").await?.len(), 900_000, "{store:?}");
        hosts.stop().await?;
        Ok(())
    })
    .await
}

/// REQ: SP-068, SP-142
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_a_cart_that_closes_is_made_anew_by_what_comes_behind() -> Tested {
    on_every_store(async |store| {
        let hosts = Hosts::start(store, 2).await?;
        let cart = cart_spots(hosts.caller()).of("cart");
        for round in 0..20 {
            let first = soon(cart.view(text(&round.to_string())).activating()).await?;
            assert_eq!(
                first.text,
                round.to_string(),
                "{store:?}: nothing is left of the one before"
            );
            cart.add(text("close")).activating().await?;
            let world = hosts.world.clone();
            // From then on it takes nothing more, and is not gone yet.
            until_within(LIMIT, "a cart that closes", move || {
                world.count("cart has close") > round
            })
            .await;
        }
        assert_eq!(hosts.world.count("activate cart"), 20);
        hosts.stop().await?;
        Ok(())
    })
    .await
}
