//! Couriers on one node and on two, in virtual time, without a socket.

use std::time::Duration;

use couriers::depot::{self, Answer, Ask, HandOver, Hire, Parcel};
use zlink_runtime::id::ActorId;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{ActorCreated, HostBuilder};

const NAMES: [&str; 2] = ["north", "south"];

/// The hosts of `nodes` nodes, which are told nothing of each other.
async fn open(nodes: usize) -> Result<Cluster, Box<dyn std::error::Error>> {
    let cluster = Cluster::new(11);
    for name in NAMES.into_iter().take(nodes) {
        let store = cluster.store(name);
        cluster.node(name, move |host: HostBuilder| {
            let host = host.location_store(store.clone());
            host.mesh("depot", |mesh| {
                couriers::serves(mesh.rid_prefix(name).listen(format!("tcp://{name}:1")))
            })
        });
    }
    cluster.start_all().await?;
    cluster.advance(Duration::from_secs(3)).await;
    Ok(cluster)
}

fn parcel(to: &str) -> Parcel {
    Parcel {
        to: to.into(),
        from: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_courier_is_the_same_from_every_node() -> Result<(), Box<dyn std::error::Error>> {
    for nodes in [1, 2] {
        let cluster = open(nodes).await?;
        let hosts: Vec<_> = NAMES.iter().take(nodes).map(|name| cluster.host(name)).collect();
        let here = depot::courier_actors(&hosts[0]);
        let there = depot::courier_actors(&hosts[nodes - 1]);
        for name in ["ada", "grace", "joan", "mary"] {
            assert_eq!(here.find(name).await?, None, "{name}");
            let made = here.create(name, Hire { bags: 3 }).await?;
            let ActorCreated::Created(courier, Answer { text }) = made else {
                panic!("{made:?}");
            };
            assert_eq!(text, format!("welcome, {name}"));
            assert_eq!(there.find(name).await?, Some(courier.clone()));
            let same = there.get_or_create(name, Hire { bags: 99 }).await?;
            assert_eq!(same, ActorCreated::Existing(courier));
            let again = there.create(name, Hire { bags: 3 }).await.unwrap_err();
            assert_eq!(again.kind(), Some(ErrorKind::AlreadyExists), "{again}");
            here.of(name).carry(parcel("the harbour")).await?;
            here.of(name).carry(parcel("the station")).await?;
            // A request from the same node comes behind what that sent.
            assert_eq!(
                here.of(name).show(Ask {}).await?.parcels,
                ["the harbour", "the station"]
            );
            let load = there.of(name).show(Ask {}).await?;
            assert_eq!(load.parcels, ["the harbour", "the station"]);
            assert_eq!(load.bags, 3, "what it was hired for");
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_yard_rejects_never_was_and_what_is_destroyed_is_gone() -> Result<(), Box<dyn std::error::Error>> {
    for nodes in [1, 2] {
        let cluster = open(nodes).await?;
        let couriers = depot::courier_actors(&cluster.host(NAMES[nodes - 1]));
        let rejected = couriers.create("max", Hire { bags: 400 }).await?;
        let text = "nobody carries 400 parcels".to_owned();
        assert_eq!(rejected, ActorCreated::Rejected(Answer { text }));
        assert_eq!(couriers.find("max").await?, None);
        let none = couriers.of("max").show(Ask {}).await.unwrap_err();
        assert_eq!(none.kind(), Some(ErrorKind::NotFound), "{none}");
        // The name is free.
        let made = couriers.create("max", Hire { bags: 4 }).await?;
        let first = made.reference().ok_or("created")?.clone();
        assert!(couriers.destroy(&first).await?);
        assert!(!couriers.destroy(&first).await?, "it is gone");
        assert_eq!(couriers.find("max").await?, None);
        let made = couriers.create("max", Hire { bags: 4 }).await?;
        let second = made.reference().ok_or("created")?.clone();
        assert_ne!(first, second);
        let other = couriers.destroy(&first).await.unwrap_err();
        assert_eq!(other.kind(), Some(ErrorKind::InvalidOperation), "{other}");
        assert_eq!(couriers.find("max").await?, Some(second));
        cluster.shutdown().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn parcels_go_from_courier_to_courier_in_order() -> Result<(), Box<dyn std::error::Error>> {
    for nodes in [1, 2] {
        let cluster = open(nodes).await?;
        let couriers = depot::courier_actors(&cluster.host("north"));
        let names = ["ada", "grace", "joan", "mary"];
        for name in names {
            couriers.create(name, Hire { bags: 9 }).await?;
        }
        let streets: Vec<String> = (1..=9).map(|number| format!("{number} High Street")).collect();
        for street in &streets {
            couriers.of("ada").carry(parcel(street)).await?;
        }
        for pair in names.windows(2) {
            let courier = Some(ActorId::new(pair[1])?);
            let left = couriers
                .of(pair[0])
                .hand_over(HandOver {
                    courier: courier.clone().ok_or("an ID")?,
                })
                .await?;
            assert!(left.parcels.is_empty());
        }
        cluster.advance(Duration::from_secs(1)).await;
        let expected: Vec<String> = streets
            .iter()
            .map(|street| format!("{street} (by ada) (by grace) (by joan)"))
            .collect();
        assert_eq!(couriers.of("mary").show(Ask {}).await?.parcels, expected);
        cluster.shutdown().await?;
    }
    Ok(())
}

#[test]
fn the_program_ends_well() {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_couriers")).output();
    let ran = ran.expect("the example runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("nobody carries 400 parcels"), "{said}");
}
