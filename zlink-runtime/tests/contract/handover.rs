//! What becomes of links and peers that others have taken the place of: nobody waits for them, and nobody misses them.

use std::time::Duration;

use zlink_generated::contract::{ORDERS, orders_server};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::TopologyPhase;
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;

use super::kit::*;

/// A peer that keeps a link for ever which both sides have given up keeps nobody from making a new one when the one in
/// use is lost, and it can keep no more than one.
///
/// REQ: NET-504
#[tokio::test]
async fn a_link_that_retires_is_waited_for_by_nobody() {
    let host = node("a", |mesh| mesh).start().await.unwrap();
    let raw = Rid::new("raw").unwrap();
    let mut listener = Raw::listen("raw").await;
    let theirs = Raw::join(&endpoint(&host), &hello_of("raw")).await;
    linked(&host, &raw).await;
    host.mesh("shop").unwrap().connect(&listener.endpoint(), None).unwrap();
    let ours = listener.accept().await;
    // The link that the smaller RID has dialled stays.
    ours.admit(&hello_of("raw")).await;
    theirs.heard(RecordKind::Retire).await;
    // It never answers that.
    ours.leave();
    let again = listener.accept().await;
    again.admit(&hello_of("raw")).await;
    linked(&host, &raw).await;
    assert!(theirs.is_open(), "what it carries may still come to its end");

    let third = Raw::join(&endpoint(&host), &hello_of("raw")).await;
    soon("the end of the first that retired", theirs.ended()).await;
    third.heard(RecordKind::Retire).await;
    assert!(third.is_open() && again.is_open());
}

/// A server that was killed and comes back at its endpoint under a new RID is not missed under the old one.
///
/// REQ: NET-409, NET-707
#[tokio::test]
async fn who_came_back_under_another_rid_is_not_missed() {
    for way in WAYS {
        let at = format!("tcp://127.0.0.1:{}", free_port());
        let serve = move |at: String| async move {
            let orders = orders_server(Desk::new("s"));
            let builder = match way {
                Way::Mesh => Host::builder().mesh("shop", |mesh| mesh.listen(at).serve(orders)),
                Way::ClientServer => Host::builder().client_server(|channel| channel.serve(orders).listen(at)),
            };
            builder.start().await.unwrap()
        };
        let (killed, kill) = doomed(serve(at.clone())).await;
        let builder = match way {
            Way::Mesh => node("client", |mesh| mesh.client(ORDERS).connect(at.as_str())),
            Way::ClientServer => Host::builder().client_server(|channel| channel.client(ORDERS).connect(at.as_str())),
        };
        let client = builder.start().await.unwrap();
        let status = || match way {
            Way::Mesh => client.mesh("shop").unwrap().status(),
            Way::ClientServer => client.client_server(ORDERS).unwrap().status(),
        };
        let ready = || status().phase == TopologyPhase::Ready && candidates(&client) == 1;
        until("the server", ready).await;
        let before = status().peers[0].rid.clone();
        kill.now();
        drop(killed);
        until("the loss", || status().phase == TopologyPhase::Degraded).await;
        let back = serve(at).await;
        until_within(Duration::from_secs(20), "nobody to be missed", ready).await;
        let peers = status().peers;
        assert_eq!(peers.len(), 1, "{peers:?}");
        assert_ne!(peers[0].rid, before);
        back.shutdown().await.unwrap();
    }
}
