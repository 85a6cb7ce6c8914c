//! Actors as their schema says, through generated code alone: each callback is reached by its client, and by nothing else.

use std::time::Duration;

use zlink_generated::depot::{
    Ask, Badge, COURIER, COURIER_REST, COURIER_RIDE, CourierActor, CourierContext, CourierTurn, CourierYieldTurn, Hire,
    INSPECTOR, InspectorActor, InspectorContext, InspectorTurn, Parcel, Status, YardContext, YardSpot, YardTurn,
    courier_actor, courier_actors, inspector_actor, inspector_actors, yard_spot,
};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{ActorCreated, Admission, HostBuilder, Tick};

struct Yard;

impl YardSpot for Yard {
    type Courier = Courier;
    type Inspector = Inspector;

    async fn start(_: YardContext) -> Result<Self, HandlerError> {
        Ok(Yard)
    }

    async fn on_create_courier(
        &mut self,
        _: &mut YardTurn<'_>,
        courier: &mut Courier,
        hire: Hire,
    ) -> Result<Admission<Badge>, HandlerError> {
        let reason = format!("{} as {}", hire.name, courier.context.id());
        courier.did.push(format!("hired as {}", hire.name));
        if hire.name == "nobody" {
            return Ok(Admission::Rejected(Badge { number: 0, reason }));
        }
        Ok(Admission::Accepted(Badge { number: 7, reason }))
    }

    async fn on_create_inspector(
        &mut self,
        _: &mut YardTurn<'_>,
        _: &mut Inspector,
        hire: Hire,
    ) -> Result<Admission<()>, HandlerError> {
        Ok(match hire.name.as_str() {
            "nobody" => Admission::Rejected(()),
            _ => Admission::Accepted(()),
        })
    }

    async fn on_create_courier_2(&mut self, _: &mut YardTurn<'_>, _: Ask) -> Result<Status, HandlerError> {
        Ok(status("a method of the yard", 0))
    }

    async fn on_close(&mut self, _: &mut YardTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        Ok(())
    }
}

fn status(name: impl Into<String>, parcels: u32) -> Status {
    Status {
        name: name.into(),
        parcels,
        spot: None,
    }
}

struct Courier {
    context: CourierContext,
    did: Vec<String>,
}

impl CourierActor for Courier {
    async fn create(context: CourierContext) -> Result<Self, HandlerError> {
        assert_eq!(context.spot(), None, "it is in no Spot before it is admitted");
        let did = Vec::new();
        Ok(Self { context, did })
    }

    fn context(&self) -> &CourierContext {
        &self.context
    }

    async fn carry(&mut self, turn: &mut CourierTurn<'_>, parcel: Parcel) -> Result<(), HandlerError> {
        self.did.push(format!("carry {}", parcel.to));
        turn.add_timer(COURIER_REST, Duration::from_secs(60))?;
        turn.add_timer(COURIER_RIDE, Duration::from_secs(90))?;
        Ok(())
    }

    async fn status(&mut self, turn: &mut CourierTurn<'_>, _: Ask) -> Result<Status, HandlerError> {
        let parcels = u32::try_from(self.did.len())?;
        Ok(Status {
            name: format!("{}: {}", turn.id(), self.did.join(", ")),
            parcels,
            spot: self.context.spot(),
        })
    }

    /// In an Entry Spot nobody else runs in its turn: it cannot be given back, and there is no need to.
    async fn plan(turn: &mut CourierYieldTurn<'_, Self>, _: Ask) -> Result<Status, HandlerError> {
        let other = courier_actors(turn).of("c-2");
        let yielded = turn.yield_for(other.status(Ask {})).await;
        let refused = yielded.is_err_and(|error| error.kind() == Some(ErrorKind::InvalidOperation));
        let asked = other.status(Ask {}).await?;
        turn.state().did.push(format!("plan (refused: {refused})"));
        Ok(status(asked.name, 1))
    }

    async fn report(turn: &mut CourierYieldTurn<'_, Self>, _: Ask) -> Result<(), HandlerError> {
        let packet = turn.packet_name().to_owned();
        turn.state().did.push(packet);
        Ok(())
    }

    async fn create_2(&mut self, _: &mut CourierTurn<'_>, _: Ask) -> Result<Status, HandlerError> {
        Ok(status("a method of the courier", 2))
    }

    async fn on_rest(&mut self, turn: &mut CourierTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        self.did.push(format!("tick {}", turn.packet_name()));
        Ok(())
    }

    async fn on_ride(turn: &mut CourierYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        turn.state().did.push("tick of a yielding timer".to_owned());
        Ok(())
    }
}

struct Inspector(InspectorContext);

impl InspectorActor for Inspector {
    async fn create(context: InspectorContext) -> Result<Self, HandlerError> {
        Ok(Self(context))
    }

    fn context(&self) -> &InspectorContext {
        &self.0
    }

    async fn look(&mut self, turn: &mut InspectorTurn<'_>, _: Ask) -> Result<Status, HandlerError> {
        Ok(status(turn.packet_name(), 3))
    }
}

/// One node, or two of which the last has inspectors alone.
async fn open(nodes: usize) -> Result<Cluster, Box<dyn std::error::Error>> {
    let cluster = Cluster::new(5);
    for name in ["north", "south"].into_iter().take(nodes) {
        let store = cluster.store(name);
        cluster.node(name, move |host: HostBuilder| {
            let host = host.location_store(store.clone());
            host.mesh("depot", |mesh| {
                let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1"));
                mesh.object_server(|objects| {
                    let objects = objects.entry(yard_spot::<Yard>()).actor(inspector_actor::<Inspector>());
                    match name {
                        "north" => objects.actor(courier_actor::<Courier>()).actor_capacity(COURIER, 9),
                        _ => objects.actor_capacity(INSPECTOR, 9),
                    }
                })
            })
        });
    }
    cluster.start_all().await?;
    cluster.advance(Duration::from_secs(3)).await;
    Ok(cluster)
}

fn hire(name: &str) -> Hire {
    Hire { name: name.into() }
}

#[tokio::test(start_paused = true)]
async fn each_callback_is_reached_by_its_client() -> Result<(), Box<dyn std::error::Error>> {
    for nodes in [1, 2] {
        let cluster = open(nodes).await?;
        let host = cluster.host(["north", "south"][nodes - 1]);
        let couriers = courier_actors(&host);
        for id in ["c-1", "c-2"] {
            let made = couriers.create(id, hire("Ada")).await?;
            let reason = format!("Ada as {id}");
            let badge = |badge: &Badge| *badge == Badge { number: 7, reason };
            assert!(
                matches!(&made, ActorCreated::Created(_, reply) if badge(reply)),
                "{made:?}"
            );
        }
        let made = couriers.get_or_create("c-3", hire("nobody")).await?;
        let reason = "nobody as c-3".to_owned();
        assert_eq!(made, ActorCreated::Rejected(Badge { number: 0, reason }));

        let one = couriers.of("c-1");
        let to = "the harbour".to_owned();
        one.carry(Parcel { to, grams: 1 }).await?;
        one.report(Ask {}).await?;
        let planned = one.plan(Ask {}).await?;
        assert_eq!(planned.name, "c-2: hired as Ada", "another courier was asked");
        assert_eq!(one.create_2(Ask {}).await?, status("a method of the courier", 2));
        cluster.advance(Duration::from_secs(100)).await;
        let told = one.status(Ask {}).await?;
        let did = [
            "hired as Ada",
            "carry the harbour",
            "depot.courier.tell",
            "plan (refused: true)",
            "tick rest",
            "tick of a yielding timer",
        ];
        assert_eq!(told.name, format!("c-1: {}", did.join(", ")));
        assert!(told.spot.is_some(), "it is in the yard of its node");
        cluster.shutdown().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn another_type_of_actors_has_its_own_admission_packets_and_ids() -> Result<(), Box<dyn std::error::Error>> {
    for nodes in [1, 2] {
        let cluster = open(nodes).await?;
        let host = cluster.host(["north", "south"][nodes - 1]);
        let inspectors = inspector_actors(&host);
        assert_eq!(
            inspectors.create("i-1", hire("nobody")).await?,
            ActorCreated::Rejected(())
        );
        let made = inspectors.create("i-1", hire("Grace")).await?;
        let reference = made.reference().ok_or("created")?.clone();
        assert_eq!(made, ActorCreated::Created(reference.clone(), ()));
        assert_eq!(inspectors.of("i-1").look(Ask {}).await?, status("depot.look", 3));
        // The ID is that of an inspector, for whoever asks.
        let couriers = courier_actors(&host);
        let taken = couriers.create("i-1", hire("Ada")).await.unwrap_err();
        assert_eq!(taken.kind(), Some(ErrorKind::TypeMismatch), "{taken}");
        assert!(inspectors.destroy(&reference).await?);
        let gone = inspectors.of("i-1").look(Ask {}).await.unwrap_err();
        assert_eq!(gone.kind(), Some(ErrorKind::NotFound), "{gone}");
        cluster.shutdown().await?;
    }
    Ok(())
}
