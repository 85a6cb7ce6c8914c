//! Ends that somebody else has a part in: another closer, the stop of the host, another owner of the ID.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{BootClock, Fault, LocationTiming, MemoryStore, Operation};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::testing::authority::{Owner, Seen};
use zlink_runtime::{HostBuilder, ObjectServerBuilder};

use crate::arena::*;
use crate::events::Events;
use crate::far;
use crate::kit::*;
use crate::wait::until_within;

const SECOND: Duration = Duration::from_secs(1);

/// The close was under way when the stop came, and fails after it.
///
/// REQ: SP-036
#[tokio::test(start_paused = true)]
async fn a_stop_tells_of_a_close_that_failed_whoever_began_it() -> Tested {
    for place in LOCAL {
        let (cluster, world, host) = placed(place, 330).await?;
        let (_, spot) = room(&host, "one", "fails to close").await?;
        world.holds("closing");
        let closing = tokio::spawn(room_spots(&host).close(&spot).into_future());
        world.until("held in closing").await;
        let stopping = tokio::spawn(cluster.stop("owner"));
        cluster.advance(SECOND).await;
        world.open_build(1);
        let failed = stopping.await?.unwrap_err();
        assert_eq!((failed.failed_spots(), failed.unfinished_jobs()), (1, 0), "{failed}");
        drop(closing);
    }
    Ok(())
}

/// The close was under way when the stop came, and had more time than that.
///
/// REQ: SP-036
#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_close_that_its_host_has_ended() -> Tested {
    for place in LOCAL {
        let events = Events::collect();
        let (cluster, world, host) = placed_with(place, 331, |cluster, world| {
            serves_on(cluster, world, "owner", |host| host.drain_timeout(12 * SECOND), all);
        })
        .await?;
        let (_, spot) = room(&host, "one", "x").await?;
        world.holds("closing");
        let closing = room_spots(&host).close(&spot).timeout(600 * SECOND);
        drop(tokio::spawn(closing.into_future()));
        world.until("held in closing").await;
        let failed = cluster.stop("owner").await.unwrap_err();
        assert_eq!((failed.failed_spots(), failed.unfinished_jobs()), (1, 0), "{failed}");
        assert_eq!(world.count("room dropped"), 1, "on_closing goes on: {:?}", world.log());
        cluster.advance(60 * SECOND).await;
        assert_eq!(events.count(&["the record of a closed Spot stays"]), 0);
        let (store, _) = far::observer(&cluster);
        let observer = Owner::start(store, LocationTiming::default(), BootClock::of_tokio(), "observer", 1).await?;
        let left = observer.resolve(&SpotId::from_static("one")).await;
        assert!(matches!(left, Seen::Missing), "it was removed: {left:?}");
    }
    Ok(())
}

/// A node that makes all carts, and one whose host comes too late to make the one of this test: it is told so after two
/// seconds.
async fn race(seed: u64, provider: Provider) -> Result<(Cluster, World, Owner), Failure> {
    let (cluster, world) = on(provider, seed);
    let weight = |weight| move |objects: ObjectServerBuilder| all(objects).placement_weight(weight);
    serves_with(&cluster, &world, "loser", weight(100));
    serves_with(&cluster, &world, "winner", weight(0));
    calls(&cluster, "caller");
    start(&cluster).await?;
    let (store, _) = far::observer(&cluster);
    let observer = Owner::start(store, LocationTiming::default(), BootClock::of_tokio(), "observer", 1).await?;
    cluster
        .store_faults("loser")
        .every(Operation::Write, Fault::Delay(2 * SECOND));
    Ok((cluster, world, observer))
}

/// Lets the winner make it, by a message that its handler waits in.
async fn win(cluster: &Cluster, world: &World) -> Tested {
    for (name, weight) in [("loser", 0), ("winner", 100)] {
        cluster.host(name).mesh("world")?.set_placement_weight(weight)?;
    }
    cluster.advance(SECOND / 10).await;
    let won = cart_spots(&cluster.host("winner")).of("cart");
    won.add(text("gate")).activating().await?;
    world.until("activate cart").await;
    cluster.advance(SECOND / 10).await;
    Ok(())
}

async fn inbox(observer: &Owner) -> Vec<u8> {
    match observer.resolve(&SpotId::from_static("cart")).await {
        Seen::Ready(spot) => spot.inbox().to_vec(),
        other => panic!("{other:?}"),
    }
}

/// The loser's own first message has come to its end; that of the owner has not.
///
/// REQ: LS-045, LS-040
#[tokio::test(start_paused = true)]
async fn who_lost_a_race_does_not_touch_the_owners_first_message() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world, observer) = race(332, provider).await?;
        let cart = cart_spots(&cluster.host("caller")).of("cart");
        let making = cart.view(text("late")).activating().timeout(SECOND);
        let making = tokio::spawn(making.into_future());
        cluster.advance(SECOND / 10).await;
        win(&cluster, &world).await?;
        let before = inbox(&observer).await;
        assert!(before.windows(4).any(|bytes| bytes == b"gate"));
        let late = making.await?.unwrap_err();
        assert_eq!(late.kind(), Some(ErrorKind::DeadlineExceeded), "{late}");
        cluster.advance(10 * SECOND).await;
        assert_eq!(inbox(&observer).await, before, "it is handled still");
        world.open(1);
        world.until("cart has gate").await;
        cluster.advance(SECOND).await;
        assert_eq!(inbox(&observer).await, b"");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// The host stops while it hears that it has lost.
///
/// REQ: LS-013, LS-001
#[tokio::test(start_paused = true)]
async fn a_stop_that_meets_a_lost_race_leaves_the_owner_what_it_has() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world, observer) = race(333, provider).await?;
        let cart = cart_spots(&cluster.host("caller")).of("cart");
        let making = tokio::spawn(cart.view(text("second")).activating().into_future());
        cluster.advance(SECOND / 10).await;
        win(&cluster, &world).await?;
        let stopping = tokio::spawn(cluster.stop("loser"));
        cluster.advance(10 * SECOND).await;
        assert!(!inbox(&observer).await.is_empty(), "it is Ready, elsewhere");
        world.open(1);
        stopping.await??;
        assert_eq!(making.await??, text("gate,second"), "the owner has heard it");
        let again = cart_spots(&cluster.host("winner")).of("cart").view(text("")).await?;
        assert!(again.text.starts_with("gate"), "{}", again.text);
        assert_eq!(world.count("activate cart"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What lets a [`Blocked`] go on.
type Released = Mutex<mpsc::Receiver<()>>;

/// A cart that keeps its context, and whose handler blocks its thread; or its factory, where its ID says so.
struct Blocked(World, CartContext);

impl Drop for Blocked {
    fn drop(&mut self) {
        self.0.note("blocked dropped");
    }
}

impl Blocked {
    fn block(&self) {
        self.0.note(format!("{} blocks", self.1.id()));
        // Until it is let go.
        let released = self.1.shared::<Released>();
        let _ = released.map(|released| released.lock().recv_timeout(60 * SECOND));
    }
}

impl CartSpot for Blocked {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let world = context.shared::<World>().cloned();
        let world = world.ok_or_else(|| HandlerError::new("no world was shared"))?;
        let cart = Self(world, context);
        if cart.1.id().as_str() == "made" {
            cart.block();
        }
        Ok(cart)
    }

    async fn add(&mut self, _: &mut CartTurn<'_>, _: Line) -> Result<(), HandlerError> {
        self.block();
        Ok(())
    }

    async fn view(&mut self, _: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        Ok(request)
    }
}

/// A host without a cluster, with carts of that kind.
async fn alone<S: CartSpot>(host: HostBuilder) -> Result<Host, Failure> {
    let host = host.mesh("world", |mesh| {
        let mesh = mesh.listen("tcp://127.0.0.1:0");
        mesh.object_server(|objects| objects.spot(cart_spot::<S>()))
    });
    Ok(host.start().await?)
}

/// The last handle of a host is dropped while a turn is at work, or a factory: the state goes once that has come to its end.
///
/// REQ: LS-033
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_dropped_leaves_no_state_behind() -> Tested {
    for id in ["used", "made"] {
        let (store, world) = (MemoryStore::new(), World::new());
        let (release, released) = mpsc::channel();
        let host = Host::builder().location_store(store).shared(world.clone());
        let host = alone::<Blocked>(host.shared(Released::new(released))).await?;
        cart_spots(&host).of(id).add(text("x")).activating().await?;
        let noted = |what: &'static str| {
            let world = world.clone();
            until_within(30 * SECOND, what, move || world.count(what) > 0)
        };
        noted("blocks").await;
        drop(host);
        release.send(())?;
        noted("blocked dropped").await;
        assert_eq!(world.count("blocked dropped"), 1);
    }
    Ok(())
}

/// A cart whose handler drops the last handle of its host, and that panics as it is dropped itself.
struct Last(Handles);

/// The handles of a host.
type Handles = Arc<Mutex<Option<Host>>>;

impl Drop for Last {
    fn drop(&mut self) {
        panic!("the last goes");
    }
}

impl CartSpot for Last {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let handles = context.shared::<Handles>().cloned();
        handles
            .map(Self)
            .ok_or_else(|| HandlerError::new("no handle was shared"))
    }

    async fn add(&mut self, _: &mut CartTurn<'_>, _: Line) -> Result<(), HandlerError> {
        let host = self.0.lock().take();
        drop(host);
        Ok(())
    }

    async fn view(&mut self, _: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        Ok(request)
    }
}

/// The turn that has it gives it back after its host has let go of it.
///
/// REQ: LS-033
#[tokio::test]
async fn a_state_that_panics_as_it_is_dropped_by_its_last_turn_is_told() -> Tested {
    let (events, handles) = (Events::collect(), Handles::default());
    let host = Host::builder().location_store(MemoryStore::new());
    let host = alone::<Last>(host.shared(handles.clone())).await?;
    let cart = cart_spots(&host).of("cart");
    cart.view(text("x")).activating().await?;
    *handles.lock() = Some(host);
    cart.add(text("x")).await?;
    let told = move || events.count(&["drop_failed", "the last goes"]) == 1;
    until_within(30 * SECOND, "the drop is told", told).await;
    Ok(())
}
