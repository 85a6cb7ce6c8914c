//! Couriers on one node, then on two, and an office that only calls: `cargo run -p couriers`. All of them could be programs on
//! machines of their own; the store would then be Redis, and nothing else would change.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use couriers::depot::{self, Ask, HandOver, Hire, Parcel};
use zlink_runtime::ActorCreated;
use zlink_runtime::location::MemoryStore;
use zlink_runtime::prelude::*;

const COURIERS: [&str; 6] = ["ada", "edith", "grace", "joan", "mary", "rosa"];

/// What was promised, and how much of it was kept.
#[derive(Default)]
struct Kept {
    hired: usize,
    found: usize,
    parcels: usize,
    in_order: usize,
    gone: usize,
}

impl Kept {
    fn is_all(&self) -> bool {
        self.found == self.hired && self.in_order == self.parcels && self.gone == self.hired
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of {} couriers {} were found from everywhere as the ones that were hired, and {} were gone once they had left; of {} \
             parcels {} came to the last courier, in order",
            self.hired, self.found, self.gone, self.parcels, self.in_order
        )
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut kept = Kept::default();
    for names in [&["north"][..], &["north", "south"]] {
        println!("== nodes: {}", names.len());
        work(names, &mut kept).await?;
    }
    println!("promised and kept, on one node and on two: {kept}");
    if kept.is_all() {
        Ok(())
    } else {
        Err("not all of that was kept".into())
    }
}

/// A day of couriers on nodes of these names.
async fn work(names: &[&str], kept: &mut Kept) -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let mut nodes = Vec::new();
    for name in names {
        let host = Host::builder()
            .location_store(store.clone())
            .mesh("depot", |mesh| couriers::serves(mesh.rid_prefix(*name)));
        nodes.push(host.start().await?);
    }
    let office = Host::builder()
        .location_store(store.clone())
        .mesh("depot", |mesh| mesh.rid_prefix("office").object_client());
    let office = office.start().await?;
    for node in &nodes {
        let node = node.mesh("depot")?.rid();
        office.mesh("depot")?.linked(&node, Duration::from_secs(10)).await?;
    }
    let couriers = depot::courier_actors(&office);

    println!("-- six are hired, and one is not");
    let mut hired = Vec::new();
    for name in COURIERS {
        if let ActorCreated::Created(courier, answer) = couriers.create(name, Hire { bags: 3 }).await? {
            println!("{name:6} on {}: {}", short(&courier.node.to_string()), answer.text);
            hired.push(courier);
        }
    }
    match couriers.create("max", Hire { bags: 400 }).await? {
        ActorCreated::Rejected(answer) => println!("max    stays away: {}", answer.text),
        other => return Err(format!("max was hired: {other:?}").into()),
    }
    kept.hired += COURIERS.len();
    for courier in &hired {
        // Whoever asks, from wherever, finds the same one; nobody hires it again.
        let from = depot::courier_actors(&nodes[nodes.len() - 1]);
        let again = from.get_or_create(&courier.id, Hire { bags: 1 }).await?;
        kept.found += usize::from(again == ActorCreated::Existing(courier.clone()));
    }

    println!("-- nine parcels, from hand to hand");
    let streets: Vec<String> = (1..=9).map(|number| format!("{number} High Street")).collect();
    let (first, last) = (&hired[0].id, &hired[hired.len() - 1].id);
    for to in streets.clone() {
        couriers.of(first).carry(Parcel { to, from: None }).await?;
    }
    for pair in hired.windows(2) {
        let courier = pair[1].id.clone();
        couriers.of(&pair[0].id).hand_over(HandOver { courier }).await?;
        // What one hands over is under way to the other for a moment.
        while couriers.of(&pair[1].id).show(Ask {}).await?.parcels.len() < streets.len() {
            tokio::task::yield_now().await;
        }
    }
    let load = couriers.of(last).show(Ask {}).await?;
    println!("{last} has {:?}", load.parcels.first());
    let came = load.parcels.iter().zip(&streets);
    kept.parcels += streets.len();
    kept.in_order += came
        .filter(|(parcel, street)| parcel.starts_with(street.as_str()))
        .count();
    let homes: BTreeSet<String> = hired.iter().map(|courier| courier.node.to_string()).collect();
    println!("   they live on nodes: {}", homes.len());

    println!("-- and all leave");
    for courier in &hired {
        let left = couriers.destroy(courier).await?;
        let gone = couriers.of(&courier.id).show(Ask {}).await;
        let nobody = gone.is_err_and(|error| error.kind() == Some(ErrorKind::NotFound));
        kept.gone += usize::from(left && nobody && couriers.find(&courier.id).await?.is_none());
    }
    office.shutdown().await?;
    for node in nodes {
        node.shutdown().await?;
    }
    Ok(())
}

fn short(node: &str) -> &str {
    node.split('-').next().unwrap_or(node)
}
