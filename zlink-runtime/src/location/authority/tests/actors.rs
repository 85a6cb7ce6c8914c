//! What is of Actors in the store: keys, counters and a membership of their own.

use super::*;
use crate::id::{Space, SpotId};
use crate::location::{Batch, Mutation, Written, name};

fn actor(host: &Host, id: &str) -> Reserve {
    Reserve {
        id: Space::Actors.id(id).unwrap(),
        spot: Some(SpotId::from_static("hall")),
        ..host.reserve(id, ObjectKind::Actor)
    }
}

/// An Actor and a Spot of one ID know nothing of each other; each has its own counters, and the Actor its Spot.
///
/// REQ: LS-011, LS-015, AC-108, AC-066
#[tokio::test(start_paused = true)]
async fn actors_are_apart_from_spots() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    host.ready("a", ObjectKind::User).await;
    let Ok(Reserving::Won(reservation)) = host.authority.reserve(actor(&host, "a")).await else {
        panic!("nobody has that Actor");
    };
    assert_eq!(counts(&store, "capacity/node-1").await, counted(1, 0));
    assert_eq!(counts(&store, "capacity/node-1/a").await, counted(0, 1));
    assert_eq!(counts(&store, "capacity/node-1/a/game.room").await, counted(0, 1));
    let ready = host.authority.commit(reservation, None).await.unwrap();
    assert!(ready.inbox.is_empty(), "it has had its request");
    let id = Space::Actors.id("a").unwrap();
    let Resolved::Ready(found) = host.authority.resolve(&id).await else {
        panic!("it is there");
    };
    assert_eq!(found, *ready);
    assert_eq!(found.spot, Some(SpotId::from_static("hall")));
    assert_eq!(counts(&store, "capacity/node-1/a").await, counted(1, 0));
    assert_eq!(host.authority.delete(&found).await, Ok(Removal::Removed));
    assert_eq!(counts(&store, "capacity/node-1/a").await, counted(0, 0));
    assert!(matches!(host.authority.resolve(&id_of("a")).await, Resolved::Ready(_)));
}

/// A create that has ended is not begun again; what it left is not made by another.
///
/// REQ: LS-043
#[tokio::test(start_paused = true)]
async fn the_end_of_a_creation_is_kept_for_actors_too() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let Ok(Reserving::Won(reservation)) = host.authority.reserve(actor(&host, "a")).await else {
        panic!("nobody has it");
    };
    let terminal = Terminal {
        outcome: CreationOutcome::Rejected,
        body: Bytes::from_static(b"no"),
        deadline: tokio::time::Instant::now(),
    };
    host.authority.abort(reservation, Some(terminal)).await.unwrap();
    let again = host.authority.reserve(actor(&host, "a")).await;
    let Ok(Reserving::Over(ended)) = again else {
        panic!("{again:?}");
    };
    assert_eq!(ended.body, b"no"[..]);
}

/// A Spot in no Spot, an Actor in one: anything else is no record.
#[tokio::test(start_paused = true)]
async fn an_actor_without_a_spot_is_no_record() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let stray = |kind, spot: Option<&'static str>| Reserve {
        kind,
        spot: spot.map(SpotId::from_static),
        ..actor(&host, "a")
    };
    for stray in [stray(ObjectKind::Actor, None), stray(ObjectKind::User, Some("hall"))] {
        let space = stray.kind.space();
        let record = stray.record(OwnerId::new([1; 16]), Revision::MAX, Revision::MAX);
        let (id, value) = (space.id("a").unwrap(), record.to_value(true, 7).unwrap());
        let key = name::object_key(&id);
        let batch = Batch::new([], [Mutation::put(key, value)]).unwrap();
        assert!(matches!(store.write(&batch).await, Ok(Written::Applied { .. })));
        assert!(matches!(
            host.authority.resolve(&id).await,
            Resolved::Failed(AuthorityError::Unreadable(_))
        ));
    }
}
