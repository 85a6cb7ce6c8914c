//! What no call of a Spot crosses: from one mesh to another, and what of it is on the wire of a ClientServer channel.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zlink_generated::billing::{self, BillingHandler, Charge, Receipt};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::*;
use zlink_runtime::{ListenerKind, PeerState};

use crate::arena::*;
use crate::far;
use crate::kit::*;
use crate::stores::on_every_store;
use crate::wait::{until_within, within};

const LIMIT: Duration = Duration::from_secs(30);
const TILL: ChannelName = ChannelName::from_static("till");

struct Till(World);

impl BillingHandler for Till {
    async fn charge(&self, _: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
        self.0.note(format!("charged {}", charge.order));
        let number = format!("R-{}", charge.order);
        Ok(Receipt { number })
    }
}

/// All that passes, in both directions.
#[derive(Clone, Default)]
struct Tap(Arc<Mutex<Vec<u8>>>);

impl Tap {
    /// An address that leads to `behind`.
    async fn before(&self, behind: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let tap = self.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = TcpStream::connect(&behind).await.unwrap().into_split();
                tokio::spawn(tap.clone().copy(near_in, far_out));
                tokio::spawn(tap.clone().copy(far_in, near_out));
            }
        });
        address
    }

    async fn copy(self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            self.0.lock().extend_from_slice(&bytes[..count]);
            if to.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    }

    fn has_seen(&self, what: &[u8]) -> bool {
        self.0.lock().windows(what.len()).any(|bytes| bytes == what)
    }
}

/// REQ: SP-153, CH-703
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_spot_is_on_the_wire_of_a_channel_that_it_calls() -> Tested {
    on_every_store(async |store| {
        let world = World::new();
        let bank = Host::builder().client_server(|channel| {
            let server = billing::server(Till(world.clone())).on(TILL);
            channel.serve(server).listen("tcp://127.0.0.1:0")
        });
        let bank = bank.start().await?;
        let behind = bank
            .listener(ListenerKind::ClientServer, TILL.as_str())?
            .endpoint
            .to_string();
        let wire = Tap::default();
        let till = wire.before(behind.strip_prefix("tcp://").unwrap().to_owned()).await;
        let owner = Host::builder().location_store(store.open()).shared(world.clone());
        let owner = owner.mesh("world", |mesh| {
            mesh.rid_prefix("owner").listen("tcp://127.0.0.1:0").object_server(all)
        });
        let owner = owner.client_server(|channel| channel.client(TILL).connect(format!("tcp://{till}")));
        let owner = owner.start().await?;
        let rid = owner.mesh("world")?.rid();
        let caller = Host::builder().location_store(store.open());
        let caller = caller.mesh("world", |mesh| {
            mesh.rid_prefix("caller").listen("tcp://127.0.0.1:0").object_client()
        });
        let caller = caller.start().await?;
        for (host, peers) in [(&caller, 1), (&owner, 1)] {
            let host = host.clone();
            until_within(LIMIT, "a link", move || {
                let peer = host.mesh("world").unwrap().status().peers;
                peer.iter().filter(|peer| peer.state == PeerState::Ready).count() == peers
            })
            .await;
        }
        let id = "needle-of-a-spot";
        room(&caller, id, "x").await?;
        for (host, order) in [(&caller, "needle-of-an-order"), (&owner, "needle-of-another")] {
            let one = room_spots(host).of(id);
            let paid = within(LIMIT, look(&one, &format!("charge till {order}"))).await;
            assert_eq!(paid.unwrap()?, format!("R-{order}"));
            assert!(wire.has_seen(order.as_bytes()), "it is not hidden");
            assert!(!wire.has_seen(id.as_bytes()));
            assert!(!wire.has_seen(rid.as_bytes()), "nor who has it");
        }
        for host in [caller, owner, bank] {
            host.shutdown().await?;
        }
        Ok(())
    })
    .await
}

/// A process that is in both meshes carries nothing from one to the other: neither calls of Spots nor calls to them.
///
/// REQ: SP-153, SP-150, CH-703
#[tokio::test(start_paused = true)]
async fn a_process_in_two_meshes_is_no_bridge_between_them() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 112);
        serves(&cluster, &world, "owner");
        let with_store = far::with_store(&cluster, "bridge");
        cluster.node("bridge", move |host| {
            let host = with_store(host);
            let host = host.mesh("world", |mesh| mesh.listen("tcp://bridge:1").object_client());
            host.mesh("far", |mesh| {
                mesh.listen("tcp://bridge:2").client(billing::BILLING).object_client()
            })
        });
        let (with_store, shared) = (far::with_store(&cluster, "bank"), world.clone());
        cluster.node("bank", move |host| {
            let host = with_store(host);
            host.mesh("far", |mesh| {
                let server = billing::server(Till(shared.clone()));
                mesh.listen("tcp://bank:1").serve(server).object_client()
            })
        });
        start(&cluster).await?;
        let (bridge, bank) = (cluster.host("bridge"), cluster.host("bank"));
        let (one, _) = room(&cluster.host("owner"), "one", "x").await?;
        let through = room_spots(&bridge).of("one");
        let charge = Charge {
            order: "tea".to_owned(),
            cents: 1,
        };
        assert_eq!(
            billing::client(&bridge).charge(charge).await?.number,
            "R-tea",
            "it reaches both"
        );
        assert_eq!(look(&through, "lines").await?, "x");
        assert_eq!(
            look(&one, "charge billing").await?,
            "NotFound",
            "and the room none but its own"
        );
        let far = room_spots(&bank).of("one");
        let refused = look(&far, "lines").await.unwrap_err();
        assert_eq!(
            (refused.kind(), refused.execution()),
            (Some(ErrorKind::Unavailable), Execution::NotExecuted),
            "{refused}"
        );
        let refused = far.say(text("never")).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Unavailable), "{refused}");
        assert_eq!(look(&one, "lines").await?, "x");
        assert_eq!(world.count("charged"), 1, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}
