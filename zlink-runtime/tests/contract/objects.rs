//! What a host makes of records for its Spots that no host would send it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zlink_generated::arena::{
    AddItem, CartContext, CartSpot, CartTurn, CartView, CartYieldTurn, Checkout, HallContext, HallSpot, HallTurn,
    Knock, Look, Open, Receipt, cart_spot, cart_spots, hall_spot, hall_spots,
};
use zlink_generated::zlink_wire::{
    Hello, RecordKind, SpotActivation, SpotClose, SpotClosed, SpotCreate, SpotCreated, SpotOutcome,
};
use zlink_runtime::SpotQuery;
use zlink_runtime::error::{ErrorKind, Execution, HandlerError};
use zlink_runtime::id::SpotKind;
use zlink_runtime::location::{Faults, LocationTiming, MemoryStore};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, Created, Tick};

use super::kit::*;

/// How many Spots were made, and how many of their handlers have run.
#[derive(Clone, Default)]
struct Counts(Arc<(AtomicUsize, AtomicUsize)>);

impl Counts {
    fn get(&self) -> (usize, usize) {
        (self.0.0.load(Ordering::SeqCst), self.0.1.load(Ordering::SeqCst))
    }

    fn of(shared: Option<&Self>) -> Result<Self, HandlerError> {
        let counts = shared.ok_or_else(|| HandlerError::new("nothing is shared"))?.clone();
        counts.0.0.fetch_add(1, Ordering::SeqCst);
        Ok(counts)
    }

    fn ran(&self) {
        self.0.1.fetch_add(1, Ordering::SeqCst);
    }
}

struct Cart(Counts);

impl CartSpot for Cart {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        Ok(Self(Counts::of(context.shared())?))
    }

    async fn add(&mut self, _: &mut CartTurn<'_>, _: AddItem) -> Result<(), HandlerError> {
        self.0.ran();
        Ok(())
    }

    async fn view(&mut self, _: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        self.0.ran();
        Ok(CartView::default())
    }

    async fn peek(&mut self, _: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        self.0.ran();
        Ok(CartView::default())
    }

    async fn checkout(_: &mut CartYieldTurn<'_, Self>, _: Checkout) -> Result<Receipt, HandlerError> {
        Ok(Receipt::default())
    }

    async fn drop(&mut self, _: &mut CartTurn<'_>, _: Knock) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn on_expire(_: &mut CartYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        Ok(())
    }
}

struct Hall;

impl HallSpot for Hall {
    async fn create(context: HallContext, _: Open) -> Result<Created<Self, ()>, HandlerError> {
        Counts::of(context.shared())?;
        Ok(Created::Accepted(Self, ()))
    }

    async fn knock(&mut self, _: &mut HallTurn<'_>, _: Knock) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn on_tick(&mut self, _: &mut HallTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// Makes an Entry Spot, of nothing.
async fn lobby(_: rt::SpotContext<rt::EntrySpot>) -> Result<(), HandlerError> {
    Ok(())
}

/// A host that has Spots, a peer that says anything, and which run of its node the host is.
async fn host() -> (Host, Counts, Raw, u64) {
    host_on(MemoryStore::new(), LocationTiming::default()).await
}

async fn host_on(store: MemoryStore, timing: LocationTiming) -> (Host, Counts, Raw, u64) {
    let counts = Counts::default();
    let s = Host::builder()
        .location_store(store)
        .location_timing(timing)
        .shared(counts.clone());
    let s = s.mesh("shop", |mesh| {
        let mesh = mesh.rid_prefix("s").listen("tcp://127.0.0.1:0");
        mesh.object_server(|objects| {
            let lobby = rt::SpotFactory::entry(rt::SpotType::from_static("arena.lobby"), lobby);
            let objects = objects.entry(lobby.build());
            objects.spot(cart_spot::<Cart>()).spot(hall_spot::<Hall>())
        })
    });
    let s = s.start().await.unwrap();
    let says = hello_of("raw");
    let raw = Raw::dial(&endpoint(&s), &says).await;
    raw.say(&hello(RecordKind::Hello, &says));
    let admit = raw.heard(RecordKind::Admit).await;
    let admit: Hello = rt::decode(&admit[4..]).unwrap();
    raw.link().admit(64 << 20);
    raw.say(&record(RecordKind::Ready, &[]));
    linked(&s, &rt::Rid::new("raw").unwrap()).await;
    (s, counts, raw, admit.generation)
}

/// What `craft` is answered: how it failed, if it did.
async fn told(raw: &Raw, craft: Craft) -> Option<(ErrorKind, Execution)> {
    raw.say(&craft.record());
    answer(raw).await.failed
}

const fn refused(kind: ErrorKind) -> Option<(ErrorKind, Execution)> {
    Some((kind, Execution::NotExecuted))
}

/// The run of the lease of the host of `cart`: one of the first revisions of its store.
async fn lease(raw: &Raw) -> u64 {
    for lease in 1..100 {
        let call = Craft::to_spot(1, "arena.cart.view", "cart", lease).message(&Look {});
        if told(raw, call).await.is_none() {
            return lease;
        }
    }
    panic!("the cart is of no lease");
}

/// A former owner is refused; a former incarnation of the same owner is not, whoever owned that.
///
/// REQ: LS-021, LS-035, RT-008
#[tokio::test]
async fn a_call_that_means_a_former_owner_runs_nothing() {
    let (s, counts, raw, _) = host().await;
    cart_spots(&s).of("cart").peek(Look {}).activating().await.unwrap();
    let generation = cart_spots(&s).find("cart").await.unwrap().unwrap().generation.get();
    let lease = lease(&raw).await;
    let before = counts.get();
    let call = |generation, owner| {
        let call = Craft::to_spot(1, "arena.cart.view", "cart", lease);
        call.owned(generation, owner).message(&Look {})
    };
    assert_eq!(told(&raw, call(generation, 2)).await, refused(ErrorKind::Unavailable));
    assert_eq!(told(&raw, call(generation, 0)).await, refused(ErrorKind::Unavailable));
    assert_eq!(counts.get(), before);
    assert_eq!(told(&raw, call(generation, 1)).await, None);
    assert_eq!(told(&raw, call(generation + 1, 2)).await, None, "made anew there");
    assert_eq!(told(&raw, call(generation - 1, 1)).await, None);
    s.shutdown().await.unwrap();
}

/// REQ: SP-051, RT-008, LS-035
#[tokio::test]
async fn a_call_that_means_another_owner_runs_nothing() {
    let (s, counts, raw, _) = host().await;
    cart_spots(&s).of("cart").peek(Look {}).activating().await.unwrap();
    let call = |lease| Craft::to_spot(1, "arena.cart.view", "cart", lease).message(&Look {});
    assert_eq!(told(&raw, call(0)).await, None, "whoever it is");
    assert_eq!(counts.get(), (1, 2));
    assert_eq!(told(&raw, call(u64::MAX >> 1)).await, refused(ErrorKind::Unavailable));
    assert_eq!(told(&raw, call(1)).await, refused(ErrorKind::Unavailable));
    assert_eq!(counts.get(), (1, 2));
    let nowhere = Craft::to_spot(1, "arena.cart.view", "nowhere", 1).message(&Look {});
    assert_eq!(told(&raw, nowhere).await, refused(ErrorKind::Unavailable));
    s.shutdown().await.unwrap();
}

/// Whoever calls may not have seen yet that the lease of the owner is over.
///
/// REQ: LS-032, LS-035
#[tokio::test]
async fn a_host_without_a_lease_takes_no_call_and_makes_and_closes_nothing() {
    let milliseconds = std::time::Duration::from_millis;
    let faults = Faults::new(1);
    let mut timing = LocationTiming::default();
    (timing.renew_interval, timing.renew_timeout) = (milliseconds(200), milliseconds(200));
    (timing.lease_ttl, timing.fencing_margin) = (milliseconds(1_000), milliseconds(100));
    timing.poll_interval = milliseconds(200);
    let store = MemoryStore::new().with_faults(faults.clone());
    let (s, counts, raw, lifecycle) = host_on(store, timing).await;
    cart_spots(&s).of("cart").peek(Look {}).activating().await.unwrap();
    let hall = hall_spots(&s).get_or_create("hall", Open::default()).await.unwrap();
    let generation = hall.reference().unwrap().generation.get();
    let admits = || s.status().location.is_some_and(|location| location.admits_owned_work);
    // A call that names its owner needs no second look.
    let lease = lease(&raw).await;
    let named = Craft::to_spot(1, "arena.cart.view", "cart", lease).message(&Look {});
    faults.cut();
    until("the end of its lease", || !admits()).await;
    let before = counts.get();
    let call = Craft::to_spot(1, "arena.cart.view", "cart", 0).message(&Look {});
    assert_eq!(told(&raw, call.clone()).await, refused(ErrorKind::Unavailable));
    assert_eq!(told(&raw, named).await, refused(ErrorKind::Unavailable));
    let close = SpotClose {
        id: "hall".into(),
        generation,
        target_lifecycle: lifecycle,
    };
    let close = Craft::control(2, RecordKind::SpotClose, &close);
    assert_eq!(told(&raw, close).await, refused(ErrorKind::Unavailable));
    faults.heal();
    until("its lease", admits).await;
    assert_eq!(counts.get(), before);
    assert_eq!(told(&raw, call).await, None);
    s.shutdown().await.unwrap();
}

/// REQ: SP-064, SP-006, SP-062, LS-025
#[tokio::test]
async fn an_activation_that_says_something_else_makes_nothing() {
    let (s, counts, raw, lifecycle) = host().await;
    let right = SpotActivation {
        stable_type: "arena.cart".into(),
        mesh: "shop".into(),
        target_lifecycle: lifecycle,
        source: b"raw".to_vec(),
        source_lifecycle: raw.generation,
        operation: vec![7; 16],
    };
    let calls = |id: &str, activation: &[u8]| {
        let call = Craft::to_spot(1, "arena.cart.peek", id, 0);
        call.flag(8, &sized(activation)).message(&Look {})
    };
    for (wrong, kind) in [
        (
            SpotActivation {
                mesh: "other".into(),
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotActivation {
                source: b"somebody".to_vec(),
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotActivation {
                source: Vec::new(),
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotActivation {
                source_lifecycle: 0,
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotActivation {
                operation: vec![0; 16],
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotActivation {
                operation: vec![7; 15],
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotActivation {
                stable_type: String::new(),
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotActivation {
                target_lifecycle: lifecycle ^ 1,
                ..right.clone()
            },
            ErrorKind::Unavailable,
        ),
        (
            SpotActivation {
                stable_type: "arena.stall".into(),
                ..right.clone()
            },
            ErrorKind::NotFound,
        ),
        (
            SpotActivation {
                stable_type: "arena.great-hall".into(),
                ..right.clone()
            },
            ErrorKind::NotFound,
        ),
    ] {
        let end = told(&raw, calls("cart", &encoded(&wrong))).await;
        assert_eq!(end, refused(kind), "{wrong:?}");
    }
    assert_eq!(
        told(&raw, calls("cart", b"no message")).await,
        refused(ErrorKind::ProtocolError)
    );
    let entry = "s-entry-8f14e45f-ceea-467f-9b1d-3c5b4a1d2e3f";
    assert_eq!(
        told(&raw, calls(entry, &encoded(&right))).await,
        refused(ErrorKind::InvalidOperation)
    );
    assert_eq!(counts.get(), (0, 0));
    assert_eq!(told(&raw, calls("cart", &encoded(&right))).await, None);
    assert_eq!(counts.get(), (1, 1));
    s.shutdown().await.unwrap();
}

/// REQ: SP-085, SP-006, SP-094, LS-025
#[tokio::test]
async fn a_create_or_close_that_means_something_else_does_nothing() {
    let (s, counts, raw, lifecycle) = host().await;
    let right = SpotCreate {
        id: "hall".into(),
        stable_type: "arena.great-hall".into(),
        mesh: "shop".into(),
        target_lifecycle: lifecycle,
        source: b"raw".to_vec(),
        source_lifecycle: raw.generation,
        operation: vec![7; 16],
        request: encoded(&Open::default()),
    };
    let create = |create: &SpotCreate| Craft::control(1, RecordKind::SpotCreate, create);
    for (wrong, kind) in [
        (
            SpotCreate {
                mesh: "other".into(),
                ..right.clone()
            },
            ErrorKind::Unavailable,
        ),
        (
            SpotCreate {
                target_lifecycle: lifecycle ^ 1,
                ..right.clone()
            },
            ErrorKind::Unavailable,
        ),
        (
            SpotCreate {
                source: b"somebody".to_vec(),
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotCreate {
                source_lifecycle: 0,
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotCreate {
                operation: vec![0; 16],
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotCreate {
                id: String::new(),
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
        (
            SpotCreate {
                stable_type: "arena.cart".into(),
                ..right.clone()
            },
            ErrorKind::NotFound,
        ),
        (
            SpotCreate {
                id: "s-entry-8f14e45f-ceea-467f-9b1d-3c5b4a1d2e3f".into(),
                ..right.clone()
            },
            ErrorKind::InvalidOperation,
        ),
    ] {
        assert_eq!(told(&raw, create(&wrong)).await, refused(kind), "{wrong:?}");
    }
    assert_eq!(counts.get().0, 0);
    raw.say(&create(&right).record());
    let made: SpotCreated = rt::decode(&answer(&raw).await.body).unwrap();
    assert_eq!((made.outcome, counts.get().0), (SpotOutcome::Created, 1));
    // The same again is answered once, and makes no second one.
    raw.say(&create(&right).record());
    let again: SpotCreated = rt::decode(&answer(&raw).await.body).unwrap();
    assert_eq!(
        (again.outcome, counts.get().0),
        (SpotOutcome::Unspecified, 1),
        "the store knows more"
    );

    let right = SpotClose {
        id: "hall".into(),
        generation: made.generation,
        target_lifecycle: lifecycle,
    };
    let close = |close: &SpotClose| Craft::control(2, RecordKind::SpotClose, close);
    for (wrong, kind) in [
        (
            SpotClose {
                target_lifecycle: lifecycle ^ 1,
                ..right.clone()
            },
            ErrorKind::Unavailable,
        ),
        (
            SpotClose {
                generation: made.generation + 1,
                ..right.clone()
            },
            ErrorKind::InvalidOperation,
        ),
        (
            SpotClose {
                generation: 0,
                ..right.clone()
            },
            ErrorKind::ProtocolError,
        ),
    ] {
        assert_eq!(told(&raw, close(&wrong)).await, refused(kind), "{wrong:?}");
    }
    assert!(hall_spots(&s).find("hall").await.unwrap().is_some());
    for closed in [true, false] {
        raw.say(&close(&right).record());
        let told: SpotClosed = rt::decode(&answer(&raw).await.body).unwrap();
        assert_eq!(told.closed, closed);
    }
    assert!(hall_spots(&s).find("hall").await.unwrap().is_none());
    s.shutdown().await.unwrap();
}

/// An Entry Spot lives as long as its node, whatever a peer asks for.
///
/// REQ: SP-027
#[tokio::test]
async fn nobody_closes_an_entry_spot() {
    let (s, _, raw, lifecycle) = host().await;
    let query = SpotQuery::new(SpotKind::Entry);
    let entry = async || s.list_spots(&query, None).await.unwrap().spots[0].reference.clone();
    let lobby = entry().await;
    let close = SpotClose {
        id: lobby.id.to_string(),
        generation: lobby.generation.get(),
        target_lifecycle: lifecycle,
    };
    let close = Craft::control(1, RecordKind::SpotClose, &close);
    assert_eq!(told(&raw, close).await, refused(ErrorKind::InvalidOperation));
    assert_eq!(entry().await, lobby);
    s.shutdown().await.unwrap();
}
