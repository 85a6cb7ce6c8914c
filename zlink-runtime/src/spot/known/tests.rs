//! What is known of Spots is forgotten in time, each route with all that it may be wrong in. It must not know how one is found.

use bytes::Bytes;

use super::*;
use crate::channel::Method;
use crate::channel::caller::Caller;
use crate::error::HandlerError;
use crate::host::Host;
use crate::id::{Generation, ObjectGeneration, ObjectKind, Space};
use crate::location::{MemoryStore, OperationId, OwnerId, Revision, SpotState};
use crate::spot::call::SpotRoute;
use crate::spot::factory::SpotFactory;
use crate::spot::kind::InstanceSpot;
use crate::spot::object::Phase;
use crate::spot::turn::SpotTurn;
use crate::spot::value::Relocation;
use crate::testing::Cluster;
use crate::wire;

const SECOND: Duration = Duration::from_secs(1);

fn number(number: u64) -> Revision {
    Revision::new(number).unwrap()
}

fn run(number: u64) -> Generation {
    Generation::from_wire(number).unwrap()
}

/// A host that only calls.
async fn caller(cluster: &Cluster) -> (Host, Arc<Inner>) {
    cluster.node("caller", |host| {
        let host = host.location_store(MemoryStore::new());
        host.mesh("world", |mesh| mesh.listen("tcp://caller:1").object_client())
    });
    let host = cluster.start("caller").await.unwrap();
    let spots = host.outbound().objects_as::<Inner>().unwrap();
    (host, spots)
}

/// Of a Spot of another host, in that run of it.
pub(in crate::spot) fn record(id: &str, lease: u64) -> SpotRecord {
    SpotRecord {
        id: Space::Spots.id(id).unwrap(),
        kind: ObjectKind::User,
        stable_type: SpotType::from_static("arena.room"),
        mesh: MeshName::from_static("world"),
        node: Rid::new("owner").unwrap(),
        lifecycle: run(1),
        owner: OwnerId::new([2; 16]),
        lease: number(lease),
        generation: ObjectGeneration::new(4).unwrap(),
        owner_generation: 5,
        version: number(6),
        state: SpotState::Ready,
        operation: OperationId {
            source: Rid::new("caller").unwrap(),
            lifecycle: run(7),
            id: [8; 16],
        },
        inbox: Bytes::new(),
        blob: None,
        spot: None,
    }
}

/// All that a route is remembered with, each from the place that it belongs to.
///
/// REQ: RT-003
#[tokio::test(start_paused = true)]
async fn a_route_is_remembered_with_all_that_it_may_be_wrong_in() {
    let cluster = Cluster::new(1);
    let (_host, spots) = caller(&cluster).await;
    let record = record("room", 3);
    let found = spots.remember(&record, spots.losses());
    assert_eq!((found.lead, found.activation), (Lead::Record(6), None));
    let now = spots.authority.reader().now();
    let known = spots.finds.lock().routes.get(&record.id, now).cloned().unwrap();
    assert_eq!(known.version(), 6);
    let Owned {
        place,
        generation,
        owner_generation,
    } = known.route();
    assert_eq!((*generation, *owner_generation), (4, 5));
    assert_eq!((&place.mesh, &place.node), (&record.mesh, &record.node), "the route");
    assert_eq!(place.lifecycle, run(1), "of its node");
    assert_eq!(
        place.owner,
        Some((OwnerId::new([2; 16]), number(3))),
        "whose lease it holds by"
    );
    let target = Found::known(&known).target;
    assert_eq!(target, found.target);
    assert_eq!((target.generation, target.owner_generation, target.lease), (4, 5, 3));
    cluster.shutdown().await.unwrap();
}

/// Spots of one run of a node are remembered with one place, and the places of runs that are over do not pile up.
#[tokio::test(start_paused = true)]
async fn a_node_is_remembered_once() {
    let cluster = Cluster::new(2);
    let (_host, spots) = caller(&cluster).await;
    let places = ["a", "b", "c"].map(|id| spots.remember(&record(id, 3), spots.losses()).place);
    assert!(places.iter().all(|place| Arc::ptr_eq(place, &places[0])));
    let anew = spots.remember(&record("a", 9), spots.losses()).place;
    assert!(!Arc::ptr_eq(&anew, &places[0]), "another run of its host");
    drop((places, anew));
    for node in 0..1_000 {
        let mut record = record("moving", 3);
        (record.node, record.version) = (Rid::new(format!("{node}")).unwrap(), number(10 + node));
        drop(spots.remember(&record, spots.losses()));
    }
    // Routes keep their places.
    cluster.advance(crate::limit::ROUTE_CACHE_AGE + SWEEP).await;
    assert_eq!(spots.places.lock().0.len(), 0);
    cluster.shutdown().await.unwrap();
}

/// Calls go behind the first message for half a minute, and stay off any other way until the last of them must have come
/// where it was sent on to. After that nothing is left of it, whether or not anything else is made.
#[tokio::test(start_paused = true)]
async fn where_first_messages_went_is_forgotten_in_time() {
    let cluster = Cluster::new(3);
    let (_host, spots) = caller(&cluster).await;
    let begin = |id: &str| {
        let place = Place::new(MeshName::from_static("world"), Rid::new("owner").unwrap(), run(1));
        let (id, stable_type) = (Space::Spots.id(id).unwrap(), SpotType::from_static("arena.cart"));
        spots.begins_to_make(&mut spots.finds.lock(), &id, stable_type, place)
    };
    let first = begin("first").unwrap();
    let intent = Intent {
        stable_type: SpotType::from_static("arena.cart"),
        mesh: None,
    };
    let spot = |intent| SpotTo::new(Space::Spots.id("first").unwrap(), intent);
    let (plain, intends) = (spot(None), spot(Some(intent)));
    let state = |spot: &SpotTo| {
        let now = spots.authority.reader().now();
        spots.on_its_way(&mut spots.finds.lock().activating, &spot.id, spot.intent.as_ref(), now)
    };
    cluster.advance(29 * SECOND).await;
    let (behind, _) = spots.known_route(&plain).unwrap();
    assert_eq!(
        (behind.target, behind.lead, behind.activation),
        (ANY_OWNER, Lead::FirstMessage(1), None)
    );
    let (again, _) = spots.known_route(&intends).unwrap();
    assert!(Arc::ptr_eq(&again.place, &first.place));
    assert_eq!(
        again.activation, first.activation,
        "the same operation: it is made once"
    );
    cluster.advance(SECOND + SECOND / 2).await;
    assert!(spots.known_route(&plain).is_none());
    assert!(matches!(state(&plain), Some(OnItsWay::Over(_, left)) if left == SECOND / 2));
    cluster.advance(SECOND / 2).await;
    assert!(state(&plain).is_none());

    let each_second = 10;
    for second in 0..120 {
        for number in 0..each_second {
            begin(&format!("{second}.{number}")).unwrap();
        }
        cluster.advance(SECOND).await;
        assert!(
            spots.finds.lock().activating.len() <= 32 * each_second,
            "after {second} seconds"
        );
    }
    cluster.advance(ACTIVATION_TIME + ON_ITS_WAY + SWEEP).await;
    assert_eq!(spots.finds.lock().activating.len(), 0);
    cluster.shutdown().await.unwrap();
}

/// What has become too old takes no room, also where nobody looks for it.
#[tokio::test(start_paused = true)]
async fn old_routes_take_no_room() {
    let cluster = Cluster::new(4);
    let (_host, spots) = caller(&cluster).await;
    for spot in 0..5_000 {
        spots.remember(&record(&format!("{spot}"), 3), spots.losses());
    }
    assert_eq!(spots.finds.lock().routes.len(), 5_000);
    cluster.advance(crate::limit::ROUTE_CACHE_AGE + SWEEP).await;
    let (routes, room) = {
        let routes = &spots.finds.lock().routes;
        (routes.len(), routes.room())
    };
    assert_eq!(routes, 0);
    assert!(room < 1_000, "{room}");
    cluster.shutdown().await.unwrap();
}

/// What a host makes itself is known by its Spot once it is made, and no longer by the message that made it; where it is made
/// elsewhere, that message is all that is known.
#[tokio::test(start_paused = true)]
async fn what_was_made_here_is_known_by_its_spot_alone() {
    async fn go(_: &mut (), _: &mut SpotTurn<'_, InstanceSpot>, _: wire::SpotClosed) -> Result<(), HandlerError> {
        Ok(())
    }
    let cluster = Cluster::new(5);
    cluster.node("owner", |host| {
        let stable_type = SpotType::from_static("arena.cart");
        let carts = SpotFactory::instance(stable_type, |_| async { Ok(()) }).send::<wire::SpotClosed, _>("go", go);
        let host = host.location_store(MemoryStore::new());
        host.mesh("world", |mesh| {
            let mesh = mesh.listen("tcp://owner:1");
            mesh.object_server(|objects| objects.spot(carts.relocation(Relocation::Recreate).build()))
        })
    });
    let host = cluster.start("owner").await.unwrap();
    let spots = host.outbound().objects_as::<Inner>().unwrap();
    let place = Place::new(MeshName::from_static("world"), Rid::new("elsewhere").unwrap(), run(1));
    let (elsewhere, stable_type) = (Space::Spots.id("b").unwrap(), SpotType::from_static("arena.cart"));
    let begun = spots.begins_to_make(&mut spots.finds.lock(), &elsewhere, stable_type.clone(), place);
    drop(begun.unwrap());

    let cart = SpotRoute::new(&host, stable_type).of("a");
    let go = || cart.send(Method::send("go"), wire::SpotClosed::default());
    cart.activates(go()).activating().await.unwrap();
    let id = Space::Spots.id("a").unwrap();
    while spots.object(&id).is_none_or(|cart| cart.phase() != Phase::Ready) {
        tokio::task::yield_now().await;
    }
    assert_eq!(spots.finds.lock().activating.len(), 1, "that of the other");
    let (found, _) = spots.known_route(&SpotTo::new(id, None)).unwrap();
    assert_ne!(found.target, ANY_OWNER, "the Spot itself");
    assert!(found.activation.is_none());
    go().await.unwrap();
    cluster.shutdown().await.unwrap();
}
