//! Two hosts that flood each other until both have paused, and go on.

use std::time::Duration;

use tokio::task::JoinSet;
use zlink_generated::contract::{Note, desk_client, desk_server};
use zlink_runtime::prelude::*;

use crate::host::{Handler, SHOP};
use crate::process::{tell, told};
use crate::{PERMITS, SENDERS};

/// How many messages each sender has for the other host.
pub(crate) const EACH: u64 = 4;

/// `own`, which links with `other` where it is told where that is.
pub(crate) async fn run(own: &str, other: &str, endpoint: Option<&str>) {
    let handler = Handler::new();
    let desk = desk_server(handler.clone());
    let host = Host::builder().max_queued_jobs(PERMITS).mesh("shop", |mesh| {
        let mesh = mesh
            .rid(own)
            .listen("tcp://127.0.0.1:0")
            .serve_node(desk.dispatch_limit(1));
        match endpoint {
            Some(endpoint) => mesh.connect(endpoint),
            None => mesh,
        }
    });
    let host = host.start().await.unwrap();
    tell(&format!("endpoint {}", host.mesh("shop").unwrap().endpoint()));
    told("flood").await;
    let peer = Rid::new(other).unwrap();
    let linked = host.mesh("shop").unwrap();
    linked.linked(&peer, Duration::from_secs(30)).await.unwrap();

    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (desk, text) = (desk_client(&host, &SHOP, peer.clone()), format!("{own}-{sender}"));
        senders.spawn(async move {
            for number in 0..EACH {
                let text = text.clone();
                let note = Note {
                    text,
                    number,
                    // Small enough for all of it to be under way, were nobody paused.
                    body: vec![0; 1_000],
                };
                desk.tell(note).await.unwrap();
            }
        });
    }
    let is_paused = || {
        let peers = host.mesh("shop").unwrap().status().peers;
        host.status().jobs.paused && peers.iter().any(|peer| peer.paused)
    };
    while !is_paused() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tell(&format!("paused in_use={}", host.status().jobs.in_use()));
    told("go").await;
    handler.open();
    while let Some(end) = senders.join_next().await {
        end.unwrap();
    }
    let journal = handler.journal();
    while journal.ran(other) < SENDERS * EACH || host.status().jobs.in_use() > 0 || is_paused() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let jobs = host.status().jobs;
    tell(&format!(
        "ran other={} disorder={} pauses={} paused={}",
        journal.ran(other),
        journal.disorder(),
        jobs.transitions.div_ceil(2),
        u64::from(jobs.paused)
    ));
    // Both have what they wait for.
    told("end").await;
    host.shutdown().await.unwrap();
}
