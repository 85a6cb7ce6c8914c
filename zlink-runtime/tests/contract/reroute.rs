//! Calls that wait for room at a server which leaves: they are submitted to nobody yet, so another one takes them.

use tokio::task::JoinHandle;
use zlink_generated::contract::{Note, ORDERS, orders_client, orders_server};
use zlink_generated::zlink_wire::{ChannelServer, Hello, RecordKind};
use zlink_runtime::error::CallError;
use zlink_runtime::prelude::*;

use super::kit::*;

/// Calls that wait for room: as many requests, and as many messages one way.
const WAITING: u64 = 200;

struct Waiting {
    requests: Vec<JoinHandle<Result<Note, CallError>>>,
    sends: Vec<JoinHandle<Result<(), CallError>>>,
}

impl Waiting {
    /// Starts them, for the only server there is: it has asked for a pause and taken `accepted` requests before.
    async fn start(client: &Host, accepted: usize) -> Self {
        let waiting = Self {
            requests: (0..WAITING)
                .map(|number| spawn(orders_client(client).ask(note("", number))))
                .collect(),
            sends: (0..WAITING)
                .map(|number| spawn(orders_client(client).tell(note("", number))))
                .collect(),
        };
        let (all, client) = (accepted + waiting.requests.len(), client.clone());
        until("all requests wait", move || client.status().waiting_requests == all).await;
        settle().await;
        waiting.still_waits();
        waiting
    }

    fn still_waits(&self) {
        assert!(!self.requests.iter().any(JoinHandle::is_finished));
        assert!(!self.sends.iter().any(JoinHandle::is_finished));
    }

    /// Every one runs at `desk`, once, and nothing else does.
    async fn all_run_at(self, desk: &Desk) {
        for request in self.requests {
            soon("a reply", request).await.unwrap().unwrap();
        }
        for send in self.sends {
            soon("a send", send).await.unwrap().unwrap();
        }
        let all = 2 * usize::try_from(WAITING).unwrap();
        desk.reached(all).await;
        settle().await;
        assert_eq!(desk.runs(), all);
    }
}

/// A server `a` that runs one request, has two in its queue, and has asked `client` for a pause; one `b` with weight 0.
struct Scene {
    a: Host,
    desk_a: Desk,
    b: Host,
    desk_b: Desk,
    client: Host,
    accepted: Vec<JoinHandle<Result<Note, CallError>>>,
}

impl Scene {
    async fn set() -> Self {
        let (desk_a, desk_b) = (Desk::new("a"), Desk::new("b"));
        let orders = orders_server(desk_a.clone()).dispatch_limit(1);
        let a = node("a", |mesh| mesh.serve(orders))
            .max_queued_jobs(2)
            .start()
            .await
            .unwrap();
        let b = server("b", 0, &desk_b).await;
        let client = client("client", &[&a, &b]).await;
        // On several threads a link may be seen as ready a moment before selection is told.
        let (looking, rid) = (client.clone(), rid_of(&a));
        until("a is selected", move || targets(&looking).contains(&rid)).await;
        let ask = |number| spawn(orders_client(&client).ask(note("hold", number)));
        let mut accepted = vec![ask(1)];
        desk_a.reached(1).await;
        accepted.extend([ask(2), ask(3)]);
        paused(&client).await;
        Self {
            a,
            desk_a,
            b,
            desk_b,
            client,
            accepted,
        }
    }

    /// Waits until `b` can be selected.
    async fn admit_b(&self) {
        self.b.mesh("shop").unwrap().set_weight(ORDERS, 100).unwrap();
        let (client, b) = (self.client.clone(), rid_of(&self.b));
        until("b is selected", move || targets(&client).contains(&b)).await;
    }
}

/// Who can be selected for `orders` at `host`.
fn targets(host: &Host) -> Vec<Rid> {
    let channels = host.mesh("shop").unwrap().status().channels;
    let targets = channels.into_iter().flat_map(|(_, targets)| targets);
    targets.map(|target| target.rid).collect()
}

/// Waits until a peer has asked `client` for a pause.
async fn paused(client: &Host) {
    let client = client.clone();
    until("a pause", move || {
        let peers = client.mesh("shop").unwrap().status().peers;
        peers.iter().any(|peer| peer.paused)
    })
    .await;
}

/// A server that drains while calls wait for room there: they go elsewhere, and what it has accepted it finishes.
///
/// REQ: CH-304, CH-310, EX-85
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_for_room_leave_a_server_that_drains() {
    let scene = Scene::set().await;
    let waiting = Waiting::start(&scene.client, scene.accepted.len()).await;
    scene.admit_b().await;
    waiting.still_waits();
    let a = scene.a.clone();
    let draining = tokio::spawn(async move { a.shutdown().await });
    waiting.all_run_at(&scene.desk_b).await;
    scene.desk_a.gate().open();
    for accepted in scene.accepted {
        assert_eq!(soon("a reply", accepted).await.unwrap().unwrap().text, "a");
    }
    soon("the drain", draining).await.unwrap().unwrap();
    assert_eq!(scene.desk_a.runs(), 3);
}

/// A weight of 0 moves what waits for room, where there is another server; where there is none it stays.
///
/// REQ: CH-302, CH-310
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_for_room_leave_a_server_with_weight_0_for_another() {
    let scene = Scene::set().await;
    let waiting = Waiting::start(&scene.client, scene.accepted.len()).await;
    scene.a.mesh("shop").unwrap().set_weight(ORDERS, 0).unwrap();
    let client = scene.client.clone();
    until("nobody is selected", move || targets(&client).is_empty()).await;
    settle().await;
    waiting.still_waits();
    scene.admit_b().await;
    waiting.all_run_at(&scene.desk_b).await;
    scene.desk_a.gate().open();
}

/// A server that is lost while calls wait for room there: they go elsewhere; what it had taken may have run.
///
/// REQ: CH-310, CH-501, EX-85
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_for_room_leave_a_server_that_is_lost() {
    let desk = Desk::new("b");
    let mut a = Raw::listen("a").await;
    let b = server("b", 0, &desk).await;
    let client = client("client", &[&b]).await;
    client.mesh("shop").unwrap().connect(&a.endpoint(), None).unwrap();
    let a = a.accept().await;
    let orders = ChannelServer {
        name: "orders".into(),
        weight: 100,
    };
    a.admit(&Hello {
        channels: vec![orders],
        ..hello_of("a")
    })
    .await;
    linked(&client, &Rid::new("a").unwrap()).await;
    let taken = spawn(orders_client(&client).ask(note("", 0)));
    a.heard(RecordKind::ChannelRequest).await;
    a.announce(1, true);
    paused(&client).await;
    let waiting = Waiting::start(&client, 1).await;
    b.mesh("shop").unwrap().set_weight(ORDERS, 100).unwrap();
    let (looking, rid) = (client.clone(), rid_of(&b));
    until("b is selected", move || targets(&looking).contains(&rid)).await;
    waiting.still_waits();
    a.leave();
    waiting.all_run_at(&desk).await;
    let failed = failure(soon("a failure", taken).await.unwrap());
    assert_eq!(failed, (ErrorKind::Unavailable, Execution::Unknown));
    assert_eq!(
        a.count(RecordKind::ChannelRequest) + a.count(RecordKind::ChannelSend),
        0
    );
}
