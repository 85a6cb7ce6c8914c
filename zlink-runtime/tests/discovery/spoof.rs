//! What the store says of a peer, and another one answers: it is not admitted, whatever it serves.

use std::time::Duration;

use zlink_generated::contract::{STOCK, stock_server};
use zlink_generated::zlink_wire::{self as wire, Descriptor, Hello, NodeState, Topology};
use zlink_runtime::error::ErrorKind;
use zlink_runtime::location::{Batch, Key, LocationStore, MemoryStore, Mutation, Written};
use zlink_runtime::prelude::*;
use zlink_runtime::rt;

use crate::kit::{Clerk, ask, kind, node, settle, targets, until};

const OWNER: [u8; 16] = [7; 16];

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

async fn apply(store: &MemoryStore, mut mutations: Vec<Mutation>) {
    mutations.push(Mutation::put(key("stamp/node/shop"), "x"));
    let written = store.write(&Batch::new([], mutations).unwrap()).await;
    assert!(matches!(written, Ok(Written::Applied { .. })), "{written:?}");
}

/// Says that a node `rid` of the mesh `shop` listens at `endpoint`, and that its host will live for an hour.
async fn claim(store: &MemoryStore, rid: &str, role: wire::ObjectRole, endpoint: &str) {
    let lease = wire::Lease {
        ttl_ms: 3_600_000,
        nonce: vec![1; 8],
        ..wire::Lease::default()
    };
    let descriptor = Descriptor {
        owner: OWNER.to_vec(),
        lease: 0,
        node: Hello {
            topology: Topology::RouteMesh,
            scope: "shop".into(),
            rid: rid.into(),
            generation: 1,
            revision: 1,
            role,
            endpoint: endpoint.into(),
            max_message: 1_000_000,
            state: NodeState::Serving,
            ..Hello::default()
        },
    };
    let lease = rt::encode(&lease, <[u8]>::to_vec).unwrap();
    let descriptor = rt::encode(&descriptor, <[u8]>::to_vec).unwrap();
    let owner: String = OWNER.iter().map(|byte| format!("{byte:02x}")).collect();
    let record = key(&format!("node/shop/{rid}"));
    apply(
        store,
        vec![
            Mutation::put(key(&format!("lease/{owner}")), lease),
            Mutation::put(record, descriptor),
        ],
    )
    .await;
}

/// A server with a fixed RID that the store knows nothing of.
async fn stranger(rid: &str) -> (Host, String) {
    let clerk = Clerk::new(rid);
    let host = Host::builder()
        .mesh("shop", |mesh| {
            mesh.rid(rid).listen("tcp://127.0.0.1:0").serve(stock_server(clerk))
        })
        .start()
        .await
        .unwrap();
    let endpoint = host.mesh("shop").unwrap().endpoint().to_string();
    (host, endpoint)
}

/// REQ: LS-055, LS-005
#[tokio::test]
async fn another_run_than_the_store_names_is_refused() {
    let store = MemoryStore::new();
    let (_s, endpoint) = stranger("s").await;
    claim(&store, "s", wire::ObjectRole::None, &endpoint).await;
    let c = node(store.clone(), "a", |mesh| mesh.client(STOCK))
        .start()
        .await
        .unwrap();
    let at = c.clone();
    until("the refusal", move || {
        let peers = at.mesh("shop").unwrap().status().peers;
        let failure = peers.first().and_then(|peer| peer.failure.clone());
        failure.is_some_and(|failure| failure.contains("another run"))
    })
    .await;
    settle(&c).await;
    assert_eq!(targets(&c), [""; 0]);
    assert_eq!(
        kind(ask(&c).await),
        ErrorKind::NotFound,
        "what it published serves nothing"
    );
}

/// REQ: NET-506
#[tokio::test]
async fn a_manual_endpoint_of_an_object_peer_admits_only_whom_the_store_names_there() {
    let store = MemoryStore::new();
    let (_s, endpoint) = stranger("s").await;
    claim(&store, "other", wire::ObjectRole::Server, &endpoint).await;
    let c = node(store.clone(), "a", |mesh| mesh.client(STOCK))
        .start()
        .await
        .unwrap();
    let at = c.clone();
    until("the list", move || at.mesh("shop").unwrap().status().peers.len() == 1).await;
    let mesh = c.mesh("shop").unwrap();
    mesh.connect(&endpoint, None).unwrap();
    let refused = || {
        let failure = mesh.intents()[0].failure.clone();
        failure.is_some_and(|failure| failure.contains("names other at that endpoint"))
    };
    let watch = crate::kit::Stopwatch::start();
    while !refused() {
        assert!(!watch.is_past(crate::kit::SOON), "not in time: {:?}", mesh.intents());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(ask(&c).await.is_err());
    // Once the store names nobody there, whoever answers is taken.
    apply(&store, vec![Mutation::Delete(key("node/shop/other"))]).await;
    let at = c.clone();
    until("a server", move || {
        let status = at.mesh("shop").unwrap().status();
        !status.channels[0].1.is_empty()
    })
    .await;
    assert_eq!(ask(&c).await.unwrap(), "s");
}
