//! What comes over a mesh is for what its host has in that mesh alone, whatever a peer says. It must not know how a Spot is made.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::channel::caller::Caller;
use crate::channel::{Forwarded, Found, Intent, Lead, Place, control};
use crate::error::{CallError, Execution, HandlerError};
use crate::host::Host;
use crate::id::ChannelName;
use crate::location::MemoryStore;
use crate::message::metadata::Metadata;
use crate::spot::call::SpotRoute;
use crate::spot::factory::SpotFactory;
use crate::spot::kind::{EntrySpot, InstanceSpot};
use crate::spot::known::ANY_OWNER;
use crate::spot::turn::SpotTurn;
use crate::spot::value::Relocation;
use crate::testing::Cluster;
use crate::wire::SpotTarget;

/// How often a handler of its host ran.
#[derive(Default)]
struct Ran(AtomicUsize);

fn runs(ran: Option<&Ran>) {
    ran.unwrap().0.fetch_add(1, Ordering::Relaxed);
}

async fn go(
    _: &mut (),
    turn: &mut SpotTurn<'_, InstanceSpot>,
    request: wire::SpotClosed,
) -> Result<wire::SpotClosed, HandlerError> {
    runs(turn.shared());
    Ok(request)
}

async fn hear(_: &mut (), turn: &mut SpotTurn<'_, EntrySpot>, _: wire::SpotClosed) -> Result<(), HandlerError> {
    runs(turn.shared());
    Ok(())
}

const CART: SpotType = SpotType::from_static("arena.cart");
const EVENTS: ChannelName = ChannelName::from_static("events");

fn spots_of(host: &Host) -> Arc<Inner> {
    host.outbound().objects_as::<Inner>().unwrap()
}

/// Two hosts that are both in two meshes; the first has carts in both.
async fn two_meshes(cluster: &Cluster) -> (Arc<Inner>, Arc<Inner>, Host) {
    let store = MemoryStore::new();
    let shared = store.clone();
    cluster.node("owner", move |host| {
        let carts = || {
            let carts = SpotFactory::instance(CART, |_| async { Ok(()) });
            let carts = carts.request::<wire::SpotClosed, wire::SpotClosed, _>("go", go);
            carts.relocation(Relocation::Recreate).build()
        };
        let hall = SpotFactory::entry(SpotType::from_static("arena.hall"), |_| async { Ok(()) })
            .subscribe::<wire::SpotClosed, _>("events", "news", "hear", hear)
            .build();
        let host = host.location_store(shared.clone()).shared(Ran::default());
        let host = host.mesh("world", |mesh| {
            let mesh = mesh.listen("tcp://owner:1").client(EVENTS);
            mesh.object_server(|objects| objects.spot(carts()).entry(hall))
        });
        host.mesh("far", |mesh| {
            let mesh = mesh.listen("tcp://owner:2");
            mesh.object_server(|objects| objects.spot(carts()))
        })
    });
    cluster.node("peer", move |host| {
        let host = host.location_store(store.clone());
        let host = host.mesh("world", |mesh| mesh.listen("tcp://peer:1").object_client());
        host.mesh("far", |mesh| mesh.listen("tcp://peer:2").object_client())
    });
    let owner = cluster.start("owner").await.unwrap();
    let peer = cluster.start("peer").await.unwrap();
    cluster.advance(Duration::from_secs(3)).await;
    (spots_of(&owner), spots_of(&peer), owner)
}

fn is_refused<T: std::fmt::Debug>(told: Result<T, CallError>) {
    let error = told.unwrap_err();
    let told = (error.kind(), error.execution());
    assert_eq!(told, (Some(ErrorKind::Unavailable), Execution::NotExecuted), "{error}");
}

/// A cart lives in one mesh of its host. What ends it, calls it or may make it is refused where it comes over the other one.
///
/// REQ: NET-402
#[tokio::test(start_paused = true)]
async fn what_comes_over_another_mesh_ends_and_calls_nothing() {
    let cluster = Cluster::new(7);
    let (spots, peer, owner) = two_meshes(&cluster).await;
    let cart = SpotRoute::new(&owner, CART).of("cart");
    let call = cart.request::<wire::SpotClosed, wire::SpotClosed>(
        crate::channel::Method::request("go", None),
        wire::SpotClosed::default(),
    );
    let call = cart.activates(call).activating().in_mesh("world");
    call.await.unwrap();
    let object = spots.object(&Space::Spots.id("cart").unwrap()).unwrap();
    let count = || object.shared().get::<Ran>().unwrap().0.load(Ordering::Relaxed);
    assert_eq!(count(), 1);
    for (name, is_its) in [("far", false), ("world", true)] {
        let mesh = MeshName::new(name).unwrap();
        let home = spots.home(&mesh).unwrap();
        let target = object.target().unwrap();
        let intent = Intent {
            stable_type: CART,
            mesh: None,
        };
        let envelope = peer
            .envelope(peer.home(&mesh).unwrap(), &intent, home.lifecycle)
            .unwrap();
        let calls: [(SpotTarget, Option<Arc<[u8]>>); 3] = [(target, None), (ANY_OWNER, None), (target, Some(envelope))];
        for (target, activation) in calls {
            let place = Place::new(mesh.clone(), home.rid.clone(), home.lifecycle);
            let found = Found {
                place: Arc::new(place),
                target,
                lead: Lead::Record(0),
                activation,
            };
            let payload = codec::encode(&wire::SpotClosed::default(), Bytes::copy_from_slice).unwrap();
            let to = (object.id.clone(), found);
            let timeout = Some(Duration::from_secs(5));
            let mut call = Forwarded::new(&peer.outbound, to, "go", Metadata::new(), payload, timeout);
            call.submitted().await;
            match call.ended().await {
                Ok(_) => assert!(is_its),
                told => is_refused(told),
            }
        }
        let ran = if is_its { 1 + 3 } else { 1 };
        assert_eq!(count(), ran, "{name}");

        let mut head = Vec::new();
        wire::publish_head(&mut head, "events", "hear", "news", &[]);
        codec::encode(&wire::SpotClosed::default(), |payload| head.extend_from_slice(payload)).unwrap();
        let record = Bytes::from(head);
        let Ok(wire::Incoming::Publish(publish)) = wire::parse(&record) else {
            panic!("it is a publish");
        };
        let permit = spots.permits.source().try_acquire(1).unwrap().take().unwrap();
        spots.fanout.take(mesh.clone(), record, publish, permit);
        cluster.advance(Duration::from_millis(10)).await;
        assert_eq!(count(), ran + usize::from(is_its), "{name}");

        let question = wire::SpotClose {
            id: "cart".to_owned(),
            generation: object.generation().get(),
            target_lifecycle: home.lifecycle.to_wire(),
        };
        let (from, to) = ((&peer.outbound, None), (&mesh, home.rid.clone()));
        let closed = control(from, to, RecordKind::SpotClose, question, Duration::from_secs(5));
        let closed: Result<wire::SpotClosed, _> = closed.await;
        match closed {
            Ok(closed) => assert!(is_its && closed.closed),
            told => is_refused(told),
        }
        assert_eq!(object.phase() == Phase::Ready, !is_its, "{name}");
    }
    cluster.shutdown().await.unwrap();
}

/// Its host lets go of it while it is made: it is no subscriber from then on, which would keep it, and its host, for ever.
///
/// REQ: SP-113
#[tokio::test(start_paused = true)]
async fn what_has_ended_as_it_opens_hears_nothing() {
    let cluster = Cluster::new(8);
    let (spots, _peer, owner) = two_meshes(&cluster).await;
    let hall = spots
        .home(&MeshName::from_static("world"))
        .unwrap()
        .lobby
        .get()
        .unwrap();
    let record = hall.record().unwrap();
    spots.remove(&hall);
    hall.stop_with(Error::not_executed(ErrorKind::Unavailable, "it was taken"));
    cluster.advance(Duration::from_secs(1)).await;
    let kept = Arc::strong_count(&hall);
    spots.opened(&hall, &record, spots.losses());
    assert_eq!(Arc::strong_count(&hall), kept);
    drop((hall, owner));
    cluster.shutdown().await.ok();
}
