//! The same service and the same call, in two processes and in a mesh: what the README shows beyond its first program.

use std::time::Duration;

use billing::{BillingHandler, Charge, Receipt};
use zlink_runtime::location::{MemoryStore, StoreSource};
use zlink_runtime::prelude::*;

zlink_runtime::include_schema!("billing");

type Failure = Box<dyn std::error::Error>;

/// One process serves …
async fn server(payments: impl BillingHandler) -> Result<Host, Failure> {
    let server = billing::server(payments);
    let host = Host::builder().client_server(|channel| channel.serve(server).listen("tcp://127.0.0.1:7001"));
    Ok(host.start().await?)
}

/// … and another calls it; each further `connect` is one more server to choose from.
async fn client() -> Result<Host, Failure> {
    let host =
        Host::builder().client_server(|channel| channel.client(billing::BILLING).connect("tcp://127.0.0.1:7001"));
    Ok(host.start().await?)
}

async fn serving_node(payments: impl BillingHandler) -> Result<Host, Failure> {
    let server = billing::server(payments);
    let host = Host::builder().mesh("shop", |mesh| mesh.listen("tcp://127.0.0.1:7002").serve(server));
    let host = host.start().await?;
    host.mesh("shop")?.set_weight(billing::BILLING, 300)?; // takes effect at every peer; links stay
    Ok(host)
}

async fn calling_node() -> Result<Host, Failure> {
    let host = Host::builder().mesh("shop", |mesh| {
        mesh.listen("tcp://127.0.0.1:7003")
            .connect("tcp://127.0.0.1:7002")
            .client(billing::BILLING)
    });
    Ok(host.start().await?)
}

/// The store is `"sqlite:///var/lib/shop.db"` (cargo feature `sqlite`) on one machine, `"redis://host:6379?namespace=shop"`
/// (feature `redis`) on several, or a `MemoryStore` for hosts within one process.
async fn node_that_is_found(store: impl Into<StoreSource>, payments: impl BillingHandler) -> Result<Host, Failure> {
    let server = billing::server(payments);
    let host = Host::builder()
        .location_store(store)
        .mesh("shop", |mesh| mesh.serve(server));
    Ok(host.start().await?)
}

async fn node_that_finds(store: impl Into<StoreSource>) -> Result<Host, Failure> {
    let host = Host::builder()
        .location_store(store)
        .mesh("shop", |mesh| mesh.client(billing::BILLING));
    let host = host.start().await?;
    host.mesh("shop")?
        .ready(billing::BILLING, 1, Duration::from_secs(5))
        .await?; // somebody is there to call
    Ok(host)
}

struct Payments;

impl BillingHandler for Payments {
    async fn charge(&self, _ctx: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
        Ok(Receipt {
            number: format!("R-{}", charge.order),
        })
    }
}

async fn receipt(caller: &Host) -> Result<String, CallError> {
    let order = Charge {
        order: "7".into(),
        cents: 100,
    };
    Ok(billing::client(caller).charge(order).await?.number)
}

#[tokio::test]
async fn server_and_client_may_be_two_hosts() -> Result<(), Failure> {
    let (server, client) = (server(Payments).await?, client().await?);
    assert_eq!(receipt(&client).await?, "R-7");
    client.shutdown().await?;
    Ok(server.shutdown().await?)
}

#[tokio::test]
async fn a_mesh_carries_the_same_call() -> Result<(), Failure> {
    let (serving, calling) = (serving_node(Payments).await?, calling_node().await?);
    // A mesh does not wait for peers: until the link is there, nobody can be selected.
    let answer = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            match receipt(&calling).await {
                Err(error) if error.kind() == Some(ErrorKind::NotFound) => tokio::task::yield_now().await,
                answer => break answer,
            }
        }
    });
    assert_eq!(answer.await??, "R-7");
    calling.shutdown().await?;
    Ok(serving.shutdown().await?)
}

#[tokio::test]
async fn nodes_find_each_other_through_a_store() -> Result<(), Failure> {
    let store = MemoryStore::new();
    let found = node_that_is_found(store.clone(), Payments).await?;
    let finds = node_that_finds(store).await?;
    assert_eq!(receipt(&finds).await?, "R-7");
    finds.shutdown().await?;
    Ok(found.shutdown().await?)
}
