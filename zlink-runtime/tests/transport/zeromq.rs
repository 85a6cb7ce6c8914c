//! The transport over the `zeromq` crate: the suite, with what that crate cannot do pinned by name and reason; and hosts
//! built on it.

use std::sync::Arc;

use zlink_generated::contract::{Brief, Note, ORDERS, OrdersHandler, orders_client, orders_server};
use zlink_runtime::ListenerKind;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::transport::Suite;
use zlink_runtime::testing::transport::kit::until;
use zlink_runtime::transport::ZeromqTransport;

fn suite() -> Suite {
    Suite::over(|| Arc::new(ZeromqTransport::new()))
        .speaks_zmtp()
        .known_failure(
            "what_cannot_be_bound_or_dialled_says_so",
            "connect() tries a refused endpoint again until its time is up, and says of both that time was up",
        )
        .known_failure(
            "two_thousand_half_open_handshakes",
            "a handshake has no time limit where it is accepted: half-open ones are never closed",
        )
        .known_failure(
            "declared_lengths_allocate_nothing",
            "a length of 2^31 is waited for, at whatever size, and the connection never closed",
        )
        .known_failure(
            "endless_multipart_is_closed",
            "a message may have any number of frames, all of which are kept",
        )
        .known_failure(
            "random_bytes_are_closed_and_nobody_else_suffers",
            "a declared length is allocated before anything of it has come: 'memory allocation of 2177167177096544173 \
             bytes failed', and the process aborts",
        )
        .known_failure(
            "running_out_of_descriptors",
            "the accept loop has no back-off: it spins, for all of a processor's time, until a descriptor is free",
        )
}

zlink_runtime::transport_conformance!(suite());

/// Answers with what it was asked.
struct Orders;

impl OrdersHandler for Orders {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// Hosts that are built on it make requests of each other, over a mesh and over ClientServer.
#[tokio::test]
async fn hosts_call_each_other_over_it() {
    let any = "tcp://127.0.0.1:0";
    for mesh in [true, false] {
        let serving = match mesh {
            true => Host::builder().mesh("shop", |mesh| mesh.listen(any).serve(orders_server(Orders))),
            false => Host::builder().client_server(|channel| channel.serve(orders_server(Orders)).listen(any)),
        };
        let server = serving.transport(ZeromqTransport::new()).start().await.unwrap();
        let listener = match mesh {
            true => server.listener(ListenerKind::RouteMesh, "shop"),
            false => server.listener(ListenerKind::ClientServer, "orders"),
        };
        let to = listener.unwrap().endpoint.to_string();
        let calling = match mesh {
            true => Host::builder().mesh("shop", |mesh| mesh.listen(any).client(ORDERS).connect(to)),
            false => Host::builder().client_server(|channel| channel.client(ORDERS).connect(to)),
        };
        let client = calling.transport(ZeromqTransport::new()).start().await.unwrap();
        until("a server to call", || {
            let status = match mesh {
                true => client.mesh("shop").unwrap().status(),
                false => client.client_server("orders").unwrap().status(),
            };
            status
                .channels
                .iter()
                .any(|(name, targets)| *name == ORDERS && !targets.is_empty())
        })
        .await;
        for size in 0..100 {
            let asked = Note {
                text: "over another transport".into(),
                number: 7,
                body: vec![7; 100 * size],
            };
            assert_eq!(orders_client(&client).ask(asked.clone()).await.unwrap(), asked);
        }
        client.shutdown().await.unwrap();
        server.shutdown().await.unwrap();
    }
}
